"""MRM's Fig 5: tolerant users buy slots with at most c, sensitive ones come and may be rejected.

Law: chance is drawn before a run; the prices are those of ``slots``. A price depends on nothing but which slots
are taken, and a run meets few such patterns, so each pattern is priced once.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from yarn_research.market.slots import prices


class Slotted(NamedTuple):
    """One run: the ratio of sensitive jobs that were rejected, the mean slack of tolerant ones in slots."""

    rejected_ratio: float
    slack_slots: float


def run(rate: float, p: float, c: float, count: int, seed: int) -> Slotted:
    """Play so many slots: Poisson tolerant jobs at ``rate``, then a sensitive one with probability p."""
    chance = np.random.default_rng([seed, 5])
    tolerant = chance.poisson(rate, count)
    sensitive = chance.random(count) < p
    taken = 0  # bit i: the deadline i slots from now
    rejected, came, slack, bought = 0, 0, 0, 0
    for arrived, comes in zip(tolerant.tolist(), sensitive.tolist(), strict=True):
        for _ in range(arrived):
            first = (~taken & (taken + 1)).bit_length() - 1  # the lowest bit that is not set
            found = cheap_enough(taken, p, c)
            taken |= 1 << found
            slack += found - first
            bought += 1
        if comes:
            came += 1
            rejected += taken & 1
        else:
            taken &= taken - 1  # the first waiting job runs
        taken >>= 1
    return Slotted(rejected / max(1, came), slack / max(1, bought))


@cache
def cheap_enough(taken: int, p: float, c: float) -> int:
    """Return the first empty slot that costs at most c (Eq 11, c above 0); bit i of ``taken`` is slot i."""
    count = taken.bit_length() + 1
    while True:
        slots = [bool(taken >> slot & 1) for slot in range(count)]
        for slot, price in enumerate(prices(slots, p)):
            if not slots[slot] and price <= c:
                return slot
        count += 8
