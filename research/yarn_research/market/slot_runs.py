"""MRM's Fig 5: tolerant users buy slots with at most c, sensitive ones come and may be rejected.

Law: chance is drawn before a run and handed in; the prices are those of ``slots``, found slot by slot until
one is cheap enough. Compiled where numba is installed, the same functions otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from yarn_research.admission.replays import is_compiled_there


def _where_there(function: Function) -> Function:
    """Compile a function if numba is installed, else leave it as it is."""
    if not is_compiled_there():
        return function
    from yarn_research.admission.compiled.compiler import compiled

    return compiled(function)


Function = TypeVar("Function", bound=Callable[..., Any])
HORIZON = 1024
"""More slots ahead than any run reaches; a run that does is an error."""


class Slotted(NamedTuple):
    """One run: the ratio of sensitive jobs that were rejected, the mean slack of tolerant ones in slots."""

    rejected_ratio: float
    slack_slots: float


def run(rate: float, p: float, c: float, count: int, seed: int) -> Slotted:
    """Play so many slots: Poisson tolerant jobs at ``rate``, then a sensitive one with probability p."""
    chance = np.random.default_rng([seed, 5])
    tolerant = chance.poisson(rate, count)
    sensitive = chance.random(count) < p
    rejected, came, slack, bought = _play(tolerant, sensitive, p, c)
    return Slotted(rejected / max(1, came), slack / max(1, bought))


@_where_there
def _play(tolerant: Any, sensitive: Any, p: float, c: float) -> tuple[int, int, int, int]:
    """Go through the slots; bit i of ``taken`` is the deadline i slots from now."""
    taken = np.zeros(HORIZON, dtype=np.bool_)
    overflow = np.zeros((HORIZON + 1, HORIZON + 1))
    capacity = np.zeros(HORIZON + 1)
    rejected, came, slack, bought = 0, 0, 0, 0
    length = 0  # no slot from here on is taken
    for slot in range(len(tolerant)):
        for _ in range(tolerant[slot]):
            first = 0
            while taken[first]:
                first += 1
            found = cheap_enough(taken, length, p, c, overflow, capacity)
            taken[found] = True
            slack += found - first
            bought += 1
            length = max(length, found + 1)
        if sensitive[slot]:
            came += 1
            rejected += taken[0]
        else:
            for place in range(length):
                if taken[place]:
                    taken[place] = False
                    break
        for place in range(length):
            taken[place] = taken[place + 1]
        length = max(0, length - 1)
        while length > 0 and not taken[length - 1]:
            length -= 1
    return rejected, came, slack, bought


@_where_there
def cheap_enough(taken: Any, length: int, p: float, c: float, overflow: Any, capacity: Any) -> int:
    """Return the first empty slot that costs at most c (Eq 11); the two arrays are scratch."""
    # overflow[i, m]: chance that m jobs overflow from the slots behind slot i; they are up to length - 1
    top = max(length, 1) - 1
    overflow[top, 0] = 1.0
    most = 0
    for place in range(top, 0, -1):
        if taken[place]:
            overflow[place - 1, most + 1] = overflow[place, most] * p
            for m in range(most, 0, -1):
                overflow[place - 1, m] = overflow[place, m] * (1 - p) + overflow[place, m - 1] * p
            overflow[place - 1, 0] = overflow[place, 0] * (1 - p)
            most += 1
        else:
            for m in range(most + 1):
                above = overflow[place, m + 1] if m < most else 0.0
                overflow[place - 1, m] = overflow[place, m] * p + above * (1 - p)
            overflow[place - 1, 0] += overflow[place, 0] * (1 - p)
        # what stays possible behind slot place - 1: at most as many as are taken there
    counts = np.zeros(max(length, 1), dtype=np.int64)
    for place in range(top, 0, -1):
        counts[place - 1] = counts[place] + taken[place]
    capacity[0] = 1.0
    for place in range(HORIZON):
        if not taken[place]:
            behind = counts[place] if place < length else 0
            if _price(place, behind, min(place, top), p, overflow, capacity) <= c:
                return place
        _grow(capacity, place, taken[place], p)
    raise ValueError("no slot within the horizon is cheap enough")


@_where_there
def _price(place: int, behind: int, row: int, p: float, overflow: Any, capacity: Any) -> float:
    total = 0.0
    at_least = 0.0  # P[O >= m], from the largest m down
    for m in range(max(behind, place), -1, -1):
        above = at_least
        if m <= behind:
            at_least += overflow[row, m]
        if m <= place:
            total += capacity[m] * ((1 - p) * above + p * at_least)
    return total


@_where_there
def _grow(capacity: Any, size: int, taken: bool, p: float) -> None:
    """Put one slot behind a string of ``size`` slots."""
    capacity[size + 1] = 0.0
    if not taken:
        for m in range(size + 1, 0, -1):
            capacity[m] = capacity[m] * p + capacity[m - 1] * (1 - p)
        capacity[0] *= p
        return
    first = capacity[0]
    for m in range(size + 1):
        above = capacity[m + 1] if m <= size else 0.0
        capacity[m] = capacity[m] * (1 - p) + above * p
    capacity[0] += first * p
