"""Capacity over time: one step function of free containers, a value.

It is made of the capacity and of *loads* (containers used from an instant until another): what was admitted,
what is reserved, and the backlog of applications without an admission.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

FOREVER_MS = (1 << 53) - 1
"""Means "no end known"; exact in JSON."""


class Load(NamedTuple):
    """``containers`` used in [from_ms, until_ms); ``who`` names the application or reservation."""

    who: str
    containers: int
    from_ms: int
    until_ms: int = FOREVER_MS


class Pool(msgspec.Struct, frozen=True, omit_defaults=True):
    """What may be given: ``capacity`` containers of ``container_mib``.

    ``queues``: only jobs of these queues use it (none: of any); ``kinds``: only frameworks of these
    (none: any). ``name`` is "" where there is one pool. Where applications are placed, ``cost_mtokens`` is
    the price of a container-second, ``hourly_mtokens`` the most that it may cost an hour (None: no bound);
    what is placed goes to the first of ``queues``.
    """

    name: str
    capacity: int
    container_mib: int
    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    cost_mtokens: int = 1000
    hourly_mtokens: int | None = None


PoolLoads = tuple[tuple[str, tuple[Load, ...]], ...]
"""The backlog by the name of a pool."""


class Profile(NamedTuple):
    """Free containers as steps: ``free[i]`` from ``at_ms[i]`` until the next step, the last for ever.

    May be negative where more is used than there is (nodes were lost).
    """

    at_ms: tuple[int, ...]
    free: tuple[int, ...]

    def free_at(self, now_ms: int) -> int:
        """Return the free containers at an instant (before the first step: those of the first)."""
        return self.free[max(0, bisect_right(self.at_ms, now_ms) - 1)]

    def least_free(self, from_ms: int, until_ms: int) -> int:
        """Return the fewest free containers in [from_ms, until_ms)."""
        first = max(0, bisect_right(self.at_ms, from_ms) - 1)
        behind = max(first + 1, bisect_left(self.at_ms, until_ms))
        return min(self.free[first:behind])

    def with_loads(self, loads: Iterable[Load]) -> Profile:
        """Return the profile with some loads more."""
        changes = dict.fromkeys(self.at_ms, 0)
        for load in loads:
            held = load.containers if load.until_ms > load.from_ms else 0
            changes[load.from_ms] = changes.get(load.from_ms, 0) - held
            if load.until_ms < FOREVER_MS:
                changes[load.until_ms] = changes.get(load.until_ms, 0) + held
        at_ms = tuple(sorted(changes))
        more = accumulate(changes[at] for at in at_ms)
        free = [self.free_at(at) + each for at, each in zip(at_ms, more, strict=True)]
        return _shortest(at_ms, free)


def profile(capacity: int, loads: Iterable[Load] = (), from_ms: int = 0) -> Profile:
    """Return what is free from ``from_ms`` on, given all loads."""
    changes = {from_ms: 0}
    for load in loads:
        begin_ms = max(load.from_ms, from_ms)
        if load.until_ms > begin_ms and load.containers:
            changes[begin_ms] = changes.get(begin_ms, 0) - load.containers
            if load.until_ms < FOREVER_MS:
                changes[load.until_ms] = changes.get(load.until_ms, 0) + load.containers
    at_ms = tuple(sorted(changes))
    free = list(accumulate((changes[at] for at in at_ms), initial=capacity))[1:]
    return _shortest(at_ms, free)


def _shortest(at_ms: tuple[int, ...], free: list[int]) -> Profile:
    """Return the profile without steps that change nothing."""
    same = [left == right for left, right in pairwise(free)]
    kept = [place for place in range(len(free)) if place == 0 or not same[place - 1]]
    return Profile(tuple(at_ms[place] for place in kept), tuple(free[place] for place in kept))
