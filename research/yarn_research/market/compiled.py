"""The compiled replay: the same answers as ``plain``, job by job.

Law: the same integers and doubles in the same order of operations as
:mod:`yarnctl.deciding.admission.pricing.prices` on one server, where the supply until an instant is the time
until it. Imported only when the compiled engine is requested.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from yarn_research.admission.compiled.compiler import compiled
from yarn_research.market.plain import Sold, nothing_sold
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs

MRM, FCFS, PRIORITY = 0, 1, 2
SCHEDULERS = {"mrm": MRM, "fcfs": FCFS, "priority": PRIORITY}
FOREVER_MS = (1 << 53) - 1


class MarketRules(NamedTuple):
    """What decides."""

    scheduler: int
    kappa: float
    alpha: float
    tolerant: float
    all_pay: bool
    mean_ms: float


class QueueArrays(NamedTuple):
    """The jobs in the system, in the order in which they are served: ranks, jobs; and scratch for prices."""

    rank: Any
    job: Any
    behind: Any
    ahead: Any
    free: Any
    weight: Any
    owed: Any
    taken: Any


def replay_compiled(asked: MarketOrder, jobs: PricedJobs) -> Sold:
    """Replay the jobs under a scheduler; runs without the interpreter's lock."""
    count = len(jobs.arrived_ms)
    sold = nothing_sold(count)
    rules = MarketRules(
        SCHEDULERS[asked.scheduler],
        asked.kappa,
        asked.alpha,
        asked.tolerant,
        asked.readings.queue == "all",
        jobs.mean_ms,
    )
    whole = [np.zeros(count + 1, dtype=np.int64) for _ in range(6)]
    parts = [np.zeros(count + 1, dtype=np.float64) for _ in range(2)]
    queue = QueueArrays(*whole, *parts)
    _replay(rules, jobs, jobs.duration_ms.copy(), jobs.estimate_ms.copy(), queue, sold)
    return sold


@compiled
def _replay(
    rules: MarketRules, jobs: PricedJobs, rest: Any, left: Any, queue: QueueArrays, sold: Sold
) -> None:
    """Go through the arrivals."""
    now, size = 0, 0
    preemptive = rules.scheduler == MRM
    for job in range(len(jobs.arrived_ms)):
        now, size = _advance(now, jobs.arrived_ms[job], preemptive, rest, left, queue, size, sold)
        for place in range(1, size):
            if not jobs.sensitive[queue.job[place]]:
                sold.saw_tolerant[job] = True
                break
        work = jobs.estimate_ms[job]
        if preemptive:
            budget = (rules.alpha if jobs.sensitive[job] else rules.tolerant) * work
            rank, slack, price = _bought(rules, now, size, queue, left, work, budget)
            sold.deadline_ms[job], sold.slack_ms[job], sold.price[job] = rank, slack, price
        else:
            rank = 1 if rules.scheduler == PRIORITY and not jobs.sensitive[job] else 0
            ahead = 0
            for place in range(size):
                if queue.rank[place] <= rank:
                    ahead += left[queue.job[place]]
            sold.deadline_ms[job] = now + ahead + work
            if size == 0:
                rank = -1
        place = size
        while place > 0 and queue.rank[place - 1] > rank:
            queue.rank[place], queue.job[place] = queue.rank[place - 1], queue.job[place - 1]
            place -= 1
        queue.rank[place], queue.job[place] = rank, job
        size += 1
    _advance(now, 1 << 60, preemptive, rest, left, queue, size, sold)


@compiled
def _advance(
    now: int, until: int, preemptive: bool, rest: Any, left: Any, queue: QueueArrays, size: int, sold: Sold
) -> tuple[int, int]:
    """Serve until an instant; return it and how many are left."""
    gone = 0
    while gone < size:
        first = queue.job[gone]
        ran = min(rest[first], until - now)
        rest[first] -= ran
        left[first] = max(0, left[first] - ran)
        now += ran
        if rest[first] > 0:
            break
        sold.ended_ms[first] = now
        gone += 1
        if not preemptive and gone < size:
            queue.rank[gone] = -1
    if gone:
        for place in range(gone, size):
            queue.rank[place - gone], queue.job[place - gone] = queue.rank[place], queue.job[place]
    size -= gone
    return (until if size == 0 else now), size


@compiled
def _bought(
    rules: MarketRules, now: int, size: int, queue: QueueArrays, left: Any, work: int, budget: float
) -> tuple[int, int, float]:
    """Return deadline, slack and price of the earliest deadline within the budget: ``prices.within``."""
    _stand(rules, now, size, queue, left, work)
    mean = rules.mean_ms
    start = size
    while start > 0 and queue.ahead[start - 1] >= work:
        start -= 1
    for place in range(start, size + 1):
        done = queue.behind[place] + work
        most = queue.ahead[place] - work
        least = 0
        if place > 0:
            least = max(0, max(0, queue.rank[place - 1] - now) - done)
        slack = _slack_for(mean, place, min(least, most), work, budget / rules.kappa, queue)
        if slack <= most:
            first = min(place, _first_above(queue, size, slack))
            weight = work + (queue.weight[place] - queue.weight[first])
            owed = queue.owed[place] - queue.owed[first]
            price = rules.kappa * (weight / (slack / mean + 1) - owed + queue.taken[place])
            return now + done + slack, slack, price
    return FOREVER_MS, FOREVER_MS, 0.0


@compiled
def _stand(rules: MarketRules, now: int, size: int, queue: QueueArrays, left: Any, work: int) -> None:
    """Fill the scratch: ``prices.standing`` and ``prices.curve``."""
    mean = rules.mean_ms
    queue.behind[0], queue.weight[0], queue.owed[0] = 0, 0, 0.0
    queue.ahead[size] = FOREVER_MS
    for place in range(size):
        queue.behind[place + 1] = queue.behind[place] + left[queue.job[place]]
    queue.taken[size] = 0.0
    for place in range(size - 1, -1, -1):
        own = max(0, queue.rank[place] - now) - queue.behind[place + 1]
        queue.ahead[place] = min(queue.ahead[place + 1], own)
        queue.free[place] = max(0, queue.ahead[place])
        weight = left[queue.job[place]] if place > 0 or rules.all_pay else 0
        after = max(0, queue.free[place] - work)
        change = weight / (after / mean + 1) - weight / (queue.free[place] / mean + 1)
        queue.taken[place] = queue.taken[place + 1] + change
    for place in range(size):
        weight = left[queue.job[place]] if place > 0 or rules.all_pay else 0
        queue.weight[place + 1] = queue.weight[place] + weight
        queue.owed[place + 1] = queue.owed[place] + weight / (queue.free[place] / mean + 1)


@compiled
def _first_above(queue: QueueArrays, size: int, slack: int) -> int:
    """Return the first place with more free time than that: ``bisect_right``."""
    place = 0
    while place < size and queue.free[place] <= slack:
        place += 1
    return place


@compiled
def _slack_for(mean: float, place: int, least: int, work: int, budget: float, queue: QueueArrays) -> int:
    """Return the least slack within the budget at a place: ``prices._slack_for``."""
    slack = least
    first = _first_above(queue, place, slack)
    while True:
        weight = work + (queue.weight[place] - queue.weight[first])
        rest = budget + (queue.owed[place] - queue.owed[first]) - queue.taken[place]
        if rest > 0:
            needed = (weight / rest - 1) * mean
            found: int = max(slack, math.ceil(needed))
            if first == place or found <= queue.free[first]:
                return found
        elif first == place:
            return FOREVER_MS
        slack = queue.free[first]
        first += 1
