"""MRM section 5: deadlines by summed upper bounds (PI) or by the joint distribution (JD), FCFS (Fig 6).

Law: all follows from the seed. Durations are Gaussian, what is below 0 is 0 ("rectified"); the estimate is
the mean. The running job counts with what is left of its bound, or whole (a reading).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from yarn_research.market.priced_jobs import ONE_SIDED_95

if TYPE_CHECKING:
    from numpy.typing import NDArray

Running = Literal["left", "whole"]


class DeadlineRecord(NamedTuple):
    """How deadlines were kept: the ratio of late jobs; earliness of the others, in mean durations."""

    late_ratio: float
    earliness: float


class Both(NamedTuple):
    """One cell of Fig 6: by summed bounds and by the joint distribution."""

    pi: DeadlineRecord
    jd: DeadlineRecord


def gaussian(rate: float, stdev: float, count: int, seed: int, running: Running = "left") -> Both:
    """Return a cell of Figs 6(a), 6(b): durations with mean 1."""
    chance = np.random.default_rng([seed, 6])
    arrived = np.cumsum(chance.exponential(1 / rate, count))
    durations = np.maximum(0.0, chance.normal(1.0, stdev, count))
    return kept(arrived, durations, np.ones(count), np.full(count, stdev), running)


def kept(
    arrived: NDArray[np.float64],
    durations: NDArray[np.float64],
    means: NDArray[np.float64],
    stdevs: NDArray[np.float64],
    running: Running = "left",
) -> Both:
    """Serve the jobs as they come on one server; promise each what both methods say at its arrival."""
    count = len(arrived)
    served = np.concatenate([[0.0], np.cumsum(durations)])
    ended = served[1:] + np.maximum.accumulate(arrived - served[:-1])
    first = np.minimum(np.searchsorted(ended, arrived, side="right"), np.arange(count))  # the one that runs
    runs = first < np.arange(count)
    began = np.maximum(arrived[first], np.where(first > 0, ended[first - 1], 0.0))
    elapsed = np.where(runs, arrived - began, 0.0) if running == "left" else np.zeros(count)
    bounds = means + ONE_SIDED_95 * stdevs
    pi = _left(bounds, first, runs, elapsed)
    spread = _left(stdevs**2, first, runs, np.zeros(count))
    jd = _left(means, first, runs, elapsed) + ONE_SIDED_95 * np.sqrt(spread)
    scale = float(durations.mean())
    return Both(_judged(arrived + pi, ended, scale), _judged(arrived + jd, ended, scale))


def _left(
    amounts: NDArray[np.float64],
    first: NDArray[np.int64],
    runs: NDArray[np.bool_],
    elapsed: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Add up what the running job has left, the waiting jobs, and the job itself."""
    count = len(amounts)
    sums = np.concatenate([[0.0], np.cumsum(amounts)])
    own = np.arange(count)
    waits = sums[own + 1] - sums[np.minimum(first + 1, own)]
    return np.where(runs, waits + np.maximum(0.0, amounts[first] - elapsed), amounts)


def _judged(deadlines: NDArray[np.float64], ended: NDArray[np.float64], scale: float) -> DeadlineRecord:
    late = ended > deadlines + 1e-9 * scale
    early = (deadlines - ended)[~late]
    return DeadlineRecord(float(late.mean()), float(early.mean()) / scale if len(early) else 0.0)
