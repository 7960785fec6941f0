"""Estimates of jobs that have never run, from all jobs that have: a Gaussian process, MRM's ``gp``.

The logarithm of a job's work is a line in the logarithm of the containers that it can use, a curved part, and
noise (Rasmussen and Williams, Gaussian Processes for Machine Learning, section 2.2). Of a few lengths and
variances those with the greatest marginal likelihood count (section 5.4.1); no chance is in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.deciding.admission.records import Estimate, Finished

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

JOBS_LEAST, JOBS_MAX = 10, 400
"""From fewer jobs nothing is estimated; of more the newest count."""
CURVED, LENGTHS = (1e-6, 0.1, 1.0), (0.7, 2.0)
NOISES = (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0)
LINE = 1.0
"""Variance of the line; inputs and outputs are scaled to mean 0 and variance 1."""


class _Scale(NamedTuple):
    mean: float
    unit: float

    def of(self, numbers: Numbers) -> Numbers:
        return (numbers - self.mean) / self.unit


def unseen_estimate(finished: Sequence[Finished], containers: int) -> Estimate | None:
    """Return the work of a job that can use so many containers, in container-ms; None: too few jobs ran."""
    jobs = [each for each in finished if each.used_ms > 0 and each.tasks > 0][-JOBS_MAX:]
    if len(jobs) < JOBS_LEAST:
        return None
    asked = np.log1p([each.tasks for each in jobs])
    values = np.log([each.used_ms for each in jobs])
    across, along = _scale(asked), _scale(values)
    centre, variance = _fitted(across.of(asked), along.of(values), across.of(np.log1p([containers])))
    middle, spread = centre * along.unit + along.mean, variance * along.unit**2
    mean_ms = math.exp(middle + spread / 2)
    return Estimate(
        mean_ms=round(mean_ms),
        stdev_ms=round(mean_ms * math.sqrt(math.expm1(spread))),
        source=f"gp:{len(jobs)} other jobs",
    )


def _scale(numbers: Numbers) -> _Scale:
    return _Scale(float(numbers.mean()), float(numbers.std()) or 1.0)


def _kernel(left: Numbers, right: Numbers, curved: float, length: float) -> Numbers:
    apart = (left[:, None] - right[None, :]) / length
    found: Numbers = LINE * left[:, None] * right[None, :] + curved * np.exp(-0.5 * apart**2)
    return found


def _fitted(rows: Numbers, values: Numbers, asked: Numbers) -> tuple[float, float]:
    """Return mean and variance, with noise, of a new value at ``asked``."""
    best: tuple[float, float, float] | None = None
    for curved, length, noise in product(CURVED, LENGTHS, NOISES):
        whole = _kernel(rows, rows, curved, length) + noise * np.eye(len(rows))
        lower = np.linalg.cholesky(whole)
        half = np.linalg.solve(lower, values)
        likelihood = -0.5 * float(half @ half) - float(np.log(np.diag(lower)).sum())
        if best is None or likelihood > best[0]:
            beside = np.linalg.solve(lower, _kernel(rows, asked, curved, length))[:, 0]
            own = float(_kernel(asked, asked, curved, length)[0, 0])
            best = likelihood, float(beside @ half), max(0.0, own - float(beside @ beside)) + noise
    assert best is not None
    return best[1], best[2]
