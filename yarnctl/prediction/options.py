"""The inverse query: with how many containers and which settings is an application done how soon?

Exact, without a solver. The cost is price x containers x time, so for a number of containers the cheapest is
the fastest. Within a leaf's box the line is least where each tunable is at the end that its weight says; so
all the integer programs of ORiON (section 5) are one option for each number of containers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.errors import BadInput
from yarnctl.prediction.model_tree import ModelTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTIONS_MAX = 64  # This many reach the deciding half and the journal


class Tunable(NamedTuple):
    """A setting to choose: its ``columns`` (of words one for each value), and each choice's values."""

    name: str
    columns: tuple[int, ...]
    choices: tuple[tuple[float, ...], ...]


class InverseQuery(NamedTuple):
    """The given features (tuned ones are not read), and the choices; ``containers``: numbers to try."""

    features: tuple[float, ...]
    containers_column: int
    containers: tuple[int, ...]
    tunables: tuple[Tunable, ...] = ()


class TunedOption(NamedTuple):
    """The fastest for a number of containers: the choice of each tunable, by its place, and the time."""

    containers: int
    chosen: tuple[int, ...]
    predicted: float


class _LeafColumns(NamedTuple):
    """The leaves of a tree in columns: boxes and weights are leaves x features."""

    above: NDArray[np.float64]
    until: NDArray[np.float64]
    weights: NDArray[np.float64]
    intercept: NDArray[np.float64]
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def tuned_options(tree: ModelTree, query: InverseQuery) -> tuple[TunedOption, ...]:
    """Return the fastest for each number of containers that a leaf allows; BadInput for too many."""
    if len(query.containers) > OPTIONS_MAX:
        problem = f"{len(query.containers)} numbers of containers exceed the maximum of {OPTIONS_MAX}"
        raise BadInput("containers", problem, "give fewer")
    leaves = _in_columns(tree)
    row, fixed, column = np.array(query.features, dtype=np.float64), _fixed(query), query.containers_column
    inside = ((row > leaves.above) & (row <= leaves.until))[:, fixed].all(axis=1)
    line = leaves.intercept + leaves.weights[:, fixed] @ row[fixed]
    chosen = []
    for tunable in query.tunables:
        place, added = _best(leaves, tunable)
        inside &= np.isfinite(added)
        line += added
        chosen.append(place)
    found = []
    for count in sorted(set(query.containers)):
        allowed = inside & (count > leaves.above[:, column]) & (count <= leaves.until[:, column])
        if not allowed.any():
            continue
        times = np.clip(line + count * leaves.weights[:, column], leaves.least, leaves.most)
        leaf = int(np.argmin(np.where(allowed, times, np.inf)))
        found.append(TunedOption(count, tuple(int(place[leaf]) for place in chosen), float(times[leaf])))
    return tuple(found)


def _in_columns(tree: ModelTree) -> _LeafColumns:
    return _LeafColumns(
        np.array([leaf.above for leaf in tree.leaves]),
        np.array([leaf.until for leaf in tree.leaves]),
        np.array([leaf.weights for leaf in tree.leaves]),
        np.array([leaf.intercept for leaf in tree.leaves]),
        np.array([leaf.least for leaf in tree.leaves]),
        np.array([leaf.most for leaf in tree.leaves]),
    )


def _fixed(query: InverseQuery) -> NDArray[np.bool_]:
    fixed = np.ones(len(query.features), dtype=np.bool_)
    fixed[query.containers_column] = False
    for tunable in query.tunables:
        fixed[list(tunable.columns)] = False
    return fixed


def _best(leaf_columns: _LeafColumns, tunable: Tunable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return by leaf the place of the choice in its box that adds the least, and what it adds (none: inf)."""
    columns = list(tunable.columns)
    choices = np.array(tunable.choices)
    above, until = leaf_columns.above[:, None, columns], leaf_columns.until[:, None, columns]
    inside = ((choices > above) & (choices <= until)).all(axis=2)
    added = np.where(inside, leaf_columns.weights[:, columns] @ choices.T, np.inf)
    return np.argmin(added, axis=1), added.min(axis=1)


class RatioBound(NamedTuple):
    """By which factor of its prediction a run is bounded.

    ``certified``: enough configurations calibrated it; else it is the largest ratio that was seen.
    """

    factor: float
    certified: bool


def ratio_bound(ratios: Sequence[float], configuration: Sequence[int], beta: float) -> RatioBound:
    """Return the factor that a further configuration's run exceeds with probability beta at most.

    Split conformal: of the ratios run / predicted of runs that were not learned from, the smallest that
    leaves beta of the weight above, each configuration and the one to come weighing the same. Raises BadInput
    without a ratio.
    """
    if not ratios:
        raise BadInput("runs", "no run is left to calibrate an upper bound", "profile more runs")
    found = np.asarray(ratios, dtype=np.float64)
    _, number, count = np.unique(np.asarray(configuration), return_inverse=True, return_counts=True)
    weights = 1.0 / (count[number] * (len(count) + 1))
    order = np.argsort(found, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[order]), 1 - beta - 1e-12))
    if place >= len(found):
        return RatioBound(float(found.max()), False)
    return RatioBound(float(found[order][place]), True)
