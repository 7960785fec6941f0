"""The estimate of a job that has never run: what it follows, its spread, and when there is none."""

from __future__ import annotations

import math
import random

import pytest

from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.prediction.unseen_jobs import JOBS_LEAST, unseen_estimate


def jobs(count: int, noise: float, seed: int = 1) -> list[Finished]:
    """Return jobs whose work grows with the square root of what they can use."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        tasks = chance.randint(1, 200)
        work_ms = round(60_000 * math.sqrt(1 + tasks) * chance.lognormvariate(0, noise))
        found.append(Finished(work_ms, tasks, 600_000, tasks, 400, 1.0, True))
    return found


def estimate(finished: list[Finished], containers: int) -> Estimate:
    found = unseen_estimate(finished, containers)
    assert found is not None
    return found


@pytest.mark.parametrize("containers", [3, 50, 150])
def test_estimate_follows_the_jobs_that_ran(containers: int) -> None:
    found = estimate(jobs(100, 0.1), containers)
    assert found.mean_ms == pytest.approx(60_000 * math.sqrt(1 + containers), rel=0.15)
    assert found.source == "gp:100 other jobs"


def test_spread_grows_with_the_noise() -> None:
    narrow, wide = (estimate(jobs(100, noise), 50) for noise in (0.1, 0.8))
    assert narrow.stdev_ms < 0.3 * narrow.mean_ms
    assert wide.stdev_ms > 0.5 * wide.mean_ms


def test_nine_of_ten_new_jobs_lie_within_the_spread() -> None:
    learned, asked = jobs(80, 0.4), jobs(60, 0.4, seed=2)
    inside = 0
    for each in asked:
        found = estimate(learned, each.tasks)
        spread = math.sqrt(math.log1p((found.stdev_ms / found.mean_ms) ** 2))
        middle = math.log(found.mean_ms) - spread**2 / 2
        inside += abs(math.log(each.work_ms) - middle) <= 1.645 * spread
    assert 0.8 <= inside / len(asked) <= 0.98


def test_equal_jobs_are_estimated_as_they_were() -> None:
    same = [Finished(50_000, 4, 600_000, 4, 400, 1.0, True)] * 20
    assert estimate(same, 4).mean_ms == pytest.approx(50_000, rel=0.9)


def test_too_few_jobs_give_no_estimate() -> None:
    assert unseen_estimate(jobs(JOBS_LEAST - 1, 0.1), 5) is None
