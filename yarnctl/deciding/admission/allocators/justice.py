"""Justice (Dimopoulos, Krintz, Wolski, UCSB TR 2019-09): a fraction that is corrected by its errors.

Law: after each finished job the fraction moves half way towards the smallest ratio ever needed
(the deadline was met) or the largest (missed), and is corrected by the average of past errors.
Algorithms 1 to 4.
"""

from __future__ import annotations

from yarnctl.deciding.admission.allocators.allocator import Allocator, Memory, required_ratio
from yarnctl.deciding.admission.allocators.pythia import PAST, sized
from yarnctl.deciding.admission.records import Choices, Finished, Request, Terms


def learn(memory: Memory, finished: Finished, choices: Choices) -> Memory:
    """TRACK_JOB (Alg. 1): minimum and maximum of minReqRate, the last fraction, success, its error."""
    ratio = required_ratio(finished)
    last = finished.ratio
    if choices.fraction == "observed":
        last = finished.containers / min(finished.tasks, finished.capacity)  # line 8
    error = last - ratio if choices.errors == "surplus" else ratio - last  # line 10, see Choices
    weight = choices.smoothing_ratio
    first = memory.completed == 0
    return Memory(
        completed=memory.completed + 1,
        least=ratio if first else min(memory.least, ratio),
        most=ratio if first else max(memory.most, ratio),
        last=last,
        last_met=finished.met,
        errors=memory.errors + error,
        smoothed=error if first else weight * error + (1.0 - weight) * memory.smoothed,
    )


def fraction(memory: Memory, choices: Choices) -> float:
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


def terms(memory: Memory, request: Request, now_ms: int, capacity: int, choices: Choices) -> Terms:
    """ESTIMATE_REQ and lines 5 to 13 of ADMISSION_CONTROL (Alg. 4).

    Line 23: until more than one job has completed, a job gets what it requests or what there is;
    unless it would be ended in the same moment.
    """
    if memory.completed <= 1:
        if now_ms >= request.deadline_at_ms and ends_late(request, choices):
            return PAST
        return Terms(min(request.tasks, capacity), 1)
    return sized(fraction(memory, choices), request, now_ms, capacity, choices)


def ends_late(request: Request, choices: Choices) -> bool:
    """Section 2.2: "terminates jobs when their requestedTasks exceed a configurable threshold"."""
    return choices.drop_above_tasks is not None and request.tasks > choices.drop_above_tasks


JUSTICE = Allocator(
    name="justice",
    paper="Justice Alg. 1-4, 2.2",
    terms=terms,
    learn=learn,
    ends_late=ends_late,
    order="ratio",
)
