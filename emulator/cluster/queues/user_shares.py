"""What each user of a leaf holds of one partition, and the limit of each that follows from it.

Source: docs/facts/hadoop.md, section 5, and ``UsersManager.computeUserLimit``. Of the larger of two shares,
that of the active users and minimum-user-limit-percent of what is used or guaranteed, at most
user-limit-factor x guarantee. Shares are rounded up to the smallest container. A user is active with a
request of any partition.
"""

from __future__ import annotations

import math
import struct
from itertools import zip_longest

from emulator.cluster.entities import LeafQueue, TreeLeafConfig
from yarnctl import units
from yarnctl.units import NOTHING, Resources, at_least, plus

_SINGLE = struct.Struct("f")

SMALLEST = Resources(1, 0)
"""The smallest container, as GET /scheduler-overview shows it."""


class UserShares:
    """What the users hold, reserved included.

    ``ratio``: the sum of the users' dominant shares of the partition. YARN adds each change to it in 32 bits,
    and rounds what follows from it up: after some changes the limit may be one ``smallest`` higher.
    ``total``: of the partition.
    """

    __slots__ = ("held", "ratio", "smallest", "total")

    def __init__(self) -> None:
        self.smallest = SMALLEST
        self.held: dict[str, Resources] = {}
        self.ratio = 0.0
        self.total = Resources(1, 1)

    def resize(self, total_resources: Resources) -> None:
        """Set the size of the partition."""
        self.total = at_least(total_resources, Resources(1, 1))
        self.ratio = 0.0
        for size in self.held.values():
            self.ratio = single(self.ratio + self._ratio(size))

    def hold(self, user: str, size: Resources) -> None:
        """Count a container or a reservation of a user (negative: not any more)."""
        before = self.held.get(user, NOTHING)
        self.held[user] = after = plus(before, size)
        change = single(self._ratio(after) - self._ratio(before))
        self.ratio = single(self.ratio + change)

    def limit(self, leaf: LeafQueue, guaranteed_resources: Resources, most_resources: Resources) -> Resources:
        """Return what no user is given more beyond; ``most_resources``: the highest limit."""
        config, smallest = leaf.config, self.smallest
        percent = config.user_percent if isinstance(config, TreeLeafConfig) else 100
        if percent == 100:
            return self._rounded_up(most_resources)
        guaranteed = self.larger(guaranteed_resources, smallest)
        whole = self._rounded_up(Resources(*(math.ceil(single(part * self.ratio)) for part in self.total)))
        whole = guaranteed if self._shares(whole) < self._shares(guaranteed) else plus(whole, smallest)
        limit = Resources(*(math.ceil(int(part * percent) / 100) for part in whole))
        active = {app.user for app in leaf.demand}
        if active:
            held = smallest
            for user in active:
                held = plus(held, self.held.get(user, NOTHING))
            limit = self.larger(Resources(*(-(-part // len(active)) for part in held)), limit)
        return self._rounded_up(
            most_resources if self._shares(most_resources) < self._shares(limit) else limit
        )

    def larger(self, left: Resources, right: Resources) -> Resources:
        """Return the vector with the larger shares of the partition."""
        return left if self._shares(left) >= self._shares(right) else right

    def _ratio(self, size: Resources) -> float:
        parts = zip_longest(size, self.total, fillvalue=0)
        return max(single(part / whole) for part, whole in parts if whole)

    def _shares(self, size: Resources) -> tuple[int, ...]:
        return shares(size, self.total)

    def _rounded_up(self, size: Resources) -> Resources:
        steps = zip_longest(size, self.smallest, fillvalue=0)
        return Resources(*(-(-part // step) * step if step else part for part, step in steps))


def single(number: float) -> float:
    """Return a number as Java holds it in 32 bits."""
    return float(_SINGLE.unpack(_SINGLE.pack(number))[0])


def shares(size: Resources, total: Resources) -> tuple[int, ...]:
    """Return the shares of the cluster, the largest first, in a common unit."""
    if len(size) > 2 or len(total) > 2 or units.is_by_memory(total):
        return units.shares(size, at_least(total, Resources(1, 1)))
    first, second = size[0] * max(1, total[1]), size[1] * max(1, total[0])
    return (first, second) if first >= second else (second, first)
