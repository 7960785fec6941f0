"""Late promises: when a job counts as late, when it no longer does, and how progress becomes work."""

from __future__ import annotations

import pytest

from yarnctl.deciding.admission.late.late_promises import LOOKS, LateWatch, RunningPromise, passed_ratio
from yarnctl.deciding.admission.records import Phase, Phases

SECOND, GIVEN_MS = 1_000, 100_000
TWO = Phases((Phase("map", 30, 10_000, 0), Phase("reduce", 10, 10_000, 0)), 0, 0)
ONE = Phases((Phase("map", 30, 10_000, 0),), 0, 0)


def looked(watch: LateWatch, pace: float, *, seconds: int, begin: int = 0) -> list[int]:
    """Look each second at a job that does ``pace`` of itself a second; return the seconds of new alarms."""
    alarms = []
    for second in range(begin + 1, begin + seconds + 1):
        promise = RunningPromise("adm-1", 0, GIVEN_MS, min(1.0, pace * second))
        if watch.look([promise], second * SECOND):
            alarms.append(second)
    return alarms


def test_job_that_is_too_slow_is_late_once_and_before_its_deadline() -> None:
    watch = LateWatch()
    (known,) = looked(watch, 1 / 150, seconds=90)
    assert 33 < known < 45
    late = watch.late["adm-1"]
    assert late.known_at_ms == known * SECOND
    assert late.projected_at_ms == pytest.approx(150_000, rel=0.02)


def test_job_in_time_is_never_late() -> None:
    watch = LateWatch()
    assert looked(watch, 1 / 90, seconds=90) == []
    assert not watch.late


def test_job_that_stands_still_is_late() -> None:
    watch = LateWatch()
    assert looked(watch, 0.0, seconds=90)
    assert watch.late["adm-1"].projected_at_ms > GIVEN_MS


def test_one_look_that_projects_an_end_in_time_ends_the_alarm() -> None:
    watch = LateWatch()
    looked(watch, 1 / 150, seconds=50)
    assert watch.late
    watch.look([RunningPromise("adm-1", 0, GIVEN_MS, 0.95)], 51 * SECOND)
    assert not watch.late


def test_few_looks_are_no_alarm() -> None:
    watch = LateWatch()
    for second in range(1, LOOKS):
        ratio = 0.001 * second
        assert not watch.look([RunningPromise("adm-1", 0, GIVEN_MS, ratio)], (40 + 20 * second) * SECOND)


def test_job_that_ends_or_begins_anew_is_forgotten() -> None:
    watch = LateWatch()
    looked(watch, 1 / 150, seconds=50)
    watch.look([RunningPromise("adm-1", 0, GIVEN_MS, 0.01)], 51 * SECOND)
    assert watch._paced["adm-1"].at_ms == [51 * SECOND]
    watch.look([], 52 * SECOND)
    assert (watch.late, watch._paced) == ({}, {})


@pytest.mark.parametrize(
    ("progress", "phases", "containers", "passed"),
    [
        (0.5, None, 10, 0.5),
        (0.05, TWO, 10, 0.0),
        (0.5, TWO, 10, 0.75),
        (0.5, TWO, 30, 0.5),  # a reduce takes as long as a wave of maps
        (0.725, TWO, 10, 0.875),
        (0.95, TWO, 10, 1.0),
        (0.5, ONE, 10, 0.5),
        (1.0, ONE, 10, 1.0),
    ],
)
def test_progress_becomes_time(
    progress: float, phases: Phases | None, containers: int, passed: float
) -> None:
    assert passed_ratio(progress, phases, containers) == pytest.approx(passed)
