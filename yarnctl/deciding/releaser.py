"""The Releaser: which tasks are eligible, and why the others are not.

Law: *not suspending is always allowed*. A task is eligible only if no rule excludes it; the
reason of an exclusion is part of the result. The paper's Releaser (section 3.2) has two of these rules
(reduces only, running only); the rest are guards, off in the profile ``paper``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from yarnctl.deciding.model import TaskView
from yarnctl.deciding.settings import Settings

Reason = Literal[
    "",
    "am",
    "map",
    "not-checkpointable",
    "already-ordered",
    "just-tried",
    "task-tries",
    "node-reserved",
    "remaining-unknown",
    "cost",
    "just-resumed",
    "task-budget",
    "next",
    "no-runner",
    "no-task-left",
    "job-budget",
    "unreachable",
    "late",
    "not-observed",
    "loss-budget",
    "job-loss-budget",
    "user-loss-budget",
    "not-in-time",
    "killed-lately",
    "executor-stays",
]
"""Why a task or job was not picked; the empty reason: eligible.

====================  =========================================================================
am                    the job's master is never stopped
map                   maps lose their work; only with ``kill_maps``
not-checkpointable    in shuffle, skipping or replaying, or its runner is not ready
already-ordered       an open order names this attempt: never twice
just-tried            it was asked and did not stop; the pause doubles after each failed try
task-tries            it was asked ``task_tries_max`` times and did not stop
node-reserved         the room on its node is reserved for another application than the asker
remaining-unknown     its remaining time is not known, so it is not known whether suspending pays
cost                  it is done before suspending and resuming would have paid
just-resumed          since it resumed it has worked less than ``settle_ms``, or less than another
                      suspension would cost
task-budget           suspended ``task_suspensions_max`` times already
next                  eligible; others came first
no-runner             (job) its reduces cannot be suspended
no-task-left          (job) nothing eligible is left
job-budget            (job) ``job_open_ratio_max`` of its containers are under order
unreachable           (job) its AM does not answer
late                  (job) its AM had not answered when the look ended; it is read on
not-observed          (job) its tasks could not be observed in time
loss-budget           its work would be lost, and no more may be lost now; or of its job no more may leave
job-loss-budget       the same, by its job's own tag
user-loss-budget      the same, by the budget of its user
not-in-time           it would give room later than ``room_within_ms``
killed-lately         an attempt of its task was killed within the window of the loss budget
executor-stays        (Spark) its application keeps so many, others of it are leaving, or how long its tasks
                      take is not known
====================  =========================================================================
"""


def objections(
    now_ms: int,
    settings: Settings,
    barred: Mapping[str, Reason],
    reserved: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[TaskView], Reason]:
    """Return the function that says why a task may not be stopped now; "": it may.

    The first reason that applies is returned. Made once per choice: it runs for every candidate task.
    ``reserved`` are the nodes whose room another application than the asker would get.
    """
    kill_maps, settle_ms = settings.kill_maps, settings.settle_ms
    drains = settings.levers is not None
    suspensions_max = settings.task_suspensions_max
    guarded = settings.cost_guard and settings.eviction == "suspend"

    def objection(task: TaskView) -> Reason:
        attempt, _, _, _, kind, remaining_ms, return_cost_ms, since_ms, generation, able, resumed = task
        if kind == "am":
            return "am"
        if attempt in barred:
            return barred[attempt]
        if kind == "map":
            return "" if kill_maps else "map"
        if kind in ("executor", "worker"):
            return "" if able and drains else "executor-stays"
        if not able:
            return "not-checkpointable"
        if generation >= suspensions_max:
            return "task-budget"
        if resumed and now_ms - since_ms < (max(settle_ms, return_cost_ms) if guarded else settle_ms):
            return "just-resumed"
        if guarded and remaining_ms <= return_cost_ms:
            return "remaining-unknown" if remaining_ms < 0 else "cost"
        return ""

    def on_open_node(task: TaskView) -> Reason:
        return "node-reserved" if task.kind != "am" and task.node in reserved else objection(task)

    return on_open_node if reserved else objection


def is_killed(task: TaskView, settings: Settings) -> bool:
    """Return whether stopping ``task`` means losing its work: a map, or eviction by killing."""
    return settings.eviction == "kill" or task.kind == "map"
