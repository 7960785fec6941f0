"""Upper bounds on durations that are exceeded with probability beta.

Law: a bound is a number of predicted standard deviations above the centre. *Gaussian* uses the quantile of
the normal distribution; from few configurations it is *widened*. *Split conformal* uses the quantile of the
deviations of runs that were not fitted; runs of one configuration count as one, so that repetitions do not
add certainty, and how often it is exceeded holds whatever the distribution is.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from yarnctl.prediction.bounded_times import BETA

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from yarn_research.market.regressions import DurationSpread, Regression


def gaussian_deviations(beta: float = BETA) -> float:
    """Return z: 1.64 for 5 %."""
    return NormalDist().inv_cdf(1 - beta)


def student_deviations(freedom: int, beta: float = BETA) -> float:
    """Return the quantile of Student's t: instead of z where the spread is known from few runs."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    low, high = 0.0, 1e3
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        # the integral of the density from 0, by Simpson's rule in the angle whose tangent is t
        angle = math.atan(middle / math.sqrt(freedom))
        steps = [math.cos(angle * each / 200) ** (freedom - 1) for each in range(201)]
        parts = steps[0] + steps[-1] + 4 * sum(steps[1:-1:2]) + 2 * sum(steps[2:-1:2])
        reached = scale * math.sqrt(freedom) * angle / 600 * parts
        low, high = (middle, high) if 0.5 - reached > beta else (low, middle)
    return (low + high) / 2


def widened_deviations(
    features: NDArray[np.float64],
    durations: NDArray[np.float64],
    configuration: NDArray[np.int64],
    fit: Regression,
    beta: float = BETA,
) -> float:
    """Return the deviations of a Gaussian bound from few configurations.

    Each configuration is left out once and predicted from the others: the root mean square of its errors
    widens the spread (never narrows it), and Student's t replaces the normal distribution.
    """
    squares = []
    for left_out in np.unique(configuration):
        rest = configuration != left_out
        scores = fit(features[rest], durations[rest])(features[~rest]).deviations(durations[~rest])
        squares.append(float((scores**2).mean()))
    wider = max(1.0, math.sqrt(math.fsum(squares) / len(squares)))
    return wider * student_deviations(len(squares) - 1, beta)


def conformal_deviations(
    predicted: DurationSpread,
    durations: NDArray[np.float64],
    configuration: NDArray[np.int64],
    beta: float = BETA,
) -> float:
    """Return the deviations that calibrating runs needed, with one configuration more that needs infinity.

    The smallest t for which at most beta of the weight is above, each configuration (and the one to come)
    weighing the same. Infinite with fewer than ``least_calibrating`` configurations.
    """
    scores = predicted.deviations(durations)
    _, number, count = np.unique(configuration, return_inverse=True, return_counts=True)
    weights = 1.0 / (count[number] * (len(count) + 1))
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weights[order])
    place = int(np.searchsorted(reached, 1 - beta - 1e-12))
    return float(scores[order][place]) if place < len(scores) else math.inf
