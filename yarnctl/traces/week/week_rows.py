"""The rows of a week: one job with its tasks and containers, whatever its source.

Instants are ms since 1970 in UTC; None: the source does not say. A negative number is never stored. What a
job's owner can write (diagnostics) is not stored: an end and a cause are words of :data:`CAUSES`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Cause = Literal["", "preempted", "failed", "killed", "lost"]
"""Why a container ended before its task was done; "": it was done, or the source does not say."""


class WeekJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job, or one application without a history.

    ``held_mib_s`` and ``held_vcore_s``: what its containers held, container time times size. ``preempted_*``:
    what YARN's own preemption took, masters included. ``detail``: ``containers`` if its containers have rows,
    ``sums`` if it has this row only. ``source``: the server, or the kind of file.
    """

    job: str
    kind: str
    queue: str
    user: str
    name: str
    submitted_at_ms: int
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    state: str = ""
    held_mib_s: int | None = None
    held_vcore_s: int | None = None
    preempted_containers: int | None = None
    preempted_mib_s: int | None = None
    detail: Literal["containers", "sums"] = "containers"
    source: str = ""


class WeekTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of MapReduce, or one stage of Spark with ``count`` tasks.

    ``work_ms``: the time of the attempts that succeeded, summed over ``count``.
    """

    job: str
    task: str
    kind: str
    count: int = 1
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    state: str = ""
    work_ms: int | None = None


class WeekContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container: an attempt at a task, an executor, or the master.

    ``merged_at_ms``: when a reduce had fetched and merged its input. ``state``: how its task ended.
    """

    job: str
    container: str
    task: str = ""
    kind: Literal["master", "map", "reduce", "executor", "container"]
    node: str = ""
    memory_mib: int | None = None
    vcores: int | None = None
    started_at_ms: int
    ended_at_ms: int
    merged_at_ms: int | None = None
    state: str = ""
    cause: Cause = ""

    @property
    def span_ms(self) -> int:
        """How long it was held."""
        return max(0, self.ended_at_ms - self.started_at_ms)


class ImportedJob(msgspec.Struct, frozen=True):
    """One job with its tasks and containers."""

    job: WeekJob
    tasks: tuple[WeekTask, ...] = ()
    containers: tuple[WeekContainer, ...] = ()


TABLES: dict[str, type[msgspec.Struct]] = {
    "jobs": WeekJob,
    "tasks": WeekTask,
    "containers": WeekContainer,
}
"""The rows of each table. An instant ``started_at_ms`` is the column ``started_at``."""
