"""From known runs to options: as what is an application done how soon?

The same runs give the same options. A kind with fewer than ``RUNS_LEAST`` usable runs has none. Of settings
only values that were run are chosen from, and containers lie between the fewest and the most that were run:
nothing is predicted where nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.deciding.admission.placement_options import OPTIONS_MAX, PlacementOption
from yarnctl.errors import BadInput
from yarnctl.prediction.application_runs import KnownRun
from yarnctl.prediction.bounded_times import RunTable, bounded
from yarnctl.prediction.model_tree import ModelTree, model_tree
from yarnctl.prediction.options import InverseQuery, RatioBound, Tunable, ratio_bound, tuned_options

if TYPE_CHECKING:
    from numpy.typing import NDArray

RUNS_LEAST = 3  # From fewer runs of a kind nothing is predicted
FOLDS_MAX = 10  # The configurations are left out in this many parts, where each by itself would take too long
POINT = 0.5  # From this chance on the prediction itself is the bound, as in the paper
PROFILE = "run yarnctl profile APP.toml"

TunablesByKind = Mapping[str, Mapping[str, Sequence[str]]]


class PredictedOptions(NamedTuple):
    """The options, and the kinds of which too few runs are known."""

    options: tuple[PlacementOption, ...]
    lacking: tuple[str, ...]


class RunsOfKind(NamedTuple):
    """Usable runs of one kind in columns: containers, then ``features``, then the values of settings."""

    runs: tuple[KnownRun, ...]
    features: tuple[str, ...]
    tunables: tuple[Tunable, ...]
    words: Mapping[str, tuple[str, ...]]
    constant: Mapping[str, str]

    def table(self) -> RunTable:
        """Return the runs as rows; runs alike in all features are one configuration."""
        rows = np.array([self.row(run) for run in self.runs], dtype=np.float64)
        _, number = np.unique(rows, axis=0, return_inverse=True)
        elapsed = np.array([run.elapsed_ms for run in self.runs], dtype=np.float64)
        return RunTable(rows, elapsed, number.reshape(-1).astype(np.int64))

    def row(self, run: KnownRun) -> list[float]:
        """Return the columns of a run."""
        settings = [
            float(run.settings.get(name) == word) for name, words in self.words.items() for word in words
        ]
        return [float(run.containers), *(run.features[name] for name in self.features), *settings]


def predicted_options(
    runs: Iterable[KnownRun],
    application: str,
    features: Mapping[str, float],
    kinds: TunablesByKind,
    late_ratio: float,
) -> PredictedOptions:
    """Return what an application with these features may be run as, of ``kinds`` with what may be tuned.

    ``late_ratio``: the chance to exceed an upper bound (``POINT`` and more: the prediction is the bound).
    Raises BadInput for a feature that its runs have and that is not given, or that is no number.
    """
    known = [run for run in runs if run.application == application and run.kind in kinds]
    require_features(known, features)
    options, lacking = list[PlacementOption](), list[str]()
    for kind in sorted(kinds):
        found = runs_of_kind([run for run in known if run.kind == kind], features, kinds[kind])
        if len(found.runs) < RUNS_LEAST:
            lacking.append(kind)
        else:
            options += _options(kind, found, features, late_ratio, OPTIONS_MAX // len(kinds))
    return PredictedOptions(tuple(options), tuple(lacking))


def require_features(runs: Iterable[KnownRun], features: Mapping[str, float]) -> None:
    """Raise BadInput for a feature that is not finite, or that runs have and that is not given."""
    odd = next((name for name, value in features.items() if not np.isfinite(value)), None)
    if odd is not None:
        raise BadInput(f"features: {odd[:60]}", "is not a finite number", "use a number")
    missing = sorted({name for run in runs for name in run.features} - set(features))
    if missing:
        problem = "is missing, but the known runs have it"
        raise BadInput(f"features: {missing[0][:60]}", problem, f"write features = {{ {missing[0]} = ... }}")


def runs_of_kind(
    runs: Sequence[KnownRun], features: Mapping[str, float], tunables: Mapping[str, Sequence[str]]
) -> RunsOfKind:
    """Return the runs of one kind that have these features, with what may be chosen by them."""
    names = tuple(sorted({name for run in runs for name in run.features} & set(features)))
    used = tuple(run for run in runs if set(names) <= set(run.features))
    words: dict[str, tuple[str, ...]] = {}
    constant: dict[str, str] = {}
    for name in sorted(tunables):
        there = {run.settings.get(name) for run in used}
        seen = tuple(value for value in tunables[name] if value in there)
        if len(seen) == 1:
            constant[name] = seen[0]
        elif seen:
            words[name] = seen
    column, made = 1 + len(names), list[Tunable]()
    for name, values in words.items():
        choices = tuple(tuple(float(value == word) for word in values) for value in values)
        made.append(Tunable(name, tuple(range(column, column + len(values))), choices))
        column += len(values)
    return RunsOfKind(used, names, tuple(made), words, constant)


def fitted(table: RunTable, late_ratio: float) -> tuple[ModelTree, RatioBound]:
    """Return the tree of some runs and the factor of its bounds."""
    if late_ratio >= POINT:
        return model_tree(table.features, table.duration), RatioBound(1.0, False)
    tree, bound = bounded(table, 0, late_ratio)
    return tree, bound if bound.certified else repeated_bound(table, late_ratio) or bound


def repeated_bound(table: RunTable, late_ratio: float) -> RatioBound | None:
    """Return the largest ratio of runs that were left out one by one; None where one was not repeated.

    From few configurations nothing is certified in any case. Where each was run more than once, a run is
    predicted from the others of its own configuration, too, as most options are: of those profiled.
    """
    if np.unique(table.configuration, return_counts=True)[1].min() < 2:
        return None
    ratios = []
    for place in range(len(table.duration)):
        out = np.arange(len(table.duration)) == place
        others = table.rows(~out)
        predicted = model_tree(others.features, others.duration).predict(table.features[out])
        ratios.append(float(table.duration[place] / predicted[0]))
    return RatioBound(ratio_bound(ratios, list(table.configuration), late_ratio).factor, False)


def _options(
    kind: str, runs: RunsOfKind, features: Mapping[str, float], late_ratio: float, most: int
) -> list[PlacementOption]:
    table = runs.table()
    counts = _numbers(table.features[:, 0], most)
    row = (0.0, *(features[name] for name in runs.features), *[0.0] * sum(map(len, runs.words.values())))
    tree, bound = fitted(table, late_ratio)
    found = []
    for each in tuned_options(tree, InverseQuery(row, 0, counts, runs.tunables)):
        chosen = zip(runs.tunables, each.chosen, strict=True)
        settings = {tunable.name: runs.words[tunable.name][place] for tunable, place in chosen}
        predicted_ms = max(1, round(each.predicted))
        found.append(
            PlacementOption(
                kind,
                each.containers,
                predicted_ms,
                max(1, round(each.predicted * bound.factor)),
                tuple(sorted({**runs.constant, **settings}.items())),
                late_ratio=late_ratio if bound.certified else None,
            )
        )
    return found


def _numbers(containers: NDArray[np.float64], most: int) -> tuple[int, ...]:
    numbers = np.arange(int(containers.min()), int(containers.max()) + 1)
    if len(numbers) > most:
        numbers = np.unique(np.linspace(numbers[0], numbers[-1], most).round().astype(np.int64))
    return tuple(int(each) for each in numbers)


class LearnedKind(NamedTuple):
    """How well the runs of one application and kind are predicted.

    ``r2`` is of runs that were left out, whole configurations at a time (None: it is not known);
    ``covered_ratio``: the share of them below the bound that the others give.
    """

    application: str
    kind: str
    runs: int
    r2: float | None
    covered_ratio: float | None


def learned_kinds(runs: Iterable[KnownRun], late_ratio: float) -> list[LearnedKind]:
    """Return for each application and kind how well its runs are predicted by the other ones."""
    groups: dict[tuple[str, str], list[KnownRun]] = {}
    for run in runs:
        groups.setdefault((run.application, run.kind), []).append(run)
    return [
        _learned(application, kind, group, late_ratio)
        for (application, kind), group in sorted(groups.items())
    ]


def _learned(application: str, kind: str, runs: Sequence[KnownRun], late_ratio: float) -> LearnedKind:
    tunables: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, value in run.settings.items():
            tunables.setdefault(name, {})[value] = None
    features = dict.fromkeys(set.intersection(*(set(run.features) for run in runs)), 0.0)
    known = runs_of_kind(runs, features, {name: tuple(values) for name, values in tunables.items()})
    table = known.table()
    numbers = table.configurations
    if len(numbers) < RUNS_LEAST:
        return LearnedKind(application, kind, len(runs), None, None)
    missed, below = 0.0, 0
    folds = min(FOLDS_MAX, len(numbers))
    for fold in range(folds):
        out = table.configuration % folds == fold
        tree, bound = fitted(table.rows(~out), late_ratio)
        predicted = tree.predict(table.features[out])
        missed += float(((table.duration[out] - predicted) ** 2).sum())
        below += int((table.duration[out] <= predicted * bound.factor).sum())
    spread = float(((table.duration - table.duration.mean()) ** 2).sum())
    r2 = 1 - missed / spread if spread > 0 else None
    return LearnedKind(application, kind, len(runs), r2, below / len(table.duration))
