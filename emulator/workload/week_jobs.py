"""Jobs of a week: what each job asked of the cluster, from the containers that it held.

* A map is as long as its attempt that succeeded was held, its JVM's start included. A reduce works from the
  end of its merge on; what came before and after the last map is the job's shuffle.
* Attempts that were preempted, killed or failed are left out: a replay makes its own. Of a job that did not
  succeed, every attempt counts as a task.
* Executors of Spark take turns at the tasks of all stages, each of its stage's mean length.
* A job of which only sums are known holds as much memory for as long, in containers of 1 GiB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from statistics import median_low

from yarnctl.traces.job import LONGEST_MS, LONGEST_SHOWN, ONE_SLOT, Job, JobClass, SparkShape, key_groups
from yarnctl.traces.rumen import LEAST_SHUFFLE_MS
from yarnctl.traces.week.week_rows import ImportedJob, WeekContainer, WeekTask
from yarnctl.units import Resources

TASKS_MAX = 20_000
"""A job with more tasks of Spark runs as many, each longer."""
MASTER_START_MS = 7_000
"""What a job of which only sums are known spends before its first container and after its last."""
_UNUSABLE = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")


def week_jobs(
    week: Iterable[ImportedJob], class_of: Callable[[str], JobClass]
) -> tuple[tuple[Job, ...], list[str]]:
    """Return the jobs by submission and id, the first at 0, and notes. ``class_of``: of a queue."""
    placed = [one for one in week if one.job.ended_at_ms is not None]
    origin_at_ms = min((one.job.submitted_at_ms for one in placed), default=0)
    found, sums, empty, late = [], 0, 0, 0
    for one in placed:
        at_ms = one.job.submitted_at_ms - origin_at_ms
        if at_ms > LONGEST_MS:
            late += 1
            continue
        job = _job(one, class_of(one.job.queue), at_ms)
        empty += job is None
        sums += job is not None and one.job.detail == "sums"
        if job is not None:
            found.append(job)
    facts = (
        (sums, "jobs are known by their sums only"),
        (empty, "jobs held nothing and were left out"),
        (late, f"jobs came more than {LONGEST_SHOWN} after the first and were left out"),
    )
    return tuple(found), [f"{count} {what}" for count, what in facts if count]


def _job(imported: ImportedJob, job_class: JobClass, at_ms: int) -> Job | None:
    row, by_kind = imported.job, dict[str, list[WeekContainer]]()
    for one in imported.containers:
        if one.kind == "master" or row.state != "SUCCEEDED" or one.state in ("SUCCEEDED", ""):
            by_kind.setdefault(one.kind, []).append(one)
    maps, reduces = by_kind.get("map", []) + by_kind.get("container", []), by_kind.get("reduce", [])
    executors = by_kind.get("executor", [])
    master = by_kind.get("master", [])
    held_ms = (row.ended_at_ms or 0) - (row.started_at_ms or row.submitted_at_ms)
    map_ms = tuple(max(1, one.span_ms) for one in maps)
    map_size = _size(maps)
    spark = None
    if executors:
        spark = _shape(executors, imported.tasks)
        map_ms, map_size = _stage_tasks(imported.tasks), _size(executors)
    elif not maps and not reduces:
        map_ms = _of_sums(imported, held_ms)
    if not map_ms and not reduces:
        return None
    reduce_ms = tuple(max(1, one.ended_at_ms - (one.merged_at_ms or one.started_at_ms)) for one in reduces)
    return Job(
        name=row.job,
        job_class=job_class,
        submitted_at_ms=at_ms,
        map_ms=map_ms or (1,),
        reduce_ms=reduce_ms,
        reduce_keys=key_groups(reduce_ms),
        shuffle_ms=_shuffle_ms(maps, reduces),
        user=_UNUSABLE.sub("_", row.user)[:200] or "unknown",
        queue=row.queue or None,
        am_size=_size(master),
        map_size=map_size,
        reduce_size=_size(reduces),
        **({"spark": spark} if spark else {}),  # type: ignore[arg-type]
    )


def _size(containers: Sequence[WeekContainer]) -> Resources:
    """Return the size of most of the containers; one slot if no source says."""
    known = sorted((one.memory_mib, one.vcores or 1) for one in containers if one.memory_mib)
    return Resources(*max(known, key=known.count)) if known else ONE_SLOT


def _shuffle_ms(maps: Sequence[WeekContainer], reduces: Sequence[WeekContainer]) -> int:
    """Return the median time from (last map done, reduce started) to the end of its merge."""
    last_map_at_ms = max((one.ended_at_ms for one in maps), default=0)
    spans_ms = [
        one.merged_at_ms - min(max(one.started_at_ms, last_map_at_ms), one.merged_at_ms)
        for one in reduces
        if one.merged_at_ms is not None
    ]
    return max(LEAST_SHUFFLE_MS, median_low(spans_ms)) if spans_ms else LEAST_SHUFFLE_MS


def _shape(executors: Sequence[WeekContainer], tasks: Sequence[WeekTask]) -> SparkShape:
    cores = max(1, executors[0].vcores or 1)
    first_task_at_ms = min((one.started_at_ms for one in tasks if one.started_at_ms), default=0)
    first_at_ms = min(one.started_at_ms for one in executors)
    start_ms = min(60_000, max(0, first_task_at_ms - first_at_ms))
    return SparkShape(executors=_at_once(executors), cores=cores, start_ms=start_ms, min_executors=0)


def _at_once(containers: Iterable[WeekContainer]) -> int:
    """Return the largest number of containers that were held at one instant."""
    edges = [(one.started_at_ms, 1) for one in containers]
    edges += [(one.ended_at_ms, -1) for one in containers]
    held = most = 0
    for _, change in sorted(edges):
        held += change
        most = max(most, held)
    return max(1, most)


def _stage_tasks(tasks: Sequence[WeekTask]) -> tuple[int, ...]:
    """Return the lengths of the tasks of all stages."""
    ran = [one for one in tasks if one.count and one.work_ms]
    found = tuple(max(1, (one.work_ms or 0) // one.count) for one in ran for _ in range(one.count))
    if len(found) <= TASKS_MAX:
        return found
    return (sum(found) // TASKS_MAX,) * TASKS_MAX


def _of_sums(imported: ImportedJob, held_ms: int) -> tuple[int, ...]:
    """Return the lengths of containers of one slot that hold what the job held."""
    if held_ms <= 0:
        return ()
    held_mib_ms = (imported.job.held_mib_s or 0) * 1000
    # One of them is the master's, which a job has anyway.
    count = max(1, round(held_mib_ms / held_ms / ONE_SLOT.memory_mib) - 1)
    return (max(1, held_ms - MASTER_START_MS),) * min(count, TASKS_MAX)
