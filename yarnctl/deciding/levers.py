"""Levers: the ways to free the container of a task, with predicted time and cost, as values.

Nothing here chooses or acts. *Lost* work is container time whose result is gone and is computed again;
*overhead* is container time that a task spends on leaving and resuming. A reduce that is ended before its
first key loses no work: what it had fetched is overhead (MapReduce: a reduce begins to reduce when all map
output is fetched, and its master runs ended maps and reduces again).

=========  ==================================================  ===============================  ==============
lever      what happens                                        lost                             undo
=========  ==================================================  ===============================  ==============
wait       nothing: the task ends by itself in time            nothing                          none
suspend    a reduce saves its state and leaves                 nothing                          resume
end        a reduce that has begun no key is ended             nothing; it fetches again        run again
kill       a map is killed                                     the time since it began to work  run again
drain      an executor ends its tasks, moves its blocks, goes  tasks that are begun again       come back
rescale    an application goes on with fewer workers           all since its last checkpoint    come back
cap        the queue's maximum is lowered while others wait    nothing                          raise
=========  ==================================================  ===============================  ==============

The cost of ``rescale`` is paid once for all workers of an application that leave by one decision. The host
caps queues (:mod:`yarnctl.deciding.queue_hold`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from yarnctl.deciding.model import TaskKind, TaskView
from yarnctl.deciding.settings import LeverSettings

LeverKind = Literal["wait", "suspend", "end", "kill", "drain", "rescale", "cap"]
Undo = Literal["none", "resume", "run-again", "come-back", "raise"]

LEAVING: dict[TaskKind, LeverKind] = {"executor": "drain", "worker": "rescale"}
"""Tasks that leave on request, and their lever."""


NONE_LATE: Mapping[LeverKind, int] = MappingProxyType({})

NOT_BEGUN_MS = 1 << 52
"""``TaskView.since_ms`` of a task that has begun no key: later than every instant."""


class Lever(NamedTuple):
    """One way to free the container of ``unit`` (a task attempt, or a queue): predicted spans in ms.

    ``free_in_ms``: until it is free. ``lost_ms``: work that is computed again. ``overhead_ms``: leaving and
    resuming.
    """

    unit: str
    kind: LeverKind
    free_in_ms: int
    lost_ms: int
    overhead_ms: int
    undo: Undo


class LeverPull(msgspec.Struct, frozen=True, array_like=True):
    """A lever that an order pulls, and the queue and user whose budgets it uses."""

    lever: Lever
    queue: str
    user: str


class AwaitedTask(msgspec.Struct, frozen=True, array_like=True):
    """A task that is expected to end by itself, which counts until ``until_ms``: nothing is done.

    ``serves``: the requests that its container completes.
    """

    application: str
    container: str
    lever: Lever
    until_ms: int
    serves: int


def kills_max(lever_settings: LeverSettings) -> int:
    """Return how often one task may be killed in the window of the budgets."""
    return lever_settings.kills_max or 1  # UNSET is false


def reduced_nothing(task: TaskView, now_ms: int) -> bool:
    """Return whether a reduce has begun no key: it fetches, waits for maps, or returns from a checkpoint."""
    return task.kind == "reduce" and not task.checkpointable and task.since_ms >= now_ms


def levers_of(
    task: TaskView,
    now_ms: int,
    lever_settings: LeverSettings,
    awaited_until_ms: int,
    late_ms: Mapping[LeverKind, int] = NONE_LATE,
    group_ms: int = 0,
) -> Iterator[Lever]:
    """Yield the levers of a running task that free its container in time; objections are the chooser's.

    ``awaited_until_ms``: until when the task's own end was promised before (-1: it was not). It is not
    awaited again after that. ``late_ms``: by kind, how much later than predicted a container was free so far.
    ``group_ms``: how long a reduce works on one key group: it saves its state at the end of one, so seldom
    later than after a whole one.
    """
    attempt, kind = task.attempt, task.kind
    if kind in LEAVING:
        if task.checkpointable and task.remaining_ms >= 0:
            lost_ms = max(0, now_ms - task.since_ms)
            free_in_ms = max(0, task.remaining_ms + late_ms.get(LEAVING[kind], 0))
            yield Lever(attempt, LEAVING[kind], free_in_ms, lost_ms, task.resume_cost_ms, "come-back")
        return
    if reduced_nothing(task, now_ms):
        free_in_ms = max(0, lever_settings.leave_ms + late_ms.get("end", 0))
        yield Lever(attempt, "end", free_in_ms, 0, task.resume_cost_ms, "run-again")
        return
    ends_in_ms = (
        task.remaining_ms + lever_settings.leave_ms + (lever_settings.commit_ms if kind == "reduce" else 0)
    )
    kept = awaited_until_ms < 0 or now_ms + ends_in_ms <= awaited_until_ms
    if task.remaining_ms >= 0 and ends_in_ms <= lever_settings.room_within_ms and kept:
        yield Lever(attempt, "wait", ends_in_ms, 0, 0, "none")
    if kind == "reduce" and task.checkpointable:
        free_in_ms = lever_settings.suspend_ms + group_ms
        yield Lever(attempt, "suspend", free_in_ms, 0, task.resume_cost_ms, "resume")
    elif kind == "map":
        lost_ms = max(0, now_ms - task.since_ms)
        yield Lever(attempt, "kill", lever_settings.leave_ms, lost_ms, task.resume_cost_ms, "run-again")
