"""What if: the suppositions, the tasks that a copy chooses, and that the controller itself stays as it is."""

from __future__ import annotations

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, size, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, Snapshot, TaskView
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
