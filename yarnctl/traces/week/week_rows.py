"""The rows of a week: one job with its tasks and containers, whatever its source.

Instants are ms since 1970 in UTC; None: the source does not say. A negative number is never stored. What a
job's owner can write (diagnostics) is not stored: what ended a container is a word of :data:`EndedBy`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Instant = Annotated[int, msgspec.Meta(ge=0, lt=10**14)]
"""ms since 1970, until the year 5138."""
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
EndedBy = Literal["", "preempted", "failed", "killed", "lost"]
"""Why a container ended before its task was done; "": it was done, or the source does not say."""


PREEMPTED: EndedBy = "preempted"


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
    submitted_at_ms: Instant
    started_at_ms: Instant | None = None
    ended_at_ms: Instant | None = None
    state: str = ""
    held_mib_s: Number | None = None
    held_vcore_s: Number | None = None
    preempted_containers: Number | None = None
    preempted_mib_s: Number | None = None
    detail: Literal["containers", "sums"] = "containers"
    source: str = ""


class WeekTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of MapReduce, or one stage of Spark with ``count`` tasks.

    ``work_ms``: the time of the attempts that succeeded, summed over ``count``.
    """

    job: str
    task: str
    kind: str
    count: Number = 1
    started_at_ms: Instant | None = None
    ended_at_ms: Instant | None = None
    state: str = ""
    work_ms: Number | None = None


class WeekContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container: an attempt at a task, an executor, or the master.

    ``merged_at_ms``: when a reduce had fetched and merged its input. ``state``: how its task ended.
    """

    job: str
    container: str
    task: str = ""
    kind: Literal["master", "map", "reduce", "executor", "container"]
    node: str = ""
    memory_mib: Number | None = None
    vcores: Number | None = None
    started_at_ms: Instant
    ended_at_ms: Instant
    merged_at_ms: Instant | None = None
    state: str = ""
    ended_by: EndedBy = ""

    @property
    def span_ms(self) -> int:
        """How long it was held."""
        return max(0, self.ended_at_ms - self.started_at_ms)

    @property
    def is_preempted(self) -> bool:
        """Whether YARN's own preemption ended it."""
        return self.ended_by == PREEMPTED


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
_CHECKS = {kind: msgspec.msgpack.Decoder(kind) for kind in TABLES.values()}


def why_not_stored(imported: ImportedJob) -> str:
    """Return which row of a job no table can hold, and why; "" if the job can be stored.

    A file can say anything: an instant beyond the range of a column, or a text that is not Unicode.
    """
    for row in (imported.job, *imported.tasks, *imported.containers):
        try:
            _CHECKS[type(row)].decode(msgspec.msgpack.encode(row))
        except (msgspec.ValidationError, OverflowError, UnicodeEncodeError) as error:
            return f"{type(row).__name__.removeprefix('Week').lower()} row: {error}"
    return ""
