"""Attempts of maps are read once, and again where their task's row no longer tells all."""

from __future__ import annotations

from yarnctl.frameworks.mapreduce.known_maps import STARTING_MS, KnownMaps
from yarnctl.frameworks.mapreduce.rest import Task, TaskAttempt
from yarnctl.hadoop.wire.yarn import ContainerRow

APP, NOW_MS = "application_1_1", 1_000_000
MAP, REDUCE_PRIORITY = 20, 10


def task(number: int, percent: float = 0.0) -> Task:
    return Task(f"task_1_1_m_{number:06d}", "MAP", "RUNNING", percent)


def attempt(number: int, container: str, again: int = 0) -> TaskAttempt:
    name = f"attempt_1_1_m_{number:06d}_{again}"
    return TaskAttempt(name, "RUNNING", "MAP", 1.0, started_at_ms=5, container=container)


def listed(*names: str, at_ms: int = 0, priority: int = MAP) -> dict[str, ContainerRow]:
    return {name: ContainerRow(name, priority=priority, started_at_ms=at_ms) for name in names}


def filled(*containers: str) -> KnownMaps:
    known = KnownMaps()
    for number, container in enumerate(containers):
        known.note(APP, task(number).task, [attempt(number, container)])
    return known


def test_known_map_has_its_tasks_progress() -> None:
    known = filled("c0", "c1")
    found = known.known(APP, [task(0, 40.0), task(1, 70.0)], listed("c0", "c1"), NOW_MS)
    assert [(one.attempt, one.progress_percent) for (one,) in found.values()] == [
        ("attempt_1_1_m_000000_0", 40.0),
        ("attempt_1_1_m_000001_0", 70.0),
    ]


def test_map_whose_container_is_gone_is_read_again() -> None:
    found = filled("c0", "c1").known(APP, [task(0), task(1)], listed("c1"), NOW_MS)
    assert list(found) == [task(1).task]


def test_ended_task_is_forgotten() -> None:
    known = filled("c0", "c1")
    known.known(APP, [task(1)], listed("c0", "c1"), NOW_MS)
    assert list(known.known(APP, [task(0), task(1)], listed("c0", "c1"), NOW_MS)) == [task(1).task]


def test_container_of_no_known_attempt_makes_all_be_read_once() -> None:
    known, both = filled("c0", "c1"), [task(0), task(1)]
    containers = listed("c0", "c1", "second")
    assert known.known(APP, both, containers, NOW_MS) == {}
    known.note(APP, both[0].task, [attempt(0, "c0"), attempt(0, "second", again=1)])  # read at each look
    known.note(APP, both[1].task, [attempt(1, "c1")])
    assert list(known.known(APP, both, containers, NOW_MS)) == [both[1].task]


def test_container_of_a_starting_task_or_of_a_reduce_makes_nothing_be_read() -> None:
    both = [task(0), task(1)]
    for other in (listed("new", at_ms=NOW_MS - STARTING_MS + 1), listed("r", priority=REDUCE_PRIORITY)):
        assert len(filled("c0", "c1").known(APP, both, listed("c0", "c1") | other, NOW_MS)) == 2


def test_container_of_an_unread_task_makes_only_that_one_be_read() -> None:
    found = filled("c0", "c1").known(APP, [task(0), task(1), task(2)], listed("c0", "c1", "c2"), NOW_MS)
    assert list(found) == [task(0).task, task(1).task]


def test_reduces_and_attempts_without_a_container_are_not_kept() -> None:
    known = KnownMaps()
    known.note(APP, "task_1_1_r_000000", [attempt(0, "c0")])
    known.note(APP, task(1).task, [attempt(1, "")])
    tasks = [Task("task_1_1_r_000000", "REDUCE", "RUNNING"), task(1)]
    assert known.known(APP, tasks, listed("c0"), NOW_MS) == {}


def test_dropped_application_is_forgotten() -> None:
    known = filled("c0")
    known.drop([APP])
    assert known.known(APP, [task(0)], listed("c0"), NOW_MS) == {}
