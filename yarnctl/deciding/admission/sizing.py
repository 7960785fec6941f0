"""Sizing: how a mechanism of the shared round sizes one job, and orders its queue.

What it learned is a small frozen record (its *memory*) that grows by nothing but finished jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from yarnctl.deciding.admission.records import Finished, Request, Terms

Order = Literal["papers", "ratio", "tasks", "earliest"]
"""The order of the queue; ``papers``: the one that :class:`Sizing` has."""


class OrderChoices(msgspec.Struct, frozen=True):
    """What all choices have: the order of the queue."""

    order: Order = "papers"


class NoMemory(msgspec.Struct, frozen=True, tag_field="mechanism", tag="none"):
    """The memory of a mechanism without feedback."""

    completed: int = 0


Memory_ = TypeVar("Memory_")
Choices_ = TypeVar("Choices_", bound=OrderChoices)


def required_ratio(finished: Finished) -> float:
    """Return minReqRate: the part of its containers a job needed for its deadline.

    PYTHIA Alg. 1 lines 2 to 4 and Justice Alg. 1 lines 2 to 4: compTime / deadline / maxCPUs,
    maxCPUs = min(requestedTasks, capacity). Two divisions, in this order.
    """
    return finished.work_ms / finished.deadline_ms / min(finished.tasks, finished.capacity)


def learn_nothing(memory: Memory_, finished: Finished, choices: object) -> Memory_:
    """Return the memory unchanged: for mechanisms without prediction."""
    return memory


Key = tuple[float, int, int]


def queue_key(order: Order, request: Request, containers: int, now_ms: int) -> Key:
    """Return the key by which the queue is ordered, smallest first; it ends in the sequence.

    ``ratio``: containers / time-to-deadline. ``tasks``: fewest tasks, then the latest deadline.
    ``earliest``: shortest time-to-deadline.
    """
    if order == "tasks":
        return (request.tasks, -request.due_ms, request.sequence)
    if order == "earliest":
        return (request.due_ms, 0, request.sequence)
    left_ms = request.due_ms - now_ms
    return (containers / left_ms if left_ms > 0 else float("inf"), 0, request.sequence)


class Sizing(NamedTuple, Generic[Memory_, Choices_]):
    """The part of a mechanism that sizes and orders jobs.

    ``memory`` is what it begins with, ``choices`` our readings of its paper. ``terms`` is None for fair
    sharers: they do not size jobs, they split what is free. ``drops_late``: a fair sharer rejects requests
    beyond their deadline. ``order`` is the meaning of ``papers``. ``needs_estimate``: it rejects requests
    without one.
    """

    name: str
    paper: str
    memory: Memory_
    choices: Choices_
    terms: Callable[[Memory_, Request, int, int, Choices_], Terms] | None
    learn: Callable[[Memory_, Finished, Choices_], Memory_] = learn_nothing
    order: Order = "tasks"
    drops_late: bool = False
    needs_estimate: bool = False

    @property
    def learns(self) -> bool:
        """Whether it learns from finished jobs."""
        return self.learn is not learn_nothing

    def key(self, request: Request, containers: int, now_ms: int, choices: Choices_) -> Key:
        """Return the request's key in the queue under ``choices``."""
        order = self.order if choices.order == "papers" else choices.order
        return queue_key(order, request, containers, now_ms)
