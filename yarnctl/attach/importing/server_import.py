"""ServerImport: jobs that have ended, with their tasks and containers, from the servers that keep them.

* The ResourceManager lists applications of all kinds with their sums; the history server lists MapReduce jobs
  that it has forgotten.
* A MapReduce job costs three requests, and one for each reduce and each map that was tried more than once. A
  Spark application costs seven.
* A job whose history is missing is imported with its sums, once it had :data:`SETTLED_MS` to arrive there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from yarnctl.attach.bill.collector import BY_SCHEDULER, DEFAULT_MIB, Sources, first_succeeded
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.frameworks.mapreduce import rest as mapreduce
from yarnctl.frameworks.mapreduce.history_server import HistoryServer, job_of
from yarnctl.frameworks.spark import rest as spark
from yarnctl.frameworks.spark.history_server import PREEMPTED, container_mib
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.resource_manager import least_in
from yarnctl.hadoop.wire.yarn import BilledApplication
from yarnctl.traces.week.week_rows import EndedBy, ImportedJob, WeekContainer, WeekJob, WeekTask

SETTLED_MS = 900_000
"""The history server knows a job at most this long after its end (move-interval-ms: three minutes)."""
MASTER_MIB, MASTER_KEY = 1536, "yarn.app.mapreduce.am.resource.mb"
_VCORES = re.compile(r"[0-9]{1,6}")


class Ended(NamedTuple):
    """One job to import: its row, and how to read its containers."""

    row: WeekJob
    master_at_ms: int
    listed: bool


class ServerImport:
    """Imports what ended from ``since_ms`` to ``now_ms``."""

    def __init__(self, sources: Sources, since_ms: int, now_ms: int) -> None:
        self._from = sources
        self._since_ms = since_ms
        self._now_ms = now_ms
        configuration = sources.manager.configuration()
        self._least = least_in(configuration)
        self.running = 0

    def jobs(self) -> list[Ended]:
        """Return the jobs that have ended, the oldest first."""
        found: dict[str, Ended] = {}
        for listed in self._from.manager.billed_applications(self._since_ms):
            if listed.ended_at_ms > 0:
                row = row_of_application(listed)
                found[listed.application] = Ended(row, max(0, listed.launched_at_ms), True)
            else:
                self.running += 1
        history = self._from.history
        for ended in () if history is None else history.jobs(self._since_ms):
            application = ended.job.replace("job_", "application_", 1)
            if application not in found:
                found[application] = Ended(row_of_history(application, ended), 0, False)
        return sorted(found.values(), key=lambda one: (one.row.ended_at_ms or 0, one.row.job))

    def read(self, ended: Ended) -> ImportedJob | str:
        """Return a job with its tasks and containers, or why it is left to a later import."""
        row = ended.row
        try:
            if row.kind == mapreduce.KIND:
                return self._mapreduce(ended)
            if row.kind == spark.KIND:
                return self._spark(ended)
        except Missing as problem:
            if not ended.listed or (row.ended_at_ms or 0) > self._now_ms - SETTLED_MS:
                return str(problem)[:300]
        except (YarnctlError, OverflowError) as problem:
            return str(problem)[:300]
        return ImportedJob(msgspec.structs.replace(row, detail="sums"))

    # --- MapReduce ----------------------------------------------------------------------------------

    def _mapreduce(self, ended: Ended) -> ImportedJob:
        history = self._from.history
        if history is None:
            raise BadInput("--history", "no history server is known", "set --history URL")
        row, job = ended.row, job_of(ended.row.job)
        whole = history.job(job)
        sizes = TaskSizes(history.configuration(job), self._least.memory_mib, self._least.vcores)
        tasks = history.tasks(job)
        containers = [self._master(ended, whole, sizes)]
        if not whole.uberized:
            containers += _attempts(history, row.job, whole, tasks, sizes)
        row = msgspec.structs.replace(
            row,
            name=whole.name or row.name,
            submitted_at_ms=row.submitted_at_ms or whole.submitted_at_ms,
            started_at_ms=whole.started_at_ms or row.started_at_ms,
        )
        return ImportedJob(row, tuple(_task(row.job, task, containers) for task in tasks), tuple(containers))

    @staticmethod
    def _master(ended: Ended, whole: mapreduce.EndedJob, sizes: TaskSizes) -> WeekContainer:
        began_at_ms = ended.master_at_ms or whole.started_at_ms or whole.submitted_at_ms
        return WeekContainer(
            job=ended.row.job,
            container="master",
            kind="master",
            memory_mib=sizes.mib(MASTER_KEY, MASTER_MIB),
            vcores=sizes.vcores("yarn.app.mapreduce.am.resource.cpu-vcores"),
            started_at_ms=began_at_ms,
            ended_at_ms=max(began_at_ms, ended.row.ended_at_ms or 0),
            state=whole.state,
        )

    # --- Spark --------------------------------------------------------------------------------------

    def _spark(self, ended: Ended) -> ImportedJob:
        server = self._from.spark
        if server is None:
            raise Missing("no Spark history server is known; set --spark-history URL")
        row = ended.row
        settings = server.settings(row.job)
        sizes = TaskSizes(settings, self._least.memory_mib, self._least.vcores)
        memory_mib = sizes.rounded_mib(container_mib(settings))
        containers = []
        for one in server.executors(row.job):
            began_at_ms, ended_at_ms = spark.instant_ms(one.added), spark.instant_ms(one.removed)
            if one.executor == "driver" or began_at_ms < 0:
                continue
            containers.append(
                WeekContainer(
                    job=row.job,
                    container=one.executor,
                    kind="executor",
                    node=one.host.rpartition(":")[0],
                    memory_mib=memory_mib,
                    vcores=one.cores or sizes.vcores("spark.executor.cores"),
                    started_at_ms=began_at_ms,
                    ended_at_ms=max(began_at_ms, ended_at_ms if ended_at_ms >= 0 else row.ended_at_ms or 0),
                    ended_by="preempted" if PREEMPTED in one.remove_reason else "",
                )
            )
        tasks = (_stage(row.job, stage) for stage in server.stages(row.job))
        return ImportedJob(row, tuple(tasks), tuple(containers))


class TaskSizes:
    """The containers that a job's settings request, as the CapacityScheduler gives them."""

    def __init__(self, settings: Mapping[str, str], least_mib: int, least_vcores: int) -> None:
        self._settings = settings
        self._least_mib = least_mib
        self._least_vcores = least_vcores

    def rounded_mib(self, memory_mib: int) -> int:
        """Return a size rounded up to the scheduler's step."""
        return -(-memory_mib // self._least_mib) * self._least_mib

    def mib(self, key: str, default_mib: int = DEFAULT_MIB) -> int:
        """Return the memory that a key requests."""
        text = self._settings.get(key, "").strip()
        return self.rounded_mib(int(text) if text.isdecimal() and 0 < int(text) < 1 << 31 else default_mib)

    def vcores(self, key: str) -> int:
        """Return the vcores that a key requests."""
        text = self._settings.get(key, "").strip()
        return max(self._least_vcores, int(text) if _VCORES.fullmatch(text) else 1)


def _attempts(
    history: HistoryServer,
    application: str,
    whole: mapreduce.EndedJob,
    tasks: tuple[mapreduce.Task, ...],
    sizes: TaskSizes,
) -> Iterator[WeekContainer]:
    """Yield the containers of all attempts; a map that succeeded at once is its own only attempt."""
    left = whole.killed_maps + whole.failed_maps
    again = sorted(tasks, key=lambda task: (task.kind == "MAP", first_succeeded(task), task.task))
    for task in again:
        if task.kind == "MAP" and first_succeeded(task) and left <= 0:
            attempts: tuple[mapreduce.TaskAttempt, ...] = (_only(task),)
        else:
            attempts = history.attempts(whole.job, task.task)
            left -= sum(one.state != "SUCCEEDED" for one in attempts) if task.kind == "MAP" else 0
        for attempt in attempts:
            if attempt.started_at_ms > 0:
                yield container_of(application, task, attempt, sizes)


def _only(task: mapreduce.Task) -> mapreduce.TaskAttempt:
    return mapreduce.TaskAttempt(
        attempt=task.successful,
        state=task.state,
        kind=task.kind,
        started_at_ms=task.started_at_ms,
        finished_at_ms=task.finished_at_ms,
    )


def container_of(
    application: str, task: mapreduce.Task, attempt: mapreduce.TaskAttempt, sizes: TaskSizes
) -> WeekContainer:
    """Return the container of an attempt at a task."""
    kind = "reduce" if task.kind == "REDUCE" else "map"
    return WeekContainer(
        job=application,
        container=attempt.attempt,
        task=task.task,
        kind="reduce" if kind == "reduce" else "map",
        node=attempt.node_http.rpartition(":")[0],
        memory_mib=sizes.mib(f"mapreduce.{kind}.memory.mb"),
        vcores=sizes.vcores(f"mapreduce.{kind}.cpu.vcores"),
        started_at_ms=attempt.started_at_ms,
        ended_at_ms=max(attempt.started_at_ms, attempt.finished_at_ms),
        merged_at_ms=attempt.merged_at_ms if attempt.merged_at_ms > 0 else None,
        state=attempt.state,
        ended_by=_ended_by(attempt),
    )


def _ended_by(attempt: mapreduce.TaskAttempt) -> EndedBy:
    if attempt.state == "FAILED":
        return "failed"
    if attempt.state != "KILLED":
        return ""
    return "preempted" if BY_SCHEDULER in attempt.diagnostics.lower() else "killed"


def _task(application: str, task: mapreduce.Task, containers: list[WeekContainer]) -> WeekTask:
    own = next((one for one in containers if one.container == task.successful), None)
    return WeekTask(
        job=application,
        task=task.task,
        kind=task.kind.lower(),
        started_at_ms=task.started_at_ms or None,
        ended_at_ms=task.finished_at_ms if task.finished_at_ms > 0 else None,
        state=task.state,
        work_ms=None if own is None else own.span_ms,
    )


def _stage(application: str, stage: spark.Stage) -> WeekTask:
    began_at_ms, ended_at_ms = spark.instant_ms(stage.submitted), spark.instant_ms(stage.completed)
    return WeekTask(
        job=application,
        task=f"stage {stage.stage}.{stage.attempt}",
        kind="stage",
        count=stage.tasks,
        started_at_ms=began_at_ms if began_at_ms >= 0 else None,
        ended_at_ms=ended_at_ms if ended_at_ms >= 0 else None,
        state=stage.status,
        work_ms=stage.run_ms,
    )


def row_of_application(application: BilledApplication) -> WeekJob:
    """Return the row of an application that has ended."""
    return WeekJob(
        job=application.application,
        kind=application.kind,
        queue=application.queue.removeprefix("root."),
        user=application.user,
        name=application.name,
        submitted_at_ms=max(0, application.submitted_at_ms),
        started_at_ms=application.launched_at_ms if application.launched_at_ms > 0 else None,
        ended_at_ms=application.ended_at_ms,
        state=application.final_status or application.state,
        held_mib_s=_known(application.mib_seconds),
        held_vcore_s=_known(application.vcore_seconds),
        preempted_containers=_known(application.preempted_containers + max(0, application.preempted_masters)),
        preempted_mib_s=_known(application.preempted_mib_seconds),
        source="resource-manager",
    )


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def row_of_history(application: str, ended: mapreduce.EndedJob) -> WeekJob:
    """Return the row of a job as the history server lists it."""
    return WeekJob(
        job=application,
        kind=mapreduce.KIND,
        queue=ended.queue.removeprefix("root."),
        user=ended.user,
        name=ended.name,
        submitted_at_ms=max(0, ended.submitted_at_ms),
        started_at_ms=ended.started_at_ms if ended.started_at_ms > 0 else None,
        ended_at_ms=ended.finished_at_ms,
        state=ended.state,
        source="history-server",
    )
