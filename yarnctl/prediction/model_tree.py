"""A regression tree with a line in each leaf: run times by input, settings and containers (ORiON section 4).

The same rows in, the same tree out. A split is chosen by the sum of squared errors (CART), ties by the lowest
feature and threshold. A leaf has at least two rows for each weight of its line. A prediction stays within the
range of its leaf's rows: lines that are continued go below zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

ROWS_EACH_WEIGHT = 2
RIDGE_EACH_ROW = 1e-3  # Added to the diagonal by row, where columns (s.d. 1) depend on each other
LEAF = -1


class TreeLeaf(NamedTuple):
    """``intercept`` + ``weights`` x features, kept within ``least`` and ``most``; of so many ``rows``.

    Its box is ``above`` < feature <= ``until`` (Alg 1: the rules from the leaf to the root).
    """

    intercept: float
    weights: Numbers
    least: float
    most: float
    rows: int
    above: Numbers
    until: Numbers


class ModelTree(NamedTuple):
    """``feature`` (LEAF: ``left`` is its number) and ``threshold`` by node; rows not above go ``left``."""

    feature: NDArray[np.int64]
    threshold: Numbers
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    leaves: tuple[TreeLeaf, ...]

    def leaf_of(self, features: Numbers) -> NDArray[np.int64]:
        """Return the number of each row's leaf."""
        node = np.zeros(len(features), dtype=np.int64)
        rows = np.arange(len(features))
        while (inner := self.feature[node] != LEAF).any():
            at = node[inner]
            below = features[rows[inner], self.feature[at]] <= self.threshold[at]
            node[inner] = np.where(below, self.left[at], self.right[at])
        return self.left[node]

    def predict(self, features: Numbers) -> Numbers:
        """Return the predicted value of each row."""
        number = self.leaf_of(features)
        found = np.empty(len(features))
        for each in np.unique(number):
            leaf, mine = self.leaves[each], number == each
            line = leaf.intercept + features[mine] @ leaf.weights
            found[mine] = np.clip(line, leaf.least, leaf.most)
        return found


class _Grown(NamedTuple):
    """The nodes and leaves while a tree is made."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    leaves: list[TreeLeaf]


def model_tree(
    features: Numbers, values: Numbers, *, lines: bool = True, least_rows: int | None = None
) -> ModelTree:
    """Return the tree of some rows (n x features, n); raises BadInput for none, or what is not finite.

    Without ``lines`` a leaf predicts its rows' mean; ``least_rows`` of a leaf are as for lines if not given.
    """
    if len(features) == 0 or len(features) != len(values):
        raise BadInput("runs", f"{len(features)} rows of features do not match {len(values)} values")
    if not (np.isfinite(features).all() and np.isfinite(values).all()):
        raise BadInput("runs", "a feature or a value is not finite", "remove the row")
    least_rows = least_rows or ROWS_EACH_WEIGHT * (features.shape[1] + 1)
    grown = _Grown([], [], [], [], [])
    edge = np.full(features.shape[1], np.inf)
    todo = [(np.arange(len(values)), -edge, edge, LEAF, False)]
    while todo:
        rows, above, until, parent, is_right = todo.pop()
        node = len(grown.feature)
        if parent != LEAF:
            (grown.right if is_right else grown.left)[parent] = node
        split = _split(features[rows], values[rows], least_rows)
        grown.feature.append(LEAF if split is None else split[0])
        grown.threshold.append(0.0 if split is None else split[1])
        grown.left.append(len(grown.leaves))
        grown.right.append(LEAF)
        if split is None:
            grown.leaves.append(_leaf(features[rows], values[rows], above, until, lines=lines))
            continue
        column, threshold = split
        below = features[rows, column] <= threshold
        upper, lower = until.copy(), above.copy()
        upper[column], lower[column] = threshold, threshold
        todo.append((rows[~below], lower, until, node, True))
        todo.append((rows[below], above, upper, node, False))
    return ModelTree(
        np.array(grown.feature),
        np.array(grown.threshold),
        np.array(grown.left),
        np.array(grown.right),
        tuple(grown.leaves),
    )


def _split(features: Numbers, values: Numbers, least_rows: int) -> tuple[int, float] | None:
    """Return the feature and threshold with the least squared error of both sides; None: none lessens it."""
    count = len(values)
    if count < 2 * least_rows:
        return None
    centred = values - values.mean()
    best_error = float((centred**2).sum()) * (1 - 1e-12)
    best: tuple[int, float] | None = None
    for column in range(features.shape[1]):
        order = np.argsort(features[:, column], kind="stable")
        at = features[order, column]
        sums = np.cumsum(centred[order])
        places = np.arange(least_rows, count - least_rows + 1)
        places = places[at[places - 1] < at[places]]
        if not len(places):
            continue
        explained = sums[places - 1] ** 2 / places + (sums[-1] - sums[places - 1]) ** 2 / (count - places)
        error = float((centred**2).sum()) - explained
        place = int(np.argmin(error))
        if error[place] < best_error - 1e-12 * abs(best_error):
            best_error = float(error[place])
            low, high = at[places[place] - 1], at[places[place]]
            middle = low + (high - low) / 2
            best = column, float(middle if middle < high else low)
    return best


def _leaf(features: Numbers, values: Numbers, above: Numbers, until: Numbers, *, lines: bool) -> TreeLeaf:
    weights = _weights(features, values) if lines else np.zeros(features.shape[1])
    intercept = float(values.mean() - features.mean(axis=0) @ weights)
    return TreeLeaf(intercept, weights, float(values.min()), float(values.max()), len(values), above, until)


def _weights(features: Numbers, values: Numbers) -> Numbers:
    """Return the least squares weights; with a ridge where columns depend on each other."""
    scale = features.std(axis=0)
    used = scale > 1e-12 * np.maximum(1.0, np.abs(features).max(axis=0))
    weights = np.zeros(features.shape[1])
    if not used.any():
        return weights
    columns = (features[:, used] - features[:, used].mean(axis=0)) / scale[used]
    normal = columns.T @ columns
    if len(values) <= columns.shape[1] or np.linalg.matrix_rank(columns, tol=1e-8 * len(values)) < len(
        normal
    ):
        normal = normal + RIDGE_EACH_ROW * len(values) * np.eye(len(normal))
    weights[used] = np.linalg.solve(normal, columns.T @ (values - values.mean())) / scale[used]
    return weights
