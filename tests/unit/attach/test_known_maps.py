"""Attempts of maps are read once, a few in each look, and again where their task's row does not suffice."""

from __future__ import annotations

from yarnctl.frameworks.mapreduce.known_maps import MORE_MAX, READ_MAX, STARTING_MS, KnownMaps
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
    found = known.look(APP, [task(0, 40.0), task(1, 70.0)], listed("c0", "c1"), NOW_MS)
    assert [(one.attempt, one.progress_percent) for (one,) in found.known.values()] == [
        ("attempt_1_1_m_000000_0", 40.0),
        ("attempt_1_1_m_000001_0", 70.0),
    ]
    assert found.to_read == []


def test_map_whose_container_is_gone_is_read_again() -> None:
    found = filled("c0", "c1").look(APP, [task(0), task(1)], listed("c1"), NOW_MS)
    assert (list(found.known), found.to_read) == ([task(1).task], [task(0).task])


def test_ended_task_is_forgotten() -> None:
    known = filled("c0", "c1")
    known.look(APP, [task(1)], listed("c0", "c1"), NOW_MS)
    found = known.look(APP, [task(0), task(1)], listed("c0", "c1"), NOW_MS)
    assert (list(found.known), found.to_read) == ([task(1).task], [task(0).task])


def test_one_look_reads_the_first_tasks_only() -> None:
    tasks = [task(number) for number in reversed(range(READ_MAX + 9))]
    found = KnownMaps().look(APP, tasks, {}, NOW_MS)
    assert found.to_read == [row.task for row in tasks[:READ_MAX]]


def test_many_maps_are_read_once_each_and_few_in_a_look_once_enough_are_known() -> None:
    known, tasks = KnownMaps(), [task(number) for number in range(READ_MAX + 3 * MORE_MAX)]
    containers = listed(*(f"c{number}" for number in range(len(tasks))))
    read: list[list[str]] = []
    for _ in range(5):
        read.append(known.look(APP, tasks, containers, NOW_MS).to_read)
        for name in read[-1]:
            known.note(APP, name, [attempt(int(name[-6:]), f"c{int(name[-6:])}")])
    assert [len(each) for each in read] == [READ_MAX, MORE_MAX, MORE_MAX, MORE_MAX, 0]
    assert [name for each in read for name in each] == [row.task for row in tasks]
    assert len(known.look(APP, tasks, containers, NOW_MS).known) == len(tasks)


def test_what_is_read_makes_up_for_the_known_maps_that_have_left() -> None:
    known, gone = filled(*(f"c{number}" for number in range(READ_MAX))), READ_MAX // 2
    running = [task(number) for number in range(gone, 2 * READ_MAX)]
    left = listed(*(f"c{number}" for number in range(gone, 2 * READ_MAX)))
    assert len(known.look(APP, running, left, NOW_MS).to_read) == gone + MORE_MAX


def test_maps_that_become_the_first_are_read_at_once() -> None:
    """Known maps were the cheapest once; others have begun anew since, and cost less."""
    known = filled(*(f"c{number}" for number in range(READ_MAX)))
    fresh = [task(number) for number in range(READ_MAX, READ_MAX + 3 * MORE_MAX)]
    running = [*fresh, *(task(number) for number in range(READ_MAX))]
    containers = listed(*(f"c{number}" for number in range(len(running))))
    assert known.look(APP, running, containers, NOW_MS).to_read == [row.task for row in fresh]


def test_a_task_without_an_attempt_is_found_though_a_container_that_is_gone_was_listed_meanwhile() -> None:
    """Its own container became old while others were read; another belongs to a task that has ended."""
    count = READ_MAX + 2 * MORE_MAX
    known, tasks = filled("c0"), [task(number) for number in range(count)]
    late = tasks[-1]
    known.note(APP, late.task, [])
    containers = listed(*(f"c{number}" for number in range(count)), "ended")
    for _ in range(6):
        for name in known.look(APP, tasks, containers, NOW_MS).to_read:
            known.note(APP, name, [attempt(int(name[-6:]), f"c{int(name[-6:])}")])
    assert late.task in known.look(APP, tasks, containers, NOW_MS).known


def test_container_of_no_known_attempt_makes_all_be_read_once_and_shown_meanwhile() -> None:
    known, both = filled("c0", "c1"), [task(0), task(1)]
    containers = listed("c0", "c1", "second")
    found = known.look(APP, both, containers, NOW_MS)
    assert found.to_read == list(found.known) == [row.task for row in both]
    known.note(APP, both[0].task, [attempt(0, "c0"), attempt(0, "second", again=1)])  # read at each look
    known.note(APP, both[1].task, [attempt(1, "c1")])
    for _ in range(2):
        found = known.look(APP, both, containers, NOW_MS)
        assert (list(found.known), found.to_read) == ([both[1].task], [both[0].task])


def test_container_of_a_starting_task_or_of_a_reduce_makes_nothing_be_read() -> None:
    both = [task(0), task(1)]
    for other in (listed("new", at_ms=NOW_MS - STARTING_MS + 1), listed("r", priority=REDUCE_PRIORITY)):
        found = filled("c0", "c1").look(APP, both, listed("c0", "c1") | other, NOW_MS)
        assert (len(found.known), found.to_read) == (2, [])


def test_container_of_an_unread_task_makes_only_that_one_be_read() -> None:
    tasks = [task(0), task(1), task(2)]
    found = filled("c0", "c1").look(APP, tasks, listed("c0", "c1", "c2"), NOW_MS)
    assert (list(found.known), found.to_read) == ([tasks[0].task, tasks[1].task], [tasks[2].task])


def test_task_without_an_attempt_is_read_again_when_a_container_may_be_its_own() -> None:
    known, tasks = filled("c0"), [task(0), task(1), task(2)]
    for row in tasks[1:]:
        known.note(APP, row.task, [])
    assert known.look(APP, tasks, listed("c0"), NOW_MS).to_read == []
    new = listed("c0") | listed("new", at_ms=NOW_MS)
    assert known.look(APP, tasks, new, NOW_MS).to_read == [tasks[1].task]
    known.note(APP, tasks[1].task, [])  # the container is not its own
    assert known.look(APP, tasks, new, NOW_MS).to_read == [tasks[2].task]


def test_attempt_without_a_container_is_not_kept() -> None:
    known = KnownMaps()
    known.note(APP, task(1).task, [attempt(1, "")])
    assert known.look(APP, [task(1)], listed("c0"), NOW_MS) == ({}, [task(1).task])


def test_dropped_application_is_forgotten() -> None:
    known = filled("c0")
    known.drop([APP])
    assert known.look(APP, [task(0)], listed("c0"), NOW_MS) == ({}, [task(0).task])
