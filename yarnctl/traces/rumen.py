"""Reader for Rumen traces: concatenated JSON objects, one job each, with real task times.

Law: times are those of the attempts that succeeded; what did not succeed did not happen, and
is counted in the notes. Format: Apache Hadoop's Rumen (``LoggedJob``, ``LoggedTask``,
``LoggedTaskAttempt``); instants in ms since 1970, -1 = unknown.

What is kept: of a failed or killed job, the tasks that succeeded; a job with no successful
task is skipped. A span that is unknown, negative or above 30 days takes the job's median,
else the default below (that of the middle job of the two Yahoo! traces of 2009, rounded). A
job whose maps left no success but whose reduces did keeps one map of the default length.
Every container is one slot: the traces have no sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median_low
from typing import Annotated, Any

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.job import DAY_MS, LONGEST_MS, LONGEST_SHOWN, Job, JobClass, key_groups
from yarnctl.traces.trace_file import CountedRows, is_name, json_objects, read_text, unique_names

UNKNOWN_MAP_MS = 5_000
UNKNOWN_REDUCE_MS = 12_000
UNKNOWN_SHUFFLE_MS = 16_000
LEAST_SHUFFLE_MS = 500
LONGEST_TASK_MS = 30 * DAY_MS

_REMEDY = "expected Rumen job objects, one after the other"

_Instant = Annotated[int, msgspec.Meta(ge=-1, le=10**13)]
UNKNOWN = -1


class LoggedAttempt(msgspec.Struct, frozen=True):
    """One attempt; an instant that is not known is -1."""

    attempt: str | None = msgspec.field(name="attemptID", default=None)
    result: str | None = None
    start_at_ms: _Instant = msgspec.field(name="startTime", default=UNKNOWN)
    finish_at_ms: _Instant = msgspec.field(name="finishTime", default=UNKNOWN)
    sorted_at_ms: _Instant = msgspec.field(name="sortFinished", default=UNKNOWN)


class LoggedTask(msgspec.Struct, frozen=True):
    """One task."""

    task: str | None = msgspec.field(name="taskID", default=None)
    attempts: tuple[LoggedAttempt, ...] | None = ()


class LoggedJob(msgspec.Struct, frozen=True):
    """One job. Rumen writes one without an id and without tasks for a history that it could not read."""

    job_id: str | None = msgspec.field(name="jobID")
    submitted_at_ms: _Instant = msgspec.field(name="submitTime", default=UNKNOWN)
    launched_at_ms: _Instant = msgspec.field(name="launchTime", default=UNKNOWN)
    finished_at_ms: _Instant = msgspec.field(name="finishTime", default=UNKNOWN)
    outcome: str | None = None
    name: str | None = msgspec.field(name="jobName", default=None)
    queue: str | None = None
    user: str | None = None
    map_tasks: tuple[LoggedTask, ...] | None = msgspec.field(name="mapTasks", default=())
    reduce_tasks: tuple[LoggedTask, ...] | None = msgspec.field(name="reduceTasks", default=())


def read_rumen(
    path: Path, job_class: JobClass, where: str | None = None, counted: CountedRows = iter
) -> tuple[tuple[Job, ...], list[str]]:
    """Read a Rumen trace, plain or gzip: the jobs by (submission, name), the first at 0, and notes.

    Raises BadInput at ``where:line`` for torn JSON or a wrong field, and without a successful task.
    """
    return parse_rumen(read_text(path, where or str(path)), job_class, where or str(path), counted)


def parse_rumen(
    text: str, job_class: JobClass, where: str, counted: CountedRows = iter
) -> tuple[tuple[Job, ...], list[str]]:
    """Turn the text of a Rumen trace into jobs and notes; see ``read_rumen``."""
    kept: list[tuple[int, str, LoggedJob, list[LoggedAttempt], list[LoggedAttempt]]] = []
    places: list[str] = []
    skipped = without = unread = 0
    for at, logged in counted(logged_jobs(text, where)):
        if logged.job_id is None:
            unread += 1
            continue
        maps, reduces = _successes(logged.map_tasks), _successes(logged.reduce_tasks)
        without += len(logged.map_tasks or ()) - len(maps) + len(logged.reduce_tasks or ()) - len(reduces)
        if maps or reduces:
            places.append(at)
            kept.append((_submission(logged, at), logged.job_id, logged, maps, reduces))
        else:
            skipped += 1
    if not kept:
        raise BadInput(where, "no job in it has a successful task", _REMEDY)
    _require_near([entry[0] for entry in kept], places)
    names, repeated = unique_names([job_id for _, job_id, *_ in kept])
    origin = min(entry[0] for entry in kept)
    jobs = [
        _job(name, job_class, submitted - origin, logged.user, maps, reduces)
        for name, (submitted, _, logged, maps, reduces) in zip(names, kept, strict=True)
    ]
    facts = (
        (unread, "jobs without an id (their history could not be read) were skipped"),
        (skipped, "jobs without a successful task were skipped"),
        (without, "tasks without a successful attempt were left out"),
        (repeated, "jobs repeat an id and were given names of their own"),
    )
    notes = [f"{count} {what}" for count, what in facts if count]
    return tuple(sorted(jobs, key=lambda job: (job.submitted_at_ms, job.name))), notes


def _require_near(submitted_at_ms: list[int], places: list[str]) -> None:
    """Raise BadInput for the job whose submission is farthest from the middle one, if it is too far."""
    first, last = min(submitted_at_ms), max(submitted_at_ms)
    if last - first <= LONGEST_MS:
        return
    middle = sorted(submitted_at_ms)[len(submitted_at_ms) // 2]
    odd = first if middle - first >= last - middle else last
    days = abs(odd - middle) // DAY_MS
    apart = f"{days} days {'before' if odd < middle else 'after'}"
    raise BadInput(
        places[submitted_at_ms.index(odd)],
        f"field submitTime: {odd} is {apart} the middle job's {middle}, not within {LONGEST_SHOWN}",
        "submitTime is in ms since 1970: give the job's time, or remove the job",
    )


def logged_jobs(text: str, where: str) -> Iterator[tuple[str, LoggedJob]]:
    """Yield each job with its place. Raises BadInput at ``where:line``."""
    for place, raw in json_objects(text, where, _REMEDY):
        yield place, _checked(raw, place)


def _checked(raw: Any, at: str) -> LoggedJob:
    try:
        logged = msgspec.convert(raw, LoggedJob)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        problem, _, place = str(error).partition(" - at ")
        raise BadInput(at, f"field {place.strip('`$.') or 'job'}: {problem}", _REMEDY) from None
    if logged.job_id is not None and not is_name(logged.job_id):
        raise BadInput(at, "field jobID: empty, too long, or with blanks or control characters", _REMEDY)
    return logged


def _submission(logged: LoggedJob, at: str) -> int:
    for instant in (logged.submitted_at_ms, logged.launched_at_ms):
        if instant != UNKNOWN:
            return instant
    raise BadInput(at, "field submitTime: unknown, and so is launchTime", "remove the job or give its time")


def _successes(tasks: Sequence[LoggedTask] | None) -> list[LoggedAttempt]:
    found = (next((a for a in task.attempts or () if a.result == "SUCCESS"), None) for task in tasks or ())
    return [attempt for attempt in found if attempt is not None]


def _job(
    name: str,
    job_class: JobClass,
    at_ms: int,
    user: str | None,
    maps: list[LoggedAttempt],
    reduces: list[LoggedAttempt],
) -> Job:
    reduce_ms = _filled([_span(a.sorted_at_ms, a.finish_at_ms) for a in reduces], UNKNOWN_REDUCE_MS)
    return Job(
        name=name,
        job_class=job_class,
        submitted_at_ms=at_ms,
        map_ms=_filled([_span(a.start_at_ms, a.finish_at_ms) for a in maps], UNKNOWN_MAP_MS)
        or (UNKNOWN_MAP_MS,),
        reduce_ms=reduce_ms,
        reduce_keys=key_groups(reduce_ms),
        shuffle_ms=_shuffle_ms(maps, reduces),
        user=user if user and is_name(user) else "hadoop",
    )


def _shuffle_ms(maps: list[LoggedAttempt], reduces: list[LoggedAttempt]) -> int:
    """Return the median time from (last map done, reduce started) to the end of its sort."""
    last_map = max((a.finish_at_ms for a in maps), default=UNKNOWN)
    spans = [_span(max(a.start_at_ms, min(last_map, a.sorted_at_ms)), a.sorted_at_ms) for a in reduces]
    if not reduces:
        return LEAST_SHUFFLE_MS
    median_ms = _median(spans)
    return max(LEAST_SHUFFLE_MS, UNKNOWN_SHUFFLE_MS if median_ms is None else median_ms)


def _span(start_at_ms: int, end_at_ms: int) -> int:
    if start_at_ms == UNKNOWN or end_at_ms == UNKNOWN:
        return UNKNOWN
    span_ms = end_at_ms - start_at_ms
    return max(1, span_ms) if 0 <= span_ms <= LONGEST_TASK_MS else UNKNOWN


def _filled(spans_ms: list[int], default_ms: int) -> tuple[int, ...]:
    """Replace unknown spans by the median of the known ones, else by the default."""
    median_ms = _median(spans_ms)
    instead_ms = default_ms if median_ms is None else median_ms
    return tuple(instead_ms if span == UNKNOWN else span for span in spans_ms)


def _median(spans_ms: list[int]) -> int | None:
    known = [span for span in spans_ms if span != UNKNOWN]
    return median_low(known) if known else None
