"""Fair sharing that is worked out again at every event, for everybody: the plain kernel.

Law: max-min over all jobs that are there, in whole containers by groups of equal demand, whose
jobs take turns. Progress is counted in grains, 64 to a container-millisecond, rounded down for
each job at each event. This is the naive way, time for events times jobs; its compiled twin moves
one clock per group instead of every job, and must give the same answers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from emulator.admission.traces.trace import NEVER, ReplayOutcome, Trace
from yarnctl.deciding.admission.fair_share import group_shares
from yarnctl.errors import BadInput

GRAINS = 64
MOST_CAPACITY = 1_000_000
FAR_MS = 1 << 62


def require_small(trace: Trace, capacity: int) -> None:
    """Raise BadInput where sums of grains could leave 63 bits."""
    if capacity > MOST_CAPACITY or int(trace.work_ms.max()) * GRAINS * len(trace) >= 1 << 63:
        problem = "too large for fair sharing that is rebalanced"
        raise BadInput(trace.source, problem, "use --choose sharing=held, or a part of the trace")


class _Rebalanced:
    """The state of one replay."""

    def __init__(self, trace: Trace, deadline_ms: NDArray[np.int64], capacity: int, reactive: bool) -> None:
        self.submitted, self.tasks = trace.submitted_at_ms.tolist(), trace.tasks.tolist()
        self.due = (trace.submitted_at_ms + deadline_ms).tolist()
        self.left = [work * GRAINS for work in trace.work_ms.tolist()]
        self.capacity, self.reactive, self.now = capacity, reactive, 0
        self.there: list[int] = []
        self.rates: dict[int, tuple[int, int]] = {}
        jobs = len(self.tasks)
        self.started, self.ended = [NEVER] * jobs, [NEVER] * jobs
        self.met = [False] * jobs

    def run(self) -> None:
        """Play all events: ends, then those that are late, then one submission."""
        step = 0
        while step < len(self.tasks) or self.there:
            at_ms = self.submitted[step] if step < len(self.tasks) else FAR_MS
            at_ms = min(at_ms, *map(self._end_ms, self.there)) if self.there else at_ms
            self._advance(at_ms)
            for job in [job for job in self.there if self.left[job] <= 0]:
                self._end(job, at_ms <= self.due[job])
            if self.reactive:
                for job in [job for job in self.there if self.due[job] <= at_ms]:
                    self._end(job, False)
            if step < len(self.tasks) and self.submitted[step] <= at_ms:
                self.there.append(step)
                step += 1
            self._share()

    def _end_ms(self, job: int) -> int:
        """When it would be done, or ended, if nothing else happened."""
        held, jobs = self.rates[self._demand(job)]
        end_ms = FAR_MS if not held else self.now - (-self.left[job] * jobs // (held * GRAINS))
        return min(end_ms, self.due[job]) if self.reactive else end_ms

    def _advance(self, at_ms: int) -> None:
        passed_ms, self.now = at_ms - self.now, at_ms
        for job in self.there:
            held, jobs = self.rates[self._demand(job)]
            self.left[job] -= held * passed_ms * GRAINS // jobs

    def _end(self, job: int, met: bool) -> None:
        self.there.remove(job)
        self.ended[job], self.met[job] = self.now, met

    def _share(self) -> None:
        counts: dict[int, int] = {}
        for job in self.there:
            counts[self._demand(job)] = counts.get(self._demand(job), 0) + 1
        groups = sorted(counts.items())
        shares = group_shares(groups, self.capacity)
        self.rates = {demand: (held, jobs) for (demand, jobs), held in zip(groups, shares, strict=True)}
        for job in self.there:
            if self.started[job] == NEVER and self.rates[self._demand(job)][0]:
                self.started[job] = self.now

    def _demand(self, job: int) -> int:
        return int(min(self.tasks[job], self.capacity))


def replay_rebalanced(
    trace: Trace, deadline_ms: NDArray[np.int64], capacity: int, reactive: bool
) -> ReplayOutcome:
    """Replay NoDrop FS or Reactive FS, rebalanced at every event."""
    require_small(trace, capacity)
    state = _Rebalanced(trace, deadline_ms, capacity, reactive)
    state.run()
    columns = (state.started, state.ended, state.left)
    started, ended, left = (np.array(column, dtype=np.int64) for column in columns)
    return averaged(trace, deadline_ms, capacity, started, ended, left, np.array(state.met, dtype=np.bool_))


def averaged(
    trace: Trace,
    deadline_ms: NDArray[np.int64],
    capacity: int,
    started: NDArray[np.int64],
    ended: NDArray[np.int64],
    left: NDArray[np.int64],
    met: NDArray[np.bool_],
) -> ReplayOutcome:
    """Return the outcome with the mean of the containers that each job had while it ran (at least one)."""
    spent = trace.work_ms - np.maximum(-(-left // GRAINS), 0)
    span_ms = np.maximum(ended - started, 1)
    mean = np.clip((2 * spent + span_ms) // (2 * span_ms), 1, np.minimum(trace.tasks, capacity))
    containers = np.where(started == NEVER, 0, mean)
    return ReplayOutcome(capacity, deadline_ms, started, ended, containers, met, spent)
