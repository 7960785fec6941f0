"""A trace for admission: three columns and a deadline, in order of submission.

Law: column arrays of int64 and equal length, checked once where they come in. A job is its
place in the trace; its work is in container-ms and spreads perfectly over its containers.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from emulator.workload.limits import LONGEST_MS, LONGEST_SAID
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    import numpy as np

    if not len(trace):
        raise BadInput(trace.source, "holds no jobs")
    rules = (
        (
            "submitted_at_ms",
            trace.submitted_at_ms,
            0,
            LONGEST_MS,
            f"must be within {LONGEST_SAID} of the start",
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
