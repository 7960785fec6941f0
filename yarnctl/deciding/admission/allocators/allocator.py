"""What an allocator is: a record of pure functions, and the order of a queue.

Law: an allocator holds nothing. What it learned is a small frozen record (its *memory*) that
goes in and comes out, can be written down, and grows by nothing but the jobs that finished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from yarnctl.deciding.admission.records import Choices, Finished, Order, Request, Terms


class Memory(msgspec.Struct, frozen=True):
    """What the finished jobs have taught; ratios are of min(tasks, capacity), Justice Alg. 1.

    ``completed`` counts them. ``least`` and ``most`` are MinCPUFrac and MaxCPUFrac (PYTHIA's
    CPUFrac is the latter), ``last`` is LastCPUFrac, ``last_met`` LastSuccess, ``errors`` the sum
    of fractionErrorList and ``smoothed`` its exponentially weighted average.
    """

    completed: int = 0
    least: float = 1.0
    most: float = 0.0
    last: float = 1.0
    last_met: bool = True
    errors: float = 0.0
    smoothed: float = 0.0


def required_ratio(finished: Finished) -> float:
    """Return minReqRate: the part of its containers a job needed for its deadline.

    PYTHIA Alg. 1 lines 2 to 4 and Justice Alg. 1 lines 2 to 4: compTime / deadline / maxCPUs,
    maxCPUs = min(requestedTasks, capacity). Two divisions, in this order.
    """
    return finished.work_ms / finished.deadline_ms / min(finished.tasks, finished.capacity)


def learn_nothing(memory: Memory, finished: Finished, choices: Choices) -> Memory:
    """Return the memory as it was: for allocators without prediction."""
    return memory


def never_ended(request: Request, choices: Choices) -> bool:
    """Say that a job that runs is left to its end."""
    return False


Key = tuple[float, int, int]


def queue_key(order: Order, request: Request, containers: int, now_ms: int) -> Key:
    """Return the key by which the queue is ordered, smallest first; it ends in the sequence.

    ``ratio``: containers / time-to-deadline. ``tasks``: fewest tasks, then the latest deadline.
    ``earliest``: shortest time-to-deadline.
    """
    if order == "tasks":
        return (request.tasks, -request.deadline_at_ms, request.sequence)
    if order == "earliest":
        return (request.deadline_at_ms, 0, request.sequence)
    left_ms = request.deadline_at_ms - now_ms
    return (containers / left_ms if left_ms > 0 else float("inf"), 0, request.sequence)


class Allocator(NamedTuple):
    """One way to decide who is let in and with how many containers.

    ``terms`` is None for fair sharers: they do not size jobs, they split what is free.
    ``ends_late`` says whether a running job is ended at its deadline. ``drops_late``: a fair
    sharer turns away who waits beyond it. ``order`` is what ``papers`` means for it.
    ``needs_estimate``: it turns away whose work nobody knows.
    """

    name: str
    paper: str
    terms: Callable[[Memory, Request, int, int, Choices], Terms] | None
    learn: Callable[[Memory, Finished, Choices], Memory] = learn_nothing
    ends_late: Callable[[Request, Choices], bool] = never_ended
    order: Order = "tasks"
    drops_late: bool = False
    needs_estimate: bool = False

    @property
    def learns(self) -> bool:
        """Whether finished jobs teach it anything."""
        return self.learn is not learn_nothing

    def key(self, request: Request, containers: int, now_ms: int, choices: Choices) -> Key:
        """Return the request's key in the queue under ``choices``."""
        order = self.order if choices.order == "papers" else choices.order
        return queue_key(order, request, containers, now_ms)
