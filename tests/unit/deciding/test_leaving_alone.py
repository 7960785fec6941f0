"""Applications that opt out, and queues outside of their hours: nothing is taken, and the reason is told."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, seen, task, with_
from tests.unit.deciding.controller_world import Move, judge, run
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import Accepted, ApplicationView, SetPriority, Snapshot, TaskView
from yarnctl.deciding.open_hours import OpenHours
from yarnctl.deciding.preemptor import DemandInput, closed_jobs, demand
from yarnctl.deciding.reasons.demand import OutsideHours
from yarnctl.deciding.records import Decision, Header, Refusal, decode, encode
from yarnctl.deciding.settings import DEFAULT, PAPER, LeverSettings, Settings, validate
from yarnctl.errors import BadInput

MINUTE_MS = 60_000
CLOSED = OpenHours("research", "UTC", ((0, 60),), ((0, 0),))  # Monday 00:00-01:00; the epoch is a Thursday
OPENS_AT_MS = 4 * 24 * 60 * MINUTE_MS
LEVERS = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500, may_lose_ratio=1.0)
WAYS = {
    "natjam": GUARD_FREE,
    "mix": with_(GUARD_FREE, levers=LEVERS),
    "kill": with_(GUARD_FREE, eviction="kill"),
    "paper": PAPER,
}
WITH_EACH = pytest.mark.parametrize("settings", WAYS.values(), ids=WAYS)
Tasks = Mapping[str, tuple[TaskView, ...]]


def alone(view: ApplicationView) -> ApplicationView:
    return msgspec.structs.replace(view, left_alone=True)


def full(*research: ApplicationView, pending: int = 2) -> Snapshot:
    guaranteed = {"production": 60, "research": 5, "etl": 5}
    return cluster(*research, app("p1", "production", 3, pending), guaranteed=guaranteed)


def step(
    snapshot: Snapshot, settings: Settings, tasks: Tasks, now_ms: int = 0
) -> tuple[set[str], list[Refusal]]:
    """Return the jobs of which something is ordered, and the refusals."""
    controller = Controller(settings, validate=True)
    found = controller.step(seen(snapshot, now_ms=now_ms))
    if wanted := found.to_observe.victims:
        found = controller.step(seen(None, {name: tasks[name] for name in wanted}, now_ms=now_ms))
    decisions = [each for each in found.records if isinstance(each, Decision)]
    refusals = [each for each in found.records if isinstance(each, Refusal)]
    return {pick.application for each in decisions for pick in each.picks}, refusals


def tasks_of(name: str, count: int) -> tuple[TaskView, ...]:
    return tuple(task(f"{name}.{n}", 50_000) for n in range(count))


TASKS = {"r1": tasks_of("r1", 49), "r2": tasks_of("r2", 9)}


@WITH_EACH
def test_nothing_is_taken_from_an_application_that_is_left_alone(settings: Settings) -> None:
    r1, r2 = app("r1", "research", 50), app("r2", "research", 10)
    assert "r1" in step(full(r1, r2), settings, TASKS)[0]
    assert step(full(alone(r1), r2), settings, TASKS)[0] == {"r2"}
    chosen, refusals = step(full(alone(r1), alone(r2)), settings, TASKS)
    assert not chosen
    assert {job.why for each in refusals for job in each.refused_jobs} == {"left-alone"}


@WITH_EACH
def test_nothing_is_taken_from_a_queue_outside_of_its_hours(settings: Settings) -> None:
    r1, e1 = app("r1", "research", 50), app("e1", "etl", 10)
    closed = with_(settings, hours=(CLOSED,), preemptable_queues=("research", "etl"))
    assert step(full(r1, e1), closed, {**TASKS, "e1": tasks_of("e1", 9)})[0] == {"e1"}
    chosen, refusals = step(full(r1), closed, TASKS)
    assert not chosen
    assert [each.why for each in refusals] == [OutsideHours("research", OPENS_AT_MS, "UTC")]
    assert step(full(r1), closed, TASKS, OPENS_AT_MS - 1)[0] == set()
    assert step(full(r1), closed, TASKS, OPENS_AT_MS)[0] == {"r1"}
    assert step(full(r1), closed, TASKS, OPENS_AT_MS + 60 * MINUTE_MS)[0] == set()


def test_the_first_queue_to_open_is_named() -> None:
    hours = (CLOSED, OpenHours("etl", "UTC", ((0, 60),), ((0, -600),)))
    settings = with_(PAPER, hours=hours, preemptable_queues=("research", "etl"))
    for way in (settings, with_(settings, model_scheduler=True)):
        found = demand(
            DemandInput(full(app("r1", "research", 50), app("e1", "etl", 10)), 0, 0), Ledger(), way
        )
        assert not found.applications
        assert [why for _, why in found.refused] == [OutsideHours("research", OPENS_AT_MS, "UTC")]


def test_with_deadlines_a_closed_queue_and_an_application_left_alone_give_nothing() -> None:
    rows = [app("r1", "default", 50, deadline=9000), alone(app("r2", "default", 45, deadline=8000))]
    urgent = app("p1", "default", 5, 2, deadline=1000)
    snapshot = cluster(*rows, urgent, guaranteed={"default": 100})
    way = with_(GUARD_FREE, mode="deadlines", preempting_queues=("default",), preemptable_queues=("default",))
    assert closed_jobs(rows, way, {}, 0) == {"r2": "left-alone"}
    hours = with_(way, hours=(msgspec.structs.replace(CLOSED, queue="default"),))
    assert closed_jobs(rows, hours, {}, 0) == {"r1": "outside-hours", "r2": "left-alone"}
    step_of = Controller(way, validate=True).step(seen(snapshot))
    sent = {each.application for each in step_of.actions if isinstance(each, SetPriority)}
    assert sent == {"r1", "p1"}


def test_hours_and_opting_out_are_in_the_journal_which_replays() -> None:
    """Closed at first, open later: the records are those of the hours in the header."""
    opens_at_ms = 30_000
    late = OpenHours("research", "Etc/Test", ((3 * 1440 + 60, 60),), ((0, 60), (opens_at_ms, 61)))
    assert [late.is_open(at_ms) for at_ms in (0, opens_at_ms)] == [True, True]
    shut = msgspec.structs.replace(late, windows=((3 * 1440 + 61, 60),))
    moves = [Move(10_000, True, (2, 0), {}, [], Accepted()) for _ in range(4)]
    played = run(with_(GUARD_FREE, hours=(shut,)), moves, own=False)
    assert judge(played) == ""
    whys = [each.why for each in played.records if isinstance(each, Refusal)]
    assert whys == [OutsideHours("research", opens_at_ms, "Etc/Test")]
    decided = [each.at_ms for each in played.records if isinstance(each, Decision)]
    assert decided
    assert min(decided) >= opens_at_ms


def test_a_journal_without_hours_does_not_name_them() -> None:
    header = Controller(DEFAULT).step(seen(full(app("r1", "research", 50)))).records[0]
    assert isinstance(header, Header)
    assert b"hours" not in encode(header)
    with_hours = msgspec.structs.replace(header, settings=with_(hours=(CLOSED,)))
    assert decode(encode(with_hours)) == with_hours


@pytest.mark.parametrize(
    "changes", [{"windows": ()}, {"offsets": ()}, {"windows": ((-1, 5),)}, {"windows": ((0, 0),)}]
)
def test_hours_that_cannot_be_computed_with_are_refused(changes: dict[str, tuple]) -> None:
    with pytest.raises(BadInput, match="hours of queue research"):
        validate(with_(hours=(msgspec.structs.replace(CLOSED, **changes),)))
