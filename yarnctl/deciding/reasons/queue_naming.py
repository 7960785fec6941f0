"""Why a queue's name stands for no leaf queue, or cannot be used as it is given.

Lists of paths are the first of ``count``.
"""

from __future__ import annotations

from yarnctl.deciding.reasons.rooting import Reason


class QueuesUnread(Reason, frozen=True):
    sentence = "the scheduler's queues have not been read yet"


class NoLeafQueue(Reason, frozen=True):
    """``nearest``: paths like the names."""

    sentence = (
        "no leaf queue {names:list}[nearest? (nearest: {nearest:list})]; leaf queues ({count}): {leaves:list}"
    )
    names: tuple[str, ...]
    leaves: tuple[str, ...]
    count: int
    nearest: tuple[str, ...] = ()


class AmbiguousQueue(Reason, frozen=True):
    sentence = "queue name {name} is ambiguous, it matches {count} queues: {paths:list}"
    remedy = "give the full path"
    name: str
    paths: tuple[str, ...]
    count: int


class ParentQueue(Reason, frozen=True):
    """Where only a leaf can be named: not in a role."""

    sentence = "queue {name} is a parent queue"
    remedy = (
        "[leaves?name one of its {count} leaf queues: {leaves:list}"
        "|it has no leaf queue now: name one when it has]"
    )
    name: str
    leaves: tuple[str, ...]
    count: int


class QueueInBothRoles(Reason, frozen=True):
    sentence = "queue {path} is both preempting and preemptable (given as {names:list})"
    remedy = "name it in one role"
    path: str
    names: tuple[str, ...]


class BudgetOfNoPreemptableQueue(Reason, frozen=True):
    """``paths``: the preemptable queues."""

    sentence = (
        "[queue.{name}] in --budgets: {path} is not preemptable; the preemptable queues are {paths:list}"
    )
    name: str
    path: str
    paths: tuple[str, ...]


class EveryQueueLeftAlone(Reason, frozen=True):
    """By ``leave_alone`` in the budgets file."""

    sentence = "every preemptable queue is left alone: {names:list}"
    remedy = "remove leave_alone of one of them in --budgets"
    names: tuple[str, ...]


class QueueNamedTwice(Reason, frozen=True):
    """By two budgets, or two pools."""

    sentence = "queue {path} is named twice: {names:list}"
    remedy = "name it once"
    path: str
    names: tuple[str, ...]


class QueuesVanished(Reason, frozen=True):
    sentence = "the scheduler no longer has the leaf queues {paths:list}"
    paths: tuple[str, ...]


QueueProblem = (
    NoLeafQueue
    | AmbiguousQueue
    | ParentQueue
    | QueueInBothRoles
    | BudgetOfNoPreemptableQueue
    | EveryQueueLeftAlone
    | QueueNamedTwice
)
"""What is wrong with a name that was given for a queue."""
