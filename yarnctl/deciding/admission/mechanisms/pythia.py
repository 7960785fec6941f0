"""PYTHIA (Dimopoulos, Krintz, Wolski, UCSB TR 2017-02): the largest ratio ever needed is given to all.

Law: the fraction CPUFrac only grows (Alg. 1 lines 5 to 7); a job whose part of the capacity
would have to exceed all it can use is rejected. Algorithm 1 and section II.B.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from yarnctl.deciding.admission.records import Finished, Request, Terms
from yarnctl.deciding.admission.sizing import OrderChoices, Sizing, required_ratio
from yarnctl.deciding.reasons.verdicts import DeadlinePassed, NeedsTooManyByNow

Reach = Literal["reachable", "requested"]
QueueTime = Literal["stretched", "ignored"]


class SizedChoices(OrderChoices, frozen=True):
    """How :func:`sized` reads the papers.

    The fraction is one of min(tasks, capacity) (``reachable``: PYTHIA Alg. 1 line 4, Justice Alg. 4 line 27),
    or of the requested tasks (``requested``: PYTHIA II.B, Justice 2.1). Time in the queue stretches the
    fraction (``stretched``: Justice Alg. 4 line 26), or only drops what is past its deadline (``ignored``).
    """

    reach: Reach = "reachable"
    queue_time: QueueTime = "stretched"


class PythiaChoices(SizedChoices, frozen=True, tag_field="mechanism", tag="pythia"):
    """The choices of PYTHIA."""


class PythiaMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="pythia"):
    """The feedback of finished jobs: how many there were, and CPUFrac, the most that one needed."""

    completed: int = 0
    most: float = 0.0


PAST = Terms(0, 0, DeadlinePassed())


def late(needed: int, reachable: int) -> Terms:
    """Return the offer bounds of a job whose time is too short, with the numbers."""
    return Terms(0, 0, NeedsTooManyByNow(needed, reachable))


def learn(memory: PythiaMemory, finished: Finished, choices: PythiaChoices) -> PythiaMemory:
    """TRACK_JOB (Alg. 1): CPUFrac becomes minReqRate where that is larger (lines 5, 6).

    (The text compares deadlineCPUs, a number of CPUs, with the fraction; we follow the algorithm.)
    """
    most = max(memory.most, required_ratio(finished))
    return msgspec.structs.replace(memory, completed=memory.completed + 1, most=most)


def terms(
    memory: PythiaMemory, request: Request, now_ms: int, capacity: int, choices: PythiaChoices
) -> Terms:
    """Return CPUFrac times what the job can use, rounded up (section II.B).

    While nothing has finished (CPUFrac = -1) all are admitted, with what they request or what
    there is. Waiting is charged as in ``sized``.
    """
    if memory.completed == 0:
        return Terms(min(request.tasks, capacity), 1)
    return sized(memory.most, request, now_ms, capacity, choices)


def sized(ratio: float, request: Request, now_ms: int, capacity: int, choices: SizedChoices) -> Terms:
    """Return the offer bounds for a fraction of the job's containers (Justice Alg. 4 lines 22 to 27, 5 to 7).

    ``fraction = deadline / (deadline - queue) * fraction``; ``max(ceil(fraction * maxCpus), 1)``;
    infeasible if that exceeds min(tasks, capacity).
    """
    reachable = min(request.tasks, capacity)
    left_ms = request.due_ms - now_ms
    if left_ms <= 0:
        return PAST
    fraction = ratio
    if choices.queue_time == "stretched":
        fraction = request.span_ms / left_ms * ratio
    if choices.reach == "reachable":
        containers = max(math.ceil(fraction * reachable), 1)
        if containers > reachable:
            return late(containers, reachable)
    else:
        if fraction > 1.0:
            return late(math.ceil(fraction * request.tasks), reachable)
        containers = min(max(math.ceil(fraction * request.tasks), 1), capacity)
    return Terms(containers, containers, ratio=fraction)


PYTHIA = Sizing(
    name="pythia",
    paper="PYTHIA Alg. 1, II.B",
    memory=PythiaMemory(),
    choices=PythiaChoices(),
    terms=terms,
    learn=learn,
    order="tasks",
)
