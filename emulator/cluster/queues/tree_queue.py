"""One queue of a tree: its limits and use in one partition, and its place among its siblings."""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import Protocol, Self

from emulator.cluster.entities import Application, LeafQueue, ParentConfig, QueueConfig, TreeLeafConfig
from yarnctl.units import NOTHING, Resources, at_least, at_most, minus, plus


class QueueSource(Protocol):
    """The queues of a configuration, which may let more be created on demand."""

    @property
    def leaves(self) -> tuple[TreeLeafConfig, ...]:
        """The leaves."""

    @property
    def parents(self) -> tuple[ParentConfig, ...]:
        """The parents, root first, each before its children."""

    def created(self, path: str) -> Self | None:
        """Return the queues with one leaf more, by its path below root; None: no parent creates it."""


class SharedLeaf(LeafQueue):
    """A leaf of a tree: where users share it, the limit of each follows what all of them use.

    Source: docs/facts/hadoop.md, section 5, and ``UsersManager.computeUserLimit``. Of the larger of two
    shares, that of the active users and minimum-user-limit-percent of what is used or guaranteed, at most
    user-limit-factor x guarantee. Shares are rounded up to ``smallest_mib``, the smallest container.

    ``reserved_mib``: by user, what is reserved for its applications: it counts as used.
    """

    __slots__ = ("_fixed_mib", "reserved_mib", "smallest_mib")

    def __post_init__(self) -> None:
        self.smallest_mib = SMALLEST_MIB
        self.reserved_mib: dict[str, int] = {}
        super().__post_init__()

    @property
    def user_mib(self) -> int | None:
        """The memory beyond which no user is given more; None: no limit."""
        config, smallest_mib = self.config, self.smallest_mib
        percent = config.user_percent if isinstance(config, TreeLeafConfig) else 100
        most_mib, factor = self._fixed_mib, config.user_limit_factor
        if most_mib is not None and factor is not None:
            most_mib = max(most_mib, int(smallest_mib * factor))
        if percent == 100:
            return most_mib
        most_mib = self.maximum_mib if most_mib is None else most_mib
        least_mib = max(self.guaranteed.memory_mib, smallest_mib)
        used_mib = self.used_mib + sum(self.reserved_mib.values())
        whole_mib = used_mib + smallest_mib if used_mib >= least_mib else least_mib
        active = {app.user for app in self.demand}
        share_mib = whole_mib * percent / 100
        if active:
            active_mib = sum(self.held_mib(user) for user in active) + smallest_mib
            share_mib = max(share_mib, active_mib / len(active))
        return min(math.ceil(share_mib / smallest_mib) * smallest_mib, most_mib)

    @user_mib.setter
    def user_mib(self, fixed_mib: int | None) -> None:
        self._fixed_mib = fixed_mib

    def held_mib(self, user: str) -> int:
        """Return the memory that a user's containers and reservations have."""
        return self.users.get(user, 0) + self.reserved_mib.get(user, 0)

    def reserve(self, user: str, memory_mib: int) -> None:
        """Count memory as reserved for a user (negative: not any more)."""
        self.reserved_mib[user] = self.reserved_mib.get(user, 0) + memory_mib


SMALLEST_MIB = 1
"""The smallest container, as GET /scheduler-overview shows it."""


class TreeQueue:
    """A parent, or a leaf with its ``leaf``, and what is used at and below it, reserved included.

    ``chain``: the queue and its ancestors, root last. ``below``: its children. ``demanding``: those with
    demand at or below them. ``label``: of the nodes that it is about; ``users``: what each holds of them.
    ``smallest``: the smallest container. ``blocked``: of a parent, the headroom of the leaves below it that a
    descent has left. ``used_others``, ``guaranteed_others``, ``maximum_others``: the same of the scheduler's
    other resource types, as vectors without memory and vcores.
    """

    def __init__(
        self,
        config: ParentConfig | QueueConfig,
        parent_queue: TreeQueue | None,
        leaf: LeafQueue | None,
        label: str = "",
    ) -> None:
        self.config = config
        self.above = parent_queue
        self.leaf = leaf
        self.label = label
        self.users: dict[str, int] = {}
        self.name = config.name
        self.chain: tuple[TreeQueue, ...] = (self,) if parent_queue is None else (self, *parent_queue.chain)
        self.demanding: list[TreeQueue] = []
        self.used_mib = self.used_vcores = 0
        self.guaranteed = self.maximum = self.blocked = Resources(0, 0)
        self.below: list[TreeQueue] = []
        if parent_queue is not None:
            parent_queue.below.append(self)
        self._total = Resources(0, 0)
        self._total_others = self.used_others = self.guaranteed_others = self.maximum_others = NOTHING
        self._guaranteed_share = 0.0
        self.smallest = Resources(SMALLEST_MIB, 0)

    @property
    def path(self) -> str:
        """The path from root, as YARN writes it."""
        return f"root.{self.name}" if self.name else "root"

    @property
    def priority(self) -> int:
        """The queue's priority: read by a parent that orders by ``priority-utilization``."""
        return self.config.priority if isinstance(self.config, ParentConfig | TreeLeafConfig) else 0

    @property
    def fair(self) -> bool:
        """Whether a leaf serves the application first that uses the least memory."""
        return isinstance(self.config, TreeLeafConfig) and self.config.fair

    @property
    def untouchable(self) -> bool:
        """Whether YARN's own preemption takes nothing from this leaf."""
        return isinstance(self.config, TreeLeafConfig) and self.config.preemption_disabled

    def serving_key(self, app: Application) -> tuple[int, ...]:
        """Return the place of an application in the line of this leaf: the lowest is served first.

        Under ``fair``, of equal use the older one, whatever the priorities.
        """
        return (app.used_mib, app.number) if self.fair else app.order

    @property
    def stopped(self) -> bool:
        """Whether this queue or one above it takes no new application."""
        return any(
            isinstance(each.config, ParentConfig | TreeLeafConfig) and each.config.stopped
            for each in self.chain
        )

    def resize(self, total_mib: int, total_vcores: int, other_resources: Resources = NOTHING) -> None:
        """Set the limits for a cluster of this size; shares are cut off, as YARN normalises them."""
        if self.leaf is not None:
            self.config = self.leaf.config
        config = self.config
        least, most = self.shares()
        self.guaranteed = Resources(int(total_mib * least + 1e-6), int(total_vcores * least + 1e-6))
        self.maximum = Resources(int(total_mib * most + 1e-6), int(total_vcores * most + 1e-6))
        self._total_others = other_resources
        self.guaranteed_others = Resources(*(int(part * least + 1e-6) for part in other_resources))
        self.maximum_others = Resources(*(int(part * most + 1e-6) for part in other_resources))
        if (
            isinstance(config, ParentConfig | TreeLeafConfig)
            and config.absolute is not None
            and not self.label
        ):
            self._set_absolute(config.absolute, config.absolute_maximum)
        self._total = Resources(total_mib, total_vcores)
        self._guaranteed_share = self._dominant_share(
            self.guaranteed[0], self.guaranteed[1], self.guaranteed_others
        )
        if self.leaf is not None and not self.label:
            self.leaf.guaranteed = self.guaranteed
            self.leaf.maximum_mib, self.leaf.maximum_vcores = self.maximum

    def _set_absolute(self, least_resources: Resources, most_resources: Resources | None) -> None:
        """Set limits that are given as resources. Siblings that want more than their parent has share it."""
        above = self.above
        assert above is not None
        wanted = [_absolute(each) for each in above.below]
        self.guaranteed = Resources(
            *(
                own
                if (whole := sum(each[kind] for each in wanted)) <= above.guaranteed[kind]
                else own * above.guaranteed[kind] // whole
                for kind, own in enumerate(least_resources)
            )
        )
        self.maximum = above.maximum
        if most_resources is not None:
            self.maximum = Resources(*map(min, most_resources, above.maximum))
        if self.leaf is not None:
            self.leaf.set_limits(self.guaranteed, *self.maximum)

    def shares(self) -> tuple[float, float]:
        """Return the shares of the cluster that are guaranteed and that are the most, as ratios."""
        config = self.config
        if self.label:
            known = isinstance(config, ParentConfig | TreeLeafConfig)
            return config.labels.get(self.label, (0.0, 0.0)) if known else (0.0, 0.0)  # type: ignore[union-attr]
        if isinstance(config, ParentConfig | TreeLeafConfig) and config.absolute is not None:
            return self._guaranteed_share, self._dominant_share(*self.maximum)
        return config.capacity_ratio, config.maximum_ratio

    def may_request(self, label: str) -> bool:
        """Return whether applications of this queue, or below it, may request a label."""
        known = isinstance(self.config, ParentConfig | TreeLeafConfig)
        accessible = self.config.accessible if known else None  # type: ignore[union-attr]
        return not label or accessible is None or label in accessible

    @property
    def user_limit_mib(self) -> int | None:
        """The memory beyond which no user of this leaf is given more; with a label factor x guarantee."""
        leaf = self.leaf
        assert leaf is not None
        if not self.label:
            return leaf.user_mib
        factor = leaf.config.user_limit_factor
        return None if factor is None else int(self.guaranteed[0] * factor)

    def user_used_mib(self, user: str) -> int:
        """Return what a user of this leaf holds, reservations included, where users are limited."""
        if self.label:
            return self.users.get(user, 0)
        assert isinstance(self.leaf, SharedLeaf)
        return self.leaf.held_mib(user)

    def user_is_over(self, app: Application, own_mib: int = 0) -> bool:
        """Return whether a user is beyond the limit in this leaf.

        ``own_mib``: what is reserved for the application, which does not count.
        """
        limit_mib = self.user_limit_mib
        return limit_mib is not None and self.user_used_mib(app.user) - own_mib > limit_mib

    def count(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> None:
        """Count room as used (negative: freed) here and in all ancestors."""
        for node in self.chain:
            node.used_mib += memory_mib
            node.used_vcores += vcores
            if other_resources is not NOTHING:
                node.used_others = plus(node.used_others, other_resources)

    def has_room(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> bool:
        """Return whether this much more is within the maximum here and in all ancestors."""
        left = self.headroom()
        wanted = zip_longest(other_resources[2:], left[2:], fillvalue=0)
        if other_resources is not NOTHING and not all(part <= whole for part, whole in wanted if part > 0):
            return False
        return memory_mib <= left[0] and vcores <= left[1]

    def headroom(self) -> Resources:
        """Return what is left below every maximum, less what is blocked there and below; may be negative."""
        least_mib, least_vcores = self.maximum
        blocked_mib = blocked_vcores = 0
        for node in self.chain:
            blocked_mib, blocked_vcores = blocked_mib + node.blocked[0], blocked_vcores + node.blocked[1]
            least_mib = min(least_mib, node.maximum[0] - node.used_mib - blocked_mib)
            least_vcores = min(least_vcores, node.maximum[1] - node.used_vcores - blocked_vcores)
        if self._total_others is NOTHING:
            return Resources(least_mib, least_vcores)
        others, blocked = self.maximum_others, NOTHING
        for node in self.chain:
            blocked = plus(blocked, node.blocked)
            left = minus(minus(node.maximum_others, node.used_others), blocked)
            others = at_most(others, left)
        return Resources(least_mib, least_vcores, *others[2:])

    def block(self) -> None:
        """Keep a leaf's headroom from the siblings that come later in this descent."""
        if self.above is not None:
            self.above.blocked = plus(self.above.blocked, at_least(self.headroom(), NOTHING))

    def _dominant_share(self, memory_mib: int, vcores: int, other_resources: Resources = NOTHING) -> float:
        total_mib, total_vcores = self._total
        share = max(
            memory_mib / total_mib if total_mib else 0.0, vcores / total_vcores if total_vcores else 0.0
        )
        parts = zip(other_resources[2:], self._total_others[2:], strict=False)
        return max([share, *(part / whole for part, whole in parts if whole)])

    def ratio(self) -> float:
        """Return used / guaranteed, as ``usedCapacity`` shows it; a queue without a guarantee is served last.

        It is the dominant share of the cluster that is used over the dominant share that is guaranteed. So a
        guarantee whose vcores are cut off counts by its memory: 7 slots of 5.76 are 122 %, not 7 / 5. One
        below the ``smallest`` container counts as one.
        """
        used_share = self._dominant_share(self.used_mib, self.used_vcores, self.used_others)
        least_share = self._dominant_share(*self.smallest)
        # YARN compares numbers of 32 bits: shares that differ by less are equal.
        share = max(self._guaranteed_share, least_share) if self._guaranteed_share else 0.0
        return round(used_share / share, 6) if share else 1e9 + used_share

    def place(self) -> tuple[float | str, ...]:
        """Return the place among its siblings: of equal ratios the larger guarantee, then the name is first.

        Under ``priority-utilization`` a queue below its guarantee comes first, then the higher priority.
        """
        ratio = self.ratio()
        place = (ratio, -self.guaranteed[0], self.name)
        above = self.above
        if above is None or not isinstance(above.config, ParentConfig) or above.config.order == "utilization":
            return place
        return (ratio >= 1.0, -self.priority, *place)


def _absolute(queue: TreeQueue) -> Resources:
    config = queue.leaf.config if queue.leaf is not None else queue.config
    assert isinstance(config, ParentConfig | TreeLeafConfig)
    return config.absolute or NOTHING
