"""Run times predicted from some of a table's rows: by a tree with lines, a plain tree, and one line.

Law: pure; a split follows from its seed. What is judged was neither learned from nor calibrated with. Rows of
one configuration are parted only where rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from yarnctl.prediction.model_tree import model_tree
from yarnctl.prediction.options import RatioBound, ratio_bound
from yarnctl.prediction.upper_bounds import BETA, least_calibrating

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Predicting = Callable[["Numbers"], "Numbers"]
Model = Callable[["Numbers", "Numbers"], Predicting]

By = Literal["row", "configuration"]
CALIBRATING_RATIO = 0.25


class RunTable(NamedTuple):
    """Features by row (n x features), durations, and the number of the configuration."""

    features: Numbers
    duration: Numbers
    configuration: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.bool_]) -> RunTable:
        """Return some rows."""
        return RunTable(self.features[chosen], self.duration[chosen], self.configuration[chosen])

    @property
    def configurations(self) -> NDArray[np.int64]:
        """The numbers of its configurations."""
        return np.unique(self.configuration)


def _tree(features: Numbers, values: Numbers) -> Predicting:
    return model_tree(features, values).predict


def _plain_tree(features: Numbers, values: Numbers) -> Predicting:
    return model_tree(features, values, lines=False).predict


def _line(features: Numbers, values: Numbers) -> Predicting:
    def with_one(rows: Numbers) -> Numbers:
        return np.column_stack([np.ones(len(rows)), (rows - middle) / scale])

    middle, spread = features.mean(axis=0), features.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    weights = np.linalg.lstsq(with_one(features), values, rcond=None)[0]
    return lambda rows: with_one(rows) @ weights


MODELS: dict[str, Model] = {
    "model_tree": _tree,  # ORiON section 4
    "tree": _plain_tree,
    "line": _line,
}


def grown_tree(features: Numbers, values: Numbers) -> Predicting:
    """Return a plain tree with leaves of single rows: shown beside the models, judged by nothing."""
    return model_tree(features, values, lines=False, least_rows=1).predict


def parted(table: RunTable, share: float, seed: int, by: By) -> tuple[RunTable, RunTable]:
    """Return the rows to learn from (so many of all, at least two) and the rest, drawn by the seed."""
    units = table.configuration if by == "configuration" else np.arange(len(table.duration))
    numbers = np.unique(units)
    order = np.random.default_rng([seed, 17]).permutation(len(numbers))
    learned = numbers[order[: max(2, round(share * len(numbers)))]]
    chosen = np.isin(units, learned)
    return table.rows(chosen), table.rows(~chosen)


def quality(
    table: RunTable, share: float, seed: int, by: By, models: Mapping[str, Model] = MODELS
) -> dict[str, float]:
    """Return R^2 of each model on the rows that it did not learn from; -inf where these are all alike."""
    learned, rest = parted(table, share, seed, by)
    spread = float(((rest.duration - rest.duration.mean()) ** 2).sum())
    found = {}
    for name, fit in models.items():
        missed = rest.duration - fit(learned.features, learned.duration)(rest.features)
        found[name] = 1 - float((missed**2).sum()) / spread if spread > 0 else -np.inf
    return found


class Late(NamedTuple):
    """The share of judged runs that take longer than their bound, and than the prediction itself."""

    conformal: float
    point: float
    certified: bool


def late(table: RunTable, share: float, seed: int, beta: float = BETA) -> Late:
    """Learn and calibrate with a share of the configurations; judge the others."""
    known, rest = parted(table, share, seed, "configuration")
    predict, bound = bounded(known, seed, beta)
    predicted = predict(rest.features)
    return Late(
        float((rest.duration > predicted * bound.factor).mean()),
        float((rest.duration > predicted).mean()),
        bound.certified,
    )


def bounded(known: RunTable, seed: int, beta: float = BETA) -> tuple[Predicting, RatioBound]:
    """Return a prediction and the factor of its upper bound.

    A quarter of the configurations calibrates: the most of 19, 39, 59, ... (at 5 %), so that the share that
    is expected above the bound is beta, and not less. Where a quarter is fewer, each configuration is left
    out once, all others predict it, and the bound is as of all these ratios.
    """
    numbers = known.configurations
    step = least_calibrating(beta) + 1
    count = int(CALIBRATING_RATIO * len(numbers) + 1) // step * step - 1
    if count < least_calibrating(beta):
        return _left_out(known, beta)
    order = np.random.default_rng([seed, 18]).permutation(len(numbers))
    held = np.isin(known.configuration, numbers[order[:count]])
    fits, held_rows = known.rows(~held), known.rows(held)
    predict = _tree(fits.features, fits.duration)
    ratios = held_rows.duration / predict(held_rows.features)
    return predict, ratio_bound(list(ratios), list(held_rows.configuration), beta)


def _left_out(known: RunTable, beta: float) -> tuple[Predicting, RatioBound]:
    ratios = np.empty(len(known.duration))
    for number in known.configurations:
        out = known.configuration == number
        if out.all():  # one configuration: it has nothing to be predicted from
            ratios[out] = known.duration / known.duration.mean()
            continue
        others = known.rows(~out)
        ratios[out] = known.duration[out] / _tree(others.features, others.duration)(known.features[out])
    bound = ratio_bound(list(ratios), list(known.configuration), beta)
    return _tree(known.features, known.duration), bound
