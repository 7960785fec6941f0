"""Max-min fair share in whole containers, grouped by demand.

Law: nobody gets more than it demands; of those that get less, any two differ by at most one
container, and the surplus goes to the first in order. Work is proportional to the number of
*different* demands, not to the number of jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def water_level(counts: Mapping[int, int], free: int) -> tuple[int, int]:
    """Return (level, surplus): everybody may have ``level``, ``surplus`` containers are left over.

    ``counts`` says how many jobs have each demand (> 0). Those that demand more than ``level``
    are unsatisfied, and there are more of them than ``surplus``. If all are satisfied, the level
    is the largest demand and the surplus what nobody wants.
    """
    left, unsatisfied = free, sum(counts.values())
    level = 0
    for demand in sorted(counts):
        if (demand - level) * unsatisfied > left:
            more = left // unsatisfied
            return level + more, left - more * unsatisfied
        left -= (demand - level) * unsatisfied
        unsatisfied -= counts[demand]
        level = demand
    return level, left


def fair_shares(demands: Sequence[int], free: int) -> list[int]:
    """Return how many containers each demand gets, in order; earlier ones get the surplus.

    The sum is min(free, sum of demands).
    """
    counts: dict[int, int] = {}
    for demand in demands:
        counts[demand] = counts.get(demand, 0) + 1
    level, surplus = water_level(counts, free)
    shares = []
    for demand in demands:
        share = min(demand, level)
        if demand > level and surplus > 0:
            share, surplus = share + 1, surplus - 1
        shares.append(share)
    return shares


def group_shares(groups: Sequence[tuple[int, int]], capacity: int) -> list[int]:
    """Return the containers of each group of jobs with one demand, given (demand, jobs), demands ascending.

    A group's jobs take turns on its containers. Satisfied groups have all they demand; the others
    part the rest in proportion to their jobs, in whole containers (cumulative rounding, so that
    none is lost).
    """
    left, waiting = capacity, sum(jobs for _, jobs in groups)
    shares: list[int] = []
    for place, (demand, jobs) in enumerate(groups):
        if demand * waiting > left:
            passed = 0
            for _, others in groups[place:]:
                before = left * passed // waiting
                passed += others
                shares.append(left * passed // waiting - before)
            return shares
        shares.append(demand * jobs)
        left, waiting = left - demand * jobs, waiting - jobs
    return shares
