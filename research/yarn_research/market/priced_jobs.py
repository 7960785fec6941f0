"""The jobs of MRM's section 6.3: durations, wrong estimates, arrivals, which are sensitive.

Law: all follows from the seed. Durations are calibrated on Table 8's tolerant row alone; research/notes/paper.md
says how, and why their mean is 36 s.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
import numpy as np

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERROR_S = 4.8
"""The standard deviation of the noise (section 6.3)."""
ONE_SIDED_95 = 1.64
"""The paper's z of a one-sided 95 % bound."""
ESTIMATE_S = 43.87
"""The mean estimate: Table 7's slack in an empty queue is one mean *estimated* duration."""
MEAN_S = ESTIMATE_S - ONE_SIDED_95 * ERROR_S
"""The mean duration."""
HALF_NORMAL_S = 0.9 * ERROR_S * math.sqrt(2 / math.pi)
"""The mean noise of the other reading."""
PREMIUM_P95 = 1.49
"""Table 8, tolerant: the 95th percentile of estimate over duration."""
DISTINCT = 100
"""The paper's run had 100 jobs."""

Noise = Literal["shifted", "half-normal"]
Q = Literal["waiting", "all"]
SlackFrom = Literal["now", "finish"]


class Readings(msgspec.Struct, frozen=True):
    """Where the paper has nothing or two things: ours first (research/notes/paper.md, section MRM)."""

    noise: Noise = "shifted"
    queue: Q = "waiting"
    slack_from: SlackFrom = "now"


OURS = Readings()


def readings(chosen: Sequence[str]) -> Readings:
    """Read NAME=VALUE; raises BadInput for what is not known."""
    known = f"one of {', '.join(Readings.__struct_fields__)}; see research/notes/paper.md, section MRM"
    given = {}
    for each in chosen:
        name, equals, value = each.partition("=")
        if not equals or name not in Readings.__struct_fields__:
            raise BadInput(f"--choose {each[:40]!r}", "is not NAME=VALUE with a known name", known)
        given[name] = value
    try:
        return msgspec.convert({**msgspec.to_builtins(OURS), **given}, Readings)
    except msgspec.ValidationError as error:
        raise BadInput("--choose", str(error), known) from None


class MarketOrder(NamedTuple):
    """One cell of section 6.3: ``alpha`` and ``tolerant`` are budgets in multiples of p_j."""

    jobs: int
    inter_arrival_s: float
    alpha: float = 2.0
    kappa: float = 2.0
    tolerant: float = 1.0
    scheduler: str = "mrm"
    seed: int = 0
    readings: Readings = OURS


class PricedJobs(NamedTuple):
    """Jobs in the order of their arrival, in columns of milliseconds."""

    arrived_ms: NDArray[np.int64]
    duration_ms: NDArray[np.int64]
    estimate_ms: NDArray[np.int64]
    sensitive: NDArray[np.bool_]

    @property
    def mean_ms(self) -> float:
        """The mean estimated duration, by which slack is normalised."""
        return float(self.estimate_ms.mean())


def spread(variation: float) -> NDArray[np.float64]:
    """Return 100 quantiles of a log-normal with mean MEAN_S and this coefficient of variation."""
    sigma = math.sqrt(math.log(1 + variation**2))
    normal = NormalDist()
    logs = np.array([sigma * normal.inv_cdf((each + 0.5) / DISTINCT) for each in range(DISTINCT)])
    found = np.exp(logs)
    return np.asarray(found * (MEAN_S / found.mean()), dtype=np.float64)


def premium(durations_s: NDArray[np.float64], ratio: float) -> float:
    """Return the quantile of estimate over duration, by halving its distribution function."""
    normal = NormalDist()
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        below = [normal.cdf((middle - 1) * each / ERROR_S - ONE_SIDED_95) for each in durations_s]
        low, high = (middle, high) if math.fsum(below) / len(below) < ratio else (low, middle)
    return (low + high) / 2


@cache
def variation() -> float:
    """Return the coefficient of variation under which Table 8's tolerant 95th percentile is met."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        found = premium(spread(middle), 0.95)
        low, high = (middle, high) if found < PREMIUM_P95 else (low, middle)
    return (low + high) / 2


def jobs(asked: MarketOrder) -> PricedJobs:
    """Draw the jobs of one cell; durations, noise and users do not depend on the arrivals."""
    count = asked.jobs
    chance = np.random.default_rng([asked.seed, 1])
    rounds = -(-count // DISTINCT)
    order = np.concatenate([chance.permutation(DISTINCT) for _ in range(rounds)])[:count]
    shift_s = ONE_SIDED_95 * ERROR_S if asked.readings.noise == "shifted" else HALF_NORMAL_S
    duration_s = spread(variation())[order] * ((ESTIMATE_S - shift_s) / MEAN_S)
    estimate_s = duration_s + _noise(np.random.default_rng([asked.seed, 2]), count, asked.readings.noise)
    gaps_s = np.random.default_rng([asked.seed, 3]).exponential(asked.inter_arrival_s, count)
    sensitive = np.random.default_rng([asked.seed, 4]).permutation(np.arange(count) % 2 == 0)
    return PricedJobs(
        np.cumsum(gaps_s * 1000).astype(np.int64),
        np.maximum(1, np.rint(duration_s * 1000)).astype(np.int64),
        np.maximum(1, np.rint(estimate_s * 1000)).astype(np.int64),
        sensitive,
    )


def _noise(chance: np.random.Generator, count: int, noise: Noise) -> NDArray[np.float64]:
    drawn = chance.normal(0.0, ERROR_S, count)
    if noise == "shifted":
        return ONE_SIDED_95 * ERROR_S + drawn
    return np.where(chance.random(count) < 0.95, np.abs(drawn), -np.abs(drawn))
