"""As it was: a week replayed without yarnctl, beside what the cluster measured.

Nothing is predicted from a week that is not reproduced: half of the jobs may be off by more than
:data:`OFF_MAX` in their completion time, and half of the queues in what preemption took, but no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from emulator.experiments.results.runs import sample_ms
from emulator.scenario import Prepared, setup
from emulator.virtual.run import Result, Run
from emulator.virtual.schemes import SCHEMES
from yarnctl.traces.week.week_rows import ImportedJob

OFF_MAX = 0.05


class ReplayedWeekJob(msgspec.Struct, frozen=True):
    """One job: its completion time as measured and as replayed, ms from its submission."""

    job: str
    queue: str
    user: str
    name: str
    measured_ms: int
    replayed_ms: int

    @property
    def off(self) -> float:
        """By which part of the measured time the replay is off."""
        return abs(self.replayed_ms - self.measured_ms) / max(1, self.measured_ms)


class PreemptedTime(msgspec.Struct, frozen=True):
    """What YARN's preemption took from a queue, in container-ms."""

    queue: str
    measured_ms: int
    replayed_ms: int

    @property
    def off(self) -> float:
        """By which part of the measured time the replay is off."""
        return abs(self.replayed_ms - self.measured_ms) / max(1, self.measured_ms)


class AsItWas(NamedTuple):
    """What came of the replay; jobs by submission, queues by name."""

    scheme: str
    jobs: tuple[ReplayedWeekJob, ...]
    preempted: tuple[PreemptedTime, ...]
    result: Result

    @property
    def completion_off(self) -> float:
        """Return the median deviation of the jobs."""
        return median(one.off for one in self.jobs)

    @property
    def preempted_off(self) -> float:
        """Return the median deviation of the queues; 0: none lost anything."""
        return median(one.off for one in self.preempted) if self.preempted else 0.0

    @property
    def is_reproduced(self) -> bool:
        """Whether a prediction may stand on it."""
        return self.completion_off <= OFF_MAX and self.preempted_off <= OFF_MAX

    def by_queue(self) -> dict[str, list[ReplayedWeekJob]]:
        """Return the jobs of each queue."""
        found: dict[str, list[ReplayedWeekJob]] = {}
        for one in self.jobs:
            found.setdefault(one.queue, []).append(one)
        return dict(sorted(found.items()))


def scheme_of(week: Sequence[ImportedJob]) -> str:
    """Return the scheme that a week ran under: YARN's own preemption if it took anything."""
    taken = any(one.job.preempted_containers for one in week)
    taken = taken or any(each.is_preempted for one in week for each in one.containers)
    return "yarn" if taken else "soft-cap"


def replay_as_it_was(prepared: Prepared, week: Sequence[ImportedJob], scheme: str) -> AsItWas:
    """Replay a week under the scheme that it ran under. Raises Stuck if its jobs cannot end."""
    run = Run(setup(prepared.scenario), prepared.jobs, SCHEMES[scheme], sample_ms=sample_ms(prepared.jobs))
    result = run.go()
    rows = {one.job.job: one for one in week}
    queues = {job.name: job.queue or "" for job in prepared.jobs}
    jobs = []
    for replayed in result.jobs:
        row = rows[replayed.name].job
        measured_ms = (row.ended_at_ms or 0) - row.submitted_at_ms
        queue = queues[replayed.name]
        jobs.append(ReplayedWeekJob(row.job, queue, row.user, row.name, measured_ms, replayed.completion_ms))
    held_ms = {} if run.preemption is None else run.preemption.held_ms
    return AsItWas(scheme, tuple(jobs), _preempted(rows, queues, held_ms), result)


def _preempted(
    rows: Mapping[str, ImportedJob], queues: Mapping[str, str], replayed_ms: Mapping[str, int]
) -> tuple[PreemptedTime, ...]:
    measured_ms: dict[str, int] = {}
    for name, queue in queues.items():
        for one in rows[name].containers:
            if one.is_preempted:
                measured_ms[queue] = measured_ms.get(queue, 0) + one.span_ms
    names = sorted(measured_ms.keys() | replayed_ms.keys())
    return tuple(PreemptedTime(name, measured_ms.get(name, 0), replayed_ms.get(name, 0)) for name in names)
