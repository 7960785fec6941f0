"""A week under several schemes, by queue: completion times, lost work, production's wait, jobs to enrol.

A prediction is what was replayed times (measured / replayed) of the queue's middle job as it was, and its
interval has that of nine of ten jobs. It does not know what users would do differently under another scheme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from emulator.experiments.results.summary import percentile_ms
from emulator.experiments.week.as_it_was import AsItWas, ReplayedWeekJob
from emulator.virtual.run import Result

PERMILLE = 1000
AS_IT_WAS = "as-it-was"


class ContainerTime(msgspec.Struct, frozen=True):
    """A sum of container time, and between which it lies, ms."""

    predicted_ms: int
    least_ms: int
    most_ms: int


class QueueOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One queue under one scheme: the mean completion time of its jobs, and between which it lies, ms.

    ``lost``: work that its jobs did again. ``waited``: for containers; None: not of production, or unknown.
    """

    scheme: str
    queue: str
    jobs: int
    measured_ms: int
    mean_ms: int
    least_ms: int
    most_ms: int
    lost: ContainerTime
    waited: ContainerTime | None


class PredictedJob(msgspec.Struct, frozen=True):
    """The completion time of one job of the week under a scheme, ms from its submission."""

    job: str
    scheme: str
    predicted_ms: int


class Enrolment(msgspec.Struct, frozen=True, order=True):
    """Jobs of one name that a scheme suspended: they must be enrolled for its gain."""

    queue: str
    user: str
    name: str
    runs: int
    suspensions: int


class Deviation(NamedTuple):
    """Measured times over replayed ones, in thousandths: of the middle job, and of nine of ten between."""

    least: int
    middle: int
    most: int

    def applied(self, replayed_ms: int) -> ContainerTime:
        """Return what the cluster would have measured."""
        return ContainerTime(
            *(replayed_ms * permille // PERMILLE for permille in (self.middle, self.least, self.most))
        )


def deviation(jobs: Sequence[ReplayedWeekJob]) -> Deviation:
    """Return the deviation of a queue's jobs."""
    ratios = sorted(round(one.measured_ms * PERMILLE / max(1, one.replayed_ms)) for one in jobs)
    return Deviation(*(percentile_ms(ratios, percent) for percent in (5, 50, 95)))


def outcomes(as_it_was: AsItWas, results: Mapping[str, Result]) -> list[QueueOutcome]:
    """Return the outcome of each queue under each scheme, by queue."""
    found = []
    for queue, jobs in as_it_was.by_queue().items():
        names, off = {one.job for one in jobs}, deviation(jobs)
        measured_ms = sum(one.measured_ms for one in jobs) // len(jobs)
        for scheme, result in results.items():
            mine = [one for one in result.jobs if one.name in names]
            mean = off.applied(sum(one.completion_ms for one in mine) // len(mine))
            waiting = result.waiting if mine[0].job_class == "production" else None
            found.append(
                QueueOutcome(
                    scheme=scheme,
                    queue=queue,
                    jobs=len(jobs),
                    measured_ms=measured_ms,
                    mean_ms=mean.predicted_ms,
                    least_ms=mean.least_ms,
                    most_ms=mean.most_ms,
                    lost=off.applied(sum(one.lost_ms for one in mine)),
                    waited=off.applied(sum(waiting["production"].values())) if waiting else None,
                )
            )
    return found


def predictions(as_it_was: AsItWas, results: Mapping[str, Result]) -> list[PredictedJob]:
    """Return the prediction of each job under each scheme, corrected as that of its queue."""
    off = {one.job: deviation(jobs) for jobs in as_it_was.by_queue().values() for one in jobs}
    return [
        PredictedJob(one.name, scheme, one.completion_ms * off[one.name].middle // PERMILLE)
        for scheme, result in results.items()
        for one in result.jobs
    ]


def enrolments(as_it_was: AsItWas, result: Result) -> list[Enrolment]:
    """Return the jobs that a scheme suspended, by queue, user and name."""
    rows = {one.job: one for one in as_it_was.jobs}
    sums: dict[tuple[str, str, str], list[int]] = {}
    for one in result.jobs:
        if one.suspensions:
            row = rows[one.name]
            sums.setdefault((row.queue, row.user, row.name), []).append(one.suspensions)
    return sorted(Enrolment(*key, len(counts), sum(counts)) for key, counts in sums.items())
