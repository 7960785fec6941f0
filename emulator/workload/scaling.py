"""Scaling a workload to a cluster, as section 6 of the paper does.

Law: only the *number* of tasks changes, never their lengths or arrival times; a job keeps at
least one map, and one reduce if it had any. Fractions of a task are rounded up or down by a
hash of the job's name, so that jobs of one size do not all jump together.

Offered load is what an unlimited cluster would run: container milliseconds in a window,
divided by slots x window. "The production scaling factor was chosen to prevent the production
jobs from just overloading the cluster at its peak", research's so that it overloads.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.job import Job

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOW_MS = 300_000
MAX_TASKS = 5000
"""No job is scaled up beyond this many maps or reduces (one that had more may keep them)."""

_UNIT = 1 << 20
_MAX_FACTOR = 64
_ROUNDS = 4
"""Bisection counts every task with its job's mean length; the target is then corrected by the
load that the tasks really kept offer, and the nearest of these rounds is taken."""
_MAX_PIECES = 30_000_000
_NEAR = 0.001
"""Relative distance from the target at which no further round is tried."""


class Scaled(NamedTuple):
    """Jobs with scaled task counts, the factor applied, and the peak load they really offer.

    ``achieved_load`` differs from the target where even one task per job offers more, or where
    the largest factor (64, ``MAX_TASKS``) offers less.
    """

    jobs: tuple[Job, ...]
    factor: float
    achieved_load: float


def scale_to_load(jobs: Sequence[Job], slots: int, peak_load: float) -> Scaled:
    """Scale task counts so that the peak offered load comes as near to ``peak_load`` as it can.

    ``slots`` is the number of containers of the cluster; windows are [i x window, (i+1) x
    window) from t = 0. The factor is a multiple of 2^-20, found by bisection. Raises BadInput
    if there are no jobs, or a number is not positive.
    """
    for name, value in (("jobs", len(jobs)), ("slots", slots)):
        if value < 1:
            raise BadInput(f"scaling, {name}", f"must be at least 1, not {value}")
    if not 0 < peak_load < float("inf"):
        raise BadInput("scaling, peak_load", f"must be positive, not {peak_load}")
    demand = _Demand(jobs, slots)
    wish, best = peak_load, None
    for _ in range(_ROUNDS):
        found = _resized_all(jobs, demand.largest_scale(wish), slots)
        if best is None or abs(found.achieved_load - peak_load) < abs(best.achieved_load - peak_load):
            best = found
        if abs(best.achieved_load - peak_load) <= _NEAR * peak_load:
            break
        wish *= peak_load / max(found.achieved_load, peak_load / 2)
    assert best is not None
    return best


def _resized_all(jobs: Sequence[Job], scale: int, slots: int) -> Scaled:
    scaled = tuple(_resized(job, scale) for job in jobs)
    return Scaled(scaled, scale / _UNIT, peak_offered_load(scaled, slots))


def peak_offered_load(jobs: Sequence[Job], slots: int) -> float:
    """Return the largest offered load over all windows (1.0 = every slot wanted all the time)."""
    return _Demand(jobs, slots).peak(_UNIT) if jobs else 0.0


class _Demand:
    """The demand of jobs per window, for any scale.

    A job has three phases, each spread evenly: its maps over the longest map, then its reduces
    over shuffle + the longest reduce, and its ApplicationMaster (one container) over both.
    """

    def __init__(self, jobs: Sequence[Job], slots: int) -> None:
        import numpy as np

        self._rounding = np.array([_roundings(job.name) for job in jobs], dtype=np.int64)
        self._capacity_ms = float(slots * WINDOW_MS)
        rows = [_phases(job) for job in jobs]
        table = np.array(rows, dtype=np.int64)
        self._maps, self._reduces = table[:, 0], table[:, 1]
        self._map_mean = table[:, 2] / np.maximum(1, self._maps)
        self._reduce_mean = table[:, 3] / np.maximum(1, self._reduces)
        start, map_end, end = table[:, 4], table[:, 5], table[:, 6]
        self._master_ms = (end - start).astype(np.float64)
        starts = np.concatenate([start, map_end, start])
        spans = np.maximum(1, np.concatenate([map_end - start, end - map_end, end - start]))
        self._phase, window, self._share = _spread(starts, spans)
        _, self._window = np.unique(window, return_inverse=True)

    def largest_scale(self, peak_load: float) -> int:
        """Return, by bisection, the largest scale whose peak is at most ``peak_load`` (0 if none)."""
        low, high = 0, _UNIT * _MAX_FACTOR + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.peak(middle) <= peak_load else (low, middle)
        return low

    def peak(self, scale: int) -> float:
        """Return the peak load with task counts x ``scale`` / 2^20."""
        import numpy as np

        maps = _scaled_counts(self._maps, self._rounding[:, 0], scale) * self._map_mean
        reduces = _scaled_counts(self._reduces, self._rounding[:, 1], scale) * self._reduce_mean
        work = np.concatenate([maps, reduces, self._master_ms])
        offered_ms = np.bincount(self._window, weights=work[self._phase] * self._share)
        return float(offered_ms.max()) / self._capacity_ms


def _phases(job: Job) -> tuple[int, int, int, int, int, int, int]:
    """Return maps, reduces, map work, reduce work (ms), start, end of the maps, end."""
    map_end = job.submitted_at_ms + max(job.map_ms, default=0)
    reduces = len(job.reduce_ms)
    work_ms = sum(job.reduce_ms) + reduces * job.shuffle_ms
    end = map_end + (job.shuffle_ms + max(job.reduce_ms) if reduces else 0)
    return len(job.map_ms), reduces, sum(job.map_ms), work_ms, job.submitted_at_ms, map_end, end


def _spread(
    starts: NDArray[np.int64], spans: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Cut each span at window borders: (span index, window, share of the span in the window)."""
    import numpy as np

    first = starts // WINDOW_MS
    pieces = (starts + spans - 1) // WINDOW_MS - first + 1
    if int(pieces.sum()) > _MAX_PIECES:
        problem = "the jobs are too many or too long to be cut into windows"
        raise BadInput("scaling, window_ms", problem, "remove the peak, or check the task lengths")
    phase = np.repeat(np.arange(len(starts)), pieces)
    window = first[phase] + np.arange(len(phase)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    begin = np.maximum(starts[phase], window * WINDOW_MS)
    end = np.minimum(starts[phase] + spans[phase], (window + 1) * WINDOW_MS)
    return phase, window, (end - begin) / spans[phase]


def _roundings(name: str) -> tuple[int, int]:
    """Return what is added to maps and to reduces (2^-20 tasks, below one) before cutting off."""
    digest = zlib.crc32(name.encode())
    return digest % _UNIT, (digest >> 12) % _UNIT


def _scaled_counts(counts: NDArray[np.int64], rounding: NDArray[np.int64], scale: int) -> NDArray[np.int64]:
    import numpy as np

    wanted = np.maximum(np.minimum(counts, 1), (counts * scale + rounding) // _UNIT)
    capped: NDArray[np.int64] = np.minimum(wanted, np.maximum(counts, MAX_TASKS))
    return capped


def _resized(job: Job, scale: int) -> Job:
    """Return the job with its tasks thinned out, or repeated, evenly."""
    of_maps, of_reduces = _roundings(job.name)
    return msgspec.structs.replace(
        job,
        map_ms=_thinned(job.map_ms, of_maps, scale),
        reduce_ms=_thinned(job.reduce_ms, of_reduces, scale),
        reduce_keys=_thinned(job.reduce_keys, of_reduces, scale),
    )


def _thinned(values: tuple[int, ...], rounding: int, scale: int) -> tuple[int, ...]:
    length = len(values)
    count = max(min(length, 1), (length * scale + rounding) // _UNIT)
    count = min(count, max(length, MAX_TASKS))
    return values if count == length else tuple(values[i * length // count] for i in range(count))
