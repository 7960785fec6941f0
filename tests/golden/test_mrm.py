"""Golden: what MRM promises, at which price, and whom it turns away; one claim a row.

Ten containers of one pool, now is 1,000,000 ms. Work is in container-ms; 1 milli-token is 1 container-ms.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Pool
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.mechanisms.mrm import Needed, needed, priced
from yarnctl.deciding.admission.mechanisms.promises import Market, MrmChoices, MrmMemory, carry, market
from yarnctl.deciding.admission.pricing.timeline import Due, broken, served
from yarnctl.deciding.admission.records import (
    Budget,
    DueClaim,
    Estimate,
    Phase,
    Phases,
    Plan,
    Request,
    Reservation,
)
from yarnctl.deciding.admission.rounds import Round, Seen
from yarnctl.deciding.reasons.verdicts import (
    AwaitsTurn,
    CannotPay,
    CostsMore,
    NoAccount,
    PaidFor,
    TooEarly,
    WorkUnknown,
)

NOW = 1_000_000
CHOICES = MrmChoices(job_ms=100_000)
POOLS = (Pool("", 10, 1024),)


def request(
    sequence: int, deadline_ms: int | None, most: int = 10**9, work_ms: int = 100_000, tasks: int = 10
) -> Request:
    return Request(
        sequence, NOW, deadline_ms, tasks, Estimate(work_ms, 0, "me"), budget=Budget("analytics", most)
    )


def held(sequence: int, work_ms: int, due_at_ms: int, most: int = 10, application: str = "") -> Reservation:
    claim = DueClaim(work_ms, most, NOW, due_at_ms)
    return Reservation(request(sequence, due_at_ms - NOW), claim, 1.0, NOW + 60_000, application)


def round_of(*waiting: Request, balance: int = 10**9, **fields: Any) -> Round:
    seen = Seen(waiting, (), (), POOLS, NOW, {"analytics": balance})
    return MECHANISMS["mrm"].round(MrmMemory(), CHOICES, seen._replace(**fields))


def plan_of(*waiting: Request, **fields: Any) -> Plan:
    return round_of(*waiting, **fields).plans[-1]


PRICES = [
    # deadline_ms from now, price: p / (F/m + 1), F what is free until the deadline once it is laid
    (10_000, 100_000, "no slack: the whole work"),
    (20_000, 50_000, "as much free as it computes: half"),
    (40_000, 25_000, "three times as much: a quarter"),
    (10_001, 99_991, "1 ms later, 10 container-ms free: 99,990.0009... is rounded up"),
]


@pytest.mark.parametrize(("deadline_ms", "price", "claim"), PRICES, ids=[row[2] for row in PRICES])
def test_an_empty_cluster_prices_a_deadline_by_its_slack(deadline_ms: int, price: int, claim: str) -> None:
    plan = plan_of(request(1, deadline_ms))
    assert (plan.verdict, plan.price_mtokens, plan.reason) == ("admit", price, PaidFor(price))
    assert plan.because == (("itself", price),)
    assert plan.deadline_at_ms == NOW + deadline_ms
    assert plan.finish_at_ms == NOW + 10_000
    assert plan.late_ratio == 0.05


def test_whoever_has_less_slack_because_of_it_is_a_term_of_the_price() -> None:
    plan = plan_of(request(2, 10_000), reserved=(held(1, 100_000, NOW + 30_000),))
    # before: 200,000 free until 1's deadline: 100,000 / 3. After: 100,000 free: 100,000 / 2.
    assert plan.because == (("itself", 100_001), ("1", 16_666))
    assert plan.price_mtokens == 116_667


def test_one_that_runs_already_has_no_term() -> None:
    plan = plan_of(
        request(2, 10_000), reserved=(held(1, 100_000, NOW + 30_000, application="application_1"),)
    )
    assert plan.because == (("itself", 100_000),)


REFUSED = [
    (request(1, 9_999), {}, TooEarly(NOW + 10_000), "10 containers need 10 s"),
    (request(1, 9_999, tasks=5), {}, TooEarly(NOW + 20_000), "5 containers need 20 s"),
    (request(1, 10_000), {"loads": (Load("other", 5, 0),)}, TooEarly(NOW + 20_000), "others hold 5 for ever"),
    (request(2, 10_000), {"reserved": (held(1, 100_000, NOW + 10_000),)}, TooEarly(NOW + 20_000),
     "another promise has no time to spare"),
    (request(1, 20_000, most=49_999), {}, CostsMore(50_000, NOW + 20_000, 49_999, NOW + 20_001),
     "a milli-token less was agreed than it costs"),
    (request(1, 20_000), {"balance": 49_999}, CannotPay(50_000, NOW + 20_000, 49_999), "it cannot be paid"),
    (request(1, None), {"balance": 0}, CannotPay(100_000, NOW + 10_000, 0), "nothing is left"),
    (request(1, 20_000), {"balances": {}}, NoAccount("analytics"), "no such account"),
    (Request(1, NOW, 20_000, 10, Estimate(1, 0, "me")), {}, NoAccount(), "no budget is said"),
    (Request(1, NOW, 20_000, 10, None, budget=Budget("analytics", 1)), {}, WorkUnknown(),
     "nobody knows how much it computes"),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "fields", "why", "claim"), REFUSED, ids=[row[3] for row in REFUSED])
def test_who_is_turned_away_is_told_why(
    asked: Request, fields: dict[str, Any], why: object, claim: str
) -> None:
    found = round_of(asked, **fields)
    assert (found.plans[0].verdict, found.plans[0].reason, found.granted) == ("reject", why, ())
    assert found.plans[0].price_mtokens is None


BUDGETS = [
    (100_000, NOW + 10_000, 100_000, "all of it: the earliest deadline"),
    (50_000, NOW + 20_000, 50_000, "half: twice as late"),
    (25_000, NOW + 40_000, 25_000, "a quarter: four times as late"),
    (10**9, NOW + 10_000, 100_000, "more than it costs: the price is paid, not the budget"),
]


@pytest.mark.parametrize(
    ("most", "deadline_at_ms", "price", "claim"), BUDGETS, ids=[row[3] for row in BUDGETS]
)
def test_a_budget_buys_the_earliest_deadline_within_it(
    most: int, deadline_at_ms: int, price: int, claim: str
) -> None:
    plan = plan_of(request(1, None, most))
    assert (plan.verdict, plan.deadline_at_ms, plan.price_mtokens) == ("admit", deadline_at_ms, price)


def test_a_budget_is_no_more_than_what_the_account_holds() -> None:
    assert plan_of(request(1, None), balance=50_000).deadline_at_ms == NOW + 20_000


def test_two_of_one_round_pay_from_one_balance_one_after_the_other() -> None:
    first, second = round_of(request(1, 20_000), request(2, 40_000), balance=60_000).plans
    assert (first.verdict, first.price_mtokens) == ("admit", 50_000)
    assert isinstance(second.reason, CannotPay)
    assert second.reason.held_mtokens == 10_000


def test_the_due_holds_the_work_with_its_margin_until_the_deadline() -> None:
    asked = Request(1, NOW, 60_000, 4, Estimate(100_000, 10_000, "me"), budget=Budget("analytics", 10**9))
    (held_now,) = round_of(asked).granted
    assert held_now.claim == DueClaim(116_449, 4, NOW, NOW + 60_000)  # mean and 1.6449 s.d.
    assert needed(Estimate(100_000, 0, "me"), 4, 10, CHOICES) == Needed(100_000)


PHASES = Phases((Phase("map", 20, 9_000, 0), Phase("reduce", 4, 15_000, 1_000)), 3_000, 5_000)
NEEDED = [
    # 240 s of tasks; 8 + 9 + 15 s pass beside; its master is held as long as it takes alone
    (PHASES, 10, 0.5, Needed(240_000 + 58_667, 32_000, 15_000, 58_667), "nine tasks at once"),
    (PHASES, 2, 0.5, Needed(240_000 + 272_000, 32_000, 15_000, 272_000), "one task at once"),
    (PHASES, 40, 0.5, Needed(240_000 + 58_667, 32_000, 15_000, 58_667), "no more than there are"),
    # each reduce 1.6449 s longer
    (PHASES, 10, 0.05, Needed(246_580 + 61_043, 33_645, 16_645, 61_043), "with a margin"),
    (Phases((), 3_000, 5_000), 10, 0.5, Needed(100_000), "no phase is known"),
]


@pytest.mark.parametrize(
    ("phases", "tasks", "late_ratio", "room", "claim"), NEEDED, ids=[row[4] for row in NEEDED]
)
def test_tasks_are_whole_so_their_work_is_due_earlier_than_the_job(
    phases: Phases, tasks: int, late_ratio: float, room: Needed, claim: str
) -> None:
    known = Estimate(100_000, 0, "me", phases)
    assert needed(known, tasks, 10, MrmChoices(late_ratio=late_ratio)) == room


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 50)), min_size=1, max_size=3), st.integers(2, 12)
)
def test_whatever_the_order_of_tasks_it_ends_within_its_work_and_its_latency(
    kinds: list[tuple[int, int]], most: int
) -> None:
    """Served on all that it may use, a job takes no longer than work / most + latency (Graham's bound)."""
    phases = Phases(tuple(Phase("map", *each, 0) for each in kinds), 7, 3)
    room = needed(Estimate(1, 0, "me", phases), most, most, MrmChoices(late_ratio=0.5))
    waves_ms = sum(-(-tasks // (most - 1)) * long_ms for tasks, long_ms in kinds)
    assert 10 + waves_ms <= -(-room.work_ms // most) + room.latency_ms
    assert room.work_ms >= sum(tasks * long_ms for tasks, long_ms in kinds) + 10 + waves_ms - most * sum(
        long_ms for _, long_ms in kinds
    )


def phased(sequence: int, deadline_ms: int | None) -> Request:
    asked = request(sequence, deadline_ms)
    return msgspec.structs.replace(asked, estimate=Estimate(1, 0, "me", PHASES))


def round_even(*waiting: Request) -> Round:
    """Hold a round in which a job is as often later than expected as earlier: no margin."""
    seen = Seen(waiting, (), (), POOLS, NOW, {"analytics": 10**9})
    return MECHANISMS["mrm"].round(MrmMemory(), MrmChoices(job_ms=100_000, late_ratio=0.5), seen)


def test_a_promise_of_phases_is_served_by_its_latency_before_the_deadline() -> None:
    """298.7 s of work on ten containers: 29.867 s, rounded up, and 32 s."""
    (plan,), (kept,) = round_even(phased(1, None))
    assert plan.deadline_at_ms == NOW + 29_867 + 32_000
    assert plan.finish_at_ms == NOW + 26_667 + 32_000, "submitted now: its tasks have nine containers"
    assert kept.claim == DueClaim(298_667, 10, NOW, NOW + 29_867, 32_000, 15_000, 58_667)
    assert plan.price_mtokens == 298_659  # rounding up leaves 3 container-ms of slack
    (refused,) = round_even(phased(1, 61_866)).plans
    assert refused.reason == TooEarly(NOW + 61_867)
    (later,) = round_even(phased(1, 71_867)).plans  # 100 s of slack, as much as a mean job
    assert later.price_mtokens == 149_332


def test_of_a_job_in_its_last_tasks_the_master_is_left() -> None:
    (kept,) = round_even(phased(1, None)).granted
    runs = msgspec.structs.replace(kept, application="application_1")
    for at_ms, free in ((29_867, 9), (61_866, 9), (61_867, 0)):
        found = market(MrmMemory(), CHOICES, Seen((), (runs,), (), POOLS, NOW + at_ms))
        assert found.dues == ()
        assert found.free.free_at(NOW + at_ms) == free


def sold(sequence: int, tasks_ms: int, due_at_ms: int, master_ms: int = 10_000) -> Reservation:
    """Return a job whose turn has not come: so much work of tasks, and its master's."""
    made = held(sequence, tasks_ms + master_ms, due_at_ms)
    claim = msgspec.structs.replace(made.claim, latency_ms=5_000, master_ms=master_ms)
    plan = Plan(sequence, "admit", 10, due_at_ms + 5_000, PaidFor(1_000), price_mtokens=1_000)
    return msgspec.structs.replace(made, claim=claim, sold=plan, expires_at_ms=FOREVER_MS)


def submitted(each: Reservation) -> Reservation:
    return msgspec.structs.replace(each, sold=None, application="application_1")


def standing_of(*reserved: Reservation) -> Market:
    return market(MrmMemory(), CHOICES, Seen((), reserved, (), POOLS, NOW))


def test_a_submitted_job_holds_its_masters_container_until_its_planned_end_served_or_not() -> None:
    first, second = sold(1, 90_000, NOW + 20_000), sold(2, 90_000, NOW + 60_000)
    # of neither a master is there: 100 s of work each, both laid on ten containers
    assert standing_of(first, second).free.free == (10,)
    # the first runs: its tasks have nine containers for 10 s, its master one for 5 s longer
    runs = standing_of(submitted(first), second)
    assert [runs.free.free_at(NOW + at_ms) for at_ms in (0, 14_999, 15_000)] == [9, 9, 10]
    # the second is there as well: eight are left for the first's tasks, 11.25 s; then nine for its own
    both = standing_of(submitted(first), submitted(second))
    ends_ms = served(both.free, both.dues, NOW)
    assert ends_ms["1"] == NOW + 11_250
    assert [both.free.free_at(NOW + at_ms) for at_ms in (0, 16_249, 16_250)] == [8, 8, 9]
    assert both.free.free_at(ends_ms["2"] + 4_999) == 9
    assert both.free.free_at(ends_ms["2"] + 5_000) == 10


def test_whoever_is_served_later_because_of_a_promise_holds_its_master_longer() -> None:
    """Two wait with their masters. A third of 80 s in front of them has eight containers, not ten."""
    runs = standing_of(submitted(sold(1, 90_000, NOW + 40_000)), submitted(sold(2, 90_000, NOW + 60_000)))
    job = Due("3", 80_000, 10, NOW + 10_000)
    assert not runs.breaks(job)
    assert runs.breaks(job._replace(due_at_ms=NOW + 9_999))


def held_round(*reserved: Reservation, at_ms: int = 0, capacity: int = 10, **fields: Any) -> Round:
    waiting = tuple(each.request for each in reserved if isinstance(each.sold, Plan))
    seen = Seen(waiting, reserved, (), (Pool("", capacity, 1024),), NOW + at_ms, {"analytics": 0})
    return MECHANISMS["mrm"].round(MrmMemory(), CHOICES, seen._replace(**fields))


def test_a_sold_deadline_is_submitted_when_its_turn_comes() -> None:
    first, second = submitted(sold(1, 90_000, NOW + 20_000)), sold(2, 90_000, NOW + 60_000)
    early = held_round(first, second)
    assert early.granted == ()
    (plan,) = early.plans
    assert (plan.verdict, plan.reason) == ("defer", AwaitsTurn(1_000, NOW + 10_000))
    assert (plan.price_mtokens, plan.deadline_at_ms) == (1_000, NOW + 65_000)
    late = held_round(second, at_ms=10_000)
    assert [each.verdict for each in late.plans] == ["admit"]
    (granted,) = late.granted
    assert (granted.expires_at_ms, granted.sold) == (NOW + 70_000, None)


EARLY = [
    (10, 0, (), "ten containers: none is kept for a master that comes early"),
    (12, 0, (2,), "twelve: one is kept"),
    (12, 1, (), "it is used already"),
    (48, 0, (2, 3, 4), "48 containers: all that are kept"),
]


@pytest.mark.parametrize(("capacity", "idle", "released", "claim"), EARLY, ids=[row[3] for row in EARLY])
def test_so_many_masters_may_come_early_as_containers_are_kept(
    capacity: int, idle: int, released: tuple[int, ...], claim: str
) -> None:
    first = submitted(sold(1, 90_000 * capacity, NOW + 200_000))
    wide = msgspec.structs.replace(first, claim=msgspec.structs.replace(first.claim, most=capacity))
    there = [submitted(sold(10 + each, 90_000, NOW + 300_000)) for each in range(idle)]
    found = held_round(
        wide, *there, *(sold(each, 90_000, NOW + 900_000) for each in (2, 3, 4)), capacity=capacity
    )
    assert tuple(each.request.sequence for each in found.granted) == released


def test_no_master_comes_early_that_would_break_a_promise() -> None:
    """Eleven containers for tasks; with the second master ten, and the first's deadline is 1 ms too soon."""
    tight = msgspec.structs.replace(
        sold(1, 100_000, NOW + 11_111), claim=DueClaim(110_000, 11, NOW, NOW + 11_111, 5_000, 0, 10_000)
    )
    loose = msgspec.structs.replace(tight, claim=msgspec.structs.replace(tight.claim, until_ms=NOW + 11_112))
    for first, released in ((tight, ()), (loose, (2,))):
        found = held_round(submitted(first), sold(2, 90_000, NOW + 900_000), capacity=12)
        assert tuple(each.request.sequence for each in found.granted) == released


def test_one_that_is_late_before_its_turn_came_is_submitted() -> None:
    (plan,) = held_round(sold(1, 90_000, NOW + 20_000), at_ms=20_000).plans
    assert plan.verdict == "admit"


BLOCKED = [
    (15_000, 15_000, 148_667, "its longest task is held, the rest is served by deadline"),
    (0, 29_867, 0, "which task is longest is not known: all its work is held"),
    (60_000, 29_867, 0, "there is less to do than its longest task"),
]


@pytest.mark.parametrize(("task_ms", "held_ms", "due_ms", "claim"), BLOCKED, ids=[row[3] for row in BLOCKED])
def test_who_cannot_be_suspended_is_held_for_its_longest_task(
    task_ms: int, held_ms: int, due_ms: int, claim: str
) -> None:
    runs = held(1, 298_667, NOW + 90_000, application="application_1")
    runs = msgspec.structs.replace(runs, claim=msgspec.structs.replace(runs.claim, task_ms=task_ms))
    found = market(MrmMemory(), CHOICES, Seen((), (runs,), (), POOLS, NOW, blocking=(1,)))
    assert [found.free.free_at(NOW + at_ms) for at_ms in (0, held_ms - 1, held_ms)] == [0, 0, 10]
    assert sum(due.work_ms for due in found.dues) == due_ms


LEFT = [
    (NOW, 100_000, "nothing is done yet"),
    (NOW + 4_000, 60_000, "4 s on ten containers"),
    (NOW + 10_000, 0, "by the plan it is done"),
]


@pytest.mark.parametrize(("now_ms", "left_ms", "claim"), LEFT, ids=[row[2] for row in LEFT])
def test_what_is_left_of_a_promise_is_what_the_plan_of_the_last_round_leaves(
    now_ms: int, left_ms: int, claim: str
) -> None:
    asked = request(1, 60_000)
    first = Seen((asked,), (), (), POOLS, NOW, {"analytics": 10**9})
    granted = round_of(asked).granted
    taken = tuple(msgspec.structs.replace(each, application="application_1_0001") for each in granted)
    seen = first._replace(waiting=(), reserved=taken, now_ms=now_ms, promised=carry(first, granted))
    assert sum(due.work_ms for due in market(MrmMemory(), CHOICES, seen).dues) == left_ms
    later = seen._replace(now_ms=now_ms + 1, promised=carry(seen, ()))
    assert sum(due.work_ms for due in market(MrmMemory(), CHOICES, later).dues) == max(0, left_ms - 10)
    waits = seen._replace(reserved=granted)
    (due,) = market(MrmMemory(), CHOICES, waits).dues
    assert due.work_ms == 100_000, "it has not been submitted"


def test_who_is_late_is_expected_to_run_as_long_again() -> None:
    late = held(1, 100_000, NOW - 90_000, application="application_1")
    found = market(MrmMemory(), CHOICES, Seen((), (late,), (), POOLS, NOW))
    assert found.dues == ()
    assert (found.free.free_at(NOW + 89_999), found.free.free_at(NOW + 90_000)) == (0, 10)


def test_where_a_later_deadline_would_break_a_promise_it_is_served_with_an_earlier_one() -> None:
    """Two containers. Due in 7 ms it stands behind the second job and is too narrow to catch up."""
    narrow = held(1, 5, NOW + 5, most=1)
    wide = held(2, 3, NOW + 7, most=2)
    seen = market(MrmMemory(), CHOICES, Seen((), (narrow, wide), (), (Pool("", 2, 1024),), NOW))
    offered = priced(seen, "3", Estimate(6, 0, "me"), 1, CHOICES)
    assert offered is not None
    assert offered.earliest_ms == NOW + 6
    assert broken(seen.free, (*seen.dues, offered.job._replace(due_at_ms=NOW + 7)), NOW) == ("3",)
    assert [offered.serve_by_ms(NOW + at_ms) for at_ms in (6, 7, 20)] == [NOW + 6, NOW + 6, NOW + 20]


def test_no_room_at_any_time_is_no_market() -> None:
    seen = market(MrmMemory(), CHOICES, Seen((), (), (), (Pool("", 0, 1024),), NOW))
    assert priced(seen, "1", Estimate(1, 0, "me"), 1, CHOICES) is None


def test_finished_jobs_say_what_a_job_computes_on_average() -> None:
    found = market(MrmMemory(4, 1_000), CHOICES, Seen((), (), (), POOLS, NOW))
    assert found.mean_ms == 250.0
