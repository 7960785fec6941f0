"""One round of admission: of those that wait, who is let in now, and who never will be.

Law: a round is a pure function of memory, queue, free containers and the time. It is held
after every submission and every end (PYTHIA II.B: "performs this process each time a job is
submitted or completes"), by the replay and by the gate alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from yarnctl.deciding.admission.fair_share import fair_shares
from yarnctl.deciding.admission.records import Request, Terms
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.deciding.reasons.verdicts import DeadlinePassed, PlanReason


class Grant(NamedTuple):
    """Who is let in, with how many containers, and what part of all it can use that was to be."""

    request: Request
    containers: int
    ratio: float


class Offers(NamedTuple):
    """Who is let in, and who is turned away with what reason."""

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
) -> Offers:
    """Hold one round. ``waiting`` is in order of submission; who is in neither list waits on."""
    if sizing.terms is None:
        return share_out(sizing, waiting, free, now_ms, capacity)
    rejected: list[tuple[Request, PlanReason]] = []
    queue: list[tuple[tuple[float, int, int], Request, Terms]] = []
    for request in waiting:
        terms = sizing.terms(memory, request, now_ms, capacity, choices)
        if not terms.containers:
            assert terms.reason is not None  # who is offered nothing is told why
            rejected.append((request, terms.reason))
        elif terms.least <= free:  # else it cannot be let in: free only shrinks within a round
            queue.append((sizing.key(request, terms.containers, now_ms, choices), request, terms))
    queue.sort(key=lambda entry: entry[0])
    return Offers(create_offers(queue, free, capacity), rejected)


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
) -> Offers:
    """Split what is free among those that wait, max-min in whole containers, first come first.

    Where more wait than there are containers, the first in order get one each.
    """
    rejected: list[tuple[Request, PlanReason]] = []
    hopeful = waiting
    if sizing.drops_late:
        asked = list(waiting)
        rejected = [(request, DeadlinePassed()) for request in asked if now_ms >= request.due_ms]
        hopeful = (request for request in asked if now_ms < request.due_ms)
    asking = list(islice(hopeful, max(0, free)))
    shares = fair_shares([request.tasks for request in asking], free)
    granted = [
        Grant(request, share, share / min(request.tasks, capacity))
        for request, share in zip(asking, shares, strict=True)
        if share
    ]
    return Offers(granted, rejected)
