"""What became of each job of a replayed trace, and whether two engines agree on it.

Law: int64 columns beside the trace's, one row a job; plain data that every engine fills.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEVER = -1


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Outcome:
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


def same(left: Outcome, right: Outcome) -> str | None:
    """Return None if two outcomes are the same job by job, else the first difference in words."""
    import numpy as np

    for field in ("started_at_ms", "ended_at_ms", "containers", "met", "spent_ms"):
        ours, theirs = getattr(left, field), getattr(right, field)
        if ours is None and theirs is None:
            continue
        differ = np.flatnonzero(ours != theirs)
        if len(differ):
            job = int(differ[0])
            return f"{field} of job {job + 1}: {ours[job]} and {theirs[job]} ({len(differ)} jobs differ)"
    return None
