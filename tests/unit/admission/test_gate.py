"""The gate: plans with reasons, fixed load, reservations that expire, and a restart in the middle."""

from __future__ import annotations

import msgspec

from yarnctl.deciding.admission.capacity import Load
from yarnctl.deciding.admission.gate import HELD_MS, Gate, decide, ended, submit, taken, withdraw
from yarnctl.deciding.admission.records import Estimate, Finished, Request

MINUTE = 60_000


def request(sequence: int, tasks: int, minutes: int = 20, **fields) -> Request:
    return Request(sequence, 0, minutes * MINUTE, tasks, **fields)


HALF = Finished(50, 10, 10, 10, 100, 1.0, True)
"""A job that needed half of what it could use."""


def learned(*requests: Request) -> Gate:
    gate = Gate("pythia", 100)
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
    assert "passed" in plans[2].reason
    assert gate.waiting == ()


def test_what_came_in_past_the_gate_is_not_there():
    gate, plans = decide(learned(request(0, 100)), 0, [Load("spark", 60, 0, 5 * MINUTE)])
    assert (plans[0].verdict, plans[0].containers, plans[0].start_at_ms) == ("defer", 50, 5 * MINUTE)
    assert plans[0].reason == "50 containers are needed, 40 are free now"
    _, plans = decide(gate, 5 * MINUTE)
    assert (plans[0].verdict, plans[0].containers) == ("admit", 67), "50 in three quarters of the time"


def test_a_reservation_expires_unless_its_application_is_seen():
    gate, _ = decide(learned(request(0, 100)), 0)
    gate = submit(gate, request(1, 120))
    _, plans = decide(gate, HELD_MS - 1)
    assert plans[0].verdict == "defer"
    _, plans = decide(gate, HELD_MS)
    assert plans[0].verdict == "admit"
    seen = taken(gate, 0, "application_1_0001")
    seen, plans = decide(seen, HELD_MS)
    assert plans[0].verdict == "defer"
    _, plans = decide(ended(seen, "application_1_0001", None), HELD_MS)
    assert plans[0].verdict == "admit"


def test_who_gives_up_frees_his_place():
    gate, _ = decide(learned(request(0, 100)), 0)
    gate = submit(withdraw(gate, 0), request(1, 120))
    assert decide(gate, 1)[1][0].verdict == "admit"


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
    gate = submit(submit(Gate("reactive_fs", 10), request(0, 30)), request(1, 30))
    gate, plans = decide(gate, 0)
    assert [(each.verdict, each.containers) for each in plans] == [("admit", 5), ("admit", 5)]
    _, plans = decide(submit(gate, request(2, 3)), 1)
    assert (plans[0].verdict, plans[0].containers) == ("defer", 1)
