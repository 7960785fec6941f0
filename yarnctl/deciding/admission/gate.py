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
from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
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
    memory = gate.memory
    if finished is not None:
        memory = ALLOCATORS[gate.allocator].learn(memory, finished, gate.choices)
    return msgspec.structs.replace(gate, reserved=reserved, memory=memory)


def decide(gate: Gate, now_ms: int, loads: Sequence[Load] = ()) -> tuple[Gate, tuple[Plan, ...]]:
    """Hold a round: return the gate after it, and a plan for everybody who waited, in order.

    ``loads`` is what came in past the gate. A job keeps its containers until its deadline at the
    latest, so what is reserved for later within that time is not free for it.
    """
    kept = tuple(each for each in gate.reserved if each.application or each.expires_at_ms > now_ms)
    steps = profile(gate.capacity, (*loads, *map(_load, kept)), now_ms)
    horizon_ms = max((each.deadline_at_ms for each in gate.waiting), default=now_ms)
    free = max(0, steps.least_free(now_ms, horizon_ms))
    allocator = ALLOCATORS[gate.allocator]
    found = hold(allocator, gate.memory, gate.waiting, free, now_ms, gate.capacity, gate.choices)
    granted = {grant.request.sequence: _reservation(grant, now_ms) for grant in found.admitted}
    rejected = {request.sequence: reason for request, reason in found.rejected}
    for each in granted.values():
        steps = steps.with_load(_load(each))
    plans = tuple(
        _admitted(granted[request.sequence], now_ms)
        if request.sequence in granted
        else _refused(request, rejected[request.sequence])
        if request.sequence in rejected
        else _deferred(gate, request, steps, now_ms)
        for request in gate.waiting
    )
    waiting = tuple(
        each for each in gate.waiting if each.sequence not in granted and each.sequence not in rejected
    )
    after = msgspec.structs.replace(gate, waiting=waiting, reserved=(*kept, *granted.values()))
    return after, plans


def _load(reservation: Reservation) -> Load:
    """An application that has been seen holds its containers for as long as it is there."""
    until_ms = FOREVER_MS if reservation.application else reservation.until_ms
    return Load(str(reservation.request.sequence), reservation.containers, reservation.from_ms, until_ms)


def _reservation(grant: Grant, now_ms: int) -> Reservation:
    end_ms = _predicted_end_ms(grant.request, grant.containers, now_ms)
    expires_at_ms = now_ms + HELD_MS
    return Reservation(
        request=grant.request,
        containers=grant.containers,
        ratio=grant.ratio,
        from_ms=now_ms,
        until_ms=max(end_ms, expires_at_ms),
        expires_at_ms=expires_at_ms,
    )


def _predicted_end_ms(request: Request, containers: int, start_ms: int) -> int:
    """The end of a job: by its estimate where there is one, else its deadline."""
    if request.estimate is None:
        return max(request.deadline_at_ms, start_ms)
    return start_ms - (-request.estimate.mean_ms // containers)


def _admitted(reservation: Reservation, now_ms: int) -> Plan:
    request, containers = reservation.request, reservation.containers
    return Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=containers,
        deadline_at_ms=request.deadline_at_ms,
        reason=f"{containers} containers are free now, and should do",
        start_at_ms=now_ms,
        finish_at_ms=_predicted_end_ms(request, containers, now_ms),
    )


def _refused(request: Request, reason: str) -> Plan:
    return Plan(request.sequence, "reject", 0, request.deadline_at_ms, reason)


def _deferred(gate: Gate, request: Request, steps: Profile, now_ms: int) -> Plan:
    """Say when it would start as things stand: it needs ``containers`` now, and more the longer it waits."""
    allocator = ALLOCATORS[gate.allocator]
    containers = 1
    if allocator.terms is not None:
        terms = allocator.terms(gate.memory, request, now_ms, gate.capacity, gate.choices)
        containers = terms.least
    start_ms = steps.earliest(containers, 1, now_ms, request.deadline_at_ms)
    known = start_ms is not None
    return Plan(
        sequence=request.sequence,
        verdict="defer",
        containers=containers,
        deadline_at_ms=request.deadline_at_ms,
        reason=f"{containers} containers are needed, {max(0, steps.free_at(now_ms))} are free now",
        start_at_ms=start_ms,
        finish_at_ms=_predicted_end_ms(request, containers, start_ms or now_ms) if known else None,
    )
