"""Collect what a bill needs: from the ResourceManager, the history server and Spark's history.

* Of jobs that the ResourceManager lists, only those that lost containers are looked up in a history: one
  request for the tasks, one for the sizes, and one for each task that was begun more than once.
* Jobs that it lists no more (it forgets them, and all without a state store when it restarts) come from the
  history server's list: one request for each tells whether attempts of it were killed. Applications of Spark
  come from the list of its own history server, two requests for each, or from its event logs.
* At most ``requests_per_s`` requests are sent. What was read of a job that has ended is kept in a file, if
  one is given, so that an interrupted bill goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from yarnctl.attach.bill.idle import IdleSession, idle_session
from yarnctl.attach.bill.oversized import MemoryUse, uses
from yarnctl.attach.bill.preempted import BilledJob, PreemptedContainer
from yarnctl.attach.connection.connection import Attachment
from yarnctl.errors import BadInput, YarnctlError
from yarnctl.frameworks.mapreduce import rest as mapreduce
from yarnctl.frameworks.mapreduce.history_server import HistoryServer, job_of
from yarnctl.frameworks.spark import rest as spark
from yarnctl.frameworks.spark.history_server import PREEMPTED, SparkHistory, container_mib
from yarnctl.hadoop.resource_manager import ResourceManager, least_in
from yarnctl.hadoop.wire.yarn import BilledApplication
from yarnctl.traces.week.week_rows import ImportedJob, WeekJob

BY_SCHEDULER = "preempted by scheduler"  # ContainerExitStatus.PREEMPTED, in an attempt's diagnostics
_SPANS = Attachment()
RETURN_MS = _SPANS.suspend_ms + _SPANS.launch_ms + _SPANS.start_ms + _SPANS.skip_ms
"""A reduce's time to leave and to return, as the daemon predicts it before it has measured one."""
DEFAULT_MIB = 1024


class Pace:
    """A limit of requests per second. ``pause`` sleeps seconds, ``clock`` returns seconds."""

    def __init__(
        self, pause: Callable[[float], None], clock: Callable[[], float], requests_per_s: float
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._interval_s = 1 / requests_per_s
        self._next_s = 0.0
        self.requests = 0

    def wait(self) -> None:
        """Wait until the next request may be sent, and count it."""
        now_s = self._clock()
        if now_s < self._next_s:
            self._pause(self._next_s - now_s)
        self._next_s = max(now_s, self._next_s) + self._interval_s
        self.requests += 1


class Sources(NamedTuple):
    """The servers that are asked; None: not asked. ``logs``: Spark's event logs, instead of its server."""

    manager: ResourceManager
    history: HistoryServer | None
    spark: SparkHistory | None
    logs: Mapping[str, ImportedJob] | None = None


class KeptJobs:
    """The file of jobs that were read whole: a JSON line each, appended as soon as a job is read."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.jobs: dict[str, BilledJob] = {}
        if path is None or not path.exists():
            return
        whole, _, rest = path.read_bytes().rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
            try:
                job = msgspec.json.decode(line, type=BilledJob)
            except msgspec.MsgspecError as error:
                remedy = "give another file, or delete it"
                raise BadInput(f"{path}, line {number}", str(error), remedy) from None
            self.jobs[job.application] = job
        if rest:  # the last line of a run that was interrupted
            with path.open("r+b") as file:
                file.truncate(len(whole) + (1 if whole else 0))

    def keep(self, job: BilledJob) -> None:
        """Keep a job that has ended and was read without a problem."""
        if self._path is None:
            return
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(job) + b"\n")


class Collector:
    """Collects the jobs of the span from ``since_ms`` to ``now_ms``.

    ``least_mib``: the step of container sizes, once jobs were listed. ``problems``: lists that were not read.
    """

    def __init__(self, sources: Sources, kept: KeptJobs, since_ms: int, now_ms: int) -> None:
        self._from = sources
        self._kept = kept
        self._since_ms = since_ms
        self._now_ms = now_ms
        self.least_mib = 1
        self.problems: list[str] = []

    def jobs(self) -> list[tuple[BilledJob, bool]]:
        """Return what is known without a history, and whether a history is asked about the job."""
        listed = self._from.manager.billed_applications(self._since_ms)
        self.least_mib = least_in(self._from.manager.configuration()).memory_mib
        found: list[tuple[BilledJob, bool]] = []
        known = set()
        for row in listed:
            known.add(row.application)
            job = _listed(row, self._now_ms)
            is_told = job.count > job.masters and row.kind in (mapreduce.KIND, spark.KIND)
            found.append((job, is_told))
        history = self._from.history
        for ended in () if history is None else history.jobs(self._since_ms):
            application = ended.job.replace("job_", "application_", 1)
            if application not in known:
                found.append((_of_history(ended), True))
        return found + [(run, True) for run in self._spark_runs() if run.application not in known]

    def explained(self, job: BilledJob) -> BilledJob:
        """Return a job with the containers that its history shows, or with the problem."""
        if (before := self._kept.jobs.get(job.application)) is not None:
            return before
        try:
            containers = tuple(self._executors(job) if job.kind == spark.KIND else self._attempts(job))
            if containers and not job.queue and self._from.spark is not None:
                job = _with_queue(job, self._from.spark.settings(job.application))
        except (YarnctlError, OverflowError) as problem:
            return msgspec.structs.replace(job, problem=str(problem)[:300])
        explained = msgspec.structs.replace(job, containers=containers)
        if job.has_ended:
            self._kept.keep(explained)
        return explained

    def memory_jobs(self) -> tuple[mapreduce.EndedJob, ...]:
        """Return the jobs of the history that succeeded, the oldest first."""
        if self._from.history is None:
            raise BadInput("--history", "no history server is known", "set --history URL")
        self.least_mib = least_in(self._from.manager.configuration()).memory_mib
        rows = self._from.history.jobs(self._since_ms)
        return tuple(row for row in reversed(rows) if row.state == "SUCCEEDED")

    def memory_used(self, ended_job: mapreduce.EndedJob) -> list[MemoryUse]:
        """Return what maps and reduces of a job requested and used. Raises as the client does."""
        counters, sizes = self._asked().counters(ended_job.job), self._sizes(ended_job.job)
        whose = (ended_job.queue.removeprefix("root."), ended_job.user, ended_job.name)
        return uses(whose, counters, {kind.lower(): size_mib for kind, size_mib in sizes.items()})

    def idle(self, job: BilledJob) -> IdleSession | None:
        """Return what a Spark session held without work; None: nothing. Raises as the client does."""
        server = self._from.spark
        if server is None:
            raise BadInput("--spark-history", "no Spark history server is known", "set --spark-history URL")
        settings = server.settings(job.application)
        executors = server.executors(job.application)
        job = job if job.queue else _with_queue(job, settings)
        return idle_session(job, executors, self._rounded(container_mib(settings)), settings, self._now_ms)

    # --- MapReduce ----------------------------------------------------------------------------------

    def _attempts(self, billed_job: BilledJob) -> Iterator[PreemptedContainer]:
        job = job_of(billed_job.application)
        history = self._from.history
        if history is None:
            raise BadInput("--history", "no history server is known", "set --history URL")
        left, is_listed = billed_job.listed_containers, billed_job.listed_containers >= 0
        if not is_listed:
            whole = history.job(job)
            left = whole.killed_maps + whole.killed_reduces  # by whomever
        if left == 0:
            return
        tasks = self._asked().tasks(job)
        sizes = self._sizes(job)
        maps_ended_at_ms = max((task.finished_at_ms for task in tasks if task.kind == "MAP"), default=0)
        # Tasks that were begun again come first: of others at most a speculative attempt was killed.
        for task in sorted(tasks, key=lambda one: (first_succeeded(one), one.task)):
            if left <= 0:
                return
            rows = self._asked().attempts(job, task.task)
            found = tuple(_preempted(rows, sizes, maps_ended_at_ms))
            left -= len(found) if is_listed else sum(row.state == "KILLED" for row in rows)
            yield from found

    def _asked(self) -> HistoryServer:
        history = self._from.history
        assert history is not None
        return history

    def _sizes(self, job: str) -> dict[str, int]:
        settings = self._asked().configuration(job)
        sizes = {}
        for kind in ("map", "reduce"):
            text = settings.get(f"mapreduce.{kind}.memory.mb", "")
            asked_mib = int(text) if text.isdecimal() and int(text) else DEFAULT_MIB
            sizes[kind.upper()] = self._rounded(asked_mib)
        return sizes

    def _rounded(self, memory_mib: int) -> int:
        """Return a container's size as the CapacityScheduler gives it: a multiple of its minimum."""
        return -(-memory_mib // self.least_mib) * self.least_mib

    # --- Spark --------------------------------------------------------------------------------------

    def _spark_runs(self) -> list[BilledJob]:
        if (logs := self._from.logs) is not None:
            ended = (one.job for one in logs.values() if one.job.state)
            return [_of_log(row) for row in ended if (row.ended_at_ms or 0) >= self._since_ms]
        try:
            runs = () if self._from.spark is None else self._from.spark.applications(self._since_ms)
        except YarnctlError as problem:  # what the ResourceManager lists is billed all the same
            self.problems.append(f"applications that it has forgotten: {problem}"[:300])
            return []
        return [_of_spark_history(run) for run in runs]

    def _logged(self, application: str, logs: Mapping[str, ImportedJob]) -> Iterator[PreemptedContainer]:
        if application not in logs:
            raise BadInput(application, "has no event log in the folder", "look at its spark.eventLog.dir")
        for one in logs[application].containers:
            if one.is_preempted:
                memory_mib = self._rounded(one.memory_mib or 0)
                yield _executor(one.container, memory_mib, one.started_at_ms, one.ended_at_ms)

    def _executors(self, job: BilledJob) -> Iterator[PreemptedContainer]:
        if (logs := self._from.logs) is not None:
            yield from self._logged(job.application, logs)
            return
        server = self._from.spark
        if server is None:
            raise BadInput("--spark-history", "no Spark history server is known", "set --spark-history URL")
        gone = [one for one in server.executors(job.application) if PREEMPTED in one.remove_reason]
        if not gone:
            return
        memory_mib = self._rounded(container_mib(server.settings(job.application)))
        for executor in gone:
            began_at_ms, ended_at_ms = spark.instant_ms(executor.added), spark.instant_ms(executor.removed)
            if began_at_ms < 0 or ended_at_ms < began_at_ms:
                raise BadInput(
                    job.application, f"executor {executor.executor[:40]} has no times", "look there"
                )
            yield _executor(executor.executor, memory_mib, began_at_ms, ended_at_ms)


def _executor(executor: str, memory_mib: int, began_at_ms: int, ended_at_ms: int) -> PreemptedContainer:
    return PreemptedContainer(
        task=executor,
        attempt=executor,
        memory_mib=memory_mib,
        began_at_ms=began_at_ms,
        ended_at_ms=ended_at_ms,
        kept_most_ms=max(0, ended_at_ms - began_at_ms - _SPANS.spark_leave_ms),
    )


def _preempted(
    attempts: tuple[mapreduce.TaskAttempt, ...], sizes_mib: dict[str, int], maps_ended_at_ms: int
) -> Iterator[PreemptedContainer]:
    """Yield the attempts at one task that YARN preempted, the oldest first."""
    fetched_ms = -1
    for attempt in attempts:
        if attempt.state == "SUCCEEDED" and attempt.merged_at_ms > 0:
            fetched_ms = max(0, attempt.merged_at_ms - max(attempt.started_at_ms, maps_ended_at_ms))
    before = 0
    for attempt in attempts:
        if attempt.state != "KILLED" or BY_SCHEDULER not in attempt.diagnostics.lower():
            continue
        is_reduce = attempt.kind == "REDUCE"
        reduced_ms = attempt.finished_at_ms - max(attempt.started_at_ms, maps_ended_at_ms)
        most_ms = max(0, reduced_ms) if is_reduce else 0
        least_ms = max(0, most_ms - fetched_ms - RETURN_MS) if fetched_ms >= 0 else 0
        yield PreemptedContainer(
            task=attempt.attempt.rpartition("_")[0].replace("attempt_", "task_", 1),
            attempt=attempt.attempt,
            memory_mib=sizes_mib["REDUCE" if is_reduce else "MAP"],
            began_at_ms=attempt.started_at_ms,
            ended_at_ms=attempt.finished_at_ms,
            kept_least_ms=least_ms,
            kept_most_ms=most_ms,
            is_repeat=before > 0,
        )
        before += 1


def first_succeeded(task: mapreduce.Task) -> bool:
    """Return whether a task's first attempt was the one that succeeded.

    The attempts of a job's second master are numbered from 1000, of its third from 2000.
    """
    number = task.successful.rpartition("_")[2]
    return number.isdecimal() and int(number) % 1000 == 0


def _listed(application: BilledApplication, now_ms: int) -> BilledJob:
    lost_mib_s = application.preempted_mib_seconds
    return BilledJob(
        application=application.application,
        kind=application.kind,
        queue=application.queue.removeprefix("root."),
        user=application.user,
        name=application.name,
        day_at_ms=application.ended_at_ms or now_ms,
        has_ended=application.ended_at_ms > 0,
        tags=application.tags,
        held_mib_ms=application.mib_seconds * 1000 if application.mib_seconds >= 0 else -1,
        listed_mib_ms=lost_mib_s * 1000 if lost_mib_s >= 0 else -1,
        listed_containers=application.preempted_containers,
        masters=max(0, application.preempted_masters),
        problem="" if lost_mib_s >= 0 else "not visible to this user (needs VIEW_APP)",
    )


def _of_spark_history(application: spark.HistoryApplication) -> BilledJob:
    """Return an application without its queue, which only its settings have."""
    newest = application.attempts[0]
    return BilledJob(
        application=application.application,
        kind=spark.KIND,
        queue="",
        user=newest.user,
        name=application.name,
        day_at_ms=newest.ended_at_ms,
        has_ended=True,
    )


def _of_log(job: WeekJob) -> BilledJob:
    return BilledJob(
        application=job.job,
        kind=spark.KIND,
        queue=job.queue,
        user=job.user,
        name=job.name,
        day_at_ms=job.ended_at_ms or 0,
        has_ended=True,
    )


def _with_queue(job: BilledJob, settings: dict[str, str]) -> BilledJob:
    """Return an application that the ResourceManager has forgotten with the queue of its settings."""
    queue = settings.get("spark.yarn.queue", "default").removeprefix("root.")
    return msgspec.structs.replace(job, queue=queue)


def _of_history(ended_job: mapreduce.EndedJob) -> BilledJob:
    return BilledJob(
        application=ended_job.job.replace("job_", "application_", 1),
        kind=mapreduce.KIND,
        queue=ended_job.queue.removeprefix("root."),
        user=ended_job.user,
        name=ended_job.name,
        day_at_ms=ended_job.finished_at_ms,
        has_ended=True,
    )
