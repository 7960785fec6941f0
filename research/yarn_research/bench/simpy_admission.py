"""PYTHIA as a SimPy model: a process per job, the queue sorted again at every event.

Written the way SimPy is meant to be used, and as the papers say theirs was built ("a discrete
event simulator based on Simpy"). It shares no code with the replay, so that equal answers say
something. A moment is one number, so that ends come before submissions, and both by job.
"""

from __future__ import annotations

import math
from typing import Any

import simpy

JOBS = 1 << 21


def moment(at_ms: int, submission: bool, job: int) -> int:
    """Return an instant as one number that orders events as the replay does."""
    return (2 * at_ms + submission) * JOBS + job


class Model:
    """A cluster under PYTHIA; ``started`` and ``containers`` say what became of each job (-1, 0: dropped)."""

    def __init__(self, rows: list[tuple[int, int, int, int]], capacity: int) -> None:
        self.env = simpy.Environment()
        self.free = self.capacity = capacity
        self.fraction = -1.0
        self.queue: list[tuple[tuple[int, int, int], Any]] = []
        self.rows = rows
        self.started, self.containers = [-1] * len(rows), [0] * len(rows)
        for job in range(len(rows)):
            self.env.process(self.job(job))

    def job(self, job: int):
        at_ms, deadline_ms, tasks, work_ms = self.rows[job]
        yield self.env.timeout(moment(at_ms, True, job))
        answer = self.env.event()
        self.queue.append(((tasks, -(at_ms + deadline_ms), job), answer))
        self.admit(at_ms)
        yield answer
        if not self.containers[job]:
            return
        end_ms = self.started[job] + -(-work_ms // self.containers[job])
        yield self.env.timeout(moment(end_ms, False, job) - self.env.now)
        self.free += self.containers[job]
        self.fraction = max(self.fraction, work_ms / deadline_ms / min(tasks, self.capacity))
        self.admit(end_ms)

    def admit(self, now_ms: int) -> None:
        self.queue.sort(key=lambda entry: entry[0])
        kept = []
        for entry in self.queue:
            job = entry[0][2]
            wanted = self.wanted(job, now_ms)
            if wanted and (wanted <= self.free or (self.fraction < 0 < self.free)):
                self.containers[job] = min(wanted, self.free)
                self.started[job] = now_ms
                self.free -= self.containers[job]
                entry[1].succeed()
            elif wanted:
                kept.append(entry)
            else:
                entry[1].succeed()
        self.queue = kept

    def wanted(self, job: int, now_ms: int) -> int:
        at_ms, deadline_ms, tasks, _ = self.rows[job]
        reachable = min(tasks, self.capacity)
        if self.fraction < 0:
            return reachable
        left_ms = at_ms + deadline_ms - now_ms
        if left_ms <= 0:
            return 0
        wanted = max(1, math.ceil(deadline_ms / left_ms * self.fraction * reachable))
        return wanted if wanted <= reachable else 0
