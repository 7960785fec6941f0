"""The governor: what it holds back, when suspensions are tried one by one, when not at all; replay agrees."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, seen, size, task, with_
from tests.unit.deciding.controller_world import judge, run
from tests.unit.deciding.random_histories import draw
from yarnctl.deciding.case import Choice, Pick
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.governor import (
    FAILED_MAX,
    FIRST_STOP_MS,
    GAP_MAX_MS,
    STOP_MAX_MS,
    TURNOVER_MS,
    SelfHelp,
    Trials,
    stop_ms,
)
from yarnctl.deciding.ledger_state import Bars
from yarnctl.deciding.levers import Lever, LeverKind, LeverPull
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import Accepted, ApplicationView, ContainerEnded, Fact, Outcome, Withheld
from yarnctl.deciding.order import LEAVE_MS, SILENT_TIMES, Order, OrderVerb
from yarnctl.deciding.reasons.demand import HelpsItself, LeverHeldBack, SuspensionsFail
from yarnctl.deciding.reasons.eligibility import AnswerLate, ConfigurationUnread
from yarnctl.deciding.reasons.outcomes import OutcomeReason
from yarnctl.deciding.records import Decision, LeversStopped, Record, Refusal
from yarnctl.deciding.settings import DEFAULT, LeverSettings, validate
from yarnctl.errors import BadInput
from yarnctl.journal.rendering import text

LEVERS = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500)
GOVERNED = with_(GUARD_FREE, levers=LEVERS, governed=True, kill_timeout_ms=25_000)


# --- suspensions that fail ------------------------------------------------------------------------------


def order(state: State = "suspending", verb: OrderVerb = "suspend", **changes: Any) -> Order:
    plain = Order(
        order="o-000001", requester="p1", victim="r1", attempt="a", container="c", node="n1",
        size=size(1), request_size=size(1), serves=1, group="g", generation=1, verb=verb, decision=1,
        ordered_at_ms=0, progress_at_ms=0, state=state,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def after(row: str, trials: Trials | None = None, **changes: Any) -> Trials:
    """Return the trials after orders: "+" freed its container, "-" was given up, "." was withdrawn."""
    trials = trials or Trials()
    for each in row:
        trials = trials.moved(order(**changes), {"+": "freed", "-": "given_up", ".": "withdrawn"}[each])
    return trials


@pytest.mark.parametrize(
    ("row", "failed"),
    [
        ("", 0), (".", 0), ("-", 1), (".-", 1),  # the first is a trial
        ("+", 0), ("+-", 0), ("+--", 0), ("+---", 3), ("+--.-", 3), ("+--+--", 0),
    ],
)  # fmt: skip
def test_a_trial_or_three_suspensions_in_a_row_that_fail_stop_them(row: str, failed: int) -> None:
    assert FAILED_MAX == 3
    expected = SuspensionsFail(1000 + FIRST_STOP_MS, failed) if failed else None
    assert after(row).stop(1000) == expected


@pytest.mark.parametrize("changes", [{"verb": "kill"}, {"verb": "drain"}, {"observed": True}])
def test_other_orders_say_nothing_about_suspensions(changes: Any) -> None:
    assert after("+-", **changes) == Trials()


def test_a_simulated_suspension_worked() -> None:
    assert Trials(failed=2).moved(order(observed=True), "simulated") == Trials(works=True)
    assert Trials(failed=2).moved(order(), "simulated") == Trials(failed=2)


def test_one_container_is_freed_on_trial_before_there_are_more() -> None:
    assert Trials().left([], 0) == 1
    assert Trials().left([order(verb="kill")], 0) == 1
    assert Trials().left([order()], 0) == 0
    assert after("+").left([order()], 0) is None


def test_each_stop_in_a_row_is_twice_as_long_until_a_suspension_frees_its_container() -> None:
    assert [stop_ms(stops) // 60_000 for stops in (0, 1, 2, 3, 4, 99)] == [4, 8, 16, 32, 32, 32]
    assert stop_ms(3) == STOP_MAX_MS
    trials, now_ms = Trials(), 1000
    for minutes in (4, 8, 16):
        trials = after("-", trials, ordered_at_ms=now_ms)
        why = trials.stop(now_ms)
        assert why == SuspensionsFail(now_ms + minutes * 60_000, 1)
        trials = trials.stopped(why)
        assert trials.left([], why.until_ms - 1) == 0
        assert trials.left([], why.until_ms) == 1
        assert after("-", trials, ordered_at_ms=now_ms) == trials  # it was sent before the stop
        now_ms = why.until_ms
    assert after("+", trials) == Trials(works=True)


def test_a_clock_that_is_set_back_moves_the_end_of_a_stop() -> None:
    stopped = Trials().stopped(SuspensionsFail(9000, 1))
    assert stopped.set_back(4000) == Trials(stops=1, why=SuspensionsFail(5000, 1))
    assert Trials(works=True).set_back(4000) == Trials(works=True)


def test_a_stop_is_one_sentence_and_what_to_do() -> None:
    assert text(SuspensionsFail(0, 1)) == (
        "no task is suspended until 0 ms, and then one on trial: 1 order to suspend stopped no task;"
        " read the standard error of the tasks, or yarnctl check: can checkpoints be written?"
    )


def test_a_governed_suspension_is_given_up_where_it_shows_no_sign_of_life() -> None:
    assert order().limit_ms(GOVERNED) == SILENT_TIMES * 4000
    assert order("checkpointed").limit_ms(GOVERNED) == 25_000
    assert order(verb="kill").limit_ms(GOVERNED) == 25_000
    assert order(verb="drain", remaining_ms=9000, resume_cost_ms=1).limit_ms(GOVERNED) == 34_000
    assert order().limit_ms(with_(GOVERNED, governed=msgspec.UNSET)) == 25_000
    assert order().limit_ms(with_(GOVERNED, kill_timeout_ms=5000)) == 5000


def test_the_order_of_an_idle_executor_that_stays_for_it_has_a_task_expires_soon() -> None:
    idle = order(verb="drain", remaining_ms=3500)
    assert idle.limit_ms(GOVERNED) == SILENT_TIMES * 3500
    assert idle.limit_ms(with_(GOVERNED, kill_timeout_ms=5000)) == 5000
    assert idle.limit_ms(with_(GOVERNED, governed=msgspec.UNSET)) == 28_500
    assert order(verb="drain", remaining_ms=0).limit_ms(GOVERNED) == SILENT_TIMES * LEAVE_MS


# --- what cannot be withdrawn ---------------------------------------------------------------------------


def looks(helps: SelfHelp, *rows: tuple[int, ...], queue: str = "production", begin_ms: int = 1000) -> None:
    """Look each second at one application: (containers, pending)."""
    for at, (containers, pending) in enumerate(rows):
        helps.look([app("p1", queue, containers, pending)], begin_ms + at * 1000)


@pytest.mark.parametrize(
    ("rows", "served"),
    [
        (((5, 20), (5, 16), (5, 12)), 8),  # eight ended, and were given to it
        (((5, 20), (9, 16)), 0),  # given, and none of its own ended
        (((9, 20), (5, 20)), 0),  # ended, and given to others
        (((9, 20), (7, 17)), 3),  # five ended, three of them were given to it
        (((5, 20), (9, 20), (9, 16)), 0),  # the requests are shown for a look longer
        (((5, 4), (5, 20), (5, 16)), 4),  # more requests, then four are served
    ],
)
def test_containers_of_its_own_that_end_and_are_given_to_it_are_a_queue_s_turnover(
    rows: tuple[tuple[int, int], ...], served: int
) -> None:
    helps = SelfHelp()
    looks(helps, *rows)
    spans = len(rows) - 1
    assert helps.served_within("production", 1000 * spans) == served
    assert helps.served_within("production", 3000 * spans) == served * 3
    assert helps.served_within("etl", 9000) == 0


def test_containers_of_an_application_that_ended_are_turnover() -> None:
    helps = SelfHelp()
    helps.look([app("p1", "production", 3), app("p2", "production", 1, 5)], 1000)
    helps.look([app("p2", "production", 4, 2)], 2000)
    assert helps.served_within("production", 1000) == 3


def test_nothing_is_known_after_a_gap_a_pause_or_a_while() -> None:
    helps = SelfHelp()
    looks(helps, (5, 20))
    looks(helps, (5, 16), begin_ms=1001 + GAP_MAX_MS)
    assert helps.served_within("production", 9000) == 0
    looks(helps, (5, 20), (5, 16), begin_ms=20_000)
    assert helps.served_within("production", 9000) > 0
    looks(helps, *[(5, 16)] * (TURNOVER_MS // 1000), begin_ms=22_000)
    assert helps.served_within("production", 9000) == 0
    looks(helps, (5, 20), (5, 16), begin_ms=40_000)
    helps.quiet()
    assert helps.served_within("production", 9000) == 0


NOW_MS = 3000
P1 = app("p1", "production", 5, 12)


def choice(*levers: tuple[LeverKind, int]) -> Choice:
    """Return a choice of one container by each of (lever, ms)."""
    picks = tuple(Pick("r1", task(f"r1.{at}"), (), (), size(1), 1) for at in range(len(levers)))
    pulls = tuple(
        LeverPull(Lever(f"r1.{at}", kind, span_ms, 0, 0, "resume"), "research", "u")
        for at, (kind, span_ms) in enumerate(levers)
    )
    return Choice(picks, (), 0, (), (), (), pulls=pulls)


def lacking(since_ms: int) -> SelfHelp:
    """Return the memory of three looks: a container a second ends and is given to the queue again."""
    helps = SelfHelp()
    looks(helps, (5, 14), (5, 13), (5, 12))
    helps.note(["p1"], since_ms)
    helps.note(["p1"], NOW_MS)
    return helps


DRAIN: tuple[LeverKind, int] = ("drain", 4000)
SUSPEND: tuple[LeverKind, int] = ("suspend", 4000)
KILL: tuple[LeverKind, int] = ("kill", 4000)
SOON: tuple[LeverKind, int] = ("kill", 1000)


@pytest.mark.parametrize(
    ("lacks", "ahead", "chosen", "drops"),
    [
        (1, 0, choice(DRAIN), 1),  # four are served before it comes
        (4, 0, choice(*[DRAIN] * 4), 4),
        (6, 0, choice(*[DRAIN] * 6), 4),
        (6, 0, choice(*[DRAIN] * 2), 0),  # a limit in flight: six lack, two are ordered
        (1, 3, choice(DRAIN), 1),
        (1, 4, choice(DRAIN), 0),  # YARN serves those before it
        (1, 0, choice(("rescale", 4000)), 1),
        (1, 0, choice(("drain", 900)), 0),  # it comes sooner than the next of its own ends
        (4, 0, choice(*[SUSPEND] * 4), 0),  # it is withdrawn if it is not needed
        (4, 0, choice(*[KILL] * 4), 0),
        (6, 0, choice(*[SOON] * 4, *[DRAIN] * 2), 2),
    ],
)
def test_a_lever_that_comes_later_than_the_requester_helps_itself_is_not_pulled(
    lacks: int, ahead: int, chosen: Choice, drops: int
) -> None:
    found = lacking(NOW_MS - 1000).keeps(P1, lacks, ahead, chosen, NOW_MS)
    assert found == (drops, HelpsItself("production") if drops else None)


def test_a_prediction_that_failed_for_as_long_as_the_lever_takes_holds_nothing_back() -> None:
    assert lacking(NOW_MS - 3999).keeps(P1, 1, 0, choice(DRAIN), NOW_MS)[0] == 1
    assert lacking(NOW_MS - 4000).keeps(P1, 1, 0, choice(DRAIN), NOW_MS)[0] == 0


@pytest.mark.parametrize(
    ("kind", "span_ms", "lacked_ms", "held"),
    [
        ("drain", 8000, 1999, True), ("drain", 8000, 2000, False), ("rescale", 8000, 1000, True),
        ("drain", 60_000, 2999, True), ("drain", 60_000, 3000, False), ("suspend", 60_000, 0, False),
    ],
)  # fmt: skip
def test_what_cannot_be_withdrawn_waits_for_a_part_of_its_time(
    kind: LeverKind, span_ms: int, lacked_ms: int, held: bool
) -> None:
    helps = SelfHelp()
    helps.note(["p1"], NOW_MS - lacked_ms)
    found = helps.keeps(P1, 12, 0, choice((kind, span_ms)), NOW_MS)
    assert found == ((1, LeverHeldBack()) if held else (0, None))


# --- the controller -------------------------------------------------------------------------------------

TASKS = {"r1": [task(f"r1.{at}", node=f"n{at % 3}") for at in range(60)]}


ACCEPTED = Accepted()


EXECUTORS = {
    "r1": [each._replace(kind="executor", remaining_ms=3500, since_ms=60_000) for each in TASKS["r1"]]
}


class World:
    """A governed controller, a second at each look."""

    def __init__(self, tasks: Any = TASKS, **changes: Any) -> None:
        self.controller = Controller(with_(GOVERNED, **changes), validate=True)
        self.tasks = tasks
        self.now_ms = 0
        self.records: list[Record] = []

    def look(
        self,
        *views: ApplicationView,
        facts: tuple[Fact, ...] = (),
        free: int = 0,
        outcome: Outcome = ACCEPTED,
    ) -> None:
        self.now_ms += 1000
        snapshot = cluster(app("r1", "research", 61), *views, free={f"f{at}": 8 for at in range(free)})
        while True:
            controller = self.controller
            asked = snapshot if controller.to_observe.cluster else None
            step = controller.step(seen(asked, self.tasks, now_ms=self.now_ms, facts=facts))
            self.records += step.records
            for action in step.actions:
                self.records += controller.settle(action, outcome)
            facts = ()
            if step.wake_at_ms > self.now_ms:
                controller.to_observe = msgspec.structs.replace(controller.to_observe, cluster=True)
                return

    def orders(self, application: str = "p1") -> int:
        decisions = [each for each in self.records if isinstance(each, Decision)]
        return sum(len(each.orders) for each in decisions if each.trigger.application == application)

    def stops(self) -> list[LeversStopped]:
        return [each for each in self.records if isinstance(each, LeversStopped)]

    def refusals(self) -> list[object]:
        return [each.why for each in self.records if isinstance(each, Refusal)]


def test_short_tasks_drain_no_executor_and_the_reason_is_given() -> None:
    """Ten tasks of a second turn over; five requests come, and are served before an executor has left."""
    for governed, orders in ((True, 0), (msgspec.UNSET, 5)):
        world = World(EXECUTORS, governed=governed)
        for pending in (30, 20, 10):
            world.look(app("p1", "production", 11, pending), free=8)  # they fit, and YARN is slow
        world.look(app("p1", "production", 11), app("p2", "production", 1, 5, rank=1))
        assert world.orders("p2") == orders
        assert (LeverHeldBack() in world.refusals()) is (governed is True)


def test_nothing_is_held_back_where_no_container_of_the_queue_can_end() -> None:
    for held, orders in ((0, 2), (4, 0)):
        world = World(EXECUTORS)
        views = (app("p2", "production", held),) if held else ()
        world.look(app("p1", "production", 0, 2), *views)
        assert world.orders() == orders, world.refusals()


@pytest.mark.parametrize(("cost_ms", "why"), [(0, "just-tried"), (1, "task-tries")])
def test_an_idle_executor_that_stayed_is_not_excluded_for_good(cost_ms: int, why: str) -> None:
    bars = Bars()
    for at_ms in (0, 60_000, 600_000):
        bars.pause(order("suspending", "drain", resume_cost_ms=cost_ms), "give-up", None, at_ms, GOVERNED)
    assert list(bars.barred.values()) == [why]


@pytest.mark.parametrize(("why", "again"), [(AnswerLate(), True), (ConfigurationUnread(), False)])
def test_an_executor_whose_driver_answered_late_is_ordered_with_the_next_look(
    why: OutcomeReason, again: bool
) -> None:
    world = World(EXECUTORS)
    world.look(app("p1", "production", 0, 1), outcome=Withheld(why))
    world.now_ms -= 500  # the next look comes before the pause is over
    world.look(app("p1", "production", 0, 1))
    first, second = [each.picks[0].task.attempt for each in world.records if isinstance(each, Decision)]
    assert (first == second) is again
    (open_order,) = world.controller.ledger.open.values()
    assert open_order.state == "suspending"


def wait(world: World, until_ms: int, pending: int = 4) -> None:
    while world.now_ms < until_ms:
        world.look(app("p1", "production", 1, pending))


def test_one_suspension_is_tried_and_then_none_for_a_while_and_then_one_again() -> None:
    world = World()
    wait(world, 1000)
    assert world.orders() == 1
    wait(world, 12_000)
    assert not world.stops()
    wait(world, 13_000)  # three times the predicted span
    (stop,) = world.stops()
    assert stop == LeversStopped(13_000, SuspensionsFail(13_000 + FIRST_STOP_MS, 1))
    assert world.refusals()[-1] == stop.why
    verdict = world.controller.verdicts["p1"]
    assert verdict.found == stop.why
    wait(world, 12_000 + FIRST_STOP_MS)
    assert world.orders() == 1
    wait(world, 13_000 + FIRST_STOP_MS)
    assert world.orders() == 2


def test_after_a_suspension_that_freed_its_container_there_may_be_any_number() -> None:
    world = World()
    wait(world, 1000)
    (tried,) = world.controller.ledger.open.values()
    world.look(
        app("p1", "production", 1, 4),
        facts=(ContainerEnded(tried.container, "r1", tried.node, "suspended", 2000),),
    )
    assert world.orders() == 4


def test_a_request_that_needs_several_containers_of_a_node_is_one_trial() -> None:
    world = World()
    world.look(app("p1", "production", 1, 4, ask=3))
    assert world.orders() == 3


def test_an_observing_controller_stops_nothing() -> None:
    world = World(observe_only=True)
    wait(world, 30_000)
    assert not world.stops()


@pytest.mark.parametrize("number", range(40))
def test_replay_and_the_fold_agree_with_a_governed_controller(number: int) -> None:
    history = draw(44, number)
    settings = msgspec.structs.replace(
        history.settings(), levers=LEVERS, governed=True, mode="queues", eviction="suspend",
        model_scheduler=True,
    )  # fmt: skip
    assert judge(run(settings, history.moves, history.own)) == ""


def test_only_levers_are_governed() -> None:
    with pytest.raises(BadInput, match="governed: only levers are governed"):
        validate(with_(DEFAULT, governed=True))
