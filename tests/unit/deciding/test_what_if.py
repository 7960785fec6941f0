"""What if: the suppositions, the tasks that a copy chooses, and that the controller itself stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, size, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, Fact, Snapshot, TaskView
from yarnctl.deciding.records import encode
from yarnctl.deciding.settings import DEFAULT, LeverSettings
from yarnctl.deciding.what_if.played_forward import Forward, PlayedOutcome
from yarnctl.deciding.what_if.supposed import (
    NEW,
    LostNode,
    NewApplication,
    Supposition,
    supposed,
    with_guarantee,
)
from yarnctl.errors import Unreachable
from yarnctl.journal.fold import state_of
from yarnctl.units import Resources

TASKS = {"r1": tuple(row("r1", 59))}
MIX = with_(
    DEFAULT,
    preempting_queues=("production",),
    preemptable_queues=("research",),
    levers=LeverSettings(room_within_ms=9000, suspend_ms=7000, leave_ms=800, may_lose_ratio=1.0),
)


def new(containers: int = 3, queue: str = "production") -> NewApplication:
    return NewApplication(queue=queue, user="ann", containers=containers, size=size(1), master_size=size(1))


def tasks_of(names: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
    return {name: TASKS[name] for name in names if name in TASKS}


def ask(controller: Controller, snapshot: Snapshot, supposition: Supposition) -> PlayedOutcome:
    changed = supposed(snapshot, supposition, 0)
    return Forward(controller.copy(), changed, 0, tasks_of, supposition.application).play()


@pytest.mark.parametrize("containers", [1, 5])
def test_play_chooses_the_tasks_with_the_least_work_left(containers: int) -> None:
    outcome = ask(
        Controller(GUARD_FREE), cluster(app("r1", "research", 60)), Supposition(application=new(containers))
    )
    assert {each.requester for each in outcome.chosen} == {NEW}
    assert [each.attempt for each in outcome.chosen] == [f"r1.{n}" for n in range(1, containers + 2)]
    assert len(outcome.chosen) == containers + 1 == outcome.served
    assert outcome.first is not None
    assert outcome.whole is not None
    assert outcome.first.least_ms < outcome.first.expected_ms < outcome.first.most_ms
    assert outcome.first.most_ms < outcome.whole.most_ms


def test_play_with_free_capacity_stops_no_task() -> None:
    snapshot = cluster(app("r1", "research", 50), free={"n1": 4, "n2": 4})
    outcome = ask(Controller(GUARD_FREE), snapshot, Supposition(application=new(3)))
    assert not outcome.chosen
    assert outcome.served == 4
    assert outcome.whole is not None


class Counted(list[Fact]):
    """Facts that count how many of them are read."""

    reads = 0

    def __iter__(self) -> Iterator[Fact]:
        for each in super().__iter__():
            self.reads += 1
            yield each


def test_play_reads_facts_once_for_all_grants_of_an_application() -> None:
    snapshot = cluster(app("r1", "research", 10), free={"n1": 150, "n2": 150})
    changed = supposed(snapshot, Supposition(application=new(200)), 0)
    forward = Forward(Controller(GUARD_FREE), changed, 0, tasks_of, new(200))
    facts = forward._facts = Counted()
    assert forward.play().served == 201
    assert facts.reads < 3 * 201


def test_play_reads_tasks_of_a_silent_application_once() -> None:
    asked: list[tuple[str, ...]] = []

    def silent(names: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
        asked.append(names)
        return {}

    changed = supposed(cluster(app("r1", "research", 60)), Supposition(application=new()), 0)
    controller = Controller(with_(GUARD_FREE, silent_ms=0))  # it would read the application in each round
    Forward(controller, changed, 0, silent, new()).play()
    assert asked == [("r1",)]


@pytest.mark.parametrize("free", [{}, {"n1": 40}], ids=["rounds", "grants"])
def test_play_ends_when_its_time_is_over(free: dict[str, int]) -> None:
    left = count(4, -1)

    def require_time() -> None:
        if not next(left):
            raise Unreachable("too late")

    changed = supposed(cluster(app("r1", "research", 60), free=free), Supposition(application=new(30)), 0)
    forward = Forward(Controller(GUARD_FREE), changed, 0, lambda _: {}, new(30), require_time=require_time)
    with pytest.raises(Unreachable, match="too late"):
        forward.play()
    assert next(left) == -1


def test_play_of_research_waits_for_the_ends_of_tasks() -> None:
    snapshot = cluster(app("r1", "research", 60), guaranteed={"production": 5, "research": 95})
    outcome = ask(Controller(GUARD_FREE), snapshot, Supposition(application=new(1, "research")))
    assert not outcome.chosen
    assert outcome.whole is None


def test_play_charges_the_lever_of_a_mix() -> None:
    outcome = ask(Controller(MIX), cluster(app("r1", "research", 60)), Supposition(application=new(1)))
    assert {each.how for each in outcome.chosen} <= {"suspend", "end", "kill"}
    assert outcome.chosen
    assert all(each.lost_ms + each.overhead_ms >= 0 for each in outcome.chosen)


def test_question_changes_neither_ledger_nor_the_next_decision() -> None:
    snapshot = cluster(app("r1", "research", 59), app("p1", "production", 1, 2))
    asked, other = Controller(GUARD_FREE), Controller(GUARD_FREE)
    for controller in (asked, other):
        step = controller.step(seen(snapshot, TASKS))
        for action in step.actions:
            controller.settle(action, Accepted())
    before = state_of(asked.ledger)
    ask(asked, snapshot, Supposition(application=new(4)))
    assert state_of(asked.ledger) == before
    later = [each.step(seen(snapshot, TASKS, now_ms=5_000)) for each in (asked, other)]
    assert [encode(record) for record in later[0].records] == [encode(record) for record in later[1].records]
    assert later[0].to_observe == later[1].to_observe


def test_guarantee_moves_to_a_queue_from_its_siblings() -> None:
    snapshot = cluster(app("r1", "research", 60), guaranteed={"production": 30, "research": 20, "other": 10})
    changed = {view.queue: view.guaranteed for view in with_guarantee(snapshot, "production", 0.75).queues}
    assert changed == {"production": size(45), "research": size(10), "other": size(5)}


def test_lost_node_takes_capacity_and_its_tasks_request_again() -> None:
    snapshot = cluster(
        app("r1", "research", 8),
        app("p1", "production", 2),
        guaranteed={"production": 6, "research": 6},
        free={"n2": 2},
    )
    lost = LostNode(node="n2", size=size(4), held={"r1": (size(1), size(1))})
    changed = supposed(snapshot, Supposition(lost_node=lost), 0)
    assert changed.total == size(8)
    assert not changed.free_by_node
    assert [view.guaranteed for view in changed.queues] == [size(4), size(4)]
    assert [view.used for view in changed.queues] == [size(2), size(6)]
    research = changed.applications[0]
    assert research.containers == 6
    assert sum(request.count for request in research.requests) == 2
    assert research.requests[0].size == Resources(*size(1))
