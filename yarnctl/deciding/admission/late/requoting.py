"""New quotes: the promises that late jobs break, and which deadlines can be kept instead (MRM section 6.2).

A late job is taken to hold its containers until its projected end; everything else is the mechanism's own
rule. Where deadlines have a price, those that are missed then are placed anew, the earliest first: each gets
the earliest deadline that breaks no other promise, at the price of now. Elsewhere a waiting request that had
a start in time gets the earliest deadline with such a start.

Law: this decides nothing and is in no journal. What was promised and paid stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.gate import Gate
from yarnctl.deciding.admission.mechanisms import MECHANISMS
from yarnctl.deciding.admission.mechanisms.mrm import HORIZON_MS
from yarnctl.deciding.admission.mechanisms.promises import MrmChoices, MrmMemory, market
from yarnctl.deciding.admission.pricing.accounts import price_mtokens
from yarnctl.deciding.admission.pricing.prices import curve, standing
from yarnctl.deciding.admission.pricing.timeline import by_deadline, earliest_due, schedule
from yarnctl.deciding.admission.records import DueClaim, Plan, Rectangle, Request
from yarnctl.deciding.admission.rounds import Seen

QUOTED_MAX = 20
"""The maximum of new quotes in one look, the earliest deadlines first."""
COMPARED_MAX = 1_600
"""New quotes of one look are compared with so many promises in all."""
GRID_MS = 1_000
"""A deadline without a price is found on this grid."""
LATER_MAX = 16
"""A deadline without a price moves by at most so many times what was left until it."""


class NewQuote(NamedTuple):
    """The deadline that can be kept instead of the promised one of request ``sequence``.

    ``start_at_ms`` is None where it runs already, ``price_mtokens`` where deadlines have no price.
    """

    sequence: int
    deadline_at_ms: int
    start_at_ms: int | None
    price_mtokens: int | None


def quoted_anew(gate: Gate, seen: Seen, ends_at_ms: Mapping[int, int]) -> list[NewQuote]:
    """Return a new quote for each promise that is missed because of late jobs, the earliest first.

    ``seen`` is the input of a round now; ``ends_at_ms``: the projected ends of late jobs, by sequence.
    """
    reserved = tuple(
        each
        if (until_ms := ends_at_ms.get(each.request.sequence)) is None
        else msgspec.structs.replace(each, claim=Rectangle(each.containers, seen.now_ms, until_ms))
        for each in seen.reserved
    )
    late_seen = seen._replace(reserved=reserved)
    quotes = _market_quotes if MECHANISMS[gate.mechanism].sells else _quotes
    return quotes(gate, seen, late_seen)


def _market_quotes(gate: Gate, seen: Seen, late_seen: Seen) -> list[NewQuote]:
    memory, choices, now_ms = gate.memory, gate.choices, seen.now_ms
    assert isinstance(memory, MrmMemory)
    assert isinstance(choices, MrmChoices)
    was, now = market(memory, choices, seen), market(memory, choices, late_seen)
    ended_ms = schedule(was.free, was.dues, now_ms).end_ms
    ends_ms = schedule(now.free, now.dues, now_ms).end_ms
    delayed = [
        due
        for due in by_deadline(now.dues)
        if ends_ms[due.who] > max(due.due_at_ms, ended_ms.get(due.who, due.due_at_ms))
    ]
    missed = {due.who for due in delayed}
    kept = [due for due in now.dues if due.who not in missed]
    held = {str(each.request.sequence): each for each in late_seen.reserved}
    found = list[NewQuote]()
    for due in delayed[: min(QUOTED_MAX, 1 + COMPARED_MAX // len(now.dues))]:
        there = now._replace(dues=tuple(by_deadline(kept)))
        due_at_ms = earliest_due(there.free, there.dues, due, now_ms, there.tried)
        if due_at_ms > now_ms + HORIZON_MS:
            continue
        prices = curve(
            standing(there.free, there.dues, now_ms, now.mean_ms, now.running), due.work_ms, choices.kappa
        )
        kept.append(due._replace(due_at_ms=due_at_ms))
        begin_ms = schedule(now.free, kept, now_ms).begin_ms[due.who]
        reservation = held[due.who]
        latency_ms = reservation.claim.latency_ms if isinstance(reservation.claim, DueClaim) else 0
        found.append(
            NewQuote(
                int(due.who),
                due_at_ms + latency_ms,
                None if reservation.application else begin_ms,
                price_mtokens(prices.price(due_at_ms)),
            )
        )
    return found


def _quotes(gate: Gate, seen: Seen, late_seen: Seen) -> list[NewQuote]:
    was = {plan.sequence: plan for plan in _plans(gate, seen)}
    requests = {each.sequence: each for each in late_seen.waiting}
    missed = [
        plan
        for plan in _plans(gate, late_seen)
        if was[plan.sequence].verdict == "defer" and _is_kept(was[plan.sequence]) and not _is_kept(plan)
    ]
    missed.sort(key=lambda plan: (plan.deadline_at_ms, plan.sequence))
    found = []
    for plan in missed[:QUOTED_MAX]:
        kept = (
            plan if plan.finish_at_ms is not None else _kept_later(gate, late_seen, requests[plan.sequence])
        )
        if kept is not None:
            deadline_at_ms = max(kept.deadline_at_ms, kept.finish_at_ms or 0)
            found.append(NewQuote(plan.sequence, deadline_at_ms, kept.start_at_ms, None))
    return found


def _plans(gate: Gate, seen: Seen) -> tuple[Plan, ...]:
    return MECHANISMS[gate.mechanism].round(gate.memory, gate.choices, seen).plans


def _is_kept(plan: Plan) -> bool:
    return plan.finish_at_ms is not None and plan.finish_at_ms <= plan.deadline_at_ms


def _kept_later(gate: Gate, late_seen: Seen, request: Request) -> Plan | None:
    """Return the plan of a request with the earliest deadline that is kept; None: none is soon enough."""
    step_ms = max(GRID_MS, request.due_ms - late_seen.now_ms)
    low, high = 0, LATER_MAX * step_ms // GRID_MS
    found = _planned_later(gate, late_seen, request, high * GRID_MS)
    while found is not None and low + 1 < high:
        middle = (low + high) // 2
        sooner = _planned_later(gate, late_seen, request, middle * GRID_MS)
        if sooner is None:
            low = middle
        else:
            high, found = middle, sooner
    return found


def _planned_later(gate: Gate, late_seen: Seen, request: Request, by_ms: int) -> Plan | None:
    later = msgspec.structs.replace(request, deadline_ms=request.span_ms + by_ms)
    waiting = tuple(later if each.sequence == request.sequence else each for each in late_seen.waiting)
    plan = next(
        each
        for each in _plans(gate, late_seen._replace(waiting=waiting))
        if each.sequence == request.sequence
    )
    return plan if _is_kept(plan) else None
