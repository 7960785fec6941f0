"""Justice (Dimopoulos, Krintz, Wolski, UCSB TR 2019-09): a fraction that is corrected by its errors.

Law: after each finished job the fraction moves half way towards the smallest ratio ever needed (the deadline
was met) or the largest (missed), and is corrected by the average of past errors. Algorithms 1 to 4.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.deciding.admission.mechanisms.pythia import PAST, SizedChoices, sized
from yarnctl.deciding.admission.records import Finished, Request, Terms
from yarnctl.deciding.admission.sizing import Sizing, required_ratio

Errors = Literal["shortfall", "surplus"]
Fraction = Literal["estimated", "observed"]
Weighting = Literal["equal", "exponential"]


class JusticeChoices(SizedChoices, frozen=True, tag_field="mechanism", tag="justice"):
    """How Justice is read; research/notes/admission.md has the reasons.

    ``errors``: the shortfall of the fraction (Alg. 1 line 10), or its surplus (the text of 2.1).
    ``fraction``: the one that was computed (2.1), or observed (Alg. 1 line 8). ``weighting``: of past errors,
    equal or exponential with ``smoothing_ratio`` for the newest. ``drop_above_tasks``: a job that requested
    more tasks is ended at its missed deadline (2.2; 0: every job, None: no job).
    """

    errors: Errors = "shortfall"
    fraction: Fraction = "estimated"
    weighting: Weighting = "equal"
    smoothing_ratio: float = 0.5
    drop_above_tasks: int | None = 100


class JusticeMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="justice"):
    """The feedback of finished jobs; ratios are of min(tasks, capacity), Justice Alg. 1.

    ``completed`` counts them. ``least`` and ``most`` are MinCPUFrac and MaxCPUFrac, ``last`` is LastCPUFrac,
    ``last_met`` LastSuccess, ``errors`` the sum of fractionErrorList and ``smoothed`` its exponentially
    weighted average.
    """

    completed: int = 0
    least: float = 1.0
    most: float = 0.0
    last: float = 1.0
    last_met: bool = True
    errors: float = 0.0
    smoothed: float = 0.0


def learn(memory: JusticeMemory, finished: Finished, choices: JusticeChoices) -> JusticeMemory:
    """TRACK_JOB (Alg. 1): minimum and maximum of minReqRate, the last fraction, success, its error."""
    ratio = required_ratio(finished)
    last = finished.ratio
    if choices.fraction == "observed":
        last = finished.containers / min(finished.tasks, finished.capacity)  # line 8
    error = last - ratio if choices.errors == "surplus" else ratio - last  # line 10
    weight = choices.smoothing_ratio
    first = memory.completed == 0
    return JusticeMemory(
        completed=memory.completed + 1,
        least=ratio if first else min(memory.least, ratio),
        most=ratio if first else max(memory.most, ratio),
        last=last,
        last_met=finished.met,
        errors=memory.errors + error,
        smoothed=error if first else weight * error + (1.0 - weight) * memory.smoothed,
    )


def fraction(memory: JusticeMemory, choices: JusticeChoices) -> float:
    """CALCULATE_ALLOC_FRACTION (Alg. 2), CORRECT_ and VALIDATE_FRACTION (Alg. 3)."""
    target = memory.least if memory.last_met else memory.most
    halfway = (memory.last + target) / 2.0
    correction = memory.smoothed
    if choices.weighting == "equal":
        correction = memory.errors / memory.completed
    corrected = halfway + correction
    if corrected < memory.least:
        return memory.least
    return min(corrected, 1.0)


def terms(
    memory: JusticeMemory, request: Request, now_ms: int, capacity: int, choices: JusticeChoices
) -> Terms:
    """ESTIMATE_REQ and lines 5 to 13 of ADMISSION_CONTROL (Alg. 4).

    Line 23: until more than one job has completed, a job is given what it requests or what there is;
    unless it would be ended at once.
    """
    if memory.completed <= 1:
        if now_ms >= request.due_ms and ends_late(request, choices):
            return PAST
        return Terms(min(request.tasks, capacity), 1)
    return sized(fraction(memory, choices), request, now_ms, capacity, choices)


def ends_late(request: Request, choices: JusticeChoices) -> bool:
    """Section 2.2: "terminates jobs when their requestedTasks exceed a configurable threshold"."""
    return choices.drop_above_tasks is not None and request.tasks > choices.drop_above_tasks


JUSTICE = Sizing(
    name="justice",
    paper="Justice Alg. 1-4, 2.2",
    memory=JusticeMemory(),
    choices=JusticeChoices(),
    terms=terms,
    learn=learn,
    order="ratio",
)
