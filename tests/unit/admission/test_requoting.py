"""New quotes: which promises late jobs break, and which deadlines can be kept instead."""

from __future__ import annotations

import msgspec
import pytest

from yarnctl.deciding.admission.capacity import FOREVER_MS, Pool
from yarnctl.deciding.admission.gate import Gate, decide, opened, running, submit
from yarnctl.deciding.admission.late.requoting import QUOTED_MAX, NewQuote, quoted_anew
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices, MrmMemory, market
from yarnctl.deciding.admission.placement_options import Alternatives, PlacementOption
from yarnctl.deciding.admission.pricing.timeline import broken
from yarnctl.deciding.admission.records import Budget, DueClaim, Estimate, Request
from yarnctl.deciding.admission.rounds import Seen

MINUTE = 60_000
POOL = Pool("", 10, 1024)
RICH = {"a": 10**12}


def seen(gate: Gate, now_ms: int = 0) -> Seen:
    return Seen(gate.waiting, gate.reserved, (), gate.pools, now_ms, RICH, gate.promised)


def sold(*minutes: float, work_minutes: int = 10) -> Gate:
    """A market of 10 containers with a job for each deadline; each needs a minute of all. The first runs."""
    gate = opened("mrm", (POOL,))
    for number, each in enumerate(minutes, 1):
        work = Estimate(work_minutes * MINUTE, 0, "history")
        gate = submit(gate, Request(number, 0, int(each * MINUTE), 10, work, budget=Budget("a", 10**9)))
    gate, plans = decide(gate, 0, balances=RICH)
    assert all(plan.verdict != "reject" for plan in plans)
    return running(gate, 1, "application_1_0001", 0)


def test_job_behind_a_late_one_is_quoted_its_new_end() -> None:
    (quote,) = quoted_anew(sold(1, 2), seen(sold(1, 2)), {1: 3 * MINUTE})
    assert quote == NewQuote(2, 4 * MINUTE, 3 * MINUTE, 10 * MINUTE)


def test_promise_that_is_kept_beside_a_late_job_is_not_quoted() -> None:
    gate = sold(1, 9)
    assert quoted_anew(gate, seen(gate), {1: 3 * MINUTE}) == []
    assert quoted_anew(gate, seen(gate), {}) == []


def test_running_job_is_quoted_without_a_start() -> None:
    gate = running(sold(1, 2), 2, "application_1_0002", 0)
    (quote,) = quoted_anew(gate, seen(gate), {1: 3 * MINUTE})
    assert (quote.sequence, quote.deadline_at_ms, quote.start_at_ms) == (2, 4 * MINUTE, None)


def test_new_deadlines_break_no_promise_nor_each_other() -> None:
    gate = sold(1, 2, 3, 9, 4)
    late = {1: int(3.5 * MINUTE)}
    quotes = {each.sequence: each for each in quoted_anew(gate, seen(gate), late)}
    assert set(quotes) == {2, 3, 5}
    moved = [
        msgspec.structs.replace(each, claim=msgspec.structs.replace(each.claim, until_ms=new.deadline_at_ms))
        if (new := quotes.get(each.request.sequence))
        else each
        for each in gate.reserved
    ]
    held = [
        msgspec.structs.replace(each, claim=DueClaim(35 * MINUTE, 10, 0, int(3.5 * MINUTE)))
        if each.request.sequence == 1
        else each
        for each in moved
    ]
    assert isinstance(gate.memory, MrmMemory)
    assert isinstance(gate.choices, MrmChoices)
    now = market(gate.memory, gate.choices, seen(gate)._replace(reserved=tuple(held), promised=None))
    assert broken(now.free, now.dues, 0) == ()
    soonest = min(each.deadline_at_ms for each in quotes.values())
    assert soonest == int(4.5 * MINUTE)


def test_few_are_quoted_in_one_look() -> None:
    gate = sold(*range(1, QUOTED_MAX + 12))
    quotes = quoted_anew(gate, seen(gate), {1: 500 * MINUTE})
    assert [each.sequence for each in quotes] == list(range(2, QUOTED_MAX + 2))


def test_waiting_request_of_a_gate_without_prices_is_quoted_a_deadline_with_a_start_in_time() -> None:
    gate = opened("oracle", (POOL,))
    for number, minutes in ((1, 1), (2, 2.2), (3, 30)):
        work = Estimate(10 * MINUTE, 0, "history")
        gate, _ = decide(submit(gate, Request(number, 0, int(minutes * MINUTE), 10, work)), 0)
    gate = running(gate, 1, "application_1_0001", 0)
    before = decide(gate, 0)[1][0]
    assert before.verdict == "defer"
    assert before.start_at_ms == MINUTE
    quotes = quoted_anew(gate, seen(gate), {1: 6 * MINUTE})
    assert [each.sequence for each in quotes] == [2]
    assert quotes[0].start_at_ms == 6 * MINUTE
    assert quotes[0].deadline_at_ms == 427_000  # on the 9 containers that the third leaves it, to the second
    assert quotes[0].price_mtokens is None


def test_placed_application_behind_a_late_one_is_quoted_its_new_end() -> None:
    option = PlacementOption("mapreduce", 10, MINUTE, MINUTE)
    gate = opened("orion", (POOL,))
    for number, minutes in ((1, 2), (2, 3)):
        gate = submit(gate, Request(number, 0, minutes * MINUTE, 10, alternatives=Alternatives((option,))))
    gate, _ = decide(gate, 0)
    gate = running(gate, 1, "application_1_0001", 0)
    assert [each.sequence for each in gate.waiting] == [2]
    (quote,) = quoted_anew(gate, seen(gate), {1: 5 * MINUTE})
    assert quote == NewQuote(2, 6 * MINUTE, 5 * MINUTE, None)


@pytest.mark.parametrize("name", ["pythia", "justice", "reactive_fs", "no_drop_fs", "least_loaded"])
def test_every_gate_can_be_asked(name: str) -> None:
    gate = opened(name, (POOL,))
    for number in (1, 2):
        gate = submit(gate, Request(number, 0, 10 * MINUTE, 10, Estimate(10 * MINUTE, 0, "history")))
    gate, _ = decide(gate, 0)
    for quote in quoted_anew(gate, seen(gate), {1: 20 * MINUTE}):
        assert 10 * MINUTE < quote.deadline_at_ms < FOREVER_MS
