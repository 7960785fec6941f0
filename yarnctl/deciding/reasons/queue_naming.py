"""Why a queue's name stands for no leaf queue, or may not be used as it is given."""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class QueuesUnread(Reason, frozen=True):
    """The scheduler's queues have not been read since the start: names stand for nothing yet."""


class NoLeafQueue(Reason, frozen=True):
    """No leaf queue has these names. ``nearest``: like paths; ``leaves`` are the first of ``count``."""

    names: tuple[str, ...]
    leaves: tuple[str, ...]
    count: int
    nearest: tuple[str, ...] = ()


class AmbiguousQueue(Reason, frozen=True):
    """A name stands for several leaf queues: ``paths`` are the first of ``count``."""

    name: str
    paths: tuple[str, ...]
    count: int


class ParentQueue(Reason, frozen=True):
    """A name stands for a parent queue; ``leaves`` are the first of ``count`` below it."""

    name: str
    leaves: tuple[str, ...]
    count: int


class QueueInBothRoles(Reason, frozen=True):
    """A leaf queue is both preempting and preemptable, by ``names``."""

    path: str
    names: tuple[str, ...]


class BudgetOfNoVictim(Reason, frozen=True):
    """A loss budget names a leaf queue that is not preemptable; ``paths`` are those that are."""

    name: str
    path: str
    paths: tuple[str, ...]


class QueueNamedTwice(Reason, frozen=True):
    """Two budgets, or two pools, name one leaf queue, by ``names``."""

    path: str
    names: tuple[str, ...]


class QueuesVanished(Reason, frozen=True):
    """These leaf queues, which were named, are not in the scheduler's tree any more."""

    paths: tuple[str, ...]


QueueProblem = (
    NoLeafQueue | AmbiguousQueue | ParentQueue | QueueInBothRoles | BudgetOfNoVictim | QueueNamedTwice
)
