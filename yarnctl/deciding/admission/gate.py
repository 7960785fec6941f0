"""The gate's state and its steps: the replay's rounds, held on a cluster that others use as well.

Law: state in, state and plans out; a state is a value that can be written down and gone on with
(held submissions and reservations survive a restart). The gate holds reservations with an
expiry, never a command. What came in past it is *fixed load*: containers that are simply not
there. Whoever asks says what he sees (``loads``) and what time it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from yarnctl.deciding.admission.allocators import ALLOCATORS, Memory
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, profile
from yarnctl.deciding.admission.foresight import Foreseen, Rules, counted, end_ms, foresee, hopeless
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices, Finished, Plan, Request
from yarnctl.deciding.admission.rounds import Grant, hold

HELD_MS = 60_000
"""How long a reservation waits for its application to be submitted."""


class Reservation(msgspec.Struct, frozen=True):
    """Containers kept for one admitted request.

    Until its application is seen (``application`` is not empty), it expires at ``expires_at_ms``;
    then it is held until the application has ended. ``until_ms`` is the predicted end.
    """

    request: Request
    containers: int
    ratio: float
    from_ms: int
    until_ms: int
    expires_at_ms: int
    application: str = ""


class Gate(msgspec.Struct, frozen=True):
    """Everything the gate knows: who waits, what is reserved, and what finished jobs have taught."""

    allocator: str
    capacity: int
    choices: Choices = DEFAULT_CHOICES
    memory: Memory = Memory()
    waiting: tuple[Request, ...] = ()
    reserved: tuple[Reservation, ...] = ()


def submit(gate: Gate, request: Request) -> Gate:
    """Put a request into the queue; the next round decides on it."""
    return msgspec.structs.replace(gate, waiting=(*gate.waiting, request))


def withdraw(gate: Gate, sequence: int) -> Gate:
    """Forget a request or its reservation: whoever asked has gone."""
    waiting = tuple(each for each in gate.waiting if each.sequence != sequence)
    reserved = tuple(each for each in gate.reserved if each.request.sequence != sequence)
    return msgspec.structs.replace(gate, waiting=waiting, reserved=reserved)


def taken(gate: Gate, sequence: int, application: str) -> Gate:
    """Note that an admitted request has been submitted as this application."""
    reserved = tuple(
        msgspec.structs.replace(each, application=application) if each.request.sequence == sequence else each
        for each in gate.reserved
    )
    return msgspec.structs.replace(gate, reserved=reserved)


def ended(gate: Gate, application: str, finished: Finished | None) -> Gate:
    """Free what an application held and learn from it; ``finished`` is None if it teaches nothing."""
    reserved = tuple(each for each in gate.reserved if each.application != application)
    freed = msgspec.structs.replace(gate, reserved=reserved)
    return freed if finished is None else learned(freed, finished)


def learned(gate: Gate, finished: Finished) -> Gate:
    """Learn from a job that has ended; nothing is freed."""
    memory = ALLOCATORS[gate.allocator].learn(gate.memory, finished, gate.choices)
    return msgspec.structs.replace(gate, memory=memory)


def expired(gate: Gate, now_ms: int) -> tuple[Reservation, ...]:
    """Return the reservations that nobody has taken in time."""
    return tuple(each for each in gate.reserved if not each.application and each.expires_at_ms <= now_ms)


def decide(gate: Gate, now_ms: int, loads: Sequence[Load] = ()) -> tuple[Gate, tuple[Plan, ...]]:
    """Hold a round: return the gate after it, and a plan for everybody who waited, in order.

    ``loads`` is what came in past the gate. A job keeps its containers until its deadline at the
    latest, so what is reserved for later within that time is not free for it.
    """
    rules = Rules(ALLOCATORS[gate.allocator], gate.memory, gate.capacity, gate.choices)
    late = {each.request.sequence for each in expired(gate, now_ms)}
    kept = tuple(each for each in gate.reserved if each.request.sequence not in late)
    hopes = {each.sequence: hopeless(rules, each, now_ms) for each in gate.waiting}
    hopeful = tuple(each for each in gate.waiting if not hopes[each.sequence])
    steps = profile(gate.capacity, (*loads, *map(_held, kept)), now_ms)
    horizon_ms = max((each.deadline_at_ms for each in hopeful), default=now_ms)
    free = max(0, steps.least_free(now_ms, horizon_ms))
    found = hold(rules.allocator, gate.memory, hopeful, free, now_ms, gate.capacity, gate.choices)
    granted = {grant.request.sequence: _reservation(grant, now_ms) for grant in found.admitted}
    refused = {sequence: why for sequence, why in hopes.items() if why}
    refused.update({request.sequence: reason for request, reason in found.rejected})
    waiting = tuple(each for each in hopeful if each.sequence not in granted and each.sequence not in refused)
    reserved = (*kept, *granted.values())
    expected = profile(gate.capacity, (*loads, *(_expected(each, now_ms) for each in reserved)), now_ms)
    seen = foresee(rules, waiting, expected, now_ms)
    left = max(0, free - sum(each.containers for each in granted.values()))
    plans = tuple(
        _admitted(granted[request.sequence], now_ms)
        if request.sequence in granted
        else _refused(request, refused[request.sequence])
        if request.sequence in refused
        else _deferred(request, seen[request.sequence], left)
        for request in gate.waiting
    )
    return msgspec.structs.replace(gate, waiting=waiting, reserved=reserved), plans


def believed(gate: Gate, now_ms: int, plans: Sequence[Plan], granted: Sequence[Reservation]) -> Gate:
    """Return the gate after a round of which only the word is left: what it decided is decided."""
    settled = {plan.sequence for plan in plans if plan.verdict != "defer"}
    late = {each.request.sequence for each in expired(gate, now_ms)}
    kept = tuple(each for each in gate.reserved if each.request.sequence not in late)
    waiting = tuple(each for each in gate.waiting if each.sequence not in settled)
    return msgspec.structs.replace(gate, waiting=waiting, reserved=(*kept, *granted))


def granted_in(before: Gate, after: Gate) -> tuple[Reservation, ...]:
    """Return the reservations that a round has made."""
    known = {each.request.sequence for each in before.reserved}
    return tuple(each for each in after.reserved if each.request.sequence not in known)


def _held(reservation: Reservation) -> Load:
    """An application that has been seen holds its containers for as long as it is there."""
    until_ms = FOREVER_MS if reservation.application else reservation.until_ms
    return Load(str(reservation.request.sequence), reservation.containers, reservation.from_ms, until_ms)


def _expected(reservation: Reservation, now_ms: int) -> Load:
    """It is expected to end as predicted; nobody knows when, if it should have ended by now."""
    until_ms = reservation.until_ms if reservation.until_ms > now_ms else FOREVER_MS
    return Load(str(reservation.request.sequence), reservation.containers, reservation.from_ms, until_ms)


def _reservation(grant: Grant, now_ms: int) -> Reservation:
    expires_at_ms = now_ms + HELD_MS
    return Reservation(
        request=grant.request,
        containers=grant.containers,
        ratio=grant.ratio,
        from_ms=now_ms,
        until_ms=max(end_ms(grant.request, grant.containers, now_ms), expires_at_ms),
        expires_at_ms=expires_at_ms,
    )


def _admitted(reservation: Reservation, now_ms: int) -> Plan:
    request, containers = reservation.request, reservation.containers
    return Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=containers,
        deadline_at_ms=request.deadline_at_ms,
        reason=f"{counted(containers)} {'is' if containers == 1 else 'are'} free now, and should do",
        start_at_ms=now_ms,
        finish_at_ms=end_ms(request, containers, now_ms),
    )


def _refused(request: Request, reason: str) -> Plan:
    return Plan(request.sequence, "reject", 0, request.deadline_at_ms, reason)


def _deferred(request: Request, seen: Foreseen, free: int) -> Plan:
    """Say when it would start as things stand, with what it needs now (it is more the longer it waits)."""
    needed = seen.containers
    unknown = "" if seen.start_ms is not None else "; when they will be, nobody can tell"
    if seen.too_late:
        unknown = "; once they are, it will be too late"
    return Plan(
        sequence=request.sequence,
        verdict="defer",
        containers=seen.containers,
        deadline_at_ms=request.deadline_at_ms,
        reason=f"{counted(needed)} {'is' if needed == 1 else 'are'} needed, {free} are free now{unknown}",
        start_at_ms=seen.start_ms,
        finish_at_ms=None if seen.start_ms is None else seen.end_ms,
    )
