"""Golden tables of coming back: what it cost, who is not asked again yet, what stops counting, what is looked
at again, and how often a refused priority is sent.
"""

from __future__ import annotations

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, task, with_
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    CameBack,
    CameBackWithout,
    ContainerEnded,
    ManifestSeen,
    Refused,
    SetPriority,
    Suspend,
    Unknown,
    Withdraw,
)
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Return, SavedLost, decode, encode
from yarnctl.deciding.releaser import objections
from yarnctl.deciding.settings import DEFAULT, PAPER

FULL = cluster(app("r1", "research", 50), app("p1", "production", 1, 1))
TASKS = {"r1": row("r1", 49, cost_ms=9000)}
BACK = CameBack("o-000001", "r1.1 again", 700, 2500, 900, 60_000)


def left(settings=GUARD_FREE, freed_at_ms=2600) -> Controller:
    """Return a controller whose first order, made at 0, was followed: the task is away."""
    steps = Controller(settings, validate=True)
    step = steps.step(seen(FULL, TASKS))
    assert isinstance(step.actions[0], Suspend)
    facts = (
        ManifestSeen("o-000001", "r1.1", 1, 5, 2000),
        ContainerEnded("r1.1c", "r1", "n1", "suspended", freed_at_ms),
    )
    steps.step(seen(None, now_ms=freed_at_ms, facts=facts))
    return steps


def returns(steps: Controller, now_ms: int, *facts: object) -> list[Return]:
    step = steps.step(seen(None, now_ms=now_ms, facts=facts))
    return [record for record in step.records if isinstance(record, Return)]


# --- prediction and outcome -------------------------------------------------------------------


def test_prediction_and_outcome_stand_side_by_side():
    """Predicted: as the task was shown when it was chosen. Leaving is from the order to the end."""
    (told,) = returns(left(), 60_000, BACK)
    assert told == Return(
        order="o-000001", attempt="r1.1 again", at_ms=60_000, predicted_ms=9000,
        cost_ms=2600 + 700 + 2500 + 900, leave_ms=2600, launch_ms=700, shuffle_ms=2500, skip_ms=900,
    )  # fmt: skip
    assert decode(encode(told)) == told


@pytest.mark.parametrize(
    "foreign",
    [
        CameBack("o-000002", "r1.1 again", 1, 1, 1, 60_000),  # no such order
        CameBack("o-000001", "r1.1", 1, 1, 1, 60_000),  # the attempt that left cannot be the one that is back
    ],
)
def test_a_foreign_return_means_nothing(foreign):
    assert returns(left(), 60_000, foreign) == []


def test_a_return_is_told_once():
    steps = left()
    assert len(returns(steps, 60_000, BACK, BACK)) == 1
    assert returns(steps, 61_000, BACK) == []


def test_who_has_not_left_cannot_come_back():
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(FULL, TASKS))
    assert returns(steps, 500, BACK) == []


LOST = CameBackWithout("o-000001", "r1.1 again", 7, 1, 0, 60_000)


def lost(steps: Controller, now_ms: int, *facts: object) -> list[SavedLost]:
    step = steps.step(seen(None, now_ms=now_ms, facts=facts))
    return [record for record in step.records if isinstance(record, SavedLost)]


def test_saved_work_that_was_not_used_is_told_once_and_nobody_is_credited():
    steps = left()
    (told,) = lost(steps, 60_000, LOST, LOST)
    assert told == SavedLost(
        order="o-000001", attempt="r1.1 again", at_ms=60_000, keys_lost=7, generation_expected=1,
        generation_found=0,
    )  # fmt: skip
    assert decode(encode(told)) == told
    assert not steps.ledger.suspended
    assert returns(steps, 61_000, BACK) == []


@pytest.mark.parametrize(
    "foreign",
    [
        CameBackWithout("o-000002", "r1.1 again", 7, 1, 0, 60_000),  # no such order
        CameBackWithout("o-000001", "r1.1", 7, 1, 0, 60_000),  # the attempt that left has lost nothing
        CameBackWithout("o-000001", "r1.1 again", 7, 1, 1, 60_000),  # it began where the checkpoint ends
        CameBackWithout("o-000001", "r1.1 again", 7, 1, -1, 60_000),  # where it began is not known
    ],
)
def test_a_foreign_loss_means_nothing(foreign):
    steps = left()
    assert lost(steps, 60_000, foreign) == []
    assert len(returns(steps, 61_000, BACK)) == 1


@pytest.mark.parametrize("by_fact", [True, False])
def test_nobody_waits_for_the_tasks_of_an_application_that_has_ended(by_fact):
    steps = left()
    if by_fact:
        steps.step(seen(None, now_ms=5000, facts=(ApplicationEnded("r1", 5000),)))
    else:
        steps.step(seen(cluster(app("p1", "production", 1), total=51), now_ms=5000))
    assert not steps.ledger.suspended
    assert returns(steps, 60_000, BACK) == []


NOW_MS = 100_000


@pytest.mark.parametrize(
    ("worked_ms", "cost_ms", "default", "paper"),
    [
        (29_999, 9000, "just-resumed", ""),  # less than settle_ms
        (30_000, 9000, "", ""),
        (30_000, 40_000, "just-resumed", ""),  # coming back again would cost more than it has done since
        (39_999, 40_000, "just-resumed", ""),
        (40_000, 40_000, "", ""),
    ],
)
def test_a_resumed_task_works_for_as_long_as_it_costs(worked_ms, cost_ms, default, paper):
    looked_at = task("a.1", cost_ms=cost_ms, resumed=True, since_ms=NOW_MS - worked_ms)
    assert objections(NOW_MS, DEFAULT, {})(looked_at) == default
    assert objections(NOW_MS, PAPER, {})(looked_at) == paper
    assert objections(NOW_MS, with_(DEFAULT, eviction="kill", settle_ms=0), {})(looked_at) == ""


def test_an_order_that_hangs_stops_counting():
    """One may be in flight. It was accepted and nothing comes of it: given up, the next one is asked."""
    settings = with_(GUARD_FREE, in_flight_ratio_max=0.02, in_flight_least=1)
    steps, asked = Controller(settings, validate=True), []
    snapshot = cluster(app("r1", "research", 50), app("p1", "production", 1, 2))
    for now_ms in range(0, 14_000, 1000):
        step = steps.step(seen(snapshot, TASKS, now_ms=now_ms))
        asked += [(now_ms, one.attempt) for one in step.actions if isinstance(one, Suspend)]
        taken_back = [one.attempt for one in step.actions if isinstance(one, Withdraw)]
        assert taken_back == (["r1.1"] if now_ms == 12_000 else [])
        for action in step.actions:
            steps.settle(action, Accepted())
    assert asked == [(0, "r1.1"), (12_000, "r1.2")]


def test_an_end_seen_after_the_snapshot_is_followed_by_another_look_soon():
    """The room may be counted twice in this look: shown as free, and still held by the order."""
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(FULL, TASKS))
    facts = (
        ManifestSeen("o-000001", "r1.1", 1, 5, 1000),
        ContainerEnded("r1.1c", "r1", "n1", "suspended", 1010),
    )
    step = steps.step(seen(FULL, TASKS, now_ms=1020, as_of_ms=1000, facts=facts))
    assert (step.to_observe.cluster, step.wake_at_ms) == (True, 1020 + GUARD_FREE.open_tick_ms)
    step = steps.step(seen(FULL, TASKS, now_ms=1270))
    assert step.to_observe.cluster is (step.wake_at_ms == 2000)  # once is enough


def test_an_end_before_the_snapshot_needs_none():
    steps = Controller(GUARD_FREE, validate=True)
    steps.step(seen(FULL, TASKS))
    facts = (
        ManifestSeen("o-000001", "r1.1", 1, 5, 1000),
        ContainerEnded("r1.1c", "r1", "n1", "suspended", 1000),
    )
    step = steps.step(seen(FULL, TASKS, now_ms=1020, as_of_ms=1000, facts=facts))
    assert step.to_observe.cluster is (step.wake_at_ms == 2000)


def test_who_waits_is_named_with_the_orders():
    steps = Controller(GUARD_FREE, validate=True)
    assert steps.step(seen(FULL, TASKS)).to_observe.requesters == ("p1",)


@pytest.mark.parametrize(
    "outcome", [Refused(ClientFault("not allowed here")), Unknown(ClientFault("no answer"))]
)
def test_a_refused_priority_is_sent_again_ever_more_seldom(outcome):
    settings = with_(GUARD_FREE, mode="deadlines", job_policy="MDF", priority_levels=10)
    steps, sent = Controller(settings, validate=True), []
    jobs = [app(name, "default", 5, deadline=at_ms) for name, at_ms in (("a", 1), ("b", 2))]
    for now_ms in range(0, 40_000, 1000):
        step = steps.step(seen(cluster(*jobs, guaranteed={"default": 100}), now_ms=now_ms))
        changes = [one for one in step.actions if isinstance(one, SetPriority)]
        sent += [now_ms for one in changes if one.application == "b"]
        assert bool(step.records) == (bool(changes) or now_ms == 0)  # no ranking of which nothing follows
        for action in changes:
            steps.settle(action, Accepted() if action.application == "a" else outcome)
        jobs[0] = app("a", "default", 5, deadline=1, priority=10)
    assert sent == [0, 1000, 3000, 7000, 15_000, 31_000]
