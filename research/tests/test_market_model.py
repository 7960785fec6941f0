"""MRM's section 6.3 as a slow model: one server, millisecond by millisecond, every deadline tried in turn.

It takes the potential of Eq 13 by its definition and shares no code with the replay, so equal answers say
something.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from yarn_research.market.market_replay import replay
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs, Readings

SCHEDULERS = ("mrm", "fcfs", "priority")


class Job(NamedTuple):
    """One job: times in ms."""

    arrived: int
    duration: int
    estimate: int
    sensitive: bool


class Shop(NamedTuple):
    """How jobs are served and deadlines are priced; ``all_pay``: the running job is in Q, too."""

    scheduler: str
    kappa: float
    alpha: float
    tolerant: float
    all_pay: bool


def free_until(line: Sequence[tuple[int, int]], now: int) -> list[int]:
    """Return F at each deadline of (deadline, work) in order: the least of what is free then and later."""
    own = [
        max(0, due - now) - sum(work for _, work in line[: place + 1]) for place, (due, _) in enumerate(line)
    ]
    return [min(own[place:]) for place in range(len(line))]


def potential(weights: Sequence[int], free: Sequence[int], mean: float) -> float:
    return sum(weight / (max(0, each) / mean + 1) for weight, each in zip(weights, free, strict=True))


def bought(shop: Shop, promises: list[tuple[int, int, int]], job: Job, now: int, mean: float):
    """Return (deadline, slack, price), given (deadline, work, weight) of each promise in order."""
    budget = (shop.alpha if job.sensitive else shop.tolerant) * job.estimate
    line, weights = [each[:2] for each in promises], [each[2] for each in promises]
    free, before = free_until(line, now), potential(weights, free_until(line, now), mean)
    due = now
    while True:
        due += 1
        place = sum(each <= due for each, _ in line)
        laid = free_until([*line[:place], (due, job.estimate), *line[place:]], now)
        broken = laid[place] < 0 or any(each < job.estimate for each in free[place:])
        after = potential([*weights[:place], job.estimate, *weights[place:]], laid, mean)
        price = shop.kappa * (after - before)
        if not broken and price <= budget * (1 + 1e-12):
            return due, laid[place], price


def model(jobs: Sequence[Job], shop: Shop) -> list[tuple[int, int, int, float, bool]]:
    """Return (end, deadline, slack, price, whether it saw a tolerant job wait) of each job."""
    mean = sum(job.estimate for job in jobs) / len(jobs)
    rest, left = [job.duration for job in jobs], [job.estimate for job in jobs]
    ranks, ends, sales = dict[int, int](), dict[int, int](), []
    there: list[int] = []
    runs, now = -1, 0

    while len(ends) < len(jobs):
        while len(sales) < len(jobs) and jobs[len(sales)].arrived == now:
            number, job = len(sales), jobs[len(sales)]
            waits = [each for each in there if each != runs]
            saw = any(not jobs[each].sensitive for each in waits)
            if shop.scheduler == "mrm":
                paying = there if shop.all_pay else waits
                promises = [(ranks[each], left[each], left[each] * (each in paying)) for each in there]
                ranks[number], slack, price = bought(shop, promises, job, now, mean)
                sales.append((ranks[number], slack, price, saw))
            else:
                ranks[number] = int(shop.scheduler == "priority" and not job.sensitive)
                ahead = [left[each] for each in there if each == runs or ranks[each] <= ranks[number]]
                sales.append((now + sum(ahead) + job.estimate, 0, 0.0, saw))
            there = sorted([*there, number], key=lambda each: (ranks[each], each))
            runs = there[0] if runs < 0 or shop.scheduler == "mrm" else runs
        now += 1
        if runs >= 0:
            rest[runs], left[runs] = rest[runs] - 1, max(0, left[runs] - 1)
            if not rest[runs]:
                ends[runs] = now
                there.remove(runs)
                runs = there[0] if there else -1
    return [(ends[number], *sale) for number, sale in enumerate(sales)]


# Primes, so that no budget is met exactly: doubles may round such a slack up by a millisecond.
CHOICES = [
    (scheduler, kappa, alpha, tolerant, queue)
    for scheduler in SCHEDULERS
    for kappa, alpha, tolerant in (
        (2.0319, 2.1137, 0.5309),
        (1.9711, 1.1317, 1.0093),
        (4.1017, 5.3093, 0.9719),
    )
    for queue in ("waiting", "all")
]


def drawn_jobs(seed: int) -> PricedJobs:
    """Draw jobs so short that a model can go through the milliseconds; estimates are often wrong."""
    chance = np.random.default_rng(seed)
    lasts = chance.integers(1, 30, 14)
    estimates = np.maximum(1, lasts + chance.integers(-5, 9, 14))
    return PricedJobs(np.cumsum(chance.integers(0, 36, 14)), lasts, estimates, chance.random(14) < 0.5)


@pytest.mark.parametrize(("scheduler", "kappa", "alpha", "tolerant", "queue"), CHOICES)
def test_the_replay_gives_the_answers_of_the_slow_model(scheduler, kappa, alpha, tolerant, queue):
    for seed in range(8):
        drawn = drawn_jobs(seed)
        asked = MarketOrder(14, 1, alpha, kappa, tolerant, scheduler, readings=Readings(queue=queue))
        rows = [Job(*(column.item() for column in row)) for row in zip(*drawn, strict=True)]
        told = model(rows, Shop(scheduler, kappa, alpha, tolerant, queue == "all"))
        ended, deadline, slack, price, saw = zip(*told, strict=True)
        found = replay(asked, drawn)
        assert found.ended_ms.tolist() == list(ended), seed
        assert found.deadline_ms.tolist() == list(deadline), seed
        assert found.slack_ms.tolist() == list(slack), seed
        assert found.price.tolist() == pytest.approx(list(price), rel=1e-9), seed
        assert found.saw_tolerant.tolist() == list(saw), seed
