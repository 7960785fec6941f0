"""A trace for admission: three columns and a deadline, in order of submission.

Law: column arrays of int64 and equal length, checked once where they come in. A job is its
place in the trace; its work is in container-ms and spreads perfectly over its containers.

Deadlines: multiples of a job's optimal running time, seven ways (Justice section 3.1).

Law: D = x T in integer milliseconds, rounded up, x in thousandths; x comes from a seed and the
job's place, T from the trace. T is the running time with every container the job can use:
min(tasks, capacity), for both papers assume that each deadline is feasible (Justice 2: "there
is an optimal allocation that is sufficient"), which Fixed1x is only so. ``requested`` takes T
with all requested tasks, as the trace ran it.

What became of each job of a replayed trace, and whether two engines agree on it.

Law: int64 columns beside the trace's, one row a job; plain data that every engine fills.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from yarnctl.errors import BadInput
from yarnctl.traces.job import LONGEST_MS, LONGEST_SHOWN

MOST_TASKS = 10_000_000
MOST_WORK_MS = 10**15
MOST_IN_ALL_MS = 10**18
"""Bounds that keep every sum of a replay below 2^63."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Jobs as columns: ``submitted_at_ms`` (ascending), ``tasks`` and ``work_ms`` (container-ms), >= 1."""

    source: str
    submitted_at_ms: NDArray[np.int64]
    tasks: NDArray[np.int64]
    work_ms: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.tasks)

    def head(self, jobs: int) -> Trace:
        """Return the first jobs."""
        return Trace(self.source, self.submitted_at_ms[:jobs], self.tasks[:jobs], self.work_ms[:jobs])


def checked(trace: Trace) -> Trace:
    """Return the trace; raises BadInput for the first job that none can be (jobs count from 1)."""
    if not len(trace):
        raise BadInput(trace.source, "holds no jobs")
    rules = (
        (
            "submitted_at_ms",
            trace.submitted_at_ms,
            0,
            LONGEST_MS,
            f"must be within {LONGEST_SHOWN} of the start",
        ),
        ("tasks", trace.tasks, 1, MOST_TASKS, f"must be 1 to {MOST_TASKS}"),
        ("work_ms", trace.work_ms, 1, MOST_WORK_MS, f"must be 1 to {MOST_WORK_MS}"),
    )
    for name, column, least, most, problem in rules:
        wrong = np.flatnonzero((column < least) | (column > most))
        if len(wrong):
            place = int(wrong[0])
            raise BadInput(trace.source, f"field {name}, job {place + 1}: {int(column[place])} {problem}")
    if trace.work_ms.sum(dtype=np.float64) > MOST_IN_ALL_MS:
        raise BadInput(trace.source, f"field work_ms: more than {MOST_IN_ALL_MS} in all")
    if (np.diff(trace.submitted_at_ms) < 0).any():
        raise BadInput(trace.source, "the jobs are not in order of submission", "sort the trace")
    return trace


Optimal = Literal["reachable", "requested"]

Multiples = Callable[["np.random.Generator", int], "NDArray[np.int64]"]


def _fixed(milli: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        return np.full(jobs, milli, dtype=np.int64)

    return draw


def _either(first: int, second: int, second_percent: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        drawn = chance.integers(0, 100, jobs) < second_percent
        return np.where(drawn, second, first).astype(np.int64)

    return draw


def _uniform(least: int, most: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        return chance.integers(least, most, jobs, endpoint=True)

    return draw


DEADLINES: dict[str, Multiples] = {
    "Fixed1x": _fixed(1000),
    "Fixed2x": _fixed(2000),
    "Jockey1x2x": _either(1000, 2000, 50),
    "Jockey2x4x": _either(2000, 4000, 50),
    "90loose": _either(1000, 2000, 90),
    "Aria1x3x": _uniform(1000, 3000),
    "Aria2x4x": _uniform(2000, 4000),
}
"""Name -> the multiples x, in thousandths. Sources: Jockey [15], ARIA [43, 44] as cited in Justice 3.1."""


def deadlines_ms(
    trace: Trace, name: str, capacity: int, seed: int = 0, optimal: Optimal = "reachable"
) -> NDArray[np.int64]:
    """Return each job's deadline as a span in ms, ceil(x T) with T = ceil(work / containers)."""
    containers = trace.tasks if optimal == "requested" else np.minimum(trace.tasks, capacity)
    optimal_ms = -(-trace.work_ms // containers)
    chance = np.random.default_rng([seed, len(name), *name.encode()])
    multiples = DEADLINES[name](chance, len(trace))
    return -(-optimal_ms * multiples // 1000)


NEVER = -1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class ReplayOutcome:
    """What became of each job, as int64 columns beside the trace's.

    ``started_at_ms`` (-1: never), ``containers`` (0: none), ``ended_at_ms``: when it was done,
    ended or turned away. ``met`` is bool: done by its deadline. Where containers came and went,
    ``containers`` is the rounded mean, and ``spent_ms`` the container-ms each job really had.
    """

    capacity: int
    deadline_ms: NDArray[np.int64]
    started_at_ms: NDArray[np.int64]
    ended_at_ms: NDArray[np.int64]
    containers: NDArray[np.int64]
    met: NDArray[np.bool_]
    spent_ms: NDArray[np.int64] | None = None
