"""What a master tells of its job as a whole: how many tasks and attempts, for how long, by Hadoop's counters.

Law: only reading; every number comes from the master's attempts. Spans are those of the wall clock, in ms, as
everything that REST shows. Source: MapReduce's JobCounter, and what the history server says of a job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from emulator.live.messages import JobTold

if TYPE_CHECKING:
    from emulator.live.attempts import Attempt
    from emulator.live.master import LiveMaster

GROUP = "org.apache.hadoop.mapreduce.JobCounter"


def job_counters(live: LiveMaster) -> dict[str, int]:
    """Return MapReduce's own counters of the job: launches, and the time of attempts that have ended."""
    found: dict[str, int] = {}
    for kind, attempts in _sides(live):
        if not attempts:
            continue
        over = [one for one in attempts if one.over]
        found[f"TOTAL_LAUNCHED_{kind}"] = len(attempts)
        spent_ms = sum(_span_ms(live, one) for one in over)
        job = live.tasks.job
        size = job.map_size if kind == "MAPS" else job.reduce_size
        found[f"MILLIS_{kind}"] = spent_ms
        found[f"VCORES_MILLIS_{kind}"] = spent_ms * size.vcores
        found[f"MB_MILLIS_{kind}"] = spent_ms * size.memory_mib
        for state in ("FAILED", "KILLED"):
            count = sum(one.state == state for one in over)
            found |= {f"NUM_{state}_{kind}": count} if count else {}
    return found


def job_told(live: LiveMaster) -> JobTold:
    """Return what the history keeps of a job that has ended."""
    job = live.tasks.job
    told = {"mapsTotal": len(job.map_ms), "reducesTotal": len(job.reduce_ms)}
    for kind, attempts in _sides(live):
        name = kind.capitalize().removesuffix("s")
        done = [one for one in attempts if one.state == "SUCCEEDED"]
        told[f"{name.lower()}sCompleted"] = len({one.task for one in done})
        for state, word in (("SUCCEEDED", "successful"), ("FAILED", "failed"), ("KILLED", "killed")):
            told[f"{word}{name}Attempts"] = sum(one.state == state for one in attempts)
        if name == "Map":
            told["avgMapTime"] = _mean(_span_ms(live, one) for one in done)
            continue
        wall = live.pace.wall_of
        merged = [one for one in done if one.merged_at_ms]
        told["avgShuffleTime"] = _mean(wall(one.shuffled_at_ms) - wall(one.started_at_ms) for one in merged)
        told["avgMergeTime"] = _mean(wall(one.merged_at_ms) - wall(one.shuffled_at_ms) for one in merged)
        told["avgReduceTime"] = _mean(wall(one.finished_at_ms) - wall(one.merged_at_ms) for one in merged)
    return JobTold(numbers=told, counters=job_counters(live))


def _sides(live: LiveMaster) -> tuple[tuple[str, list[Attempt]], tuple[str, list[Attempt]]]:
    every = live.attempts.all.values()
    return ("MAPS", [one for one in every if one.is_map]), (
        "REDUCES",
        [one for one in every if not one.is_map],
    )


def _span_ms(live: LiveMaster, attempt: Attempt) -> int:
    wall = live.pace.wall_of
    return max(0, wall(attempt.finished_at_ms) - wall(attempt.started_at_ms))


def _mean(spans_ms: Iterable[int]) -> int:
    spans = list(spans_ms)
    return sum(spans) // len(spans) if spans else 0
