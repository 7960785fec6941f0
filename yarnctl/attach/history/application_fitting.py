"""Compute feedback for admission, and an estimate for the next run, from ended applications of any framework.

The ResourceManager reports only how long an application ran and how much memory it used over that time: no
tasks, no phases. The number of containers is that memory over time, unless the caller knows it.

The time with another number of containers is unknown. With fewer executors the time grows in proportion,
which is its upper bound if work is divided among them (Graham 1969). With more executors it stays the same.
The container time to *reserve* is the maximum of c x time(c), as in ``fitting``: it suffices for any number
of containers.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import msgspec

from yarnctl.attach.history.fitting import SUBMITTING_MS, folded
from yarnctl.deciding.admission.records import Estimate, Finished
from yarnctl.deciding.reasons.verdicts import EndedOtherwise, LessonReason, NoUsage
from yarnctl.hadoop.wire.views import deadline_of
from yarnctl.hadoop.wire.yarn import MASTER, EndedApplication


class ApplicationRun(msgspec.Struct, frozen=True):
    """One application that succeeded, in ms and container-ms; ``containers`` include its master's."""

    application: str
    name: str
    user: str
    containers: int
    elapsed_ms: int
    computed_ms: int
    submitted_at_ms: int
    ended_at_ms: int
    deadline_at_ms: int | None


def application_run(
    application: EndedApplication, container_mib: int, containers: int = 0
) -> ApplicationRun | LessonReason:
    """Return an application's numbers, or why not; ``container_mib``: the gate's; ``containers``: or 0."""
    if application.final_status != "SUCCEEDED":
        return EndedOtherwise(application.final_status)
    began_ms = application.launched_at_ms or application.submitted_at_ms
    elapsed_ms = application.ended_at_ms - began_ms
    if min(began_ms, elapsed_ms, application.mib_seconds, container_mib) <= 0:
        return NoUsage(application.application)
    computed_ms = -(-application.mib_seconds * 1000 // container_mib)
    return ApplicationRun(
        application=application.application,
        name=application.name,
        user=application.user,
        containers=containers or max(1, -(-computed_ms // elapsed_ms)),
        elapsed_ms=elapsed_ms,
        computed_ms=computed_ms,
        submitted_at_ms=application.submitted_at_ms or began_ms,
        ended_at_ms=application.ended_at_ms,
        deadline_at_ms=deadline_of(application.tags),
    )


def finished_run(run: ApplicationRun, capacity: int) -> Finished:
    """Return an application as the input of TRACK_JOB (PYTHIA and Justice, Alg. 1)."""
    took_ms = max(1, run.ended_at_ms - run.submitted_at_ms)
    spoken_ms = 0 if run.deadline_at_ms is None else run.deadline_at_ms - run.submitted_at_ms
    reachable = max(1, min(run.containers, capacity))
    return Finished(
        work_ms=run.containers * run.elapsed_ms,
        tasks=run.containers,
        deadline_ms=spoken_ms if spoken_ms > 0 else took_ms,
        containers=reachable,
        capacity=max(1, capacity),
        ratio=1.0,
        met=run.deadline_at_ms is None or run.ended_at_ms <= run.deadline_at_ms,
        computed_ms=run.computed_ms,
        ended_at_ms=run.ended_at_ms,
        elapsed_ms=took_ms,
    )


def estimate_of_runs(name: str, runs: Sequence[ApplicationRun], most: int, capacity: int) -> Estimate | None:
    """Return mean and sample standard deviation (0: one run) of the container time to reserve; None: no run.

    ``most``: containers that the next run can use (0: as the last ones); ``capacity``: the cluster's.
    """
    if not runs:
        return None
    held = [reserve_ms(run, most or run.containers, capacity) for run in runs]
    word = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    return Estimate(
        mean_ms=round(statistics.fmean(held)),
        stdev_ms=round(statistics.stdev(held)) if len(held) > 1 else 0,
        source=f"applications:{word} of {folded(name)}",
    )


def time_ms(run: ApplicationRun, containers: int) -> int:
    """Return the longest time of an application on a number of containers, from admission to its end."""
    had, gets = max(1, run.containers - MASTER), max(1, containers - MASTER)
    longer_ms = run.elapsed_ms if gets >= had else -(-run.elapsed_ms * had // gets)
    return SUBMITTING_MS + longer_ms


def reserve_ms(run: ApplicationRun, most: int, capacity: int) -> int:
    """Return the container-ms that suffice for 2 to ``most`` containers; the cluster has ``capacity``.

    c x time(c) is convex up to the run's number and grows above it: the maximum is at one of three ends.
    """
    most = max(2, most if capacity <= 1 else min(most, capacity))
    return max(count * time_ms(run, count) for count in (2, min(max(2, run.containers), most), most))
