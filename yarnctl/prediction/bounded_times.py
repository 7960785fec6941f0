"""Run times predicted from known runs, and by which factor of a prediction a run is bounded.

A split follows from its seed. A bound comes from ratios of runs that a prediction was not learned from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.prediction.model_tree import ModelTree, model_tree
from yarnctl.prediction.options import RatioBound, ratio_bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Predicting = Callable[["Numbers"], "Numbers"]
CALIBRATING_RATIO = 0.25
BETA = 0.05  # The chance that a run exceeds its upper bound, if none is given
MOST_CONFIGURATIONS = 1 << 53  # More than there can be: cuts the inverse of the smallest beta


def least_calibrating(beta: float = BETA) -> int:
    """Return the fewest configurations that suffice for so small a probability: 19 for 5 %."""
    return math.ceil(min(1 / beta, MOST_CONFIGURATIONS) - 1e-9) - 1


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


def tree_of(features: Numbers, values: Numbers) -> Predicting:
    """Return what a tree with lines predicts of further rows (ORiON section 4)."""
    return model_tree(features, values).predict


def bounded(table: RunTable, seed: int, beta: float = BETA) -> tuple[ModelTree, RatioBound]:
    """Return a tree and the factor of its upper bounds.

    A quarter of the configurations calibrates: the most of 19, 39, 59, ... (at 5 %), so that the share that
    is expected above the bound is beta, and not less. Where a quarter is fewer, each configuration is left
    out once, all others predict it, and the bound is as of all these ratios.
    """
    numbers = table.configurations
    step = least_calibrating(beta) + 1
    count = int(CALIBRATING_RATIO * len(numbers) + 1) // step * step - 1
    if count < least_calibrating(beta):
        return _left_out(table, beta)
    order = np.random.default_rng([seed, 18]).permutation(len(numbers))
    held = np.isin(table.configuration, numbers[order[:count]])
    fits, held_rows = table.rows(~held), table.rows(held)
    tree = model_tree(fits.features, fits.duration)
    ratios = held_rows.duration / tree.predict(held_rows.features)
    return tree, ratio_bound(list(ratios), list(held_rows.configuration), beta)


def _left_out(table: RunTable, beta: float) -> tuple[ModelTree, RatioBound]:
    ratios = np.empty(len(table.duration))
    for number in table.configurations:
        out = table.configuration == number
        if out.all():  # one configuration: it has nothing to be predicted from
            ratios[out] = table.duration / table.duration.mean()
            continue
        others = table.rows(~out)
        ratios[out] = table.duration[out] / tree_of(others.features, others.duration)(table.features[out])
    bound = ratio_bound(list(ratios), list(table.configuration), beta)
    return model_tree(table.features, table.duration), bound
