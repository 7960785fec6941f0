"""One round of admission: which waiting requests are admitted now, and which never will be.

Law: a round is a pure function of memory, queue, free containers and the time. It is run
after every submission and every end (PYTHIA II.B: "performs this process each time a job is
submitted or completes"), by the replay and by the gate alike.

A mechanism is a record of such functions. Fair share: of those that get less than they demand, any two differ
by at most one container; work is proportional to the number of different demands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from yarnctl.deciding.admission.capacity import Load, Pool, PoolLoads
from yarnctl.deciding.admission.placement_options import NotPlaced
from yarnctl.deciding.admission.pricing.timeline import Due
from yarnctl.deciding.admission.records import Finished, Plan, Request, Reservation, Terms
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.deciding.reasons.verdicts import DeadlinePassed, PlanReason

NO_BALANCES: Mapping[str, int] = MappingProxyType({})


class Promised(msgspec.Struct, frozen=True, omit_defaults=True):
    """What each promise has still to do at one instant, and beside what load: the plan of a round.

    ``masters`` is the load of the masters of submitted jobs.
    """

    at_ms: int
    capacity: int
    loads: tuple[Load, ...]
    dues: tuple[Due, ...]
    masters: tuple[Load, ...] = ()


class Seen(NamedTuple):
    """The input of a round: the waiting requests (in order), what is reserved, other loads, pools and time.

    ``balances``: what each account may spend, in milli-tokens. ``promised``: what was promised after the last
    round, of a mechanism that carries that. ``blocking``: the running requests, by sequence, whose containers
    cannot be suspended. ``pool_loads``: other loads of pools that have a name.
    """

    waiting: tuple[Request, ...]
    reserved: tuple[Reservation, ...]
    loads: tuple[Load, ...]
    pools: tuple[Pool, ...]
    now_ms: int
    balances: Mapping[str, int] = NO_BALANCES
    promised: Promised | None = None
    blocking: tuple[int, ...] = ()
    pool_loads: PoolLoads = ()


class Round(NamedTuple):
    """The result of a round: a plan for every waiting request, in order, and what is reserved from now on."""

    plans: tuple[Plan, ...]
    granted: tuple[Reservation, ...]


def rejected(request: Request, why: PlanReason, refused: tuple[NotPlaced, ...] = ()) -> Plan:
    """Return the plan of a request that is rejected; ``refused``: the options that were not chosen."""
    return Plan(request.sequence, "reject", 0, request.due_ms, why, refused=refused)


class Mechanism(NamedTuple):
    """One way to decide on admission.

    ``begin`` returns its memory before anything has finished, ``learn`` its memory after one job more,
    ``round`` its plans for all waiting requests. ``choices`` are our readings of its paper, of its own type,
    as its memory is. ``carry`` returns the promises after a round. ``needs_estimate``, ``needs_deadline``:
    it rejects requests without one. ``places``: it decides on options, in any number of pools; the others on
    one pool. ``sells``: deadlines have a price; then only paid ones count, and a user's estimate does not.
    """

    name: str
    paper: str
    choices: Any
    begin: Callable[[Any], Any]
    learn: Callable[[Any, Finished, Any], Any]
    round: Callable[[Any, Any, Seen], Round]
    needs_estimate: bool = False
    needs_deadline: bool = True
    learns: bool = False
    carry: Callable[[Seen, Sequence[Reservation]], Promised] | None = None
    places: bool = False
    sells: bool = False


def water_level(counts: Mapping[int, int], free: int) -> tuple[int, int]:
    """Return (level, surplus): each job may have ``level``, ``surplus`` containers are left over.

    ``counts`` has the number of jobs with each demand (> 0). Those that demand more than ``level``
    are unsatisfied, and there are more of them than ``surplus``. If all are satisfied, the level
    is the largest demand and the surplus what no job demands.
    """
    left, unsatisfied = free, sum(counts.values())
    level = 0
    for demand in sorted(counts):
        if (demand - level) * unsatisfied > left:
            more = left // unsatisfied
            return level + more, left - more * unsatisfied
        left -= (demand - level) * unsatisfied
        unsatisfied -= counts[demand]
        level = demand
    return level, left


def fair_shares(demands: Sequence[int], free: int) -> list[int]:
    """Return how many containers each demand is given, in order; earlier ones are given the surplus.

    The sum is min(free, sum of demands).
    """
    counts: dict[int, int] = {}
    for demand in demands:
        counts[demand] = counts.get(demand, 0) + 1
    level, surplus = water_level(counts, free)
    shares = []
    for demand in demands:
        share = min(demand, level)
        if demand > level and surplus > 0:
            share, surplus = share + 1, surplus - 1
        shares.append(share)
    return shares


class Grant(NamedTuple):
    """An admitted request, its containers, and what part of all it can use that was to be."""

    request: Request
    containers: int
    ratio: float


class RoundOffers(NamedTuple):
    """The admitted requests, and the rejected with their reasons."""

    admitted: list[Grant]
    rejected: list[tuple[Request, PlanReason]]


def hold(
    sizing: Sizing[Any, Any],
    memory: Any,
    waiting: Iterable[Request],
    free: int,
    now_ms: int,
    capacity: int,
    choices: Any,
) -> RoundOffers:
    """Run one round. ``waiting`` is in order of submission; a request in neither list stays waiting."""
    if sizing.terms is None:
        return share_out(sizing, waiting, free, now_ms, capacity)
    hopeless: list[tuple[Request, PlanReason]] = []
    queue: list[tuple[tuple[float, int, int], Request, Terms]] = []
    for request in waiting:
        terms = sizing.terms(memory, request, now_ms, capacity, choices)
        if not terms.containers:
            assert terms.reason is not None  # without an offer there is a reason
            hopeless.append((request, terms.reason))
        elif terms.least <= free:  # else it cannot be admitted: free only shrinks within a round
            queue.append((sizing.key(request, terms.containers, now_ms, choices), request, terms))
    queue.sort(key=lambda entry: entry[0])
    return RoundOffers(create_offers(queue, free, capacity), hopeless)


def create_offers(
    queue: Sequence[tuple[tuple[float, int, int], Request, Terms]], free: int, capacity: int
) -> list[Grant]:
    """CREATE_OFFERS (Justice Alg. 4 lines 36 to 49): in order, each that fits; the others are passed over."""
    admitted = []
    for _, request, terms in queue:
        if free <= 0:
            break
        if terms.least <= free:
            containers = min(terms.containers, free)
            free -= containers
            ratio = containers / min(request.tasks, capacity) if terms.ratio is None else terms.ratio
            admitted.append(Grant(request, containers, ratio))
    return admitted


def share_out(
    sizing: Sizing[Any, Any], waiting: Iterable[Request], free: int, now_ms: int, capacity: int
) -> RoundOffers:
    """Split what is free among those that wait, max-min in whole containers, first come first.

    Where more wait than there are containers, the first in order get one each.
    """
    late: list[tuple[Request, PlanReason]] = []
    hopeful = waiting
    if sizing.drops_late:
        requests = list(waiting)
        late = [(request, DeadlinePassed()) for request in requests if now_ms >= request.due_ms]
        hopeful = (request for request in requests if now_ms < request.due_ms)
    sharers = list(islice(hopeful, max(0, free)))
    shares = fair_shares([request.tasks for request in sharers], free)
    granted = [
        Grant(request, share, share / min(request.tasks, capacity))
        for request, share in zip(sharers, shares, strict=True)
        if share
    ]
    return RoundOffers(granted, late)
