"""Executors that are asked to leave: when, at whose cost, together, and what becomes of such an order.

An executor ``e`` leaves within 3 s and costs 14 s of overhead unless said otherwise; sizes are in slots.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.golden.mix_tables import NOW_MS, RULES, given, mix_case, mix_settings, mixed, reasons, told
from tests.golden.tables import app, cluster, seen, size, task
from tests.unit.deciding.test_mix import HELD, MIX, SHARES, a_map
from yarnctl.daemon.view.published import SuspendedTasks, suspended_of
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.levers import levers_of
from yarnctl.deciding.model import (
    Accepted,
    ContainerEnded,
    ContainerGranted,
    Drain,
    Grow,
    Kill,
    Refused,
    TaskView,
    Withdraw,
)
from yarnctl.deciding.reasons.outcomes import ExecutorBusy
from yarnctl.deciding.records import Transition
from yarnctl.deciding.waiting_worth import SecondPrice

LIMIT_MS = MIX.kill_timeout_ms


def executor(
    name: str, room_ms: int = 3000, lost_ms: int = 0, *, may: bool = True, cost_ms: int = 14_000, **more: Any
) -> TaskView:
    return task(name, room_ms, kind="executor", since_ms=NOW_MS - lost_ms, able=may, cost_ms=cost_ms, **more)


# --- the lever ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (executor("e", 3000, 700), [("drain", 3000, 700, 14_000)]),
        (executor("e", 0), [("drain", 0, 0, 14_000)]),  # it is never waited for: it does not end by itself
        (executor("e", -1), []),  # how long its tasks take is not known
        (executor("e", may=False), []),
    ],
)
def test_an_executor_has_one_lever_or_none(view, expected):
    levers = list(levers_of(view, NOW_MS, RULES, -1))
    assert [(each.kind, each.free_in_ms, each.lost_ms, each.overhead_ms) for each in levers] == expected


CHOICES = [
    ([executor("e1"), a_map("a1_0", 9)], "drain e1"),  # losing nothing comes first
    ([executor("e1"), task("a1_0", cost_ms=9000)], "suspend a1_0"),  # then the least overhead
    ([executor("e1", cost_ms=8000), task("a1_0", cost_ms=9000)], "drain e1"),
    ([executor("e1", lost_ms=4000), a_map("a1_0", 3)], "kill a1_0"),  # what is done twice counts as lost
    ([executor("e1", lost_ms=2000), a_map("a1_0", 3)], "drain e1"),
    ([executor("e1", 6000), executor("e2", 5000)], "drain e2"),  # later than 5 s is too late
    ([executor("e1", may=False)], "1 unmet"),
]


@pytest.mark.parametrize(("tasks", "expected"), CHOICES)
def test_a_drain_is_compared_with_other_levers_by_loss_then_overhead(tasks, expected):
    assert told(mixed(mix_case({"a": tasks}))) == expected


LARGE = [executor(f"b{place}", cost_ms=5000) for place in range(30)]
YOUNG_MAPS = [a_map(f"b{place}_0", 3) for place in range(30)]
SOON = [task(f"b{place}_0", 500, kind="map") for place in range(30)]
IDLE = [
    (executor("e1", cost_ms=0), LARGE, 1, "drain e1"),
    (executor("e1", cost_ms=1), LARGE, 1, "drain b0"),
    (executor("e1", cost_ms=0), YOUNG_MAPS, 10, "drain e1"),  # its time has no price either
    (executor("e1", cost_ms=1), YOUNG_MAPS, 10, "kill b0_0"),
    (executor("e1", cost_ms=0), SOON, 10, "drain e1"),  # also before one that would be awaited
    (executor("e1", 6000, cost_ms=0), YOUNG_MAPS, 10, "kill b0_0"),  # later than 5 s is too late
]


@pytest.mark.parametrize(("view", "others", "waiting", "first"), IDLE)
def test_an_idle_executor_comes_first_also_where_a_second_has_a_price(view, others, waiting, first):
    """It costs nothing: no work, and its application does not end later."""
    rules = mix_settings(msgspec.structs.replace(RULES, second_worth_ratio=1.0))
    case = mix_case({"a": [view], "b": others})
    case = msgspec.structs.replace(case, second=SecondPrice(1000 * waiting))
    assert told(mixed(case, settings=rules)) == first


@pytest.mark.parametrize(("cost_ms", "chosen"), [(8000, "kill a2_0"), (10_000, "drain e1 | kill a1_0")])
def test_an_idle_executor_adds_nothing_to_a_combination(cost_ms, chosen):
    """The other half costs 42 s: 3 s of work, 9 s to run again, 10 times 1 s, 20 s of its master."""
    rules = mix_settings(msgspec.structs.replace(RULES, second_worth_ratio=1.0))
    tasks = [executor("e1", cost_ms=0), a_map("a1_0", 3), a_map("a2_0", 3, slots=2, cost_ms=cost_ms)]
    case = msgspec.structs.replace(mix_case({"a": tasks}, [(2, 1)]), second=SecondPrice(10_000))
    assert told(mixed(case, settings=rules)) == chosen


def test_why_an_executor_is_not_asked():
    tasks = [executor("e1", may=False), executor("e2", 6000), executor("e3", lost_ms=9000)]
    choice = mixed(mix_case({"a": tasks}), given(["a"], kill_s=8))
    assert reasons(choice) == {"e1": "executor-stays", "e2": "not-in-time", "e3": "loss-budget"}


def test_work_done_twice_and_killed_maps_use_one_budget():
    tasks = [executor("e1", lost_ms=3000), a_map("a1_0", 4)]
    assert told(mixed(mix_case({"a": tasks}, 2), given(["a"], kill_s=7))) == "drain e1 | kill a1_0"
    assert told(mixed(mix_case({"a": tasks}, 2), given(["a"], kill_s=6))) == "drain e1 | 1 unmet"


def test_with_nothing_to_lose_executors_leave_between_stages_only():
    settings = mix_settings(msgspec.structs.replace(RULES, may_lose_ratio=0.0))
    tasks = [executor("e1", lost_ms=1), executor("e2")]
    assert told(mixed(mix_case({"a": tasks}, 2), given(["a"], kill_s=0), settings)) == "drain e2 | 1 unmet"


# --- the order ----------------------------------------------------------------------------------------


class Play:
    """A controller, a full cluster with one application of four executors, and production that waits."""

    def __init__(self, *tasks: TaskView, asks: int = 2) -> None:
        self.controller = Controller(MIX, validate=True)
        self.tasks, self.asks = tasks, asks

    def step(self, now_ms: int, *facts: Any, asks: int | None = None):
        count = self.asks if asks is None else asks
        waiting = [app("p", "production", 1, count)] if count else []
        snapshot = cluster(app("r", "research", len(self.tasks) + 1), *waiting, guaranteed=SHARES)
        look = seen(snapshot, {"r": self.tasks}, now_ms=now_ms)
        return self.controller.step(msgspec.structs.replace(look, held=HELD, facts=facts))

    def asked(self, *facts: Any) -> tuple[Drain, ...]:
        step = self.step(NOW_MS, *facts)
        drains = tuple(action for action in step.actions if isinstance(action, Drain))
        for action in drains:
            self.controller.settle(action, Accepted())
        return drains

    def state(self, order: str) -> str:
        ledger = self.controller.ledger
        found = ledger.open.get(order) or ledger.settled[order]
        return found.state


def test_all_executors_that_a_decision_needs_are_named_in_each_request():
    drains = Play(executor("e1"), executor("e2"), executor("e3")).asked()
    assert [action.attempt for action in drains] == ["e1", "e2"]
    assert {action.mates for action in drains} == {("e1", "e2")}
    assert {action.decision for action in drains} == {1}


def test_executors_that_were_idle_have_requests_of_their_own():
    idle = [executor(name, cost_ms=0) for name in ("e1", "e2")]
    drains = Play(*idle, executor("e3"), executor("e4"), asks=3).asked()
    assert {(action.attempt, action.mates, action.idle) for action in drains} == {
        ("e1", ("e1", "e2"), True),
        ("e2", ("e1", "e2"), True),
        ("e3", ("e3",), msgspec.UNSET),
    }
    assert {action.decision for action in drains} == {1}


def test_an_executor_that_left_gives_its_room_to_the_asker_and_is_not_suspended():
    play = Play(executor("e1"), asks=1)
    (drain,) = play.asked()
    assert play.state(drain.order) == "suspending"
    gone = ContainerEnded(drain.container, "r", "n1", "suspended", NOW_MS + 3000)
    play.step(NOW_MS + 3000, gone)
    assert play.state(drain.order) == "freed"
    assert play.controller.ledger.suspended == {}
    granted = ContainerGranted("c9", "p", "n1", size(1), NOW_MS + 3100)
    play.step(NOW_MS + 3200, granted, asks=0)
    assert play.state(drain.order) == "granted"


def test_executors_that_left_are_shown_until_their_application_grows():
    play = Play(executor("e1"), executor("e2"))
    play.asked()
    assert suspended_of(play.controller.ledger) == {"r": SuspendedTasks(2, NOW_MS)}
    play.controller.ledger.regrowing.performed(Grow("r", (1,)), Accepted())
    assert suspended_of(play.controller.ledger) == {}


def test_a_drain_is_never_taken_back_as_excess_but_counts_until_it_is_over():
    play = Play(executor("e1"), executor("e2"))
    one, other = play.asked()
    step = play.step(NOW_MS + 1000, asks=0)
    assert not [action for action in step.actions if isinstance(action, Withdraw)]
    assert (play.state(one.order), play.state(other.order)) == ("suspending", "suspending")


@pytest.mark.parametrize("on_timeout", ["give-up", "kill"])
def test_a_time_out_counts_from_the_end_of_the_tasks_and_kills_nothing(on_timeout):
    play = Play(executor("e1", 4000), asks=1)
    play.controller.settings = msgspec.structs.replace(MIX, on_timeout=on_timeout)
    play.controller._orders.settings = play.controller.settings
    (drain,) = play.asked()
    play.tasks = (executor("e1", may=False),)
    play.step(NOW_MS + LIMIT_MS + 3999)
    assert play.state(drain.order) == "suspending"
    step = play.step(NOW_MS + LIMIT_MS + 4000)
    assert not [action for action in step.actions if isinstance(action, Kill | Withdraw | Drain)]
    assert [
        record.target for record in step.records if isinstance(record, Transition)
    ] == ["given_up"]  # fmt: skip


def test_a_refused_drain_costs_no_budget():
    play = Play(executor("e1", lost_ms=500), asks=1)
    step = play.step(NOW_MS)
    (drain,) = [action for action in step.actions if isinstance(action, Drain)]
    assert [charge.lost_ms for charge in play.controller.ledger.losses.charges.values()] == [500]
    play.controller.settle(drain, Refused(ExecutorBusy("gone")))
    assert play.controller.ledger.losses.charges == {}


def test_an_executor_that_failed_meanwhile_is_lost_and_what_it_lost_is_not_counted_twice():
    play = Play(executor("e1", lost_ms=500), asks=1)
    (drain,) = play.asked()
    play.step(NOW_MS + 2000, ContainerEnded(drain.container, "r", "n1", "failed", NOW_MS + 2000))
    assert play.state(drain.order) == "lost"
    assert [charge.lost_ms for charge in play.controller.ledger.losses.charges.values()] == [500]
