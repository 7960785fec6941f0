"""The shared round: the common part of all mechanisms that size one job at a time and reserve rectangles.

The caller gives the backlog (``loads``) and the time. Every waiting request gets a plan. Start and finish in
a plan are predicted from one profile of free containers and promise nothing: each round predicts anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile, profile
from yarnctl.deciding.admission.records import Plan, Rectangle, Request, Reservation
from yarnctl.deciding.admission.rounds import Grant, Round, Seen, hold, rejected
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.deciding.reasons import verdicts

PLANNED_MAX = 20
"""How many waiting requests a start is predicted for; the others are too far behind."""


class PlannedSpan(NamedTuple):
    """When a request would start by the state now, with how many containers, and until when.

    ``too_late``: there is no such start, because by then the deadline could not be met any more.
    """

    containers: int
    start_ms: int | None
    end_ms: int | None
    too_late: bool = False


class Rules(NamedTuple):
    """The mechanism's rules, memory and choices."""

    sizing: Sizing[Any, Any]
    memory: Any
    capacity: int
    choices: Any


def end_ms(request: Request, containers: int, start_ms: int) -> int:
    """Return the predicted end of a job: by its estimate where there is one, else its deadline."""
    if request.estimate is None:
        return max(request.due_ms, start_ms)
    return start_ms - (-request.estimate.mean_ms // containers)


def plan_spans(
    rules: Rules, waiting: Sequence[Request], profile: Profile, now_ms: int
) -> dict[int, PlannedSpan]:
    """Return sequence -> what is predicted, for all that wait; ``profile`` is what is free for them.

    Each request keeps its rank in the order of the queue now. A job needs more containers the longer
    it waits, so every start has a number of its own; they must stay free through the predicted run.
    """
    found: dict[int, PlannedSpan] = {}
    ranked = []
    for request in waiting:
        wanted, least = _wanted(rules, request, now_ms)
        found[request.sequence] = PlannedSpan(least, None, None)
        ranked.append((rules.sizing.key(request, wanted, now_ms, rules.choices), request))
    ranked.sort(key=lambda entry: entry[0])
    for _, request in ranked[:PLANNED_MAX]:
        seen = _first(rules, request, profile, now_ms)
        found[request.sequence] = seen._replace(containers=found[request.sequence].containers)
        if seen.start_ms is not None and seen.end_ms is not None:
            profile = profile.with_loads((Load("", seen.containers, seen.start_ms, seen.end_ms),))
    return found


def _first(rules: Rules, request: Request, profile: Profile, now_ms: int) -> PlannedSpan:
    """Find the first start at which what it needs by then stays free through its run."""
    nobody_knows = PlannedSpan(0, None, None)
    for start_ms in (now_ms, *(at_ms for at_ms in profile.at_ms if at_ms > now_ms)):
        _, containers = _wanted(rules, request, start_ms)
        if start_ms >= min(request.due_ms, FOREVER_MS) or not containers:
            return nobody_knows._replace(too_late=True)
        until_ms = max(start_ms + 1, end_ms(request, containers, start_ms))
        if profile.least_free(start_ms, until_ms) >= containers:
            return PlannedSpan(containers, start_ms, until_ms)
    return nobody_knows


def _wanted(rules: Rules, request: Request, start_ms: int) -> tuple[int, int]:
    """Return how many containers a request wants and accepts at an instant (0: it is hopeless then)."""
    if rules.sizing.terms is None:
        return 1, 1
    terms = rules.sizing.terms(rules.memory, request, start_ms, rules.capacity, rules.choices)
    return terms.containers, terms.least


def hopeless(rules: Rules, request: Request, now_ms: int) -> verdicts.PlanReason | None:
    """Return in numbers why a job cannot end by its deadline, whatever it is given; None if it may.

    Only a job with an estimate can be judged, and by its lower end (mean - standard deviation): a run that
    was short before may be short again. A mechanism that never rejects does not reject here.
    """
    left_ms = request.due_ms - now_ms
    if request.estimate is None or left_ms <= 0:
        return None  # the mechanism's own reason
    if rules.sizing.terms is None and not rules.sizing.drops_late:
        return None
    work_ms = max(1, request.estimate.mean_ms - request.estimate.stdev_ms)
    needed = -(-work_ms // left_ms)
    if needed > request.tasks and request.tasks <= rules.capacity:
        return verdicts.NeedsMoreThanItCanUse(needed, request.tasks)
    return verdicts.NeedsMoreThanThereIs(needed, rules.capacity) if needed > rules.capacity else None


RESERVED_MS = 60_000
"""How long a reservation waits for its application to be submitted."""


def hold_round(sizing: Sizing[Any, Any], memory: Any, choices: Any, seen: Seen) -> Round:
    """Run a round: a plan for every waiting request, in order, and what is reserved.

    A job keeps its containers until its deadline at the latest, so what is reserved for later within that
    time is not free for it. There is one pool.
    """
    now_ms, capacity = seen.now_ms, seen.pools[0].capacity
    rules = Rules(sizing, memory, capacity, choices)
    refused = _refused_at_once(rules, seen)
    hopeful = tuple(each for each in seen.waiting if each.sequence not in refused)
    steps = profile(capacity, (*seen.loads, *map(_held, seen.reserved)), now_ms)
    horizon_ms = max((each.due_ms for each in hopeful), default=now_ms)
    free = max(0, steps.least_free(now_ms, horizon_ms))
    found = hold(sizing, memory, hopeful, free, now_ms, capacity, choices)
    granted = {grant.request.sequence: _reservation(grant, now_ms) for grant in found.admitted}
    refused.update({request.sequence: reason for request, reason in found.rejected})
    waiting = tuple(each for each in hopeful if each.sequence not in granted and each.sequence not in refused)
    reserved = (*seen.reserved, *granted.values())
    expected = profile(capacity, (*seen.loads, *(_expected(each, now_ms) for each in reserved)), now_ms)
    ahead = plan_spans(rules, waiting, expected, now_ms)
    left = max(0, free - sum(each.containers for each in granted.values()))
    plans = tuple(
        _admitted(granted[request.sequence], now_ms)
        if request.sequence in granted
        else rejected(request, refused[request.sequence])
        if request.sequence in refused
        else _deferred(request, ahead[request.sequence], left)
        for request in seen.waiting
    )
    return Round(plans, tuple(granted.values()))


def _refused_at_once(rules: Rules, seen: Seen) -> dict[int, verdicts.PlanReason]:
    """Return the requests without hope, whatever they are given, and why."""
    found = {
        each.sequence: verdicts.NoDeadline()
        if each.deadline_ms is None
        else hopeless(rules, each, seen.now_ms)
        for each in seen.waiting
    }
    return {sequence: why for sequence, why in found.items() if why}


def _held(reservation: Reservation) -> Load:
    """An observed application uses its containers for as long as it runs."""
    until_ms = FOREVER_MS if reservation.application else reservation.until_ms
    return Load(str(reservation.request.sequence), reservation.containers, reservation.from_ms, until_ms)


def _expected(reservation: Reservation, now_ms: int) -> Load:
    """It is expected to end as predicted; at an unknown instant, if that has passed."""
    until_ms = reservation.until_ms if reservation.until_ms > now_ms else FOREVER_MS
    return Load(str(reservation.request.sequence), reservation.containers, reservation.from_ms, until_ms)


def _reservation(grant: Grant, now_ms: int) -> Reservation:
    expires_at_ms = now_ms + RESERVED_MS
    return Reservation(
        request=grant.request,
        claim=Rectangle(
            grant.containers, now_ms, max(end_ms(grant.request, grant.containers, now_ms), expires_at_ms)
        ),
        ratio=grant.ratio,
        expires_at_ms=expires_at_ms,
    )


def _admitted(reservation: Reservation, now_ms: int) -> Plan:
    request, containers = reservation.request, reservation.containers
    return Plan(
        sequence=request.sequence,
        verdict="admit",
        containers=containers,
        deadline_at_ms=request.due_ms,
        reason=verdicts.FreeNow(containers),
        start_at_ms=now_ms,
        finish_at_ms=end_ms(request, containers, now_ms),
    )


def _deferred(request: Request, span: PlannedSpan, free: int) -> Plan:
    """Return when it would start by the state now, with what it needs now (more the longer it waits)."""
    start: Literal["known", "unknown", "too-late"] = "unknown" if span.start_ms is None else "known"
    if span.too_late:
        start = "too-late"
    return Plan(
        sequence=request.sequence,
        verdict="defer",
        containers=span.containers,
        deadline_at_ms=request.due_ms,
        reason=verdicts.Needs(span.containers, free, start),
        start_at_ms=span.start_ms,
        finish_at_ms=None if span.start_ms is None else span.end_ms,
    )
