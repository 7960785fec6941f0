"""The gate's state and its steps: state in, state and plans out.

Waiting requests and reservations survive a restart; reservations have an expiry. Containers of applications
without an admission are fixed load: the caller gives them (``loads``) and the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.deciding.admission.capacity import Load, Pool, PoolLoads
from yarnctl.deciding.admission.mechanisms import MECHANISMS, Memory, OwnChoices
from yarnctl.deciding.admission.records import Finished, Plan, Request, Reservation, merged
from yarnctl.deciding.admission.rounds import NO_BALANCES, Promised, Seen


class Gate(msgspec.Struct, frozen=True):
    """The gate's state: which requests wait, what is reserved, and the feedback of finished jobs."""

    mechanism: str
    pools: tuple[Pool, ...]
    choices: OwnChoices
    memory: Memory
    waiting: tuple[Request, ...] = ()
    reserved: tuple[Reservation, ...] = ()
    promised: Promised | None = None

    @property
    def capacity(self) -> int:
        """How many containers there are, in all pools."""
        return sum(each.capacity for each in self.pools)


def opened(mechanism: str, pools: tuple[Pool, ...], choices: OwnChoices | None = None) -> Gate:
    """Return a gate without requests; ``choices`` None: our own."""
    made = MECHANISMS[mechanism]
    own = made.choices if choices is None else choices
    return Gate(mechanism, pools, own, made.begin(own))


def submit(gate: Gate, request: Request) -> Gate:
    """Put a request into the queue; the next round decides on it."""
    return msgspec.structs.replace(gate, waiting=(*gate.waiting, request))


def withdraw(gate: Gate, sequence: int) -> Gate:
    """Drop a request or its reservation: it was withdrawn."""
    waiting = tuple(each for each in gate.waiting if each.sequence != sequence)
    reserved = tuple(each for each in gate.reserved if each.request.sequence != sequence)
    return msgspec.structs.replace(gate, waiting=waiting, reserved=reserved)


def running(gate: Gate, sequence: int, application: str, now_ms: int) -> Gate:
    """Note that an admitted request has been submitted as this application; its work begins now."""
    if gate.promised is not None:
        at_ms = max(now_ms, gate.promised.at_ms)
        seen = Seen((), gate.reserved, gate.promised.loads, gate.pools, at_ms, promised=gate.promised)
        gate = _carried(gate, seen, ())
    reserved = tuple(
        msgspec.structs.replace(each, application=application) if each.request.sequence == sequence else each
        for each in gate.reserved
    )
    return msgspec.structs.replace(gate, reserved=reserved)


def ended(gate: Gate, application: str, finished: Finished | None) -> Gate:
    """Free an application's containers and learn from it; ``finished`` is None if there is no feedback."""
    reserved = tuple(each for each in gate.reserved if each.application != application)
    freed = msgspec.structs.replace(gate, reserved=reserved)
    return freed if finished is None else learned(freed, finished)


def learned(gate: Gate, finished: Finished) -> Gate:
    """Learn from a job that has ended; nothing is freed."""
    memory = MECHANISMS[gate.mechanism].learn(gate.memory, finished, gate.choices)
    return msgspec.structs.replace(gate, memory=memory)


def expired(gate: Gate, now_ms: int) -> tuple[Reservation, ...]:
    """Return the reservations that no application has used in time."""
    return tuple(each for each in gate.reserved if not each.application and each.expires_at_ms <= now_ms)


def decide(
    gate: Gate,
    now_ms: int,
    loads: Sequence[Load] = (),
    balances: Mapping[str, int] = NO_BALANCES,
    blocking: tuple[int, ...] = (),
    pool_loads: PoolLoads = (),
) -> tuple[Gate, tuple[Plan, ...]]:
    """Hold a round: return the gate after it, and a plan for each waiting request, in order.

    ``loads`` is what came in past the gate, ``balances`` what accounts may spend; ``blocking`` and
    ``pool_loads``: ``Seen``. What is promised is as it was before: a round's record moves that on
    (:func:`expected_end`).
    """
    late = {each.request.sequence for each in expired(gate, now_ms)}
    kept = tuple(each for each in gate.reserved if each.request.sequence not in late)
    seen = Seen(
        gate.waiting, kept, tuple(loads), gate.pools, now_ms, balances, gate.promised, blocking, pool_loads
    )
    plans, granted = MECHANISMS[gate.mechanism].round(gate.memory, gate.choices, seen)
    settled = {plan.sequence for plan in plans if plan.verdict != "defer"}
    waiting = tuple(each for each in gate.waiting if each.sequence not in settled)
    return msgspec.structs.replace(gate, waiting=waiting, reserved=merged(kept, granted)), plans


def _carried(gate_after: Gate, seen: Seen, granted: Sequence[Reservation]) -> Gate:
    """Return the gate with what is promised after a round, of a mechanism that carries that."""
    carry = MECHANISMS[gate_after.mechanism].carry
    return gate_after if carry is None else msgspec.structs.replace(gate_after, promised=carry(seen, granted))


def expected_end(
    gate: Gate,
    now_ms: int,
    plans: Sequence[Plan],
    granted: Sequence[Reservation],
    loads: tuple[Load, ...] = (),
) -> Gate:
    """Return the gate after a round of which only the record is left: what it decided is decided."""
    settled = {plan.sequence for plan in plans if plan.verdict != "defer"}
    late = {each.request.sequence for each in expired(gate, now_ms)}
    kept = tuple(each for each in gate.reserved if each.request.sequence not in late)
    waiting = tuple(each for each in gate.waiting if each.sequence not in settled)
    seen = Seen(gate.waiting, kept, loads, gate.pools, now_ms, promised=gate.promised)
    after = msgspec.structs.replace(gate, waiting=waiting, reserved=merged(kept, granted))
    return _carried(after, seen, granted)


def granted_in(gate_before: Gate, gate_after: Gate) -> tuple[Reservation, ...]:
    """Return the reservations that a round has made or changed."""
    known = {each.request.sequence: each for each in gate_before.reserved}
    return tuple(each for each in gate_after.reserved if known.get(each.request.sequence) != each)
