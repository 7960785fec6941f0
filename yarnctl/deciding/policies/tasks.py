"""Task eviction: which task of the chosen job is stopped (Natjam section 2.2).

Law: a policy is a pure key function; the task with the smallest key is picked first and the
selector ends every key in the attempt id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from yarnctl.deciding.model import TaskView
from yarnctl.deciding.policies.jobs import FOREVER_MS

TaskKey = Callable[[TaskView, int, int], tuple[int, ...]]


class TaskPolicy(NamedTuple):
    """A key function and what the selector may exploit of it.

    ``draws``: the key depends on its draw. ``remaining_sign``: where every remaining time is
    known, the key is exactly ``(remaining_sign * remaining_ms,)`` and may be computed in bulk.
    """

    key: TaskKey
    draws: bool = False
    remaining_sign: int = 0


def _remaining_ms(task: TaskView) -> int:
    """An unknown remaining time counts as endless, as in the original (facts section 3)."""
    return task.remaining_ms if task.remaining_ms >= 0 else FOREVER_MS


def shortest_remaining(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """SRT, section 2.2 and theorem 2.1: shortens the job's tail."""
    return (_remaining_ms(task),)


def longest_remaining(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """LRT, section 2.2: a task that is nearly done frees its room by itself."""
    return (-_remaining_ms(task),)


def at_random(task: TaskView, now_ms: int, draw: int) -> tuple[int, ...]:
    """Random, section 5 (Fig 5): all tasks equally likely."""
    return (draw,)


TASK_POLICIES: dict[str, TaskPolicy] = {
    "SRT": TaskPolicy(shortest_remaining, remaining_sign=1),
    "LRT": TaskPolicy(longest_remaining, remaining_sign=-1),
    "random": TaskPolicy(at_random, draws=True),
}
