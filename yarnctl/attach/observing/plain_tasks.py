"""Tasks that no task runner shows: maps, and reduces of jobs that carry none or have begun nothing.

Law: pure; from the master's own row of an attempt. None of them is checkpointable. What a map has done is
the time since its start; a reduce has begun nothing until its master knows that its input is merged, which it
learns by a report of the task (every three seconds at most, mapreduce.task.progress-report.interval): so long
a reduce may have reduced unseen. Remaining time is drawn from Java's progress, and is unknown (-1) while
that is too little.
"""

from __future__ import annotations

from yarnctl.deciding.levers import NOT_BEGUN_MS
from yarnctl.deciding.model import TaskView
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.mapreduce import TaskAttempt

KNOWN_RATIO = 0.05
"""Less progress than this tells nothing about the rest."""
REDUCE_PHASE = 2 / 3
"""Java's progress of a reduce when it begins to reduce."""


def is_map(attempt: str) -> bool:
    """Return whether an attempt is a map's, by its id (``attempt_1_2_m_000003_0``)."""
    return "_m_" in attempt


def map_view(row: TaskAttempt, container: yarn.ContainerRow, launch_ms: int, now_ms: int) -> TaskView:
    """Return a running map; ``launch_ms``: what running it again takes before it works."""
    done = row.progress_percent / 100
    return TaskView(
        attempt=row.attempt,
        container=container.container,
        node=container.node,
        size=container.size,
        kind="map",
        remaining_ms=left_ms(row.elapsed_ms(now_ms), done),
        return_cost_ms=launch_ms,
        since_ms=min(row.started_at_ms, now_ms),
        generation=0,
        checkpointable=False,
        resumed=False,
    )


def reduce_view(row: TaskAttempt, container: yarn.ContainerRow, launch_ms: int, now_ms: int) -> TaskView:
    """Return a running reduce without a runner; one that has begun nothing fetches again what it fetched."""
    begun = row.merged_at_ms > 0
    done = (row.progress_percent / 100 - REDUCE_PHASE) / (1 - REDUCE_PHASE)
    return TaskView(
        attempt=row.attempt,
        container=container.container,
        node=container.node,
        size=container.size,
        kind="reduce",
        remaining_ms=left_ms(max(0, now_ms - row.merged_at_ms), done) if begun else -1,
        return_cost_ms=launch_ms + row.elapsed_ms(now_ms),
        since_ms=row.merged_at_ms if begun else NOT_BEGUN_MS,
        generation=0,
        checkpointable=False,
        resumed=False,
    )


def left_ms(worked_ms: int, done_ratio: float) -> int:
    """Return how long the rest takes at the speed so far; -1: not known."""
    if worked_ms <= 0 or done_ratio < KNOWN_RATIO:
        return -1
    return int(worked_ms * max(0.0, 1 - done_ratio) / done_ratio)
