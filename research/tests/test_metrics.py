"""Every metric against a replay small enough to be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from yarn_research.admission.metrics import (
    CONFIDENCE,
    equality,
    fairness,
    idle_groups,
    productive_ratio,
    scores,
    spent_ms,
    utilisation,
    wasted_ratio,
)
from yarn_research.admission.traces.trace import NEVER, ReplayOutcome, Trace

MINUTE = 60_000


def column(*values: int):
    return np.array(values, dtype=np.int64)


# On 10 containers: A met its deadline, B ended late, C was ended at its deadline, D never ran, E comes last.
TRACE = Trace(
    "by hand", column(0, 0, 0, 0, 3 * MINUTE), column(10, 4, 4, 20, 1), column(10, 8, 8, 20, 1) * MINUTE
)
OUTCOME = ReplayOutcome(
    capacity=10,
    deadline_ms=column(2, 2, 2, 1, 2) * MINUTE,
    started_at_ms=np.array([0, MINUTE, MINUTE, NEVER, 3 * MINUTE]),
    ended_at_ms=column(2, 3, 2, 1, 4) * MINUTE,
    containers=column(5, 4, 2, 0, 1),
    met=np.array([True, False, False, False, True]),
)


def test_ratios_of_jobs_and_of_work():
    found = scores(TRACE, OUTCOME)
    assert (found.jobs, found.met, found.missed, found.dropped) == (5, 2, 2, 1)
    assert found.sdr == 2 / 5
    assert productive_ratio(TRACE, OUTCOME) == 11 / 47
    assert (spent_ms(TRACE, OUTCOME) / MINUTE).tolist() == [10, 8, 2, 0, 1]
    assert wasted_ratio(TRACE, OUTCOME) == 10 / 47


def test_utilisation_is_taken_while_the_trace_lasts():
    # in three minutes: A 2 x 5, B 2 x 4, C 1 x 2; E comes with the last millisecond and holds one in it
    assert utilisation(TRACE, OUTCOME) == (20 * MINUTE + 1) / (10 * (3 * MINUTE + 1))


def jain(*values: float) -> float:
    return sum(values) ** 2 / (len(values) * sum(value**2 for value in values))


def test_fairness_at_every_full_minute():
    # minute 0: A has half, B, C and D (whose demand is the capacity) nothing; 1: D is gone, B has all, C half
    indices = [jain(0.5, 0, 0, 0), jain(0.5, 1.0, 0.5), jain(1.0), jain(1.0)]
    found = fairness(TRACE, OUTCOME)
    assert found.mean == pytest.approx(sum(indices) / 4)
    assert found.intervals == 4
    assert found.bar == pytest.approx(CONFIDENCE * np.std(indices, ddof=1) / 2)


def test_equality_within_each_class_of_demand():
    # classes by demand: 10 is A and D, 4 is B and C, 1 is E; each index counts as often as it has jobs
    minute_0 = (2 * jain(5, 0) + 2 * 1.0) / 4  # B and C both have nothing: equal
    minute_1 = (1 * jain(5) + 2 * jain(4, 2)) / 3
    found = equality(TRACE, OUTCOME)
    assert found.mean == pytest.approx((minute_0 + minute_1 + 1.0 + 1.0) / 4)
    assert found.intervals == 4


def test_jobs_that_no_full_minute_sees_do_not_count():
    trace = Trace("short", column(0, 1000), column(1, 1), column(500, 500))
    met = np.array([True, True])
    outcome = ReplayOutcome(1, column(1000, 1000), column(0, 1000), column(500, 1500), column(1, 1), met)
    assert fairness(trace, outcome).intervals == 1
    assert fairness(trace, outcome).mean == 1.0


def test_sums_by_differences_are_those_of_looking_at_every_minute():
    chance = np.random.default_rng(5)
    jobs = 60
    trace = Trace(
        "random",
        np.sort(chance.integers(0, 40 * MINUTE, jobs)),
        chance.integers(1, 5, jobs),
        chance.integers(1, 9, jobs) * MINUTE,
    )
    waits, runs = chance.integers(0, 3 * MINUTE, jobs), chance.integers(1, 9 * MINUTE, jobs)
    ran = chance.random(jobs) < 0.8
    started = np.where(ran, trace.submitted_at_ms + waits, NEVER)
    ended = trace.submitted_at_ms + waits + np.where(ran, runs, 0)
    held = np.where(ran, chance.integers(1, trace.tasks + 1), 0)
    outcome = ReplayOutcome(99, trace.work_ms, started, ended, held, ran)
    fair, equal = [], []
    for now in range(int(trace.submitted_at_ms[0]), int(trace.submitted_at_ms[-1]) + 1, MINUTE):
        there = (trace.submitted_at_ms <= now) & (now < ended)
        has = np.where(ran & (started <= now), held, 0)[there]
        if not has.any():
            continue
        demand = trace.tasks[there]
        fair.append(jain(*(has / demand)))
        classes = [has[demand == each] for each in set(demand.tolist())]
        equal.append(sum(len(each) * (jain(*each) if each.any() else 1.0) for each in classes) / len(has))
    assert fairness(trace, outcome).mean == pytest.approx(np.mean(fair), abs=1e-5)
    assert fairness(trace, outcome).intervals == len(fair)
    assert equality(trace, outcome).mean == pytest.approx(np.mean(equal))


def test_idle_groups_by_hand():
    # ten containers: 10 idle until 5, 4 until 20, 10 until 30, and 9 when the last job comes
    trace = Trace("idle", column(0, 5, 30), column(9, 6, 1), column(1, 9, 1))
    met = np.array([False, True, True])
    started, ended = np.array([NEVER, 5, 30]), column(0, 20, 31)
    changed = ReplayOutcome(10, column(9, 99, 9), started, ended, column(0, 6, 1), met)
    pairs = idle_groups(trace, changed, 2)
    # five pairs until 5, when three end; these come back at 20, one of them until 30
    ends = sorted(zip(pairs.spans_ms.tolist(), pairs.groups.tolist(), strict=True))
    assert ends == [(5, 3), (10, 1), (11, 2), (31, 2)]
    assert pairs.present_ratio == 1.0
    assert pairs.longer_than(10) == 4 / 8
    eights = idle_groups(trace, changed, 8)
    assert (eights.spans_ms.tolist(), eights.present_ratio) == ([5, 11], 16 / 31)
