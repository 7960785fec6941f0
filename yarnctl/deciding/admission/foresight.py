"""Foresight: when somebody who waits could start, and who can never be done in time.

Law: a prediction is read off one profile of free containers and says None where nobody can tell. Who
stands before you in the mechanism's order takes his place first. Nothing is promised: each round
predicts anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile
from yarnctl.deciding.admission.records import Request
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.deciding.reasons.verdicts import NeedsMoreThanItCanUse, NeedsMoreThanThereIs, PlanReason

FORESEEN_MAX = 20
"""For so many of those that wait a start is predicted; the others stand too far behind."""


class Foreseen(NamedTuple):
    """Where a request would start as things stand, with how many containers, and until when.

    ``too_late``: there is no such start, because by then the deadline could not be met any more.
    """

    containers: int
    start_ms: int | None
    end_ms: int | None
    too_late: bool = False


class Rules(NamedTuple):
    """By what is decided."""

    sizing: Sizing[Any, Any]
    memory: Any
    capacity: int
    choices: Any


def end_ms(request: Request, containers: int, start_ms: int) -> int:
    """Return the predicted end of a job: by its estimate where there is one, else its deadline."""
    if request.estimate is None:
        return max(request.due_ms, start_ms)
    return start_ms - (-request.estimate.mean_ms // containers)


def foresee(rules: Rules, waiting: Sequence[Request], steps: Profile, now_ms: int) -> dict[int, Foreseen]:
    """Return sequence -> what is predicted, for all that wait; ``steps`` is what is free for them.

    Each takes his place in the order of the queue as it is now. A job needs more containers the longer
    it waits, so every start is asked for its own number; they must stay free through the predicted run.
    """
    found: dict[int, Foreseen] = {}
    ranked = []
    for request in waiting:
        wanted, least = _wanted(rules, request, now_ms)
        found[request.sequence] = Foreseen(least, None, None)
        ranked.append((rules.sizing.key(request, wanted, now_ms, rules.choices), request))
    ranked.sort(key=lambda entry: entry[0])
    for _, request in ranked[:FORESEEN_MAX]:
        seen = _first(rules, request, steps, now_ms)
        found[request.sequence] = seen._replace(containers=found[request.sequence].containers)
        if seen.start_ms is not None and seen.end_ms is not None:
            steps = steps.with_load(Load("", seen.containers, seen.start_ms, seen.end_ms))
    return found


def _first(rules: Rules, request: Request, steps: Profile, now_ms: int) -> Foreseen:
    """Find the first start at which what it needs by then stays free through its run."""
    nobody_knows = Foreseen(0, None, None)
    for start_ms in (now_ms, *(at_ms for at_ms in steps.at_ms if at_ms > now_ms)):
        _, containers = _wanted(rules, request, start_ms)
        if start_ms >= min(request.due_ms, FOREVER_MS) or not containers:
            return nobody_knows._replace(too_late=True)
        until_ms = max(start_ms + 1, end_ms(request, containers, start_ms))
        if steps.least_free(start_ms, until_ms) >= containers:
            return Foreseen(containers, start_ms, until_ms)
    return nobody_knows


def _wanted(rules: Rules, request: Request, start_ms: int) -> tuple[int, int]:
    """Return how many containers a request wants and accepts at an instant (0: it has no hope then)."""
    if rules.sizing.terms is None:
        return 1, 1
    terms = rules.sizing.terms(rules.memory, request, start_ms, rules.capacity, rules.choices)
    return terms.containers, terms.least


def hopeless(rules: Rules, request: Request, now_ms: int) -> PlanReason | None:
    """Say in numbers why a job cannot end by its deadline, whatever it is given; None if it may.

    Only who has an estimate can be judged, and by its lower end (mean - standard deviation): a run that was
    short before may be short again. What never turns anybody away does not do so here.
    """
    left_ms = request.due_ms - now_ms
    if request.estimate is None or left_ms <= 0:
        return None  # the mechanism's own word
    if rules.sizing.terms is None and not rules.sizing.drops_late:
        return None
    work_ms = max(1, request.estimate.mean_ms - request.estimate.stdev_ms)
    needed = -(-work_ms // left_ms)
    if needed > request.tasks and request.tasks <= rules.capacity:
        return NeedsMoreThanItCanUse(needed, request.tasks)
    return NeedsMoreThanThereIs(needed, rules.capacity) if needed > rules.capacity else None
