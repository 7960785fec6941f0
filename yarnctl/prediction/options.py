"""The inverse query: with how many containers and which settings is an application done how soon?

Law: exact, without a solver. The cost is price x containers x time, so for a number of containers the
cheapest is the fastest. Within a leaf's box the line is least where each tunable is at the end that its
weight says; so all the integer programs of ORiON (section 5) are one option for each number of containers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.errors import BadInput
from yarnctl.prediction.model_tree import ModelTree, TreeLeaf

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPTIONS_MAX = 64
"""So many reach the deciding half and the journal."""


class Tunable(NamedTuple):
    """A setting that may be chosen: its ``columns``, and the values that each choice gives them.

    A number has one column; a word has one for each of its values (one-hot).
    """

    name: str
    columns: tuple[int, ...]
    choices: tuple[tuple[float, ...], ...]


class InverseQuery(NamedTuple):
    """What is asked: the features as given (a row; what is tuned is not read), and what may be chosen.

    ``containers``: the column of their number, and the numbers to try.
    """

    features: tuple[float, ...]
    containers_column: int
    containers: tuple[int, ...]
    tunables: tuple[Tunable, ...] = ()


class TunedOption(NamedTuple):
    """The fastest for a number of containers: the choice of each tunable, by its place, and the time."""

    containers: int
    chosen: tuple[int, ...]
    predicted: float


def tuned_options(tree: ModelTree, asked: InverseQuery) -> tuple[TunedOption, ...]:
    """Return the fastest for each number of containers that any leaf allows, in their order.

    Of equal times the first leaf counts, and in it the first choice. Raises BadInput for too many.
    """
    if len(asked.containers) > OPTIONS_MAX:
        told = f"{len(asked.containers)} numbers of containers are too many"
        raise BadInput("containers", told, f"name at most {OPTIONS_MAX}")
    fixed = _fixed(asked)
    found = []
    for count in sorted(set(asked.containers)):
        row = np.array(asked.features, dtype=np.float64)
        row[asked.containers_column] = count
        best: TunedOption | None = None
        for each in _in_leaves(tree, asked, row, fixed):
            if best is None or each.predicted < best.predicted:
                best = each
        if best is not None:
            found.append(best)
    return tuple(found)


def _fixed(asked: InverseQuery) -> NDArray[np.bool_]:
    """Return which columns are given, the number of containers among them."""
    fixed = np.ones(len(asked.features), dtype=np.bool_)
    for tunable in asked.tunables:
        fixed[list(tunable.columns)] = False
    return fixed


def _in_leaves(
    tree: ModelTree, asked: InverseQuery, row: NDArray[np.float64], fixed: NDArray[np.bool_]
) -> Iterator[TunedOption]:
    """Yield the fastest of each leaf that the given columns, and some choice of each tunable, are in."""
    count = int(row[asked.containers_column])
    for leaf in tree.leaves:
        inside = (row > leaf.above) & (row <= leaf.until)
        if not inside[fixed].all():
            continue
        line = leaf.intercept + float(row[fixed] @ leaf.weights[fixed])
        chosen = []
        for tunable in asked.tunables:
            best = _best(leaf, tunable)
            if best is None:
                break
            chosen.append(best[0])
            line += best[1]
        else:
            yield TunedOption(count, tuple(chosen), min(max(line, leaf.least), leaf.most))


def _best(leaf: TreeLeaf, tunable: Tunable) -> tuple[int, float] | None:
    """Return the place of the choice within a leaf's box that adds the least, and what it adds."""
    columns = list(tunable.columns)
    above, until, weights = leaf.above[columns], leaf.until[columns], leaf.weights[columns]
    found, least = None, math.inf
    for place, values in enumerate(tunable.choices):
        given = np.array(values)
        added = float(given @ weights)
        if added < least and bool(((given > above) & (given <= until)).all()):
            found, least = place, added
    return None if found is None else (found, least)


class RatioBound(NamedTuple):
    """By which factor of its prediction a run is bounded.

    ``certified``: enough configurations calibrated it; else it is the largest ratio that was seen.
    """

    factor: float
    certified: bool


def ratio_bound(ratios: Sequence[float], configuration: Sequence[int], beta: float) -> RatioBound:
    """Return the factor that a further configuration's run exceeds with probability beta at most.

    Split conformal (``upper_bounds``): of the ratios run / predicted of runs that were not learned from, the
    smallest that leaves beta of the weight above, each configuration and the one to come weighing the same.
    Raises BadInput without a ratio.
    """
    if not ratios:
        raise BadInput("runs", "none is left to calibrate a bound", "profile more runs")
    found = np.asarray(ratios, dtype=np.float64)
    _, number, count = np.unique(np.asarray(configuration), return_inverse=True, return_counts=True)
    weights = 1.0 / (count[number] * (len(count) + 1))
    order = np.argsort(found, kind="stable")
    place = int(np.searchsorted(np.cumsum(weights[order]), 1 - beta - 1e-12))
    if place >= len(found):
        return RatioBound(float(found.max()), False)
    return RatioBound(float(found[order][place]), True)
