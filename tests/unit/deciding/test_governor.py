"""The governor: what it holds back, what makes it stop levers, when it tries again; replay agrees."""

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
    FIRST,
    GAP_MAX_MS,
    LEAST,
    STOP_MAX_MS,
    TRIAL_MAX,
    USEFUL_TO_FORGET,
    WAITS_LEAST,
    WINDOW_MS,
    LeverYields,
    SelfHelp,
    Waits,
    stop_ms,
)
from yarnctl.deciding.levers import AwaitedTask, Lever, LeverKind, LeverPull
from yarnctl.deciding.lifecycle import State
from yarnctl.deciding.model import Accepted, ApplicationView, Fact
from yarnctl.deciding.order import Order, OrderVerb
from yarnctl.deciding.reasons.demand import HelpsItself, LeverHeldBack, LeversInVain, LeversMakeLater
from yarnctl.deciding.reasons.orders import OnlyObserved, RequestGone
from yarnctl.deciding.records import Decision, LeversStopped, Record, Refusal
from yarnctl.deciding.settings import DEFAULT, LeverSettings, validate
from yarnctl.errors import BadInput

MIN_MS = 60_000
LEVERS = LeverSettings(room_within_ms=4000, suspend_ms=4000, leave_ms=1500)
GOVERNED = with_(GUARD_FREE, levers=LEVERS, governed=True)


# --- yields ---------------------------------------------------------------------------------------------


def order(number: int, state: State = "freed", verb: OrderVerb = "suspend", **changes: Any) -> Order:
    plain = Order(
        order=f"o-{number:06d}", requester="p1", victim="r1", attempt="a", container="c", node="n1",
        size=size(1), request_size=size(1), serves=1, group="g", generation=1, verb=verb, decision=1,
        ordered_at_ms=0, progress_at_ms=0, state=state, freed_at_ms=0 if state == "freed" else None,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **changes)


def outcomes(yields: LeverYields, row: str, at_ms: int = 0) -> None:
    """Settle orders: "g" was granted, "m" was given to another application, the task of "f" did not stop."""
    targets: dict[str, State] = {"g": "granted", "m": "misdirected", "f": "given_up"}
    for each in row:
        yields.ordered(["o-000001"], "production")
        yields.settled(order(1), targets[each], None, at_ms)


@pytest.mark.parametrize(
    ("row", "stops"),
    [
        ("fff", False),
        ("ffff", True),
        ("ffffg", False),
        ("gffff", True),
        ("fffmfff", False),
        ("mmmmmmmmm", False),
        ("mmmmmmmmmm", True),
        ("mmgmmgmfgm", True),  # 7 of 10
        ("mmgmgmfgmg", False),  # 6 of 10
        ("mmmmmmmgmgmg", True),  # 9 of 12
        ("mmmmmmmggmgg", False),  # 8 of 12
    ],
)
def test_orders_in_vain_stop_levers(row: str, stops: bool) -> None:
    yields = LeverYields()
    outcomes(yields, row)
    assert (yields.in_vain("production", 1) is not None) is stops
    assert yields.in_vain("etl", 1) is None


def test_orders_of_long_ago_do_not_count() -> None:
    yields = LeverYields()
    outcomes(yields, "ffff")
    assert yields.in_vain("production", WINDOW_MS - 1) is not None
    assert yields.in_vain("production", WINDOW_MS) is None


@pytest.mark.parametrize(
    ("before", "target", "why", "counts"),
    [
        (order(1), "withdrawn", RequestGone(), True),
        (order(1), "lost", None, True),
        (order(1, "suspending"), "given_up", None, True),
        (order(1, "ordered", "kill"), "withdrawn", RequestGone(), True),
        (order(1, "ordered", "drain"), "withdrawn", RequestGone(), True),
        (order(1, "suspending"), "withdrawn", RequestGone(), False),  # withdrawn in time: it cost nothing
        (order(1, "suspending"), "lost", None, False),  # its node was
        (order(1, "ordered"), "completed", None, False),
        (order(1, "ordered", "kill"), "withdrawn", OnlyObserved(), False),
        (order(1, serves=0), "misdirected", None, False),
        (order(1, observed=True), "misdirected", None, False),
    ],
)
def test_what_is_in_vain(before: Order, target: State, why: object, counts: bool) -> None:
    yields = LeverYields()
    for _ in range(LEAST):
        yields.ordered([before.order], "production")
        yields.settled(before, target, why, 0)
    assert (yields.in_vain("production", 1) is not None) is counts


def test_each_stop_is_twice_as_long_until_enough_orders_are_useful() -> None:
    assert [stop_ms(stops) // MIN_MS for stops in (0, 1, 2, 5, 6, 99)] == [1, 2, 4, 32, 32, 32]
    assert stop_ms(5) == STOP_MAX_MS
    yields = LeverYields()
    for minutes in (1, 2, 4):
        outcomes(yields, "ffff")
        why = yields.in_vain("production", 1000)
        assert why == LeversInVain("production", 1000 + minutes * MIN_MS, 4, 4)
        yields.stop(why, 1000)
        assert list(yields.standing(why.until_ms - 1)) == ["production"]
        outcomes(yields, "ffff", why.until_ms - 1)  # they were sent before
        assert yields.in_vain("production", why.until_ms) is None
        assert yields.standing(why.until_ms) == {}
        yields.set_back(why.until_ms)
    outcomes(yields, "g" * (USEFUL_TO_FORGET - 1))
    assert yields.stops_of("production") == 3
    outcomes(yields, "g")
    assert yields.stops_of("production") == 0


def test_after_a_stop_few_containers_are_tried_until_two_orders_were_useful() -> None:
    yields = LeverYields()
    assert not yields.is_trial
    outcomes(yields, "gffff")
    assert not yields.is_trial
    yields.stop(LeversInVain("production", MIN_MS, 4, 5), 0)
    assert yields.is_trial
    outcomes(yields, "gm", MIN_MS)
    assert yields.is_trial
    outcomes(yields, "g", MIN_MS)
    assert not yields.is_trial


def test_yields_survive_a_restart() -> None:
    yields = LeverYields()
    assert yields.state() is None
    yields.ordered(["o-000009"], "etl")
    outcomes(yields, "mgffff", 7)
    yields.stop(LeversInVain("production", MIN_MS, 4, 5), 10)
    again = LeverYields(yields.state())
    assert (again.queues, again.requesters) == (yields.queues, yields.requesters)
    assert (list(again.standing(10)), again.stops_of("production")) == (["production"], 1)


# --- waits ----------------------------------------------------------------------------------------------


def looks(waits: Waits, *rows: tuple[int, ...], queue: str = "production", begin_ms: int = 1000) -> None:
    """Look each second at one application: (containers, pending)."""
    for at, (containers, pending) in enumerate(rows):
        waits.look([app("p1", queue, containers, pending)], begin_ms + at * 1000)


def test_a_queue_s_own_containers_that_end_and_are_given_to_it_are_its_turnover() -> None:
    waits = Waits()
    looks(waits, (5, 20), (5, 16), (5, 12))  # four a second end, and four requests are served
    assert waits.served_within("production", 1000) == 4
    assert waits.served_within("production", 4000) == 16
    assert waits.served_within("etl", 4000) == 0


@pytest.mark.parametrize(
    ("rows", "served"),
    [
        (((5, 20), (9, 16)), 0),  # given, and none of its own ended
        (((9, 20), (5, 20)), 0),  # ended, and given to others
        (((9, 20), (7, 17)), 3),  # five ended, three of them were given to it
        (((5, 20), (9, 20), (9, 16)), 0),  # the requests are shown for a look longer
    ],
)
def test_what_others_give_or_take_is_no_turnover(rows: tuple[tuple[int, int], ...], served: int) -> None:
    waits = Waits()
    looks(waits, *rows)
    spans = len(rows) - 1
    assert waits.served_within("production", 1000 * spans) == served


def test_containers_of_an_application_that_ended_are_turnover() -> None:
    waits = Waits()
    waits.look([app("p1", "production", 3), app("p2", "production", 1, 5)], 1000)
    waits.look([app("p2", "production", 4, 2)], 2000)
    assert waits.served_within("production", 1000) == 3


def test_nothing_is_known_after_a_gap_or_a_pause_without_requests() -> None:
    waits = Waits()
    looks(waits, (5, 20))
    looks(waits, (5, 16), begin_ms=1001 + GAP_MAX_MS)
    assert waits.served_within("production", 9000) == 0
    looks(waits, (5, 20), (5, 16), begin_ms=20_000)
    waits.quiet()
    assert waits.served_within("production", 9000) == 0


def waited(waits: Waits, group: Any, waited_s: int, count: int, begin_ms: int) -> None:
    """Let one application wait for ``count`` containers, and be given them at once."""
    waits.quiet()
    looks(waits, (1, count), begin_ms=begin_ms)
    waits.note({"p1": group}, ["production"], begin_ms)
    looks(waits, *[(1, count)] * (waited_s - 1), (1 + count, 0), begin_ms=begin_ms + 1000)


def test_waits_with_levers_are_compared_with_those_without() -> None:
    waits = Waits()
    for at in range(WAITS_LEAST // 2):
        waited(waits, "with", 4, 2, 10_000 + at * 10_000)
        waited(waits, "without", 2, 2, 15_000 + at * 10_000)
    now_ms = 10_000 + 10_000 * (WAITS_LEAST // 2)
    assert waits.later("production", now_ms, 1) == LeversMakeLater(
        "production", now_ms + 2 * MIN_MS, 4000, 2000, WAITS_LEAST, WAITS_LEAST
    )
    waits.begin_anew("production")
    assert waits.later("production", now_ms, 1) is None


@pytest.mark.parametrize(("with_s", "without_s", "stops"), [(3, 3, False), (5, 3, True), (4, 3, False)])
def test_a_quarter_and_a_second_are_within_the_margin(with_s: int, without_s: int, stops: bool) -> None:
    waits = Waits()
    for at in range(WAITS_LEAST // FIRST):
        waited(waits, "with", with_s, FIRST, 10_000 + at * 20_000)
        waited(waits, "without", without_s, FIRST, 20_000 + at * 20_000)
    assert (waits.later("production", 120_000, 0) is not None) is stops


def test_too_few_waits_and_those_of_nobody_do_not_count() -> None:
    waits = Waits()
    for at in range(WAITS_LEAST // FIRST):
        waited(waits, "with", 9, FIRST, 10_000 + at * 30_000)
        waited(waits, "without", 1, FIRST - 1, 20_000 + at * 30_000)
        waited(waits, "", 1, FIRST, 30_000 + at * 30_000)
    assert waits.later("production", 160_000, 0) is None


def test_of_an_application_the_first_containers_count() -> None:
    waits = Waits()
    looks(waits, (1, 100))
    waits.note({"p1": "with"}, [], 1000)
    looks(waits, *((1 + at, 100 - at) for at in range(1, 40)), begin_ms=2000)
    assert sum(each.with_orders for each in waits.memory.buckets["production"]) == FIRST


# --- before a decision ----------------------------------------------------------------------------------


def choice(*levers: tuple[LeverKind, int], awaited: int = 0) -> Choice:
    """Return a choice of one container by each of (lever, ms), and one that is awaited for a second each."""
    picks = tuple(Pick("r1", task(f"r1.{at}"), (), (), size(1), 1) for at in range(len(levers)))
    pulls = tuple(
        LeverPull(Lever(f"r1.{at}", kind, span_ms, 0, 0, "resume"), "research", "u")
        for at, (kind, span_ms) in enumerate(levers)
    )
    ends = tuple(
        AwaitedTask("r1", f"w{at}", Lever(f"w{at}", "wait", 1000, 0, 0, "none"), NOW_MS + 1000, 1)
        for at in range(awaited)
    )
    return Choice(picks, (), 0, (), (), (), pulls=pulls, awaited=ends)


NOW_MS = 3000
P1 = app("p1", "production", 5, 12)


def helping(*rows: tuple[int, int]) -> SelfHelp:
    waits = Waits()
    looks(waits, *(rows or ((5, 14), (5, 13), (5, 12))))  # one a second
    return SelfHelp(waits, NOW_MS)


SUSPEND: tuple[LeverKind, int] = ("suspend", 4000)
KILL: tuple[LeverKind, int] = ("kill", 1000)
QUICK_KILL: tuple[LeverKind, int] = ("kill", 900)


@pytest.mark.parametrize(
    ("lacking", "chosen", "drops"),
    [
        (1, choice(SUSPEND), 1),  # four are served before it comes
        (4, choice(*[SUSPEND] * 4), 4),
        (6, choice(*[SUSPEND] * 6), 4),
        (6, choice(*[KILL] * 6), 1),
        (6, choice(*[QUICK_KILL] * 6), 0),
        (6, choice(*[SUSPEND] * 2, awaited=1), 1),
        (6, choice(*[SUSPEND] * 2), 0),  # a limit in flight: six lack, two are ordered
        (6, choice(QUICK_KILL, *[SUSPEND] * 2), 1),
    ],
)
def test_levers_that_come_later_than_the_queue_helps_itself_are_not_pulled(
    lacking: int, chosen: Choice, drops: int
) -> None:
    found = helping().keeps(P1, lacking, chosen)
    assert found == (drops, HelpsItself("production") if drops else None)


def test_the_requests_before_are_served_first() -> None:
    self_help = helping()
    self_help.planned("etl", 9)
    assert self_help.keeps(P1, 1, choice(("suspend", 4000)))[0] == 1
    self_help.planned("production", 4)
    assert self_help.keeps(P1, 1, choice(("suspend", 4000)))[0] == 0


def test_a_prediction_that_failed_for_as_long_as_the_lever_takes_holds_nothing_back() -> None:
    waits = Waits()
    looks(waits, (5, 14), (5, 13), (5, 12))
    waits.note({}, ["production"], NOW_MS - 3999)
    assert SelfHelp(waits, NOW_MS).keeps(P1, 1, choice(("suspend", 4000)))[0] == 1
    waits.note({}, [], NOW_MS)
    waits.note({}, ["production"], NOW_MS - 4000)
    assert SelfHelp(waits, NOW_MS).keeps(P1, 1, choice(("suspend", 4000)))[0] == 0


@pytest.mark.parametrize(
    ("kind", "span_ms", "waited_s", "held"),
    [
        ("drain", 8000, 1, True), ("drain", 8000, 2, False), ("rescale", 8000, 1, True),
        ("drain", 60_000, 2, True), ("drain", 60_000, 3, False), ("suspend", 60_000, 0, False),
    ],
)  # fmt: skip
def test_what_cannot_be_withdrawn_waits_for_a_part_of_its_time(
    kind: LeverKind, span_ms: int, waited_s: int, held: bool
) -> None:
    waits = Waits()
    looks(waits, *[(5, 12)] * (waited_s + 1), begin_ms=NOW_MS - waited_s * 1000)
    found = SelfHelp(waits, NOW_MS).keeps(P1, 12, choice((kind, span_ms)))
    assert found == ((1, LeverHeldBack()) if held else (0, None))


# --- the controller -------------------------------------------------------------------------------------

TASKS = {"r1": [task(f"r1.{at}", node=f"n{at % 3}") for at in range(60)]}


class World:
    """A governed controller, a second at each look."""

    def __init__(self, **changes: Any) -> None:
        self.controller = Controller(with_(GOVERNED, **changes), validate=True)
        self.now_ms = 0
        self.records: list[Record] = []

    def look(self, *views: ApplicationView, facts: tuple[Fact, ...] = (), free: int = 0) -> None:
        self.now_ms += 1000
        snapshot = cluster(app("r1", "research", 61), *views, free={f"f{at}": 8 for at in range(free)})
        while True:
            controller = self.controller
            asked = snapshot if controller.to_observe.cluster else None
            step = controller.step(seen(asked, TASKS, now_ms=self.now_ms, facts=facts))
            self.records += step.records
            for action in step.actions:
                self.records += controller.settle(action, Accepted())
            facts = ()
            if step.wake_at_ms > self.now_ms:
                controller.to_observe = msgspec.structs.replace(controller.to_observe, cluster=True)
                return

    def orders(self, application: str = "p1") -> int:
        decisions = [each for each in self.records if isinstance(each, Decision)]
        return sum(len(each.orders) for each in decisions if each.trigger.application == application)

    def refusals(self) -> list[object]:
        return [each.why for each in self.records if isinstance(each, Refusal)]


@pytest.mark.parametrize(("governed", "orders"), [(True, 0), (msgspec.UNSET, 5)])
def test_a_busy_queue_is_ordered_nothing_for_and_says_why(governed: Any, orders: int) -> None:
    """Ten tasks of a second turn over; five requests come, and are served within a lever's time."""
    world = World(governed=governed)
    for pending in (30, 20, 10):
        world.look(app("p1", "production", 11, pending), free=8)  # they fit, and YARN is slow
    world.look(app("p1", "production", 11), app("p2", "production", 1, 5, rank=1))
    assert world.orders("p2") == orders
    assert (HelpsItself("production") in world.refusals()) is (governed is True)


def failing(world: World, pending: int = 4) -> None:
    """Let no task of the first orders stop within their time-out."""
    world.look(app("p1", "production", 1, pending))
    for _ in range(world.controller.settings.kill_timeout_ms // 1000):
        world.look(app("p1", "production", 1, pending))


def test_levers_are_stopped_for_a_minute_and_then_two_are_tried() -> None:
    world = World(in_flight_ratio_max=0.01, in_flight_least=4)
    failing(world)
    stopped = [each for each in world.records if isinstance(each, LeversStopped)]
    assert [(each.at_ms, each.why) for each in stopped] == [
        (13_000, LeversInVain("production", 13_000 + MIN_MS, 4, 4))
    ]
    assert world.refusals()[-1] == stopped[0].why
    assert world.orders() == 4
    while world.now_ms < 12_000 + MIN_MS:
        world.look(app("p1", "production", 1, 4))
        assert world.orders() == 4
    world.look(app("p1", "production", 1, 4))
    assert world.orders() == 4 + TRIAL_MAX


def test_a_stop_lets_open_orders_be_withdrawn() -> None:
    world = World()
    world.look(app("p1", "production", 1, 4))
    yields = world.controller.ledger.yields
    yields.stop(LeversInVain("production", 100_000, 4, 4), 1000)
    world.look(app("p1", "production", 1, 4))
    assert len(world.controller.ledger.open) == 4
    world.look(app("p1", "production", 1))
    assert world.controller.ledger.open == {}


def test_an_observing_controller_stops_nothing() -> None:
    world = World(observe_only=True)
    failing(world)
    assert not any(isinstance(each, LeversStopped) for each in world.records)


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
