"""The plain replay kernel: a trace under any allocator, event by event.

Law: integer milliseconds; events in the order (time, ends before submissions, sequence); after
each event one round, the very function that the gate calls. It is the reference: the compiled
twins must give the same answers, job by job.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emulator.admission.plain.rebalanced import replay_rebalanced
from emulator.admission.traces.trace import NEVER, ReplayOutcome, Trace
from yarnctl.deciding.admission.mechanisms import choices_of
from yarnctl.deciding.admission.records import DEFAULT_CHOICES, Choices, Estimate, Finished, Request
from yarnctl.deciding.admission.rounds import Grant, hold
from yarnctl.deciding.admission.sizing import Sizing
from yarnctl.errors import InvariantBroken


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
        self.ends: list[tuple[int, int]] = []
        jobs = len(self.requests)
        self.started, self.ended = [NEVER] * jobs, [NEVER] * jobs
        self.containers, self.met, self.ratio = [0] * jobs, [False] * jobs, [0.0] * jobs

    def run(self) -> None:
        """Play all events."""
        for request in self.requests:
            while self.ends and self.ends[0][0] <= request.submitted_at_ms:
                self._end(*heapq.heappop(self.ends))
            self.waiting[request.sequence] = request
            self._round(request.submitted_at_ms)
        while self.ends:
            self._end(*heapq.heappop(self.ends))
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
        if end_ms > request.due_ms and self.sizing.ends_late(request, self.choices):
            end_ms = request.due_ms
        heapq.heappush(self.ends, (end_ms, job))


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
