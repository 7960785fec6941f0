"""Upper bounds on recorded run times: how often they are exceeded, and promises made of them.

Law: research/notes/paper.md (section MRM, Certified) has how it is judged; tables are split by configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarn_research.market.market_replay import replay
from yarn_research.market.priced_jobs import MarketOrder, PricedJobs
from yarn_research.market.recorded import Table
from yarn_research.market.regressions import REGRESSIONS, DurationSpread, fitted
from yarn_research.market.upper_bounds import conformal_deviations, widened_deviations
from yarnctl.prediction.bounded_times import least_calibrating

if TYPE_CHECKING:
    from numpy.typing import NDArray

CALIBRATING_MOST = 0.6
LOAD = 0.72


class Bounded(NamedTuple):
    """The durations of one split that were not learned from, and their bounds, in seconds."""

    duration_s: NDArray[np.float64]
    bound_s: NDArray[np.float64]

    @property
    def above_ratio(self) -> float:
        """The share of durations above their bound."""
        return float((self.duration_s > self.bound_s).mean())


def bounded(table: Table, seed: int, model: str = "gp") -> Bounded:
    """Learn from half of the configurations, bound the rest."""
    count = int(table.configuration.max()) + 1
    order = np.random.default_rng([seed, 8]).permutation(count)
    learned = count // 2
    step = least_calibrating() + 1
    calibrating = int(CALIBRATING_MOST * learned + 1) // step * step - 1
    if calibrating < least_calibrating():
        calibrating = 0
    fits = np.isin(table.configuration, order[calibrating:learned])
    rest = np.isin(table.configuration, order[learned:])
    predict = fitted(model, table.features[fits], table.duration_s[fits])
    if calibrating:
        held = np.isin(table.configuration, order[:calibrating])
        predicted: DurationSpread = predict(table.features[held])
        deviations = conformal_deviations(predicted, table.duration_s[held], table.configuration[held])
    else:
        deviations = widened_deviations(
            table.features[fits], table.duration_s[fits], table.configuration[fits], REGRESSIONS[model]
        )
    return Bounded(table.duration_s[rest], predict(table.features[rest]).at(deviations))


def above(table: Table, seeds: Sequence[int], model: str = "gp") -> list[float]:
    """Return the share above the bound in each split."""
    return [bounded(table, seed, model).above_ratio for seed in seeds]


def promises_late(tables: Sequence[Table], count: int, seed: int = 0) -> float:
    """Sell deadlines to so many jobs drawn from all tables; return the ratio of promises that are late."""
    pairs = [bounded(table, seed) for table in tables]
    scales = [float(pair.duration_s.mean()) for pair in pairs]
    durations = np.concatenate([pair.duration_s / scale for pair, scale in zip(pairs, scales, strict=True)])
    bounds = np.concatenate([pair.bound_s / scale for pair, scale in zip(pairs, scales, strict=True)])
    chance = np.random.default_rng([seed, 9])
    picked = chance.integers(0, len(durations), count)
    unit_ms = 36_000
    duration_ms = np.maximum(1, np.rint(durations[picked] * unit_ms)).astype(np.int64)
    estimate_ms = np.maximum(1, np.rint(bounds[picked] * unit_ms)).astype(np.int64)
    gaps_ms = chance.exponential(float(duration_ms.mean()) / LOAD, count)
    drawn = PricedJobs(
        np.cumsum(gaps_ms).astype(np.int64),
        duration_ms,
        estimate_ms,
        chance.permutation(np.arange(count) % 2 == 0),
    )
    found = replay(MarketOrder(count, unit_ms / LOAD / 1000), drawn)
    return float((found.ended_ms > found.deadline_ms).mean())
