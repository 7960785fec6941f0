"""PYTHIA, Justice, the Oracle and the fair sharers as a slow model of the papers, written anew for the tests.

It keeps whole histories and sorts everything again, and shares no code with the replay or the mechanisms, so
equal answers say something.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest

from yarn_research.admission.choices import DEFAULT_CHOICES, Choices
from yarn_research.admission.event_replay import replay
from yarn_research.admission.traces.trace import DEADLINES, Optimal, Trace, deadlines_ms
from yarnctl.deciding.admission.mechanisms import SIZINGS


class Job:
    """One job (times in ms) and what becomes of it."""

    def __init__(self, number: int, submitted: int, deadline: int, tasks: int, work: int) -> None:
        self.number, self.submitted, self.deadline, self.tasks, self.work = (
            number,
            submitted,
            deadline,
            tasks,
            work,
        )
        self.due = submitted + deadline
        self.started, self.ended, self.containers, self.met, self.fraction = -1, -1, 0, False, 0.0


class Wish(NamedTuple):
    """How many containers a job should have, the fewest it takes, and its fraction, if it has one."""

    containers: int
    least: int
    fraction: float | None = None


class PaperModel:
    """A cluster under one allocator."""

    def __init__(self, jobs: list[Job], capacity: int, name: str, choices: Choices) -> None:
        self.jobs, self.capacity, self.name, self.choices = jobs, capacity, name, choices
        self.finished: list[Job] = []

    def run(self) -> None:
        todo = [(job.submitted, 1, job.number) for job in self.jobs]
        waiting: list[Job] = []
        running: list[Job] = []
        while todo:
            now, is_submission, number = min(todo)
            todo.remove((now, is_submission, number))
            job = self.jobs[number]
            if is_submission:
                waiting.append(job)
            else:
                running.remove(job)
                if now - job.started >= math.ceil(job.work / job.containers):
                    job.met = now <= job.due
                    self.finished.append(job)
            self.round(waiting, self.capacity - sum(each.containers for each in running), now)
            for each in [each for each in waiting if each.containers]:
                each.started, each.ended = now, now + math.ceil(each.work / each.containers)
                if self.ends_late(each):
                    each.ended = min(each.ended, each.due)
                todo.append((each.ended, 0, each.number))
                running.append(each)
            waiting = [each for each in waiting if each.ended < 0]

    def ends_late(self, job: Job) -> bool:
        limit = self.choices.drop_above_tasks
        return self.name == "reactive_fs" or (
            self.name == "justice" and limit is not None and job.tasks > limit
        )

    def round(self, waiting: list[Job], free: int, now: int) -> None:
        """Set the containers of those that begin now, and the end of those that never will."""
        if self.name.endswith("_fs"):
            late = [job for job in waiting if self.name == "reactive_fs" and now >= job.due]
            for job in late:
                job.ended = now
            sharers = [job for job in waiting if job not in late][:free]
            while free and (short := [job for job in sharers if job.containers < job.tasks]):
                min(short, key=lambda job: (job.containers, job.number)).containers += 1
                free -= 1
            return
        queue = []
        for job in waiting:
            wish = self.wish(job, now)
            if wish is None:
                job.ended = now
            else:
                queue.append((self.key(job, wish, now), job, wish))
        for _, job, wish in sorted(queue, key=lambda each: each[0]):
            if 0 < free >= wish.least:
                job.containers = min(wish.containers, free)
                free -= job.containers
                own = job.containers / min(job.tasks, self.capacity)
                job.fraction = own if wish.fraction is None else wish.fraction

    def key(self, job: Job, wish: Wish, now: int) -> tuple[float, int, int]:
        order = self.choices.order
        if order == "papers":
            order = "tasks" if self.name == "pythia" else "ratio"
        left = job.due - now
        ratio = wish.containers / left if left > 0 else math.inf
        first = {"tasks": (job.tasks, -job.due), "earliest": (job.due, 0), "ratio": (ratio, 0)}[order]
        return (*first, job.number)

    def wish(self, job: Job, now: int) -> Wish | None:
        most, left = min(job.tasks, self.capacity), job.due - now
        if self.name == "oracle":
            needed = math.ceil(job.work / left) if left > 0 else most + 1
            return Wish(needed, needed) if needed <= most else None
        if len(self.finished) < (1 if self.name == "pythia" else 2):
            return None if self.name == "justice" and left <= 0 and self.ends_late(job) else Wish(most, 1)
        if left <= 0:
            return None
        fraction = self.pythia() if self.name == "pythia" else self.justice()
        if self.choices.queue_time == "stretched":
            fraction = job.deadline / left * fraction
        if self.choices.reach == "reachable":
            needed = max(1, math.ceil(fraction * most))
            return Wish(needed, needed, fraction) if needed <= most else None
        needed = min(self.capacity, max(1, math.ceil(fraction * job.tasks)))
        return Wish(needed, needed, fraction) if fraction <= 1 else None

    def needed(self) -> list[float]:
        return [job.work / job.deadline / min(job.tasks, self.capacity) for job in self.finished]

    def pythia(self) -> float:
        return max(self.needed())

    def justice(self) -> float:
        needed, given = self.needed(), [job.fraction for job in self.finished]
        if self.choices.fraction == "observed":
            given = [job.containers / min(job.tasks, self.capacity) for job in self.finished]
        sign = 1 if self.choices.errors == "shortfall" else -1
        errors = [sign * (need - had) for need, had in zip(needed, given, strict=True)]
        total, smoothed = 0.0, errors[0]
        for error in errors:  # not sum(): it rounds otherwise
            total += error
        for error in errors[1:]:
            smoothed = 0.5 * error + 0.5 * smoothed
        correction = total / len(errors) if self.choices.weighting == "equal" else smoothed
        target = min(needed) if self.finished[-1].met else max(needed)
        corrected = (given[-1] + target) / 2 + correction
        return min(needed) if corrected < min(needed) else min(corrected, 1.0)


def drawn_case(seed: int) -> tuple[Trace, np.ndarray, int, Choices]:
    """Draw a few jobs, deadlines, a capacity and, in two of three cases, another reading of the papers."""
    chance = np.random.default_rng([seed, 41])
    count = int(chance.integers(1, 60))
    tasks = chance.choice([1, 1, 2, 5, 17, 40], count)
    work = np.maximum(1, (tasks * chance.uniform(1, 90, count)).astype(np.int64))
    trace = Trace("drawn", np.sort(chance.integers(0, 30 * count, count)), tasks, work)
    capacity = int(chance.choice([1, 3, 8, 40]))
    optimal: Optimal = "requested" if seed % 4 == 3 else "reachable"
    deadline_ms = deadlines_ms(trace, list(DEADLINES)[seed % len(DEADLINES)], capacity, seed, optimal)
    choices = Choices(
        order=str(chance.choice(["papers", "ratio", "tasks", "earliest"])),
        reach=str(chance.choice(["reachable", "requested"])),
        queue_time=str(chance.choice(["stretched", "ignored"])),
        errors=str(chance.choice(["shortfall", "surplus"])),
        fraction=str(chance.choice(["estimated", "observed"])),
        weighting=str(chance.choice(["equal", "exponential"])),
        drop_above_tasks=(0, 4, None)[int(chance.integers(3))],
    )
    return trace, deadline_ms, capacity, choices if seed % 3 else DEFAULT_CHOICES


@pytest.mark.parametrize("name", list(SIZINGS))
def test_the_replay_gives_the_answers_of_the_papers_model(name):
    for seed in range(150):
        trace, deadline_ms, capacity, choices = drawn_case(seed)
        columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        jobs = [Job(number, *row) for number, row in enumerate(rows)]
        PaperModel(jobs, capacity, name, choices).run()
        found = replay(trace, deadline_ms, capacity, SIZINGS[name], choices)
        assert found.started_at_ms.tolist() == [job.started for job in jobs], seed
        assert found.ended_at_ms.tolist() == [job.ended for job in jobs], seed
        assert found.containers.tolist() == [job.containers for job in jobs], seed
        assert found.met.tolist() == [job.met for job in jobs], seed
