"""The most deadlines that any schedule meets: an exact bound for a handful of jobs, by an ILP (HiGHS).

``milp_of`` solves the small programs of other tests.

Law: the papers' model. A job starts at some millisecond with a fixed number of containers, keeps
them for ceil(work / containers), and counts if it ends by its deadline; whoever does not count
is best not run at all. Needs scipy (a development tool).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from yarn_research.admission.traces.trace import Trace
from yarnctl.errors import BadInput

MOST_JOBS = 8
MOST_WAYS = 20_000
"""Beyond this many ways to place jobs the program is too large to be solved in passing."""


class Way(NamedTuple):
    """One way to meet one job's deadline: ``containers`` held in [start_ms, end_ms)."""

    job: int
    containers: int
    start_ms: int
    end_ms: int


def optimum(trace: Trace, deadline_ms: NDArray[np.int64], capacity: int) -> int:
    """Return the most deadlines that can be met; raises BadInput for more than eight jobs or too long ones.

    Maximise the number of ways taken, at most one per job, such that at every instant at which
    one begins no more containers are held than there are (use only grows where one begins).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped,unused-ignore]
    from scipy.sparse import csr_array

    ways = _ways(trace, deadline_ms, capacity)
    if not ways:
        return 0
    instants = sorted({way.start_ms for way in ways})
    rows, columns, values = [], [], []
    for column, way in enumerate(ways):
        rows.append(way.job)
        columns.append(column)
        values.append(1)
        for row, at_ms in enumerate(instants, len(trace)):
            if way.start_ms <= at_ms < way.end_ms:
                rows.append(row)
                columns.append(column)
                values.append(way.containers)
    shape = (len(trace) + len(instants), len(ways))
    matrix = csr_array((np.array(values, dtype=float), (rows, columns)), shape=shape)
    most = np.concatenate((np.ones(len(trace)), np.full(len(instants), float(capacity))))
    found = milp(
        c=-np.ones(len(ways)),
        integrality=np.ones(len(ways), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(matrix, -np.inf, most),
        options={"mip_rel_gap": 0.0},
    )
    if not found.success:
        raise BadInput(trace.source, f"the optimum was not found: {found.message}")
    return round(-found.fun)


Constraint = tuple[list[float], float, float]
"""Factors of the variables, and the least and the most that their sum may be."""


def milp_of(costs: list[float], rows: list[Constraint]) -> NDArray[np.float64] | None:
    """Return 0 or 1 for each variable such that the sum of ``costs`` is least; None: no choice is allowed."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # type: ignore[import-untyped,unused-ignore]

    factors, least, most = zip(*rows, strict=True)
    found = milp(
        c=np.array(costs),
        integrality=np.ones(len(costs), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array(factors), np.array(least), np.array(most)),
        options={"mip_rel_gap": 0.0},
    )
    return None if found.x is None else np.round(found.x)


def _ways(trace: Trace, deadline_ms: NDArray[np.int64], capacity: int) -> list[Way]:
    """Return every way worth taking: of the numbers of containers that take as long, only the fewest."""
    if len(trace) > MOST_JOBS:
        raise BadInput(
            trace.source, f"{len(trace)} jobs are too many for the exact optimum", f"at most {MOST_JOBS}"
        )
    ways: list[Way] = []
    columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
    for job, (at_ms, span_ms, tasks, work_ms) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        fewest: dict[int, int] = {}
        for containers in range(min(tasks, capacity), 0, -1):
            fewest[-(-work_ms // containers)] = containers
        for run_ms, containers in fewest.items():
            starts = range(at_ms, at_ms + span_ms - run_ms + 1)
            if len(ways) + len(starts) > MOST_WAYS:
                raise BadInput(trace.source, f"more than {MOST_WAYS} ways to place the jobs", "shorten them")
            ways += [Way(job, containers, start, start + run_ms) for start in starts]
    return ways
