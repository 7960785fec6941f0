"""A clock that was set back: which instants of the gate move with it, and which stay.

What counts time that passes moves by the span that the clock was set back (arrivals, expiries, predictions,
days of accounts), so each span continues, and the unknown time counts as none. A deadline is an instant of
the wall clock, named by the user and kept by YARN in a tag: it stays.

A clock that was set forward cannot be distinguished from time that passed, and moves nothing. When it is
corrected, it is set back, and deadlines are where they were before.
"""

from __future__ import annotations

import msgspec

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load
from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.pricing.accounts import Accounts
from yarnctl.deciding.admission.records import Claimed, Plan, Rectangle, Request, Reservation
from yarnctl.deciding.admission.rounds import Promised

replaced = msgspec.structs.replace


def gate_set_back(gate: Gate, by_ms: int) -> Gate:
    """Return the gate with all that waits, is reserved or is promised moved back."""
    promised = gate.promised
    return replaced(
        gate,
        waiting=tuple(request_set_back(each, by_ms) for each in gate.waiting),
        reserved=tuple(reservation_set_back(each, by_ms) for each in gate.reserved),
        promised=None if promised is None else _promised(promised, by_ms),
    )


def request_set_back(request: Request, by_ms: int) -> Request:
    """Return a request that came as long ago by the clock of now; its deadline stays."""
    return replaced(
        request, submitted_at_ms=request.submitted_at_ms - by_ms, set_back_ms=request.set_back_ms + by_ms
    )


def reservation_set_back(reservation: Reservation, by_ms: int) -> Reservation:
    """Return a reservation that begins and expires as much later or earlier than now as before."""
    return replaced(
        reservation,
        request=request_set_back(reservation.request, by_ms),
        claim=_claim(reservation.claim, by_ms),
        expires_at_ms=_earlier(reservation.expires_at_ms, by_ms),
        sold=None if reservation.sold is None else plan_set_back(reservation.sold, by_ms),
    )


def plan_set_back(plan: Plan, by_ms: int) -> Plan:
    """Return a plan whose predictions are moved; its deadline stays."""
    start_ms, finish_ms = plan.start_at_ms, plan.finish_at_ms
    return replaced(
        plan,
        start_at_ms=None if start_ms is None else _earlier(start_ms, by_ms),
        finish_at_ms=None if finish_ms is None else _earlier(finish_ms, by_ms),
    )


def accounts_set_back(accounts: Accounts, by_ms: int) -> Accounts:
    """Return accounts whose days continue; else a day would be paid when the clock has caught up."""
    moved = {
        name: each._replace(refilled_until_ms=each.refilled_until_ms - by_ms)
        for name, each in accounts.accounts.items()
    }
    return accounts._replace(accounts=moved)


def _claim(claim: Claimed, by_ms: int) -> Claimed:
    """Return a claim; one that is due by a deadline stays so."""
    if isinstance(claim, Rectangle):
        until_ms = _earlier(claim.until_ms, by_ms)
        return replaced(claim, from_ms=claim.from_ms - by_ms, until_ms=until_ms)
    return replaced(claim, from_ms=claim.from_ms - by_ms)


def _promised(promised: Promised, by_ms: int) -> Promised:
    return replaced(
        promised,
        at_ms=promised.at_ms - by_ms,
        loads=tuple(_load(each, by_ms) for each in promised.loads),
        masters=tuple(_load(each, by_ms) for each in promised.masters),
    )


def _load(load: Load, by_ms: int) -> Load:
    return load._replace(from_ms=load.from_ms - by_ms, until_ms=_earlier(load.until_ms, by_ms))


def _earlier(at_ms: int, by_ms: int) -> int:
    return at_ms if at_ms >= FOREVER_MS else at_ms - by_ms
