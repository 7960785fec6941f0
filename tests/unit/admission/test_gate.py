"""The gate: plans with reasons, fixed load, reservations that expire, and a restart in the middle."""

from __future__ import annotations

import msgspec
import pytest

from yarnctl.deciding.admission.capacity import Load, Pool
from yarnctl.deciding.admission.gate import (
    Gate,
    decide,
    ended,
    expected_end,
    granted_in,
    opened,
    running,
    submit,
    withdraw,
)
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.records import Estimate, Finished, Request
from yarnctl.deciding.admission.rounds import Seen
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.reasons.verdicts import NoDeadline
from yarnctl.journal.rendering import text

MINUTE = 60_000


def request(sequence: int, tasks: int, minutes: int = 20, **fields) -> Request:
    return Request(sequence, 0, minutes * MINUTE, tasks, **fields)


HALF = Finished(50, 10, 10, 10, 100, 1.0, True)
"""A job that needed half of what it could use."""


def learned(*requests: Request) -> Gate:
    gate = opened("pythia", (Pool("", 100, 1024),))
    gate = ended(gate, "none", HALF)
    for each in requests:
        gate = submit(gate, each)
    return gate


def test_verdicts_carry_plans():
    first = request(0, 120, estimate=Estimate(100 * MINUTE, 0, "history"))
    gate = learned(first, request(1, 110), request(2, 10, minutes=0))
    gate, plans = decide(gate, 0)
    assert [each.verdict for each in plans] == ["admit", "admit", "reject"]
    assert [each.containers for each in plans] == [50, 50, 0]
    assert plans[0].finish_at_ms == 2 * MINUTE
    assert plans[1].finish_at_ms == plans[1].deadline_at_ms
    assert "passed" in text(plans[2].reason)
    assert gate.waiting == ()


def test_what_came_in_past_the_gate_is_not_there():
    gate, plans = decide(learned(request(0, 100)), 0, [Load("spark", 60, 0, 5 * MINUTE)])
    assert (plans[0].verdict, plans[0].containers, plans[0].start_at_ms) == ("defer", 50, 5 * MINUTE)
    assert text(plans[0].reason) == "needs 50 containers, 40 free now"
    _, plans = decide(gate, 5 * MINUTE)
    assert (plans[0].verdict, plans[0].containers) == ("admit", 67), "50 in three quarters of the time"


def test_a_reservation_expires_unless_its_application_is_seen():
    gate, _ = decide(learned(request(0, 100)), 0)
    gate = submit(gate, request(1, 120))
    _, plans = decide(gate, RESERVED_MS - 1)
    assert plans[0].verdict == "defer"
    _, plans = decide(gate, RESERVED_MS)
    assert plans[0].verdict == "admit"
    seen = running(gate, 0, "application_1_0001", 0)
    seen, plans = decide(seen, RESERVED_MS)
    assert plans[0].verdict == "defer"
    _, plans = decide(ended(seen, "application_1_0001", None), RESERVED_MS)
    assert plans[0].verdict == "admit"


def test_who_gives_up_frees_his_place():
    gate, _ = decide(learned(request(0, 100)), 0)
    gate = submit(withdraw(gate, 0), request(1, 120))
    assert decide(gate, 1)[1][0].verdict == "admit"


def test_a_start_is_predicted_for_the_whole_run_or_not_at_all():
    gate = learned(request(0, 100, estimate=Estimate(100 * MINUTE, 0, "me")))
    _, plans = decide(gate, 0, [Load("a", 60, 0, 5 * MINUTE), Load("b", 90, 8 * MINUTE)])
    assert plans[0].start_at_ms == 5 * MINUTE, "67 by then, for a minute and a half"
    assert plans[0].finish_at_ms == 5 * MINUTE - (-100 * MINUTE // 67)
    _, plans = decide(gate, 0, [Load("a", 60, 0, 5 * MINUTE), Load("b", 90, 6 * MINUTE)])
    assert plans[0].start_at_ms is None, "free for a minute only"
    _, plans = decide(gate, 0, [Load("a", 60, 0)])
    assert (plans[0].verdict, plans[0].start_at_ms, plans[0].finish_at_ms) == ("defer", None, None)
    assert text(plans[0].reason) == "needs 50 containers, 40 free now; start time unknown"


@pytest.mark.parametrize("until_ms", [21 * MINUTE, 11 * MINUTE])
def test_who_will_be_too_late_when_there_is_room_is_told_so(until_ms):
    """Room comes after the deadline, or when more would be needed than can be used."""
    gate = learned(request(0, 100))
    _, plans = decide(gate, 0, [Load("a", 60, 0, until_ms)])
    assert gate.waiting[0].deadline_at_ms == 20 * MINUTE
    assert plans[0].verdict == "defer"
    assert text(plans[0].reason).endswith("; they become free too late")


def test_who_stands_before_you_starts_before_you():
    """Both would fit alone when the load goes: the smaller one is first in PYTHIA's queue."""
    gate = learned(request(0, 120, minutes=60), request(1, 100, minutes=60))
    _, plans = decide(gate, 0, [Load("a", 80, 0, 6 * MINUTE)])
    assert [plan.verdict for plan in plans] == ["defer", "defer"]
    assert plans[1].start_at_ms == 6 * MINUTE
    assert plans[0].start_at_ms is None, "the other runs until its deadline, for all that is known"


def test_what_should_have_ended_by_now_ends_nobody_knows_when():
    gate = learned(request(0, 120, minutes=2))
    gate, _ = decide(gate, 0)
    gate = submit(running(gate, 0, "application_1_0001", 0), request(1, 120, minutes=30))
    assert decide(gate, MINUTE)[1][0].start_at_ms == 2 * MINUTE
    assert decide(gate, 2 * MINUTE)[1][0].start_at_ms is None


def test_hopeless_in_numbers():
    work = Estimate(240 * MINUTE, 0, "history")
    gate = submit(opened("pythia", (Pool("", 8, 1024),)), request(0, 40, estimate=work))
    _, plans = decide(gate, 0)
    assert (plans[0].verdict, plans[0].containers) == ("reject", 0)
    assert text(plans[0].reason) == "needs 12 containers to end by its deadline and the cluster has 8"
    _, plans = decide(submit(opened("justice", (Pool("", 20, 1024),)), request(0, 10, estimate=work)), 0)
    assert text(plans[0].reason) == "needs 12 containers to end by its deadline and can use 10 at once"
    lucky = Estimate(240 * MINUTE, 80 * MINUTE, "history")
    _, plans = decide(submit(opened("pythia", (Pool("", 8, 1024),)), request(0, 40, estimate=lucky)), 0)
    assert plans[0].verdict == "admit", "it has been short enough before"
    _, plans = decide(submit(opened("no_drop_fs", (Pool("", 8, 1024),)), request(0, 40, estimate=work)), 0)
    assert plans[0].verdict == "admit", "that one turns nobody away"
    gate = learned(request(0, 100))
    assert text(decide(gate, 15 * MINUTE)[1][0].reason).endswith(
        "it now needs 200 containers to end by its deadline and can use 100"
    )


def test_the_word_of_a_round_gives_the_same_gate():
    gate = learned(request(0, 100), request(1, 120), request(2, 10, minutes=0))
    after, plans = decide(gate, 0)
    granted = granted_in(gate, after)
    assert expected_end(gate, 0, plans, granted) == after
    later = submit(after, request(3, 120))
    again, plans = decide(later, RESERVED_MS)
    assert expected_end(later, RESERVED_MS, plans, granted_in(later, again)) == again
    assert 0 not in {each.request.sequence for each in again.reserved}


def test_a_restart_goes_on_where_it_was():
    gate, _ = decide(learned(request(0, 100), request(1, 120), request(2, 70)), 0)
    assert len(gate.waiting) == 1
    assert len(gate.reserved) == 2
    back = msgspec.json.decode(msgspec.json.encode(gate), type=Gate)
    assert back == gate
    assert decide(back, MINUTE) == decide(gate, MINUTE)


def test_what_is_no_mapreduce_job_is_treated_alike():
    plain, spark = (decide(learned(request(0, 40, kind=kind)), 0)[1] for kind in ("mapreduce", "spark"))
    assert plain == spark


def test_the_gate_decides_for_fair_sharers_too():
    gate = submit(submit(opened("reactive_fs", (Pool("", 10, 1024),)), request(0, 30)), request(1, 30))
    gate, plans = decide(gate, 0)
    assert [(each.verdict, each.containers) for each in plans] == [("admit", 5), ("admit", 5)]
    _, plans = decide(submit(gate, request(2, 3)), 1)
    assert (plans[0].verdict, plans[0].containers) == ("defer", 1)


@pytest.mark.parametrize(
    "mechanism", [name for name, each in MECHANISMS.items() if each.needs_deadline and not each.places]
)
def test_who_names_no_deadline_is_turned_away_and_nobody_else_is_hindered(mechanism):
    asked = (Request(0, 0, None, 4), request(1, 4, estimate=Estimate(MINUTE, 0, "me")))
    gate = submit(submit(opened(mechanism, (Pool("", 10, 1024),)), asked[0]), asked[1])
    after, (without, other) = decide(gate, 0)
    assert (without.verdict, without.reason) == ("reject", NoDeadline())
    assert (other.verdict, [each.request for each in after.reserved]) == ("admit", [asked[1]])


@pytest.mark.parametrize("mechanism", list(MECHANISMS))
def test_a_quote_is_a_round_of_which_nothing_is_kept(mechanism):
    gate = submit(opened(mechanism, (Pool("", 10, 1024),)), request(0, 4, estimate=Estimate(MINUTE, 0, "me")))
    seen = Seen(gate.waiting, (), (), gate.pools, 0)
    more = seen._replace(waiting=(*seen.waiting, request(1, 4, estimate=Estimate(MINUTE, 0, "me"))))
    hold = MECHANISMS[mechanism].round
    assert len(hold(gate.memory, gate.choices, more).plans) == 2
    assert hold(gate.memory, gate.choices, seen) == hold(gate.memory, gate.choices, seen)
    assert decide(gate, 0)[1] == hold(gate.memory, gate.choices, seen).plans
