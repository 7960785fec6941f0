"""Turns: which of the jobs whose deadline is sold are submitted now.

A job is submitted when the plan serves it, the earliest deadline first; somewhat sooner, by what its client
and its master take to start, and one at a time where containers are kept for that; but never sooner if the
container that its master holds would break a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from yarnctl.deciding.admission.mechanisms.promises import Market, is_submitted
from yarnctl.deciding.admission.pricing.timeline import broken, schedule
from yarnctl.deciding.admission.records import DueClaim, Plan, Reservation
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.reasons.verdicts import AwaitsTurn, PaidFor

Reserved = Mapping[int, Reservation]
"""Reservations by the sequence of their request."""


def turns(
    reserved: Reserved, standing: Callable[[Reserved], Market], early: int, now_ms: int
) -> dict[int, Reservation]:
    """Return the reservations with those released that are at their turn.

    ``standing`` returns what is promised, given the reservations; ``early``: so many may be submitted without
    being served yet.
    """
    found = dict(reserved)
    while waiting := [each for each in found.values() if not is_submitted(each)]:
        first = min(waiting, key=lambda each: (each.claim.until_ms, each.request.sequence))
        number = first.request.sequence
        submitted = msgspec.structs.replace(first, sold=None, expires_at_ms=now_ms + RESERVED_MS)
        after = {**found, number: submitted}
        if not _is_its_turn(first, found, after, standing, early):
            break
        found = after
    return found


def _is_its_turn(
    reservation: Reservation,
    before: Reserved,
    after: Reserved,
    standing: Callable[[Reserved], Market],
    early: int,
) -> bool:
    """Say whether the job with the earliest deadline of those that wait is submitted now."""
    now = standing(before)
    begin_ms = schedule(now.free, now.dues, now.now_ms).begin_ms
    who = str(reservation.request.sequence)
    if begin_ms.get(who, now.now_ms) <= now.now_ms:  # one that is late by the plan has no place in it
        return True
    phases = None if reservation.request.estimate is None else reservation.request.estimate.phases
    if begin_ms[who] > now.now_ms + (phases.submit_ms + phases.master_ms if phases is not None else 0):
        idle = sum(
            begin_ms.get(str(number), now.now_ms) > now.now_ms
            for number, each in before.items()
            if isinstance(each.claim, DueClaim) and is_submitted(each)
        )
        if idle >= early:
            return False
    then = standing(after)
    return not broken(then.free, then.dues, then.now_ms)


def planned(market: Market, reserved: Reserved, sold: Mapping[int, Plan]) -> dict[int, Plan]:
    """Return the plans of requests whose deadline is ``sold``: submitted now, or at about which time.

    ``reserved`` are the reservations after the turns.
    """
    begin_ms, end_ms = schedule(market.free, market.dues, market.now_ms)
    found = dict[int, Plan]()
    for number, plan in sold.items():
        each, who = reserved[number], str(number)
        latency_ms = each.claim.latency_ms if isinstance(each.claim, DueClaim) else 0
        is_now = is_submitted(each)
        start_ms = market.now_ms if is_now else begin_ms.get(who, market.now_ms)
        price = plan.price_mtokens or 0
        found[number] = msgspec.structs.replace(
            plan,
            verdict="admit" if is_now else "defer",
            reason=PaidFor(price) if is_now else AwaitsTurn(price, start_ms),
            start_at_ms=start_ms,
            finish_at_ms=end_ms.get(who, market.now_ms) + latency_ms,
        )
    return found
