"""MRM section 4.1: what a slot costs where sensitive jobs come with probability p (Fig 4, Eq 11).

Law: pure. A slot is True where a job waits with that deadline; slot 0 is now. A sensitive job that comes
in a slot where a waiting job must run is rejected. The price of a slot is the expected number of further
rejections if one more job gets it as its deadline; a taken slot costs what the next empty one before it
costs, for that is where the job then has to run.

Eq 11 as printed sums P[C_R = i] over m and lacks an end; it is read as
(1-p) sum_m P[O_L > m] P[C_R = m] + p sum_m P[O_L >= m] P[C_R = m].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def prices(slots: Sequence[bool], p: float) -> list[float]:
    """Return the price of each slot by Eq 11."""
    count = len(slots)
    overflows = [np.array([1.0])]  # of what is behind slot count - 1, count - 2, ...
    for taken in reversed(slots):
        overflows.append(_overflow(overflows[-1], taken, p))
    told: list[float] = []
    capacity = np.array([1.0])  # of what is before the slot
    for place, taken in enumerate(slots):
        if taken and told:
            told.append(told[-1])
        elif taken:
            told.append(float("inf"))
        else:
            told.append(_price(capacity, overflows[count - 1 - place], p))
        capacity = _capacity(capacity, taken, p)
    return told


def _overflow(behind: np.ndarray, taken: bool, p: float) -> np.ndarray:
    """Put one slot before a string: it adds 1 if it is taken and a sensitive job comes, or has room."""
    if taken:
        return np.append(behind, 0.0) * (1 - p) + np.append(0.0, behind) * p
    used = np.append(behind[1:], 0.0)
    used[0] += behind[0]
    return np.asarray(behind * p + used * (1 - p))


def _capacity(before: np.ndarray, taken: bool, p: float) -> np.ndarray:
    """Put one slot behind a string: it gives 1 if it is empty and no job comes, or needs what is before."""
    if not taken:
        return np.append(before, 0.0) * p + np.append(0.0, before) * (1 - p)
    used = np.append(before[1:], 0.0)
    used[0] += before[0]
    return np.asarray(before * (1 - p) + used * p)


def _price(capacity: np.ndarray, overflow: np.ndarray, p: float) -> float:
    at_least = np.cumsum(overflow[::-1])[::-1]  # P[O >= m]
    most = max(len(capacity), len(at_least) + 1)
    least = np.zeros(most + 1)
    least[: len(at_least)] = at_least
    chance = np.zeros(most)
    chance[: len(capacity)] = capacity
    return float((1 - p) * (least[1:] @ chance) + p * (least[:-1] @ chance))


def brute_force(count: int, p: float) -> np.ndarray:
    """Return the price of each slot of each string of so many slots, by playing all arrivals.

    Row: the string as a number, bit i for slot i. Taken slots are not priced (NaN).
    """
    strings = np.arange(1 << count)
    rejected = np.zeros((len(strings), len(strings)), dtype=np.int64)  # string, pattern of arrivals
    waiting = np.repeat(strings[:, None], len(strings), axis=1)
    for slot in range(count):
        comes = (strings >> slot & 1).astype(bool)[None, :]
        due = (waiting >> slot & 1).astype(bool)
        rejected += due & comes
        first = waiting & -waiting  # the waiting job with the earliest deadline runs if none comes
        waiting = waiting & ~np.where(comes, due.astype(np.int64) << slot, first)
    arrivals = np.array([bin(each).count("1") for each in strings])
    weights = p**arrivals * (1 - p) ** (count - arrivals)
    expected = rejected @ weights
    told = np.full((len(strings), count), np.nan)
    for slot in range(count):
        empty = strings[(strings >> slot & 1) == 0]
        told[empty, slot] = expected[empty | 1 << slot] - expected[empty]
    return told


def worst_difference(most: int, p: float) -> float:
    """Return the largest difference between Eq 11 and brute force over all strings of 1 to ``most`` slots."""
    worst = 0.0
    for count in range(1, most + 1):
        played = brute_force(count, p)
        for number in range(1 << count):
            slots = [bool(number >> each & 1) for each in range(count)]
            told = np.array(prices(slots, p))
            empty = ~np.array(slots)
            worst = max(worst, float(np.max(np.abs(told[empty] - played[number][empty]), initial=0.0)))
    return worst
