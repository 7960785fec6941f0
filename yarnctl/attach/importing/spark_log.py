"""Reader of Spark's event logs, as written without compression: one application each.

Source: Spark's ``JsonProtocol``; a JSON line for each event. A log without an end is of an application that
runs or crashed: it ends with its last event.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import field

from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.frameworks.spark.history_server import PREEMPTED, container_mib
from yarnctl.frameworks.spark.rest import KIND
from yarnctl.traces.week.week_rows import ImportedJob, WeekContainer, WeekJob, WeekTask


class LoggedExecutor(msgspec.Struct, frozen=True):
    """``Executor Info``."""

    host: str = field(name="Host", default="")
    cores: int = field(name="Total Cores", default=1)


class LoggedStage(msgspec.Struct, frozen=True):
    """``Stage Info``."""

    stage: int = field(name="Stage ID", default=-1)
    attempt: int = field(name="Stage Attempt ID", default=0)
    tasks: int = field(name="Number of Tasks", default=0)
    submitted_at_ms: int | None = field(name="Submission Time", default=None)
    completed_at_ms: int | None = field(name="Completion Time", default=None)
    failure: str = field(name="Failure Reason", default="")


class LoggedSparkTask(msgspec.Struct, frozen=True):
    """``Task Info``."""

    launched_at_ms: int = field(name="Launch Time", default=-1)
    finished_at_ms: int = field(name="Finish Time", default=-1)
    has_failed: bool = field(name="Failed", default=False)
    was_killed: bool = field(name="Killed", default=False)


class SparkEvent(msgspec.Struct, frozen=True):
    """One line: the fields of all kinds of events that are read."""

    kind: str = field(name="Event")
    at_ms: int = field(name="Timestamp", default=-1)
    application: str | None = field(name="App ID", default=None)
    name: str = field(name="App Name", default="")
    user: str = field(name="User", default="")
    executor: str = field(name="Executor ID", default="")
    executor_info: LoggedExecutor | None = field(name="Executor Info", default=None)
    removed_reason: str = field(name="Removed Reason", default="")
    settings: dict[str, str] | None = field(name="Spark Properties", default=None)
    stage: int = field(name="Stage ID", default=-1)
    stage_attempt: int = field(name="Stage Attempt ID", default=0)
    stage_info: LoggedStage | None = field(name="Stage Info", default=None)
    task_info: LoggedSparkTask | None = field(name="Task Info", default=None)


_EVENT = msgspec.json.Decoder(SparkEvent)


def read_spark_log(lines: Iterable[str]) -> ImportedJob:
    """Return the application of an event log. Raises UnreadableJob for one without a begin.

    A last line that is torn is as if it had not been written.
    """
    log, torn = _SparkLog(), 0
    for number, line in enumerate(lines, 1):
        if torn:
            raise UnreadableJob(f"line {torn} is torn")
        if not line.strip():
            continue
        try:
            log.take(_EVENT.decode(line))
        except (msgspec.MsgspecError, RecursionError):
            torn = number
    return log.imported()


class _SparkLog:
    """What the events of one log have said so far."""

    def __init__(self) -> None:
        self.start: SparkEvent | None = None
        self.last_at_ms = 0
        self.has_ended = False
        self.settings: dict[str, str] = {}
        self.added: dict[str, SparkEvent] = {}
        self.removed: dict[str, SparkEvent] = {}
        self.stages: dict[tuple[int, int], LoggedStage] = {}
        self.work_ms: dict[tuple[int, int], int] = {}

    def take(self, event: SparkEvent) -> None:
        """Take the next event."""
        self.last_at_ms = max(self.last_at_ms, event.at_ms)
        match event.kind.rpartition(".")[2].removeprefix("SparkListener"):
            case "ApplicationStart":
                self.start = event
            case "ApplicationEnd":
                self.has_ended = True
            case "EnvironmentUpdate":
                self.settings = event.settings or {}
            case "ExecutorAdded":
                self.added[event.executor] = event
            case "ExecutorRemoved":
                self.removed[event.executor] = event
            case "StageCompleted" if event.stage_info is not None:
                self.stages[event.stage_info.stage, event.stage_info.attempt] = event.stage_info
            case "TaskEnd" if event.task_info is not None:
                self._task(event, event.task_info)

    def _task(self, event: SparkEvent, task: LoggedSparkTask) -> None:
        self.last_at_ms = max(self.last_at_ms, task.finished_at_ms)
        if not task.has_failed and not task.was_killed and 0 < task.launched_at_ms <= task.finished_at_ms:
            key = (event.stage, event.stage_attempt)
            self.work_ms[key] = self.work_ms.get(key, 0) + task.finished_at_ms - task.launched_at_ms

    def imported(self) -> ImportedJob:
        """Return the application."""
        start = self.start
        if start is None or not start.application or start.at_ms < 0:
            raise UnreadableJob("has no SparkListenerApplicationStart with an App ID")
        row = WeekJob(
            job=start.application,
            kind=KIND,
            queue=self.settings.get("spark.yarn.queue", "default").removeprefix("root."),
            user=start.user,
            name=start.name,
            submitted_at_ms=start.at_ms,
            started_at_ms=start.at_ms,
            ended_at_ms=max(start.at_ms, self.last_at_ms),
            state="SUCCEEDED" if self.has_ended else "",
            source="spark-event-log",
        )
        return ImportedJob(row, tuple(self._stages(row.job)), tuple(self._executors(row)))

    def _stages(self, application: str) -> Iterable[WeekTask]:
        for key, stage in sorted(self.stages.items()):
            yield WeekTask(
                job=application,
                task=f"stage {stage.stage}.{stage.attempt}",
                kind="stage",
                count=max(0, stage.tasks),
                started_at_ms=stage.submitted_at_ms,
                ended_at_ms=stage.completed_at_ms,
                state="FAILED" if stage.failure else "COMPLETE",
                work_ms=self.work_ms.get(key, 0),
            )

    def _executors(self, job: WeekJob) -> Iterable[WeekContainer]:
        memory_mib = container_mib(self.settings)
        for name, added in self.added.items():
            if name == "driver" or added.at_ms < 0:
                continue
            removed = self.removed.get(name)
            ended_at_ms = job.ended_at_ms or 0 if removed is None else removed.at_ms
            info = added.executor_info or LoggedExecutor()
            yield WeekContainer(
                job=job.job,
                container=name,
                kind="executor",
                node=info.host,
                memory_mib=memory_mib,
                vcores=max(1, info.cores),
                started_at_ms=added.at_ms,
                ended_at_ms=max(added.at_ms, ended_at_ms),
                ended_by="preempted" if removed is not None and PREEMPTED in removed.removed_reason else "",
            )
