"""Readers of traces as their publishers give them: Rumen, SLS, DynoYARN, SWF, SWIM, Alibaba 2017 and 2018.

Instants of a trace that begins at 0 are counted from 1970. A job's id has the name of its file before it, so
that two traces stand in one folder. Sources: Hadoop's Rumen and SLS (``SLSRunner``), LinkedIn's DynoYARN
(``AppSpec``), the Standard Workload Format of the Parallel Workloads Archive, SWIM (see
:mod:`yarnctl.traces.swim`), and Alibaba's ``schema.csv`` of 2017 and 2018.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import field

from yarnctl.attach.importing.reading import UnreadableJob
from yarnctl.frameworks.mapreduce.rest import KIND
from yarnctl.traces.job import Job
from yarnctl.traces.rumen import LoggedAttempt, LoggedJob, LoggedTask, logged_jobs
from yarnctl.traces.swim import TaskModel, jobs_from_swim, parse_swim
from yarnctl.traces.trace_file import json_objects
from yarnctl.traces.week.week_rows import ImportedJob, WeekContainer, WeekJob, WeekTask

Found = Iterator[ImportedJob | UnreadableJob]
TaskKind = Literal["map", "reduce", "container"]
DEFAULT_MIB = 1024
CONTAINERS_MAX = 1_000_000
"""Of one job. A few bytes of a file can name any number of them."""
Containers = Annotated[int, msgspec.Meta(ge=0, le=CONTAINERS_MAX)]


def read_rumen_jobs(text: str, where: str, stem: str) -> Found:
    """Yield the jobs of a Rumen trace, with all attempts."""
    for place, logged in logged_jobs(text, where):
        submitted_at_ms = max(logged.submitted_at_ms, logged.launched_at_ms)
        if logged.job_id is None:
            yield UnreadableJob(f"{place}: has no id (Rumen could not read its history)")
        elif min(submitted_at_ms, logged.finished_at_ms) < 0:
            yield UnreadableJob(f"{place}: {logged.job_id} has no submit time or no end")
        else:
            yield _rumen_job(logged, logged.job_id, submitted_at_ms)


def _rumen_job(logged: LoggedJob, job: str, submitted_at_ms: int) -> ImportedJob:
    application = job.replace("job_", "application_", 1)
    sides: tuple[tuple[TaskKind, tuple[LoggedTask, ...]], ...] = (
        ("map", logged.map_tasks or ()),
        ("reduce", logged.reduce_tasks or ()),
    )
    tasks, containers = [], []
    for kind, side in sides:
        for place, task in enumerate(side):
            name = task.task or f"{kind}-{place}"
            attempts = [
                _rumen_attempt(application, name, kind, number, attempt)
                for number, attempt in enumerate(task.attempts or ())
                if 0 < attempt.start_at_ms <= attempt.finish_at_ms
            ]
            containers += attempts
            done = next((one for one in attempts if one.state == "SUCCEEDED"), None)
            state, work_ms = ("SUCCEEDED", done.span_ms) if done else ("", None)
            tasks.append(WeekTask(job=application, task=name, kind=kind, state=state, work_ms=work_ms))
    row = WeekJob(
        job=application,
        kind=KIND,
        queue=logged.queue or "default",
        user=logged.user or "",
        name=logged.name or "",
        submitted_at_ms=submitted_at_ms,
        started_at_ms=logged.launched_at_ms if logged.launched_at_ms > 0 else None,
        ended_at_ms=logged.finished_at_ms,
        state="SUCCEEDED" if logged.outcome == "SUCCESS" else logged.outcome or "",
        source="rumen",
    )
    return ImportedJob(row, tuple(tasks), tuple(containers))


def _rumen_attempt(
    application: str, task: str, kind: TaskKind, number: int, attempt: LoggedAttempt
) -> WeekContainer:
    state = {"SUCCESS": "SUCCEEDED"}.get(attempt.result or "", attempt.result or "")
    return WeekContainer(
        job=application,
        container=attempt.attempt or f"{task}-{number}",
        task=task,
        kind=kind,
        started_at_ms=attempt.start_at_ms,
        ended_at_ms=attempt.finish_at_ms,
        merged_at_ms=attempt.sorted_at_ms if kind == "reduce" and attempt.sorted_at_ms > 0 else None,
        state=state,
        ended_by="failed" if state == "FAILED" else "killed" if state == "KILLED" else "",
    )


# --- SLS and DynoYARN ---------------------------------------------------------------------------


class SlsTask(msgspec.Struct, frozen=True):
    """One of ``job.tasks``: ``count`` containers alike."""

    host: str = field(name="container.host", default="")
    start_at_ms: int | None = field(name="container.start.ms", default=None)
    end_at_ms: int | None = field(name="container.end.ms", default=None)
    duration_ms: int | None = field(name="duration.ms", default=None)
    kind: str = field(name="container.type", default="map")
    memory_mib: int = field(name="container.memory-mb", default=DEFAULT_MIB)
    vcores: int = field(name="container.vcores", default=1)
    count: Containers = 1


class SlsJob(msgspec.Struct, frozen=True):
    """One job of SLS's own format."""

    start_at_ms: int = field(name="job.start.ms", default=0)
    end_at_ms: int | None = field(name="job.end.ms", default=None)
    queue: str = field(name="job.queue.name", default="default")
    job: str | None = field(name="job.id", default=None)
    user: str = field(name="job.user", default="default")
    kind: str = field(name="am.type", default="mapreduce")
    tasks: tuple[SlsTask, ...] = field(name="job.tasks", default=())


def read_sls(text: str, where: str, stem: str) -> Found:
    """Yield the jobs of an SLS trace; ``job.end.ms`` may be absent."""
    for number, (place, raw) in enumerate(json_objects(text, where, "expected SLS job objects"), 1):
        try:
            sls = msgspec.convert(raw, SlsJob, strict=False)
        except msgspec.ValidationError as error:
            yield UnreadableJob(f"{place}: {error}")
            continue
        if (count := sum(task.count for task in sls.tasks)) > CONTAINERS_MAX:
            yield _too_many(place, count)
            continue
        name = f"{stem}/{sls.job or number}"
        containers: list[WeekContainer] = []
        for place_in_job, task in enumerate(sls.tasks):
            began_at_ms = sls.start_at_ms if task.start_at_ms is None else task.start_at_ms
            ended_at_ms = began_at_ms + (task.duration_ms or 0) if task.end_at_ms is None else task.end_at_ms
            kind: TaskKind = (
                "reduce" if task.kind == "reduce" else "map" if task.kind == "map" else "container"
            )
            containers += _alike(
                Alike(name, kind, f"{place_in_job}", task.count, began_at_ms, ended_at_ms),
                memory_mib=task.memory_mib,
                vcores=task.vcores,
                node=task.host,
            )
        last_at_ms = max((one.ended_at_ms for one in containers), default=sls.start_at_ms)
        yield ImportedJob(
            WeekJob(
                job=name,
                kind=sls.kind.upper(),
                queue=sls.queue,
                user=sls.user,
                name=name,
                submitted_at_ms=sls.start_at_ms,
                ended_at_ms=last_at_ms if sls.end_at_ms is None else sls.end_at_ms,
                state="SUCCEEDED",
                source="sls",
            ),
            (),
            tuple(containers),
        )


class DynoSize(msgspec.Struct, frozen=True):
    """``resource``."""

    memory_mib: int = field(name="memoryMB", default=DEFAULT_MIB)
    vcores: int = 1


class DynoRequest(msgspec.Struct, frozen=True):
    """One of ``resourceRequestSpecs``: a list of run times, or a count of an average."""

    resource: DynoSize = DynoSize()
    priority: int = 0
    runtimes_ms: tuple[int, ...] = field(name="runtimes", default=())
    average_ms: int = field(name="averageRuntime", default=0)
    count: Containers = field(name="numInstances", default=1)
    delay_ms: int = field(name="delay", default=0)


class DynoApplication(msgspec.Struct, frozen=True):
    """One application of a DynoYARN workload."""

    application: str = field(name="appId")
    submitted_at_ms: int = field(name="submitTime", default=0)
    kind: str = field(name="appType", default="")
    queue: str = "default"
    user: str = ""
    master: DynoSize = field(name="amResourceRequest", default=DynoSize())
    requests: tuple[DynoRequest, ...] = field(name="resourceRequestSpecs", default=())


MAP_PRIORITY, REDUCE_PRIORITY = 20, 10
"""By which MapReduce's master requests (``RMContainerAllocator``); DynoYARN keeps them."""


def read_dynoyarn(text: str, where: str, stem: str) -> Found:
    """Yield the applications of a DynoYARN workload; containers begin as soon as their request does."""
    for place, raw in json_objects(text, where, "expected DynoYARN application objects"):
        try:
            dyno = msgspec.convert(raw, DynoApplication, strict=False)
        except msgspec.ValidationError as error:
            yield UnreadableJob(f"{place}: {error}")
            continue
        if (count := sum(len(one.runtimes_ms) or one.count for one in dyno.requests)) > CONTAINERS_MAX:
            yield _too_many(place, count)
            continue
        containers: list[WeekContainer] = []
        for number, request in enumerate(dyno.requests):
            kind: TaskKind = "container"
            if dyno.kind == KIND:
                kind = "reduce" if request.priority == REDUCE_PRIORITY else "map"
            began_at_ms = dyno.submitted_at_ms + request.delay_ms
            for run, span_ms in enumerate(request.runtimes_ms or (request.average_ms,) * request.count):
                containers += _alike(
                    Alike(dyno.application, kind, f"{number}-{run}", 1, began_at_ms, began_at_ms + span_ms),
                    memory_mib=request.resource.memory_mib,
                    vcores=request.resource.vcores,
                )
        ended_at_ms = max((one.ended_at_ms for one in containers), default=dyno.submitted_at_ms)
        master = WeekContainer(
            job=dyno.application,
            container="master",
            kind="master",
            memory_mib=dyno.master.memory_mib,
            vcores=dyno.master.vcores,
            started_at_ms=dyno.submitted_at_ms,
            ended_at_ms=ended_at_ms,
        )
        yield ImportedJob(
            WeekJob(
                job=dyno.application,
                kind=dyno.kind,
                queue=dyno.queue,
                user=dyno.user,
                name=dyno.application,
                submitted_at_ms=dyno.submitted_at_ms,
                ended_at_ms=ended_at_ms,
                state="SUCCEEDED",
                source="dynoyarn",
            ),
            (),
            (master, *containers),
        )


# --- tables -------------------------------------------------------------------------------------

SWF_FIELDS = 18
_SECONDS = re.compile(r"[0-9]{1,12}")
SWF_STATES = {0: "FAILED", 1: "SUCCEEDED", 5: "KILLED"}


def read_swf(text: str, where: str, stem: str) -> Found:
    """Yield the jobs of a log in the Standard Workload Format: a processor is a container."""
    origin_at_ms = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith(";"):
            key, _, value = line.strip("; \t").partition(":")
            if key.strip() == "UnixStartTime" and _SECONDS.fullmatch(value.strip()):
                origin_at_ms = int(value) * 1000
            continue
        cells = line.split()
        if not cells:
            continue
        try:
            numbers = [int(float(cell)) for cell in cells]
        except (ValueError, OverflowError):
            numbers = []
        if len(numbers) != SWF_FIELDS:
            yield UnreadableJob(f"{where}:{number}: not {SWF_FIELDS} numbers")
            continue
        job, submitted_s, wait_s, run_s, used, _, used_kib, requested, _, requested_kib, status, user = (
            numbers[:12]
        )
        count = used if used > 0 else requested
        if run_s < 0 or count <= 0:
            yield UnreadableJob(f"{where}:{number}: job {job} did not run")
            continue
        if count > CONTAINERS_MAX:
            yield _too_many(f"{where}:{number}", count)
            continue
        name, submitted_at_ms = f"{stem}/{job}", origin_at_ms + submitted_s * 1000
        began_at_ms = submitted_at_ms + max(0, wait_s) * 1000
        memory_kib = used_kib if used_kib > 0 else requested_kib
        yield ImportedJob(
            WeekJob(
                job=name,
                kind="SWF",
                queue="default" if numbers[14] < 0 else f"queue{numbers[14]}",
                user="" if user < 0 else f"user{user}",
                name="" if numbers[13] < 0 else f"program{numbers[13]}",
                submitted_at_ms=submitted_at_ms,
                started_at_ms=began_at_ms,
                ended_at_ms=began_at_ms + run_s * 1000,
                state=SWF_STATES.get(status, ""),
                source="swf",
            ),
            (),
            tuple(
                _alike(
                    Alike(name, "container", "0", count, began_at_ms, began_at_ms + run_s * 1000),
                    memory_mib=-(-memory_kib // 1024) if memory_kib > 0 else None,
                    vcores=1,
                )
            ),
        )


def read_swim_jobs(text: str, where: str, stem: str) -> Found:
    """Yield the jobs of a SWIM trace, of 6, 8 or 9 columns; its bytes become tasks by TaskModel."""
    jobs, _ = jobs_from_swim(parse_swim(text, where), "research", TaskModel())
    for job in jobs:
        yield modelled(job, f"{stem}/{job.name}", "swim")


def modelled(job: Job, name: str, source: str) -> ImportedJob:
    """Return a job of a model: all maps begin at once, all reduces after the last map."""
    began_at_ms = job.submitted_at_ms
    maps_at_ms = began_at_ms + max(job.map_ms, default=0)
    merged_at_ms = maps_at_ms + job.shuffle_ms
    containers = [
        one
        for place, span_ms in enumerate(job.map_ms)
        for one in _alike(Alike(name, "map", f"{place}", 1, began_at_ms, began_at_ms + span_ms))
    ]
    for place, span_ms in enumerate(job.reduce_ms):
        for one in _alike(Alike(name, "reduce", f"{place}", 1, maps_at_ms, merged_at_ms + span_ms)):
            containers.append(msgspec.structs.replace(one, merged_at_ms=merged_at_ms))
    row = WeekJob(
        job=name,
        kind=KIND,
        queue=job.queue or "default",
        user=job.user,
        name=name,
        submitted_at_ms=began_at_ms,
        ended_at_ms=max(one.ended_at_ms for one in containers),
        state="SUCCEEDED",
        source=source,
    )
    return ImportedJob(row, (), tuple(containers))


class AlibabaTask(NamedTuple):
    """One row of ``batch_task.csv``; seconds, and vcores in hundredths."""

    task: str
    job: str
    instances: str
    state: str
    began_s: str
    ended_s: str
    vcores: str


def alibaba_2017(cells: list[str]) -> AlibabaTask:
    """Return a row of 2017: create, modify, job, task, instances, status, cpu, memory."""
    began, ended, job, task, count, state, cpu, _ = cells
    return AlibabaTask(task, job, count, state, began, ended, cpu)


def alibaba_2018(cells: list[str]) -> AlibabaTask:
    """Return a row of 2018: task, instances, job, type, status, start, end, cpu, memory."""
    task, count, job, _, state, began, ended, cpu, _ = cells
    return AlibabaTask(task, job, count, state, began, ended, cpu)


ALIBABA = {8: alibaba_2017, 9: alibaba_2018}


def read_alibaba(text: str, where: str, stem: str) -> Found:
    """Yield the jobs of ``batch_task.csv``: an instance is a container as long as its task.

    Memory is given as a part of the largest machine and not stored.
    """
    jobs: dict[str, list[WeekContainer]] = {}
    states: dict[str, set[str]] = {}
    for number, cells in enumerate(csv.reader(text.split("\n")), 1):
        if not cells:
            continue
        try:
            task = ALIBABA[len(cells)](cells)
            count, began_s, ended_s = int(task.instances), int(task.began_s), int(task.ended_s)
            vcores = max(1, -(-int(float(task.vcores or 0)) // 100))
        except (KeyError, ValueError, OverflowError):
            yield UnreadableJob(f"{where}:{number}: not 8 columns (2017) or 9 columns (2018) with numbers")
            continue
        if not 0 < began_s <= ended_s or count <= 0:
            yield UnreadableJob(f"{where}:{number}: task {task.task} of job {task.job} did not run")
            continue
        name = f"{stem}/{task.job}"
        if (held := len(jobs.get(name, ())) + count) > CONTAINERS_MAX:
            yield _too_many(f"{where}:{number}", held)
            continue
        states.setdefault(name, set()).add(task.state)
        jobs.setdefault(name, []).extend(
            _alike(Alike(name, "container", task.task, count, began_s * 1000, ended_s * 1000), vcores=vcores)
        )
    for name, containers in jobs.items():
        row = WeekJob(
            job=name,
            kind="BATCH",
            queue="default",
            user="",
            name=name,
            submitted_at_ms=min(one.started_at_ms for one in containers),
            ended_at_ms=max(one.ended_at_ms for one in containers),
            state="SUCCEEDED" if states[name] == {"Terminated"} else "FAILED",
            source="alibaba",
        )
        yield ImportedJob(row, (), tuple(containers))


def _too_many(place: str, containers: int) -> UnreadableJob:
    return UnreadableJob(f"{place}: a job with {containers} containers, more than {CONTAINERS_MAX}")


class Alike(NamedTuple):
    """Containers of one task that begin and end together."""

    job: str
    kind: TaskKind
    task: str
    containers: int
    began_at_ms: int
    ended_at_ms: int


def _alike(
    alike: Alike, *, memory_mib: int | None = DEFAULT_MIB, vcores: int = 1, node: str = ""
) -> Iterable[WeekContainer]:
    for number in range(alike.containers):
        yield WeekContainer(
            job=alike.job,
            container=f"{alike.kind}-{alike.task}-{number}",
            task=alike.task,
            kind=alike.kind,
            node=node,
            memory_mib=memory_mib,
            vcores=vcores,
            started_at_ms=alike.began_at_ms,
            ended_at_ms=max(alike.began_at_ms, alike.ended_at_ms),
            state="SUCCEEDED",
        )
