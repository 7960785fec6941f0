"""PYTHIA (Dimopoulos, Krintz, Wolski, UCSB TR 2017-02): the largest ratio ever needed is given to all.

Law: the fraction CPUFrac only grows (Alg. 1 lines 5 to 7); a job whose part of the capacity
would have to exceed all it can use is not let in. Algorithm 1 and section II.B.
"""

from __future__ import annotations

import math

import msgspec

from yarnctl.deciding.admission.allocators.allocator import Allocator, Memory, required_ratio
from yarnctl.deciding.admission.records import Choices, Finished, Request, Terms

PAST = Terms(0, 0, "its deadline has passed")
LATE = "after this time in the queue it needs more containers than it can use"


def late(needed: int, reachable: int) -> Terms:
    """Return the terms of a job whose time is too short, with the numbers."""
    return Terms(0, 0, f"{LATE} ({needed} to end by its deadline, of {reachable})")


def learn(memory: Memory, finished: Finished, choices: Choices) -> Memory:
    """TRACK_JOB (Alg. 1): CPUFrac becomes minReqRate where that is larger (lines 5, 6).

    (The text compares deadlineCPUs, a number of CPUs, with the fraction; we follow the algorithm.)
    """
    most = max(memory.most, required_ratio(finished))
    return msgspec.structs.replace(memory, completed=memory.completed + 1, most=most)


def terms(memory: Memory, request: Request, now_ms: int, capacity: int, choices: Choices) -> Terms:
    """Return CPUFrac times what the job can use, rounded up (section II.B).

    While nothing has finished (CPUFrac = -1) all are admitted, with what they request or what
    there is. Waiting is charged as ``sized`` says.
    """
    if memory.completed == 0:
        return Terms(min(request.tasks, capacity), 1)
    return sized(memory.most, request, now_ms, capacity, choices)


def sized(ratio: float, request: Request, now_ms: int, capacity: int, choices: Choices) -> Terms:
    """Return the terms for a fraction of the job's containers (Justice Alg. 4 lines 22 to 27, 5 to 7).

    ``fraction = deadline / (deadline - queue) * fraction``; ``max(ceil(fraction * maxCpus), 1)``;
    infeasible if that exceeds min(tasks, capacity).
    """
    reachable = min(request.tasks, capacity)
    left_ms = request.deadline_at_ms - now_ms
    if left_ms <= 0:
        return PAST
    fraction = ratio
    if choices.queue_time == "stretched":
        fraction = request.deadline_ms / left_ms * ratio
    if choices.reach == "reachable":
        containers = max(math.ceil(fraction * reachable), 1)
        if containers > reachable:
            return late(containers, reachable)
    else:
        if fraction > 1.0:
            return late(math.ceil(fraction * request.tasks), reachable)
        containers = min(max(math.ceil(fraction * request.tasks), 1), capacity)
    return Terms(containers, containers, ratio=fraction)


PYTHIA = Allocator(name="pythia", paper="PYTHIA Alg. 1, II.B", terms=terms, learn=learn, order="tasks")
