"""The replay: a trace under any allocator, event by event.

Law: integer milliseconds; events in the order (time, ends before submissions, sequence); after
each event one round, the very function that the gate calls. A model of the papers, written anew for the
tests, gives the same answers (research/tests/test_admission_model.py). Rebalanced fair sharing counts
progress in grains, 64 to a container-millisecond, rounded down for each job at each event.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yarn_research.admission.choices import DEFAULT_CHOICES, Choices, choices_of
from yarn_research.admission.traces.trace import NEVER, ReplayOutcome, Trace
from yarnctl.deciding.admission.mechanisms import justice
from yarnctl.deciding.admission.mechanisms.justice import JusticeChoices
from yarnctl.deciding.admission.records import Estimate, Finished, Request
from yarnctl.deciding.admission.rounds import Grant, hold
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.errors import BadInput, InvariantBroken

GRAINS = 64
MOST_CAPACITY = 1_000_000
FAR_MS = 1 << 62


def require_small(trace: Trace, capacity: int) -> None:
    """Raise BadInput where sums of grains could leave 63 bits."""
    if capacity > MOST_CAPACITY or int(trace.work_ms.max()) * GRAINS * len(trace) >= 1 << 63:
        problem = "too large for fair sharing that is rebalanced"
        raise BadInput(trace.source, problem, "use --choose sharing=held, or a part of the trace")


def group_shares(groups: Sequence[tuple[int, int]], capacity: int) -> list[int]:
    """Return the containers of each group of jobs with one demand, given (demand, jobs), demands ascending.

    A group's jobs take turns on its containers. Satisfied groups have all they demand; the others
    divide the rest in proportion to their jobs, in whole containers (cumulative rounding, so that
    none is lost).
    """
    left, waiting = capacity, sum(jobs for _, jobs in groups)
    shares: list[int] = []
    for place, (demand, jobs) in enumerate(groups):
        if demand * waiting > left:
            passed = 0
            for _, others in groups[place:]:
                before = left * passed // waiting
                passed += others
                shares.append(left * passed // waiting - before)
            return shares
        shares.append(demand * jobs)
        left, waiting = left - demand * jobs, waiting - jobs
    return shares


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


class _Replay:
    """The state of one replay."""

    def __init__(
        self,
        trace: Trace,
        deadline_ms: NDArray[np.int64],
        capacity: int,
        sizing: Sizing[Any, Any],
        choices: Any,
    ) -> None:
        self.requests = _requests(trace, deadline_ms)
        self.work_ms = trace.work_ms.tolist()
        self.capacity, self.sizing, self.choices = capacity, sizing, choices
        self.memory = sizing.memory
        self.free = capacity
        self.waiting: dict[int, Request] = {}
        self.end_events: list[tuple[int, int]] = []
        jobs = len(self.requests)
        self.started, self.ended = [NEVER] * jobs, [NEVER] * jobs
        self.containers, self.met, self.ratio = [0] * jobs, [False] * jobs, [0.0] * jobs

    def run(self) -> None:
        """Play all events."""
        for request in self.requests:
            while self.end_events and self.end_events[0][0] <= request.submitted_at_ms:
                self._end(*heapq.heappop(self.end_events))
            self.waiting[request.sequence] = request
            self._round(request.submitted_at_ms)
        while self.end_events:
            self._end(*heapq.heappop(self.end_events))
        if self.waiting:
            raise InvariantBroken(
                "nobody-waits-for-ever", f"{len(self.waiting)} jobs wait on an idle cluster"
            )

    def _end(self, at_ms: int, job: int) -> None:
        request, held = self.requests[job], self.containers[job]
        self.free += held
        self.ended[job] = at_ms
        if at_ms - self.started[job] >= -(
            -self.work_ms[job] // held
        ):  # else it was ended, and nothing learned
            self.met[job] = at_ms <= request.due_ms
            told = Finished(
                work_ms=self.work_ms[job],
                tasks=request.tasks,
                deadline_ms=request.span_ms,
                containers=held,
                capacity=self.capacity,
                ratio=self.ratio[job],
                met=self.met[job],
            )
            self.memory = self.sizing.learn(self.memory, told, self.choices)
        self._round(at_ms)

    def _round(self, now_ms: int) -> None:
        if not self.waiting:
            return
        found = hold(
            self.sizing,
            self.memory,
            self.waiting.values(),
            self.free,
            now_ms,
            self.capacity,
            self.choices,
        )
        for request, _ in found.rejected:
            del self.waiting[request.sequence]
            self.ended[request.sequence] = now_ms
        for grant in found.admitted:
            self._start(grant, now_ms)

    def _start(self, grant: Grant, now_ms: int) -> None:
        request, containers, ratio = grant
        job = request.sequence
        del self.waiting[job]
        self.free -= containers
        if self.free < 0:
            raise InvariantBroken("capacity-not-exceeded", f"job {job + 1} at {now_ms} ms")
        self.started[job], self.containers[job], self.ratio[job] = now_ms, containers, ratio
        end_ms = now_ms - (-self.work_ms[job] // containers)
        if end_ms > request.due_ms and ends_late(self.sizing, request, self.choices):
            end_ms = request.due_ms
        heapq.heappush(self.end_events, (end_ms, job))


def ends_late(sizing: Sizing[Any, Any], request: Request, choices: Any) -> bool:
    """Return whether a running job is ended at its deadline: Justice 2.2, and PYTHIA III "Reactive FS".

    Reactive FS: "when a job exceeds its deadline, this allocator reacts and terminates the job".
    """
    if isinstance(choices, JusticeChoices):
        return justice.ends_late(request, choices)
    return sizing.drops_late


def replay(
    trace: Trace,
    deadline_ms: NDArray[np.int64],
    capacity: int,
    sizing: Sizing[Any, Any],
    choices: Choices = DEFAULT_CHOICES,
) -> ReplayOutcome:
    """Replay a trace on ``capacity`` containers; returns what became of each job."""
    if sizing.terms is None and choices.sharing == "rebalanced":
        return replay_rebalanced(trace, deadline_ms, capacity, sizing.drops_late)
    state = _Replay(trace, deadline_ms, capacity, sizing, choices_of(sizing.name, choices))
    state.run()
    columns = (state.started, state.ended, state.containers)
    started, ended, containers = (np.array(column, dtype=np.int64) for column in columns)
    return ReplayOutcome(
        capacity, deadline_ms, started, ended, containers, np.array(state.met, dtype=np.bool_)
    )


def _requests(trace: Trace, deadline_ms: NDArray[np.int64]) -> list[Request]:
    columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Request(job, at_ms, span_ms, tasks, Estimate(work_ms, 0, "trace"))
        for job, (at_ms, span_ms, tasks, work_ms) in enumerate(rows)
    ]
