"""Compute feedback for admission, and an estimate for the next run, from finished jobs of the same name.

*Work* is the time of all containers of a job: those of its attempts (JobCounter MILLIS_MAPS and
  MILLIS_REDUCES, failed and killed ones included) and the master's own from the job's start to its end. So
  ``containers`` and ``tasks`` count the master too.

The papers divide work by time to get the containers. But tasks are indivisible, phases follow each other, and
a master is alone at first. So on c containers a job takes longer than work / c, and would miss a deadline
computed that way. The container time to *reserve* is c times the job's time. It is known for a job that ran
under limits. For the next run it is estimated for the worst c, so that it suffices for any number that
admission chooses.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.deciding.admission.records import Estimate, Finished, Phase, Phases
from yarnctl.deciding.foresight import first_wave
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.verdicts import (
    EndedOtherwise,
    LessonReason,
    NoStartOrEnd,
    NoTaskTimes,
    RanInMaster,
)
from yarnctl.frameworks.mapreduce.rest import LIMITS, TAGS, EndedJob
from yarnctl.hadoop.wire.views import deadline_of
from yarnctl.hadoop.wire.yarn import MASTER
from yarnctl.units import Resources

JOB_COUNTERS = "org.apache.hadoop.mapreduce.JobCounter"
SUBMITTING_MS = 5_000
"""Time that no history shows and each run costs: from the verdict to the start of the master. The submitting
client is a JVM of its own, and YARN grants the master's container on a heartbeat (2 to 12 s together on a
machine with shared CPU).
"""
TURN_MS = 2_000  # The extra time of each wave of tasks: a node's heartbeat and the master's, 1 s each
TRIED_MAX = 1_000  # Up to it every number of containers is tried; above, waves round little
NAME_MAX = 50  # Lists of the history server cut names after this many bytes, by default

_DIGITS = re.compile(r"\d+")


class FinishedJob(msgspec.Struct, frozen=True):
    """The numbers of one finished job. Spans and times in ms; ``work_ms`` in container-ms.

    ``containers`` is the most it could use at once, given by its limits if it is ``limited``; ``map_ms`` and
    ``reduce_ms`` are the time of all attempts of a kind together.
    """

    application: str
    name: str
    user: str
    work_ms: int
    maps: int
    map_ms: int
    reduces: int
    reduce_ms: int
    tasks: int
    containers: int
    limited: bool
    elapsed_ms: int
    submitted_at_ms: int
    finished_at_ms: int
    deadline_at_ms: int | None


def folded(name: str) -> str:
    """Return the common name of a recurring job's runs: each number as ``#`` (``daily-#-#-#``)."""
    return _DIGITS.sub("#", " ".join(name.split()))


def same_name(listed: str, name: str) -> bool:
    """Return whether a listed name, which may be cut, may be a run of the job ``name``."""
    told, wanted = folded(listed), folded(name)
    return told == wanted or (len(listed.encode()) >= NAME_MAX and wanted.startswith(told))


def most_at_once(maps: int, reduces: int) -> int:
    """Return the most containers that a job can use at once: the tasks of one phase, and the master.

    Maps and reduces overlap only if slow start starts reduces before the last map. The settings of an
    admission turn that off, so that a limit on each phase is a limit on the job.
    """
    return max(maps, reduces) + MASTER


def limited(settings: Mapping[str, str], maps: int, reduces: int) -> int:
    """Return the containers that a job could use at once under its running limits, its master included."""
    map_limit, reduce_limit = (_number(settings.get(name, "")) for name in LIMITS)
    return max(min(maps, map_limit or maps), min(reduces, reduce_limit or reduces)) + MASTER


def finished_job(
    job: EndedJob, counters: Mapping[str, Mapping[str, int]], settings: Mapping[str, str]
) -> FinishedJob | LessonReason:
    """Return a job's numbers, or the reason why they cannot be used."""
    if job.state != "SUCCEEDED":
        return EndedOtherwise(job.state)
    if job.uberized:
        return RanInMaster()
    spans = counters.get(JOB_COUNTERS, {})
    millis = [spans.get(name) for name in ("MILLIS_MAPS", "MILLIS_REDUCES")]
    known = [span for span in millis if span is not None]
    if not known or min(known) < 0 or job.maps_total + job.reduces_total < 1:
        return NoTaskTimes(job.job)
    began_ms = job.started_at_ms or job.submitted_at_ms
    if not 0 < began_ms <= job.finished_at_ms:
        return NoStartOrEnd(job.job)
    return FinishedJob(
        application=job.job.replace("job_", "application_", 1),
        name=job.name,
        user=job.user,
        work_ms=sum(known) + job.finished_at_ms - began_ms,
        maps=job.maps_total,
        map_ms=millis[0] or 0,
        reduces=job.reduces_total,
        reduce_ms=millis[1] or 0,
        tasks=most_at_once(job.maps_total, job.reduces_total),
        containers=limited(settings, job.maps_total, job.reduces_total),
        limited=any(_number(settings.get(name, "")) for name in LIMITS),
        elapsed_ms=job.finished_at_ms - began_ms,
        submitted_at_ms=job.submitted_at_ms or began_ms,
        finished_at_ms=job.finished_at_ms,
        deadline_at_ms=deadline_of(settings.get(TAGS, "")),
    )


def first_asks(job: EndedJob, counters: Mapping[str, Mapping[str, int]]) -> tuple[ContainerRequest, ...]:
    """Return a job's first requests (``deciding/foresight``); () if they are not known.

    The number of tasks that ran at once (its limits) is not used: the next run may have other limits.
    """
    spans = counters.get(JOB_COUNTERS, {})
    map_size, reduce_size = _task_size(spans, "MAPS"), _task_size(spans, "REDUCES")
    if job.uberized or job.maps_total < 1 or map_size is None:
        return ()
    return first_wave(
        job.maps_total, map_size, job.reduces_total if reduce_size else 0, reduce_size or map_size
    )


def _task_size(spans: Mapping[str, int], kind: str) -> Resources | None:
    """Return the size of each task of a kind: MB_MILLIS_MAPS is the maps' time times their memory."""
    spent_ms = spans.get(f"MILLIS_{kind}", 0)
    products = [spans.get(f"{unit}_MILLIS_{kind}", 0) for unit in ("MB", "VCORES")]
    if spent_ms <= 0 or min(products) < spent_ms:
        return None
    return Resources(*(product // spent_ms for product in products))


def finished(job: FinishedJob, capacity: int) -> Finished:
    """Return a finished job as the input of TRACK_JOB (PYTHIA and Justice, Alg. 1).

    Its deadline is that of its tag, as a span from its submission to YARN. A job without one counts as if
    it had had its own running time (the papers' Fixed1x, the tightest that they use): it then needed what
    it had. Its work is its reservation if it ran under limits, else its containers' time. ``ratio`` is the
    part of what it could reach that it used; a caller that knows the planned value replaces it.
    """
    took_ms = max(1, job.finished_at_ms - job.submitted_at_ms)
    deadline_at_ms = took_ms + job.submitted_at_ms if job.deadline_at_ms is None else job.deadline_at_ms
    spoken_ms = deadline_at_ms - job.submitted_at_ms
    reachable = max(1, min(job.tasks, capacity))
    containers = min(job.containers, reachable)
    return Finished(
        work_ms=containers * job.elapsed_ms if job.limited else job.work_ms,
        tasks=job.tasks,
        deadline_ms=spoken_ms if spoken_ms > 0 else took_ms,
        containers=containers,
        capacity=max(1, capacity),
        ratio=containers / reachable,
        met=job.finished_at_ms <= deadline_at_ms,
        computed_ms=job.work_ms,
        ended_at_ms=job.finished_at_ms,
    )


def estimate(name: str, runs: Sequence[FinishedJob], capacity: int) -> Estimate | None:
    """Return mean and sample standard deviation (0: one run) of the container time to reserve; None: no run.

    ``capacity``: the cluster's containers, of which the next run can get no more.
    """
    if not runs:
        return None
    spent_ms = min(alone_ms(run, capacity) for run in runs)  # waiting for others only adds to it
    held = [usage_ms(run, SUBMITTING_MS + spent_ms, capacity) for run in runs]
    word = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    return Estimate(
        mean_ms=round(statistics.fmean(held)),
        stdev_ms=round(statistics.stdev(held)) if len(held) > 1 else 0,
        source=f"history:{word} of {folded(name)}",
        phases=phases_of(runs, spent_ms),
    )


def phases_of(runs: Sequence[FinishedJob], spent_ms: int) -> Phases:
    """Return the next run's phases: the most tasks of any run, and the time of each (run and turn)."""
    return Phases(
        tuple(
            phase
            for phase in (
                _phase("map", [(run.maps, run.map_ms) for run in runs]),
                _phase("reduce", [(run.reduces, run.reduce_ms) for run in runs]),
            )
            if phase is not None
        ),
        master_ms=spent_ms,
        submit_ms=SUBMITTING_MS,
    )


def _phase(kind: str, sides: Sequence[tuple[int, int]]) -> Phase | None:
    means_ms = [total_ms / count + TURN_MS for count, total_ms in sides if count]
    if not means_ms:
        return None
    return Phase(
        kind,
        max(count for count, _ in sides),
        round(statistics.fmean(means_ms)),
        round(statistics.stdev(means_ms)) if len(means_ms) > 1 else 0,
    )


def phases_ms(job: FinishedJob, containers: int) -> int:
    """Return the time of the job's tasks of average length, in waves on all containers but the master's."""
    at_once = max(1, containers - MASTER)
    sides = ((job.maps, job.map_ms), (job.reduces, job.reduce_ms))
    return sum(-(-count // at_once) * (-(-total_ms // count) + TURN_MS) for count, total_ms in sides if count)


def alone_ms(job: FinishedJob, capacity: int) -> int:
    """Return the time outside the waves of the job's tasks: its master's start, its commit, all waiting."""
    return max(0, job.elapsed_ms - phases_ms(job, _at_most(job.containers, capacity)))


def usage_ms(job: FinishedJob, spent_ms: int, capacity: int) -> int:
    """Return the container-ms that suffice for any number of containers: the maximum of c x time(c).

    c from two (a master and a task) to what the job can use or the cluster has; ``spent_ms`` is added to the
    time.
    """
    most = _at_most(job.tasks, capacity)
    tried = {*range(2, min(most, TRIED_MAX) + 1), max(2, most)}
    found: int = max(containers * (spent_ms + phases_ms(job, containers)) for containers in tried)
    return found


def _at_most(containers: int, capacity: int) -> int:
    """Return the most containers at once; a capacity of 1 (no job fits) or less (unknown) is no bound."""
    return containers if capacity <= 1 else min(containers, capacity)


def _number(text: str) -> int:
    """Return a whole number of at most 18 digits; 0 for any other value (as Hadoop's default)."""
    return int(text) if text.strip().isdecimal() and text.isascii() and len(text) <= 18 else 0
