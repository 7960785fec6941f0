"""Reader of MapReduce's job history files (``.jhist``, Avro as JSON): one job each.

Source: Hadoop's ``Events.avpr`` and ``EventReader``: a line ``Avro-Json``, a line with the schema, a line for
each event. Older versions lack fields, newer ones wrap a text that may be null as ``{"string": ...}``. The
files have no sizes; those of maps and reduces follow from the counters of a job that ended well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import field

from yarnctl.attach.bill.collector import BY_SCHEDULER
from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.traces.week.week_rows import EndedBy, ImportedJob, WeekContainer, WeekJob, WeekTask

MAGIC = "Avro-Json"
JOB_COUNTERS = "org.apache.hadoop.mapreduce.JobCounter"
Text = str | dict[str, str] | None


class JhistCounter(msgspec.Struct, frozen=True):
    """One counter."""

    name: str = ""
    value: int = 0


class JhistGroup(msgspec.Struct, frozen=True):
    """One group of counters."""

    name: str = ""
    counters: tuple[JhistCounter, ...] = field(name="counts", default=())


class JhistCounters(msgspec.Struct, frozen=True):
    """The counters of a job."""

    groups: tuple[JhistGroup, ...] = ()


class JhistFields(msgspec.Struct, frozen=True):
    """The fields of all kinds of events that are read."""

    job: Text = field(name="jobid", default=None)
    name: Text = field(name="jobName", default=None)
    user: Text = field(name="userName", default=None)
    queue: Text = field(name="jobQueueName", default=None)
    submitted_at_ms: int = field(name="submitTime", default=-1)
    launched_at_ms: int = field(name="launchTime", default=-1)
    started_at_ms: int = field(name="startTime", default=-1)
    finished_at_ms: int = field(name="finishTime", default=-1)
    merged_at_ms: int = field(name="sortFinishTime", default=-1)
    task: Text = field(name="taskid", default=None)
    attempt: Text = field(name="attemptId", default=None)
    kind: Text = field(name="taskType", default=None)
    task_state: Text = field(name="taskStatus", default=None)
    state: Text = field(name="status", default=None)
    job_state: Text = field(name="jobStatus", default=None)
    host: Text = field(name="hostname", default=None)
    error: Text = None
    container: Text = field(name="containerId", default=None)
    totals: JhistCounters | None = field(name="totalCounters", default=None)


class JhistEvent(msgspec.Struct, frozen=True):
    """One line: the kind of event, and its fields below the name of its class."""

    kind: str = field(name="type")
    fields: dict[str, JhistFields] = field(name="event")


_EVENT = msgspec.json.Decoder(JhistEvent)


def read_jhist(lines: Iterable[str]) -> ImportedJob:
    """Return the job of a history file. Raises UnreadableJob if it is torn or lacks its begin or its end."""
    job = _Jhist()
    for number, line in enumerate(lines, 1):
        if number <= 2 or not line.strip():
            continue
        try:
            event = _EVENT.decode(line)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise UnreadableJob(f"line {number}: {error}") from None
        for fields in event.fields.values():
            job.take(event.kind, fields)
    return job.imported()


class _Jhist:
    """What the events of one file have said so far."""

    def __init__(self) -> None:
        self.row: dict[str, Any] = {}
        self.sizes: dict[str, tuple[int, int]] = {}
        self.masters: list[tuple[str, int]] = []
        self.started: dict[str, JhistFields] = {}
        self.ended: dict[str, JhistFields] = {}
        self.tasks: dict[str, JhistFields] = {}
        self.tasks_ended: dict[str, JhistFields] = {}

    def take(self, kind: str, fields: JhistFields) -> None:
        """Take the next event."""
        if kind == "JOB_SUBMITTED":
            self.row["job"] = _text(fields.job).replace("job_", "application_", 1)
            self.row |= {"name": _text(fields.name), "user": _text(fields.user)}
            self.row |= {"queue": _text(fields.queue) or "default", "submitted_at_ms": fields.submitted_at_ms}
        elif kind == "JOB_INITED":
            self.row["started_at_ms"] = fields.launched_at_ms
        elif kind == "JOB_QUEUE_CHANGED":
            self.row["queue"] = _text(fields.queue) or self.row.get("queue", "default")
        elif kind == "AM_STARTED":
            self.masters.append((_text(fields.container), fields.started_at_ms))
        elif kind in ("JOB_FINISHED", "JOB_FAILED", "JOB_KILLED", "JOB_ERROR"):
            self.row["ended_at_ms"] = fields.finished_at_ms
            finished = "SUCCEEDED" if kind == "JOB_FINISHED" else kind.removeprefix("JOB_")
            self.row["state"] = _text(fields.job_state) or finished
            self.sizes = _sizes(fields.totals)
        elif kind.endswith("_ATTEMPT_STARTED"):
            self.started[_text(fields.attempt)] = fields
        elif "_ATTEMPT_" in kind:
            self.ended[_text(fields.attempt)] = fields
        elif kind == "TASK_STARTED":
            self.tasks[_text(fields.task)] = fields
        elif kind in ("TASK_FINISHED", "TASK_FAILED"):
            self.tasks_ended[_text(fields.task)] = fields

    def imported(self) -> ImportedJob:
        """Return the job."""
        if not self.row.get("job"):
            raise UnreadableJob("has no JOB_SUBMITTED")
        if self.row.get("ended_at_ms", -1) < 0:
            raise UnreadableJob("has no end of the job: its master had not written it")
        known = {name: value for name, value in self.row.items() if value != -1}
        if "submitted_at_ms" not in known:
            raise UnreadableJob("has no submit time")
        row = WeekJob(kind=KIND, source="jhist", **known)
        containers = [*self._masters(row), *self._attempts(row.job)]
        spans_ms = {one.task: one.span_ms for one in containers if one.state == "SUCCEEDED"}
        tasks = tuple(
            WeekTask(
                job=row.job,
                task=task,
                kind=_text(begun.kind).lower(),
                started_at_ms=_instant(begun.started_at_ms),
                ended_at_ms=_instant(self.tasks_ended.get(task, begun).finished_at_ms),
                state=_text(self.tasks_ended.get(task, begun).state),
                work_ms=spans_ms.get(task),
            )
            for task, begun in self.tasks.items()
        )
        return ImportedJob(row, tasks, tuple(containers))

    def _masters(self, job: WeekJob) -> Iterable[WeekContainer]:
        ended_at_ms = job.ended_at_ms or 0
        began = [began_at_ms for _, began_at_ms in self.masters if began_at_ms > 0]
        for place, (container, began_at_ms) in enumerate(self.masters):
            if began_at_ms <= 0:
                continue
            is_last = place == len(self.masters) - 1
            until_ms = ended_at_ms if is_last else min((one for one in began if one > began_at_ms), default=0)
            yield WeekContainer(
                job=job.job,
                container=container or f"master-{place + 1}",
                kind="master",
                started_at_ms=began_at_ms,
                ended_at_ms=max(began_at_ms, until_ms),
                state=job.state if is_last else "FAILED",
            )

    def _attempts(self, application: str) -> Iterable[WeekContainer]:
        for attempt, begun in self.started.items():
            ended = self.ended.get(attempt)
            kind = _text(begun.kind)
            if ended is None or kind not in ("MAP", "REDUCE") or not begun.started_at_ms > 0:
                continue  # of a task for setup or cleanup, or of a master that ended before it was known
            memory_mib, vcores = self.sizes.get(kind, (None, None))
            state = _text(ended.task_state) or _text(ended.state)
            yield WeekContainer(
                job=application,
                container=attempt,
                task=_text(begun.task),
                kind="map" if kind == "MAP" else "reduce",
                node=_text(ended.host),
                memory_mib=memory_mib,
                vcores=vcores,
                started_at_ms=begun.started_at_ms,
                ended_at_ms=max(begun.started_at_ms, ended.finished_at_ms),
                merged_at_ms=_instant(ended.merged_at_ms) if kind == "REDUCE" else None,
                state=state,
                ended_by=_ended_by(state, _text(ended.error)),
            )


def _text(value: Text) -> str:
    if isinstance(value, Mapping):
        return str(value.get("string", ""))
    return value or ""


def _instant(at_ms: int) -> int | None:
    return at_ms if at_ms > 0 else None


def _ended_by(state: str, error: str) -> EndedBy:
    if state == "FAILED":
        return "failed"
    if state == "KILLED":
        return "preempted" if BY_SCHEDULER in error.lower() else "killed"
    return ""


def _sizes(counters: JhistCounters | None) -> dict[str, tuple[int, int]]:
    """Return (MiB, vcores) by kind of task: the time of tasks times their size, by their time."""
    spans: dict[str, int] = {}
    for group in counters.groups if counters else ():
        if group.name == JOB_COUNTERS:
            spans = {one.name: one.value for one in group.counters}
    found = {}
    for kind in ("MAP", "REDUCE"):
        spent_ms, mib_ms = spans.get(f"MILLIS_{kind}S", 0), spans.get(f"MB_MILLIS_{kind}S", 0)
        if spent_ms > 0 and mib_ms >= spent_ms:
            vcores = spans.get(f"VCORES_MILLIS_{kind}S", 0) // spent_ms
            found[kind] = (mib_ms // spent_ms, max(1, vcores))
    return found
