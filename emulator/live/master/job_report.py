"""What a master reports of its job as a whole: tasks and attempts, for how long, by Hadoop's counters.

Spans are those of the wall clock, in ms: ``wall_of`` turns an instant of the kernel into one of that clock.
Source: MapReduce's JobCounter, and the history server's record of a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emulator.live.master.attempts import Attempt, Attempts
from emulator.live.wire.messages import JobReport
from yarnctl.traces.job import Job

WallOf = Callable[[int], int]

GROUP = "org.apache.hadoop.mapreduce.JobCounter"


def job_counters(job: Job, every: Iterable[Attempt], wall_of: WallOf) -> dict[str, int]:
    """Return MapReduce's own counters of the job: launches, and the time of attempts that have ended."""
    found: dict[str, int] = {}
    for kind, attempts in _sides(every):
        if not attempts:
            continue
        over = [one for one in attempts if one.over]
        found[f"TOTAL_LAUNCHED_{kind}"] = len(attempts)
        spent_ms = sum(_span_ms(one, wall_of) for one in over)
        size = job.map_size if kind == "MAPS" else job.reduce_size
        found[f"MILLIS_{kind}"] = spent_ms
        found[f"VCORES_MILLIS_{kind}"] = spent_ms * size.vcores
        found[f"MB_MILLIS_{kind}"] = spent_ms * size.memory_mib
        for state in ("FAILED", "KILLED"):
            count = sum(one.state == state for one in over)
            found |= {f"NUM_{state}_{kind}": count} if count else {}
    return found


def job_report(job: Job, every: Iterable[Attempt], wall_of: WallOf) -> JobReport:
    """Return what the history keeps of a job that has ended."""
    every = list(every)
    told = {"mapsTotal": len(job.map_ms), "reducesTotal": len(job.reduce_ms)}
    for kind, attempts in _sides(every):
        name = kind.capitalize().removesuffix("s")
        done = [one for one in attempts if one.state == "SUCCEEDED"]
        told[f"{name.lower()}sCompleted"] = len({one.task for one in done})
        for state, word in (("SUCCEEDED", "successful"), ("FAILED", "failed"), ("KILLED", "killed")):
            told[f"{word}{name}Attempts"] = sum(one.state == state for one in attempts)
        if name == "Map":
            told["avgMapTime"] = _mean(_span_ms(one, wall_of) for one in done)
            continue
        merged = [one for one in done if one.merged_at_ms]
        told["avgShuffleTime"] = _mean(
            wall_of(one.shuffled_at_ms) - wall_of(one.started_at_ms) for one in merged
        )
        told["avgMergeTime"] = _mean(
            wall_of(one.merged_at_ms) - wall_of(one.shuffled_at_ms) for one in merged
        )
        told["avgReduceTime"] = _mean(
            wall_of(one.finished_at_ms) - wall_of(one.merged_at_ms) for one in merged
        )
    rows = tuple(attempt_row(one, wall_of) for one in every)
    return JobReport(numbers=told, counters=job_counters(job, every, wall_of), attempts=rows)


def attempt_row(attempt: Attempt, wall_of: WallOf) -> dict[str, str | int]:
    """Return what both a master and the history server answer about an attempt."""

    def wall(at_ms: int) -> int:
        return wall_of(at_ms) if at_ms else 0

    row: dict[str, str | int] = {
        "startTime": wall(attempt.started_at_ms),
        "finishTime": wall(attempt.finished_at_ms),
        "id": attempt.id,
        "rack": "/default-rack",
        "state": attempt.state,
        "status": attempt.status,
        "nodeHttpAddress": attempt.node_http,
        "diagnostics": attempt.diagnostics,
        "type": "MAP" if attempt.is_map else "REDUCE",
        "assignedContainerId": attempt.container_id,
    }
    if not attempt.is_map:
        row["shuffleFinishTime"] = wall(attempt.shuffled_at_ms)
        row["mergeFinishTime"] = wall(attempt.merged_at_ms)
    return row


def progress_ratio(job: Job, attempts: Attempts) -> float:
    """Return a job's progress: what its tasks have done, maps and reduces by half each."""
    done = {True: 0.0, False: 0.0}
    for (is_map, _), tried in attempts.of_task.items():
        parts = (
            1.0 if one.state == "SUCCEEDED" else 0.0 if one.over else one.progress_ratio for one in tried
        )
        done[is_map] += max(parts, default=0.0)
    maps = done[True] / len(job.map_ms) if job.map_ms else 1.0
    if not job.reduce_ms:
        return 0.05 + 0.9 * maps
    return 0.05 + 0.45 * maps + 0.45 * done[False] / len(job.reduce_ms)


def _sides(attempts: Iterable[Attempt]) -> tuple[tuple[str, list[Attempt]], tuple[str, list[Attempt]]]:
    every = list(attempts)
    maps = [one for one in every if one.is_map]
    return ("MAPS", maps), ("REDUCES", [one for one in every if not one.is_map])


def _span_ms(attempt: Attempt, wall_of: WallOf) -> int:
    return max(0, wall_of(attempt.finished_at_ms) - wall_of(attempt.started_at_ms))


def _mean(spans_ms: Iterable[int]) -> int:
    spans = list(spans_ms)
    return sum(spans) // len(spans) if spans else 0
