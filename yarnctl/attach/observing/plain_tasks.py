"""Tasks without a task runner's status: maps, and reduces without a runner or that have begun nothing.

None of these tasks is checkpointable. The work of a map is the time since its start. A reduce has begun
nothing until its master knows that its input is merged, by a report of the task (every 3 s,
mapreduce.task.progress-report.interval). The remaining time is computed from Java's progress, and is unknown
(-1) while that is too small.
"""

from __future__ import annotations

from yarnctl.deciding.levers import NOT_BEGUN_MS
from yarnctl.deciding.model import TaskView
from yarnctl.frameworks.mapreduce.rest import TaskAttempt
from yarnctl.hadoop.wire import yarn

KNOWN_RATIO = 0.05  # With less progress than this the remaining time is unknown
REDUCE_PHASE = 2 / 3  # Java's progress of a reduce when it begins to reduce


def is_map(attempt: str) -> bool:
    """Return whether an attempt is a map's, by its id (``attempt_1_2_m_000003_0``)."""
    return "_m_" in attempt


def map_view(attempt: TaskAttempt, container: yarn.ContainerRow, launch_ms: int, now_ms: int) -> TaskView:
    """Return a running map; ``launch_ms``: the time from a new container until it works again."""
    done = attempt.progress_percent / 100
    return TaskView(
        attempt=attempt.attempt,
        container=container.container,
        node=container.node,
        size=container.size,
        kind="map",
        remaining_ms=left_ms(attempt.elapsed_ms(now_ms), done),
        resume_cost_ms=launch_ms,
        since_ms=min(attempt.started_at_ms, now_ms),
        generation=0,
        checkpointable=False,
        resumed=False,
    )


def reduce_view(attempt: TaskAttempt, container: yarn.ContainerRow, launch_ms: int, now_ms: int) -> TaskView:
    """Return a running reduce without a runner; one that has begun nothing repeats its fetches."""
    begun = attempt.merged_at_ms > 0
    done = (attempt.progress_percent / 100 - REDUCE_PHASE) / (1 - REDUCE_PHASE)
    return TaskView(
        attempt=attempt.attempt,
        container=container.container,
        node=container.node,
        size=container.size,
        kind="reduce",
        remaining_ms=left_ms(max(0, now_ms - attempt.merged_at_ms), done) if begun else -1,
        resume_cost_ms=launch_ms + attempt.elapsed_ms(now_ms),
        since_ms=attempt.merged_at_ms if begun else NOT_BEGUN_MS,
        generation=0,
        checkpointable=False,
        resumed=False,
    )


def left_ms(worked_ms: int, done_ratio: float) -> int:
    """Return the remaining time at the speed so far; -1: unknown."""
    if worked_ms <= 0 or done_ratio < KNOWN_RATIO:
        return -1
    return int(worked_ms * max(0.0, 1 - done_ratio) / done_ratio)
