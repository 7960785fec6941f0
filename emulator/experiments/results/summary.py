"""The summary: one run in a dozen numbers, as ``compare --json`` prints them.

Law: computed from integer milliseconds alone, rounded once at the end, in this file only.
Completion time counts from submission. The percentile is the *nearest rank*: the smallest
completion time such that at least 95 % of the jobs took no longer. The median of an even
number of jobs is the mean of the middle two. A class without jobs has null for its times.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from emulator.virtual.run import Result


class ClassSummary(msgspec.Struct, frozen=True):
    """Completion times of the jobs of one class, in seconds."""

    jobs: int
    mean_s: float | None
    median_s: float | None
    p95_s: float | None


class SchemeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One scheme. ``lost_work_s``: container seconds spent on keys or maps that were executed
    again; ``overhead_s``: relaunch, re-shuffle, skip and replay.
    """

    production: ClassSummary
    research: ClassSummary
    lost_work_s: float
    overhead_s: float
    suspensions: int
    kills: int
    utilisation_ratio: float
    makespan_s: float
    events: int


def summary_of(result: Result) -> SchemeSummary:
    """Sum up one run."""
    return SchemeSummary(
        production=_of_class(result, "production"),
        research=_of_class(result, "research"),
        lost_work_s=result.lost_work_ms / 1000,
        overhead_s=result.overhead_ms / 1000,
        suspensions=result.suspensions,
        kills=result.kills,
        utilisation_ratio=round(result.utilisation_ratio, 6),
        makespan_s=result.makespan_ms / 1000,
        events=result.events,
    )


def waiting_s(result: Result) -> dict[str, dict[str, float]]:
    """Return the container seconds that each class waited, by cause (:mod:`emulator.virtual.waiting`)."""
    return {
        each: {cause: span_ms / 1000 for cause, span_ms in causes.items()}
        for each, causes in (result.waiting or {}).items()
    }


def time_lost_of(result: Result) -> dict[str, object]:
    """Return the container seconds that production waited, as yarnctl found the causes; else nothing."""
    found = result.time_lost
    if isinstance(found, msgspec.UnsetType):
        return {}
    return {"time_lost": {cause: span_ms / 1000 for cause, span_ms in found.items()}}


def levers_of(result: Result) -> dict[str, object]:
    """Return what a mix pulled, by lever, beside what was predicted; of other schemes nothing."""
    found = result.levers
    if isinstance(found, msgspec.UnsetType):
        return {}
    return {
        "levers": dict(found.pulled),
        "levers_in_time": dict(found.in_time),
        "predicted_lost_s": found.predicted_lost_ms / 1000,
        "refetch_s": found.refetch_ms / 1000,
    }


def completions_ms(result: Result, job_class: str) -> list[int]:
    """Return the completion times of one class, the shortest first."""
    return sorted(job.completion_ms for job in result.jobs if job.job_class == job_class)


def _of_class(result: Result, job_class: str) -> ClassSummary:
    spans = completions_ms(result, job_class)
    if not spans:
        return ClassSummary(0, None, None, None)
    return ClassSummary(
        len(spans),
        round(sum(spans) / len(spans) / 1000, 3),
        median_ms(spans) / 1000,
        percentile_ms(spans, 95) / 1000,
    )


def median_ms(spans: Sequence[int]) -> float:
    """Return the median of sorted spans: the middle one, or the mean of the middle two."""
    middle = len(spans) // 2
    return float(spans[middle]) if len(spans) % 2 else (spans[middle - 1] + spans[middle]) / 2


def percentile_ms(spans: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile of sorted spans, rank = ceil(percent x n / 100)."""
    return spans[-(-percent * len(spans) // 100) - 1]
