"""Run times predicted from some of a table's rows: by a tree with lines, a plain tree, and one line.

Law: pure; a split follows from its seed. What is judged was neither learned from nor calibrated with. Rows of
one configuration are parted only where rows are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from yarnctl.prediction.bounded_times import BETA, Predicting, RunTable, bounded, tree_of
from yarnctl.prediction.model_tree import model_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

Model = Callable[["Numbers", "Numbers"], Predicting]

By = Literal["row", "configuration"]


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
    "model_tree": tree_of,  # ORiON section 4
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
    tree, bound = bounded(known, seed, beta)
    predicted = tree.predict(rest.features)
    return Late(
        float((rest.duration > predicted * bound.factor).mean()),
        float((rest.duration > predicted).mean()),
        bound.certified,
    )
