"""Where production's time goes: each look's cause, what it adds up to, and what would have saved it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden.tables import GUARD_FREE, app, cluster
from yarnctl.deciding.reasons import demand
from yarnctl.deciding.time_lost import GAP_MAX_MS, SAVES, TIME_CAUSES, TimeLost, Waited, time_cause
from yarnctl.deciding.waiting_verdicts import Cause, CauseCode, WaitingVerdict

SNAPSHOT = cluster(app("p1", "production", 1, 4), app("p2", "production", 1, 3), app("r1", "research", 20))


def verdict(found: Any, *causes: tuple[CauseCode, int]) -> WaitingVerdict:
    """Return a verdict; ``causes``: why so many tasks of r1 were not chosen."""
    made = WaitingVerdict(found, SNAPSHOT, GUARD_FREE)
    made.__dict__["causes"] = tuple(Cause("r1", "r1", "map", tasks, why) for why, tasks in causes)
    return made


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        ("placed", "grant"),
        ("ordered", "lever"),
        ("awaited", "lever"),
        ("in-flight", "in-flight"),
        (demand.OnItsWay(), "lever"),
        (demand.NotActivated(), "masters"),
        (demand.QueueAtMaximum(), "limit"),
        (demand.UserAtLimit(), "limit"),
        (demand.HelpsItself("production"), "governor"),
        (demand.SuspensionsFail(1, 4), "governor"),
        (demand.RoomGoesTo("x", "adhoc"), "others"),
        (demand.QueueTakesBack("research"), "others"),
        (demand.NoJobMayGive(), "nothing"),
        (demand.NoQueueOverGuarantee(), "nothing"),
    ],
)
def test_each_finding_has_a_cause(found: Any, cause: str) -> None:
    assert time_cause(verdict(found)) == cause


@pytest.mark.parametrize(
    ("causes", "cause"),
    [
        ((("map", 3),), "budget"),
        ((("loss-budget", 2), ("user-loss-budget", 2), ("no-runner", 3)), "budget"),
        ((("loss-budget", 2), ("killed-lately", 3)), "repeats"),
        ((("loss-budget", 2), ("killed-lately", 2)), "budget"),
        ((("not-in-time", 3), ("no-runner", 2)), "late"),
        ((("not-worth", 3), ("not-in-time", 2)), "worth"),
        ((("loss-budget", 2), ("no-runner", 3)), "unwrapped"),
        ((("left-alone", 1), ("not-checkpointable", 9)), "unwrapped"),
        ((("node-reserved", 1),), "reserved"),
        ((("not-checkpointable", 9),), "nothing"),
        ((), "nothing"),
    ],
)
def test_of_tasks_the_cause_of_the_most_counts(causes: tuple[tuple[CauseCode, int], ...], cause: str) -> None:
    assert time_cause(verdict(demand.NoTaskMayStop(), *causes)) == cause


def test_pending_containers_wait_from_look_to_look() -> None:
    lost = TimeLost()
    lost.look({"p1": verdict("ordered"), "p2": verdict(demand.NotActivated())}, 1000)
    assert lost.rows() == ()
    lost.look({"p1": verdict("placed"), "p2": verdict(demand.NotActivated())}, 3000)
    lost.look({}, 3500)
    lost.look({}, 9000)
    assert lost.rows() == (
        Waited("lever", 4 * 2000, SAVES["lever"]),
        Waited("masters", 3 * 2500, SAVES["masters"]),
        Waited("grant", 4 * 500, ""),
    )


def test_a_gap_and_a_clock_that_was_set_back_count_little() -> None:
    lost = TimeLost()
    lost.look({"p1": verdict("ordered")}, 10_000)
    lost.look({"p1": verdict("ordered")}, 5_000)
    assert lost.rows() == ()
    lost.look({}, 10 * GAP_MAX_MS)
    assert lost.rows() == (Waited("lever", 4 * GAP_MAX_MS, SAVES["lever"]),)


def test_what_saves_is_told_for_causes_alone() -> None:
    assert set(SAVES) <= set(TIME_CAUSES)
    assert {"nothing", "governor", "grant"} == set(TIME_CAUSES) - set(SAVES)
