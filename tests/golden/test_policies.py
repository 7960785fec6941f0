"""Golden tables of the eviction policies: jobs and what is picked, with the claim under each."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.golden.tables import (
    GUARD_FREE,
    app,
    candidate,
    case,
    cluster,
    picked,
    picked_jobs,
    row,
    seen,
    task,
    with_,
)
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.draws import UNIT, exponential, named, uniform
from yarnctl.deciding.policies import FOREVER_MS, JOB_POLICIES, TASK_POLICIES, laxity_ms
from yarnctl.deciding.records import Decision
from yarnctl.deciding.selector import choose

JOB_TABLE = [
    # policy  containers (AM included)  wanted  picked from
    ("MR", (5, 5), 4, "a b a b"),  # two equal jobs alternate, the earliest id first (facts 2.3)
    ("MR", (9, 5), 6, "a a a a a b"),  # the largest gives until it is no longer the largest
    ("MR", (12, 36), 12, "b b b b b b b b b b b b"),  # Fig 6: MR evicts none of Research-S
    ("MR", (3, 3, 3), 9, "a b c a b c"),  # six tasks exist; the masters are never taken
    ("LR", (5, 5), 4, "a a a a"),  # LR sticks to the job it has begun with ...
    ("LR", (5, 5), 6, "a a a a b b"),  # ... until that is fully suspended (section 5)
    ("LR", (9, 5), 5, "b b b b a"),  # the smallest first; a job down to its AM drops out
    ("LR", (1, 4), 2, "b b"),  # only its AM is left: nothing to give, no endless loop (natjam 5, no. 4)
]


@pytest.mark.parametrize(("policy", "sizes", "wanted", "expected"), JOB_TABLE)
def test_resource_policies(policy, sizes, wanted, expected):
    jobs = [candidate(name, count) for name, count in zip("abc", sizes, strict=False)]
    assert picked_jobs(jobs, wanted, job_policy=policy) == expected


DEADLINE_TABLE = [
    # policy  (deadline, laxity, submitted) per job                       picked from, 2 tasks each
    ("MDF", ((200, 0, 0), (190, 0, 5), (180, 0, 10)), "a a b b c c"),  # latest deadline first
    ("MDF", ((200, 0, 0), (None, 0, 0), (300, 0, 0)), "b b c c a a"),  # no deadline: infinitely late
    ("MDF", ((200, 0, 0), (200, 0, 7), (200, 0, 3)), "b b c c a a"),  # ties: the latest submitted
    ("MDF", ((200, 0, 0), (200, 0, 0), (200, 0, 0)), "a a b b c c"),  # then the id
    ("MLF", ((900, 10, 0), (800, 30, 0), (100, 20, 0)), "b b c c a a"),  # largest laxity, not deadline
    ("MLF", ((900, -10, 0), (800, -30, 0), (100, FOREVER_MS, 0)), "c c a a b b"),  # late jobs last
    ("MLF", ((900, 10, 1), (800, 10, 2), (100, 10, 3)), "c c b b a a"),  # ties: the latest submitted
]


@pytest.mark.parametrize(("policy", "rows", "expected"), DEADLINE_TABLE)
def test_deadline_policies(policy, rows, expected):
    jobs = [
        candidate(name, 3, deadline=deadline, laxity=laxity, submitted=submitted)
        for name, (deadline, laxity, submitted) in zip("abc", rows, strict=True)
    ]
    assert picked_jobs(jobs, 6, job_policy=policy) == expected


@pytest.mark.parametrize(
    ("deadline", "submitted", "progress", "now", "laxity"),
    [
        (200, 0, 0.5, 100, 0),  # half done in 100: done at 200
        (200, 0, 0.25, 100, -200),  # a quarter in 100: done at 400, 200 late
        (200, 0, 1.0, 100, 100),  # done: nothing is left to be charged
        (200, 0, 0.0, 100, 100),  # no progress: nothing is known, nothing is charged, no overflow
        (None, 0, 0.5, 100, FOREVER_MS),  # no deadline: forever
        (200, 100, 0.5, 100, 100),  # just submitted: no time has elapsed
    ],
)
def test_laxity(deadline, submitted, progress, now, laxity):
    assert laxity_ms(deadline, submitted, progress, now) == laxity


TASK_TABLE = [
    # policy  remaining ms per task      order of picking
    ("SRT", (30, 10, 20), "a.2 a.3 a.1"),  # shortest remaining first
    ("LRT", (30, 10, 20), "a.1 a.3 a.2"),  # longest remaining first
    ("SRT", (10, 10, 10), "a.1 a.2 a.3"),  # ties: the attempt id
    ("LRT", (10, 10, 10), "a.1 a.2 a.3"),  # also backwards
    ("SRT", (30, -1, 20), "a.3 a.1 a.2"),  # unknown counts as endless: SRT takes it last ...
    ("LRT", (30, -1, 20), "a.2 a.1 a.3"),  # ... LRT first (facts section 3)
]


@pytest.mark.parametrize(("policy", "remaining", "expected"), TASK_TABLE)
def test_task_policies(policy, remaining, expected):
    tasks = [task(f"a.{n + 1}", ms) for n, ms in enumerate(remaining)]
    asked = case([candidate("a", 4)], 3, {"a": tasks[::-1]})  # the order of observing does not matter
    assert " ".join(picked(choose(asked, with_(GUARD_FREE, task_policy=policy)))) == expected


def chi_square(counts: Counter[str], expected: dict[str, float]) -> float:
    total = sum(counts.values())
    return sum((counts[name] - total * part) ** 2 / (total * part) for name, part in expected.items())


def test_pr_first_pick_is_proportional_to_the_containers_left():
    jobs = [candidate("a", 11), candidate("b", 31), candidate("c", 61)]  # 10, 30, 60 without the AMs
    counts = Counter(picked_jobs(jobs, 1, job_policy="PR", seed=seed) for seed in range(3000))
    assert chi_square(counts, {"a": 0.1, "b": 0.3, "c": 0.6}) < 13.8  # 2 degrees of freedom, p = 0.001


def test_pr_picks_without_replacement():
    """One task against two: the place of the one among three picks is uniform."""
    jobs = [candidate("a", 2), candidate("b", 3)]
    counts = Counter(picked_jobs(jobs, 3, job_policy="PR", seed=seed) for seed in range(3000))
    third = 1 / 3
    assert set(counts) == {"a b b", "b a b", "b b a"}
    assert chi_square(counts, {"a b b": third, "b a b": third, "b b a": third}) < 13.8


def test_pr_late_picks_follow_the_containers_that_are_left():
    """After ten picks from 40 + 40 the expectation is still even: nobody's clock runs ahead."""
    jobs = [candidate("a", 41), candidate("b", 41)]
    taken = Counter(
        "".join(picked_jobs(jobs, 40, job_policy="PR", seed=seed).split()[-1]) for seed in range(600)
    )
    assert chi_square(taken, {"a": 0.5, "b": 0.5}) < 10.8


def test_random_task_is_uniform_and_depends_on_the_decision():
    tasks = {"a": [task(f"a.{n}") for n in range(4)]}
    settings = with_(GUARD_FREE, task_policy="random")
    counts = Counter(
        picked(choose(case([candidate("a", 5)], 1, tasks, number=number), settings))[0]
        for number in range(2000)
    )
    assert chi_square(counts, {f"a.{n}": 0.25 for n in range(4)}) < 16.3  # 3 degrees of freedom


def test_random_draws_are_those_of_the_number_that_the_decision_records():
    """So a draw can be repeated from the journal."""
    settings = with_(GUARD_FREE, task_policy="random", in_flight_ratio_max=1.0)
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 3))
    step = Controller(settings).step(seen(snapshot, {"r1": row("r1", 49)}))
    (decision,) = (record for record in step.records if isinstance(record, Decision))
    draws = [uniform(settings.seed, decision.number, named(pick.task.attempt)) for pick in decision.picks]
    assert [pick.task_key for pick in decision.picks] == [(draw,) for draw in draws]
    assert len(draws) == 3


def test_draws_are_a_function_of_their_names():
    assert uniform(1, 2, 3) == uniform(1, 2, 3)
    assert (
        len({uniform(1, 2, 3), uniform(2, 2, 3), uniform(1, 3, 3), uniform(1, 2, 4), uniform(1, 3, 2)}) == 5
    )
    assert uniform(0) == 0xE220A8397B1DCDAF  # splitmix64's first output for seed 0


def test_exponential_has_mean_one():
    mean = sum(exponential(uniform(1, n)) for n in range(20_000)) / 20_000 / UNIT
    assert 0.97 < mean < 1.03
    assert exponential(0) > exponential(1 << 63) > exponential((1 << 64) - 1) >= 0


def test_the_dictionaries_name_the_papers_policies():
    assert list(JOB_POLICIES) == ["MR", "LR", "PR", "MDF", "MLF"]
    assert list(TASK_POLICIES) == ["SRT", "LRT", "random"]


@pytest.mark.parametrize("policy", [*JOB_POLICIES.values(), *TASK_POLICIES.values()])
def test_every_policy_cites_its_source(policy):
    assert "section" in (policy.key.__doc__ or "")
