"""A round of placement: each request's option, pool and start, and which of them start now.

A request is decided on in order of submission, beside all that is reserved. What begins later waits with its
reservation until its containers are free: at its start, or sooner if others have ended sooner. So the claims
of a pool never add up to more than it has, as predicted; an application that runs longer than its bound keeps
its containers, and what was placed behind it begins later than planned. A request that can no longer end in
time for that is placed anew where it can; otherwise it keeps its place. (Alg 2 decides once: its applications
end when they are predicted to.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Pool
from yarnctl.deciding.admission.mechanisms.orion import (
    OURS,
    OrionChoices,
    Placed,
    PlacementPool,
    PlacementVerdict,
    least_loaded,
    place,
    pool_now,
    why_not,
)
from yarnctl.deciding.admission.placement_options import Alternatives, NotPlaced, PlacementOption
from yarnctl.deciding.admission.records import Finished, Plan, Rectangle, Request, Reservation, Verdict
from yarnctl.deciding.admission.rounds import Mechanism, Round, Seen, rejected
from yarnctl.deciding.admission.shared_round import RESERVED_MS
from yarnctl.deciding.reasons import verdicts
from yarnctl.deciding.reasons.placements import NothingFits

OVERDUE_MS = 10_000
"""Who has passed its bound is expected to run as long again as it is late, and at least so long."""


class LeastLoadedChoices(msgspec.Struct, frozen=True, tag_field="mechanism", tag="least_loaded"):
    """The paper's comparison leaves nothing to choose."""


class PlacementMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="placement"):
    """How many placed applications have ended; what they teach is kept as runs, outside."""

    completed: int = 0


class _Standing(NamedTuple):
    """What is reserved at one instant, by sequence."""

    seen: Seen
    reserved: Mapping[int, Reservation]

    def pools(self, without: int | None = None) -> list[PlacementPool]:
        """Return each pool with all that is reserved in it, but for one."""
        loads = dict(self.seen.pool_loads)
        held = [each for number, each in self.reserved.items() if number != without]
        return [
            placement_pool(
                pool,
                (
                    *(loads.get(pool.name, ()) if pool.name else self.seen.loads),
                    *(self._load(each) for each in held if each.pool == pool.name),
                ),
            )
            for pool in self.seen.pools
        ]

    def _load(self, reservation: Reservation) -> Load:
        """Return what a reservation takes: from its start to its bound, or longer if it has passed that."""
        number, now_ms = reservation.request.sequence, self.seen.now_ms
        from_ms, until_ms = reservation.from_ms, reservation.until_ms
        if reservation.sold is not None:
            from_ms, until_ms = max(from_ms, now_ms), max(from_ms, now_ms) + until_ms - from_ms
        elif until_ms <= now_ms:
            until_ms = now_ms + max(OVERDUE_MS, now_ms - until_ms)
        return Load(str(number), reservation.containers, from_ms, until_ms)


def placement_pool(pool: Pool, reserved: tuple[Load, ...]) -> PlacementPool:
    """Return a pool of the gate as placement sees it."""
    return PlacementPool(
        pool.name, pool.capacity, pool.kinds, pool.cost_mtokens, pool.hourly_mtokens, reserved
    )


Chooser = Callable[[Alternatives, Sequence[PlacementPool], int, int], PlacementVerdict]
"""From options, pools, the time and the deadline to what is placed."""


def _by_orion(
    choices: OrionChoices,
    alternatives: Alternatives,
    pools: Sequence[PlacementPool],
    now_ms: int,
    due_ms: int,
) -> PlacementVerdict:
    return place(alternatives.options, pools, now_ms, due_ms, choices)


def _by_load(
    alternatives: Alternatives, pools: Sequence[PlacementPool], now_ms: int, due_ms: int
) -> PlacementVerdict:
    placed = least_loaded(alternatives.options, pools, now_ms)
    return PlacementVerdict(placed, (), None if placed is not None else NothingFits(None))


def hold_orion(memory: PlacementMemory, choices: OrionChoices, seen: Seen) -> Round:
    """Place by Alg 2."""
    return _hold(partial(_by_orion, choices), choices, seen)


def hold_least_loaded(memory: PlacementMemory, choices: LeastLoadedChoices, seen: Seen) -> Round:
    """Place in the least loaded pool, with all that is free there."""
    return _hold(_by_load, OURS, seen)


def _hold(choose: Chooser, choices: OrionChoices, seen: Seen) -> Round:
    before = {each.request.sequence: each for each in seen.reserved}
    reserved, plans = dict(before), dict[int, Plan]()
    standing = _Standing(seen, reserved)
    waiting = [each for each in before.values() if each.sold is not None]
    for each in sorted(waiting, key=lambda each: (each.from_ms, each.request.sequence)):
        number = each.request.sequence
        start_ms = _start_ms(standing, each, choices)
        made = _begun(each, start_ms, seen.now_ms)
        if choose is not _by_load and start_ms + each.until_ms - each.from_ms > each.request.due_ms:
            made = _anew(standing, choose, each.request) or made
        plans[number], reserved[number] = made
    for request in seen.waiting:
        if request.sequence not in plans:
            plan, held = _decided(standing, choose, request)
            plans[request.sequence] = plan
            if held is not None:
                reserved[request.sequence] = held
    granted = tuple(each for number, each in reserved.items() if before.get(number) != each)
    return Round(tuple(plans[each.sequence] for each in seen.waiting), granted)


def _anew(standing: _Standing, choose: Chooser, request: Request) -> tuple[Plan, Reservation] | None:
    """Return a place for one that waits and would end too late where it is; None: there is none in time."""
    found = request.alternatives
    assert found is not None
    chosen = choose(found, standing.pools(without=request.sequence), standing.seen.now_ms, request.due_ms)
    if chosen.placed is None or chosen.why is not None:
        return None
    return _placed(request, chosen.placed, _told(chosen), standing.seen.now_ms, by_load=False)


def _told(verdict: PlacementVerdict) -> tuple[NotPlaced, ...]:
    """Return what was not chosen, as a plan has it."""
    return tuple(
        NotPlaced(each.option.kind, each.pool, each.option.containers, each.start_at_ms, each.why)
        for each in verdict.not_taken
    )


def _start_ms(standing: _Standing, reservation: Reservation, choices: OrionChoices) -> int:
    """Return when one that waits for its start can begin, by what is reserved now beside it."""
    now_ms = standing.seen.now_ms
    if choices.capacity == "none":
        return max(now_ms, reservation.from_ms)
    pools = standing.pools(without=reservation.request.sequence)
    pool = next((one for one in pools if one.name == reservation.pool), None)
    if pool is None:
        return max(now_ms, reservation.from_ms)
    at = pool_now(pool, now_ms, OURS)
    option = PlacementOption("", reservation.containers, 0, reservation.until_ms - reservation.from_ms)
    fits = (at_ms for at_ms in at.starts_ms if why_not(at, option, at_ms, FOREVER_MS, choices) is None)
    return next(fits, max(now_ms, reservation.from_ms))


def _begun(reservation: Reservation, start_ms: int, now_ms: int) -> tuple[Plan, Reservation]:
    """Return what becomes of one that waits for its start: it begins now, or at ``start_ms``."""
    plan = reservation.sold
    assert plan is not None
    span_ms = reservation.until_ms - reservation.from_ms
    claim = Rectangle(reservation.containers, start_ms, start_ms + span_ms)
    if start_ms > now_ms:
        why = verdicts.StartsLater(reservation.pool, reservation.containers, start_ms)
        waits = (
            reservation if claim == reservation.claim else msgspec.structs.replace(reservation, claim=claim)
        )
        return _planned(plan, "defer", start_ms, span_ms, why), waits
    begun = msgspec.structs.replace(reservation, sold=None, claim=claim, expires_at_ms=now_ms + RESERVED_MS)
    return _planned(plan, "admit", now_ms, span_ms, plan.reason), begun


def _planned(plan: Plan, verdict: Verdict, start_ms: int, span_ms: int, why: verdicts.PlanReason) -> Plan:
    return msgspec.structs.replace(
        plan, verdict=verdict, start_at_ms=start_ms, finish_at_ms=start_ms + span_ms, reason=why
    )


def _decided(standing: _Standing, choose: Chooser, request: Request) -> tuple[Plan, Reservation | None]:
    """Return the plan for a request that was not decided on, and what is reserved for it."""
    seen, found = standing.seen, request.alternatives
    if request.deadline_ms is None:
        return rejected(request, verdicts.NoDeadline()), None
    if found is None or not found.options:
        return rejected(request, verdicts.NoOptions()), None
    chosen = choose(found, standing.pools(), seen.now_ms, request.due_ms)
    placed = chosen.placed
    refused = _told(chosen)
    if placed is None:
        why = _what_would_do(found, seen, request.due_ms, chosen.why or NothingFits(None))
        return rejected(request, why, refused), None
    return _placed(request, placed, refused, seen.now_ms, by_load=choose is _by_load)


def _placed(
    request: Request, placed: Placed, refused: tuple[NotPlaced, ...], now_ms: int, *, by_load: bool
) -> tuple[Plan, Reservation]:
    option = placed.option
    why: verdicts.PlanReason = verdicts.CheapestInTime(option.kind, option.containers, placed.cost_mtokens)
    if by_load:
        why = verdicts.LeastLoadedPool(placed.pool, option.containers)
    sold = Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=option.containers,
        deadline_at_ms=request.due_ms,
        reason=why,
        start_at_ms=placed.start_at_ms,
        finish_at_ms=placed.finish_at_ms,
        pool=placed.pool,
        late_ratio=option.late_ratio,
        kind=option.kind,
        settings=option.settings,
        predicted_ms=option.predicted_ms,
        cost_mtokens=placed.cost_mtokens,
        refused=refused,
    )
    claim = Rectangle(option.containers, placed.start_at_ms, placed.finish_at_ms)
    held = Reservation(request, claim, 1.0, FOREVER_MS, pool=placed.pool, sold=sold)
    return _begun(held, placed.start_at_ms, now_ms)


def _what_would_do(
    alternatives: Alternatives, seen: Seen, due_ms: int, nothing_fits: NothingFits
) -> NothingFits:
    """Add the fewest containers that would do if they were free, and the kinds that lack runs."""
    most = {
        kind: 0 for pool in seen.pools for kind in pool.kinds or {each.kind for each in alternatives.options}
    }
    for pool in seen.pools:
        for kind in most:
            if not pool.kinds or kind in pool.kinds:
                most[kind] = max(most[kind], pool.capacity)
    would = [
        each.containers
        for each in alternatives.options
        if seen.now_ms + each.upper_ms <= due_ms and each.containers <= most.get(each.kind, 0)
    ]
    return msgspec.structs.replace(
        nothing_fits, would_do=min(would, default=None), lacking=alternatives.lacking
    )


def count(
    memory: PlacementMemory, finished: Finished, choices: OrionChoices | LeastLoadedChoices
) -> PlacementMemory:
    """Count an application that has ended."""
    return PlacementMemory(memory.completed + 1)


ORION = Mechanism(
    name="orion",
    paper="ORiON Alg 2",
    choices=OURS,
    begin=lambda choices: PlacementMemory(),
    learn=count,
    round=hold_orion,
    places=True,
)
LEAST_LOADED = Mechanism(
    name="least_loaded",
    paper="ORiON section V",
    choices=LeastLoadedChoices(),
    begin=lambda choices: PlacementMemory(),
    learn=count,
    round=hold_least_loaded,
    places=True,
)
