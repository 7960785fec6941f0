"""The Releaser: which tasks are eligible, and why the others are not.

Not suspending is always allowed. A task is eligible only if no rule excludes it; the reason of an exclusion
is part of the result. The paper's Releaser (section 3.2) has two of these rules (reduces only, running only);
the others are guards, off in the profile ``paper``.
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
    "not-worth",
    "executor-stays",
    "on-trial",
    "left-alone",
    "outside-hours",
]
"""Why a task or job was not chosen; "": it is eligible. ``REASONS`` has the sentences."""

REASONS: dict[str, str] = {
    "am": "an application master is never stopped",
    "map": "a map would lose its work",
    "not-checkpointable": "cannot be suspended now: in shuffle, resuming, or its task runner is not ready",
    "already-ordered": "has an open order already",
    "just-tried": "did not stop at an earlier order; each failed try doubles the pause before the next",
    "task-tries": "did not stop at the highest allowed number of orders",
    "node-reserved": "YARN would give the container on its node to another application",
    "remaining-unknown": "its remaining time is unknown, so the benefit of a suspension is unknown",
    "cost": "ends sooner than a suspension would pay off",
    "just-resumed": "resumed recently: it has worked for less time than another suspension would cost",
    "task-budget": "was suspended the highest allowed number of times",
    "next": "eligible; other tasks came first",
    "no-runner": "the job's reduces cannot be suspended",
    "no-task-left": "the job has no other task that can be stopped",
    "job-budget": "the job has the highest allowed number of open orders",
    "unreachable": "the job's application master does not answer",
    "late": "the job's application master or driver has not answered in time; yarnctl continues to read it",
    "not-observed": "the job's tasks could not be observed in time",
    "loss-budget": "the loss budget of its queue is used up",
    "job-loss-budget": "the loss budget of its job is used up",
    "user-loss-budget": "the loss budget of its user is used up",
    "not-in-time": "would free its container too late",
    "killed-lately": "attempts of this task were killed within the window of the loss budget",
    "not-worth": "to wait for its end costs less than to free its container",
    "executor-stays": (
        "the application keeps its minimum, other executors or workers are leaving, its cached partitions"
        " find no memory elsewhere, or the length of its tasks is unknown"
    ),
    "on-trial": "one suspension at a time is tried until one has freed its container",
    "left-alone": "the job's tag, user or queue opts out",
    "outside-hours": "containers of its queue may not be taken at this hour",
}
"""What people read. The texts of ``no-runner`` to ``not-observed``, and the last two, are about jobs,
the others about tasks.
"""

REMEDIES: dict[str, str] = {
    "map": "run the daemon with --eviction mix and --may-lose",
    "not-checkpointable": "wait until the task reduces",
    "already-ordered": "wait for its order",
    "just-tried": "wait until the pause is over",
    "task-tries": "read the task's standard error",
    "node-reserved": "wait until YARN serves the reservation",
    "remaining-unknown": "wait until the task reports progress",
    "cost": "wait until the task ends",
    "just-resumed": "wait until it has worked longer",
    "task-budget": "wait until the task ends, or run the daemon with --eviction mix and --may-lose",
    "no-runner": "submit the job with yarnctl wrap, or run the daemon with --eviction mix and --may-lose",
    "job-budget": "wait for the open orders of the job",
    "unreachable": "check the job's application master",
    "late": "wait for the answer",
    "not-observed": "wait for the next observation",
    "loss-budget": "raise --may-lose, or wait",
    "job-loss-budget": "wait, or raise the yarnctl-may-lose tag of the job",
    "user-loss-budget": "raise may_lose of the user, or wait",
    "not-in-time": "raise --room-within",
    "killed-lately": "wait until the window of the budget has passed",
    "not-worth": "wait until the task ends, or raise --second-worth",
    "executor-stays": "wait, or lower the application's minimum",
    "on-trial": "wait for the trial",
    "outside-hours": "wait, or change hours of the queue in --budgets",
}
"""What a person can do about tasks that were not chosen; a code that is missing has no remedy."""


def objections(
    now_ms: int,
    settings: Settings,
    barred: Mapping[str, Reason],
    reserved: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[TaskView], Reason]:
    """Return the function that returns why a task must not be stopped now; "": it can be stopped.

    The first reason that applies is returned. Made once per choice, because it runs for every candidate task.
    ``barred``: attempts excluded already. ``reserved``: nodes on which YARN would give freed capacity to
    another application than the requesting one.
    """
    kill_maps, settle_ms = settings.kill_maps, settings.settle_ms
    drains = settings.levers is not None
    suspensions_max = settings.task_suspensions_max
    guarded = settings.cost_guard and settings.eviction == "suspend"

    def objection(task: TaskView) -> Reason:
        attempt, _, _, _, kind, remaining_ms, resume_cost_ms, since_ms, generation, able, resumed = task
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
        if resumed and now_ms - since_ms < (max(settle_ms, resume_cost_ms) if guarded else settle_ms):
            return "just-resumed"
        if guarded and remaining_ms <= resume_cost_ms:
            return "remaining-unknown" if remaining_ms < 0 else "cost"
        return ""

    def on_open_node(task: TaskView) -> Reason:
        return "node-reserved" if task.kind != "am" and task.node in reserved else objection(task)

    return on_open_node if reserved else objection


def is_killed(task: TaskView, settings: Settings) -> bool:
    """Return whether stopping ``task`` means losing its work: a map, or eviction by killing."""
    return settings.eviction == "kill" or task.kind == "map"
