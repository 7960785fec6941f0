"""The model tree and the inverse query, held against trees by hand, brute force, and an integer program."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from tests.thoroughness import is_thorough
from yarnctl.errors import BadInput
from yarnctl.prediction import model_tree as trees
from yarnctl.prediction import options as inverse
from yarnctl.prediction.model_tree import LEAF, ModelTree, model_tree
from yarnctl.prediction.options import InverseQuery, RatioBound, Tunable, ratio_bound, tuned_options

TREES = 500 if is_thorough() else 60


def rows_of(seed: int, count: int = 120, columns: int = 4):
    chance = np.random.default_rng(seed)
    features = np.column_stack(
        [chance.integers(1, 9, count), chance.integers(0, 2, count), chance.choice([640, 1024, 2048], count)]
        + [chance.integers(1, 5, count) for _ in range(columns - 3)]
    ).astype(float)
    steps = np.where(features[:, 0] > 4, 3.0, 1.0) * (1 + features[:, 1])
    values = steps * 1000 / features[:, 0] + features[:, 2] / 10 + chance.normal(0, 20, count)
    return features, values


# --- the tree -----------------------------------------------------------------------------------------------


def test_a_tree_by_hand() -> None:
    """One feature: 10 x to 5, then 200 - x. Twelve rows: leaves of at least four, so one split, at 5.5."""
    at = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    values = np.where(at <= 5, 10 * at, 200 - at)
    tree = model_tree(at[:, None], values)
    assert (tree.feature.tolist(), tree.threshold[0]) == ([0, LEAF, LEAF], 5.5)
    lines = [(round(leaf.intercept, 9), round(float(leaf.weights[0]), 9), leaf.rows) for leaf in tree.leaves]
    assert lines == [(0.0, 10.0, 6), (200.0, -1.0, 6)]
    assert tree.predict(np.array([[2.5], [7.5], [-9.0], [99.0]])).tolist() == pytest.approx(
        [25, 192.5, 0, 189]
    )
    plain = model_tree(at[:, None], values, lines=False)
    assert plain.predict(np.array([[2.5], [7.5]])).tolist() == pytest.approx([25.0, 191.5])


def test_less_than_two_leaves_of_rows_is_one_line() -> None:
    at = np.array([0.0, 1, 2, 3, 4, 5, 6])
    tree = model_tree(at[:, None], at**2)
    assert tree.feature.tolist() == [LEAF]
    weights = np.linalg.lstsq(np.column_stack([np.ones(7), at]), at**2, rcond=None)[0]
    assert [tree.leaves[0].intercept, tree.leaves[0].weights[0]] == pytest.approx(weights)


def test_columns_that_depend_on_each_other_have_a_ridge_and_constant_ones_no_weight() -> None:
    at = np.arange(12.0)
    features = np.column_stack([at, 2 * at, np.full(12, 7.0)])
    tree = model_tree(features, 5 * at)
    (leaf,) = tree.leaves
    assert leaf.weights[2] == 0
    assert tree.predict(features) == pytest.approx(5 * at, abs=0.2)
    assert np.isfinite(leaf.weights).all()


def naive_split(features, values, least_rows):
    best, found = float(((values - values.mean()) ** 2).sum()), None
    for column in range(features.shape[1]):
        for low, high in itertools.pairwise(sorted(set(features[:, column]))):
            below = features[:, column] <= low
            if min(below.sum(), (~below).sum()) < least_rows:
                continue
            error = sum(float(((side - side.mean()) ** 2).sum()) for side in (values[below], values[~below]))
            if error < best - 1e-9 * abs(best):
                best, found = error, (column, low + (high - low) / 2)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_each_split_is_the_best_of_all(seed: int) -> None:
    features, values = rows_of(seed)
    assert trees._split(features, values, 10) == naive_split(features, values, 10)
    assert trees._split(features, np.full(len(values), 3.0), 10) is None


@pytest.mark.parametrize("seed", range(6))
def test_the_boxes_of_leaves_divide_all_there_is(seed: int) -> None:
    features, values = rows_of(seed)
    tree = model_tree(features, values)
    assert len(tree.leaves) > 2
    assert all(leaf.rows >= 10 for leaf in tree.leaves)
    points = np.random.default_rng(seed).uniform(-10, 3000, (200, 4))
    inside = np.array([((points > leaf.above) & (points <= leaf.until)).all(axis=1) for leaf in tree.leaves])
    assert (inside.sum(axis=0) == 1).all()
    assert (inside.argmax(axis=0) == tree.leaf_of(points)).all()
    again = model_tree(features, values)
    assert again.threshold.tobytes() == tree.threshold.tobytes()
    assert [leaf.weights.tobytes() for leaf in again.leaves] == [
        leaf.weights.tobytes() for leaf in tree.leaves
    ]


@pytest.mark.parametrize(
    ("features", "values"),
    [
        (np.zeros((0, 2)), np.zeros(0)),
        (np.zeros((3, 2)), np.zeros(2)),
        (np.array([[np.nan], [1.0]]), np.zeros(2)),
        (np.zeros((2, 1)), np.array([np.inf, 1.0])),
    ],
)
def test_what_makes_no_tree_is_refused(features, values) -> None:
    with pytest.raises(BadInput):
        model_tree(features, values)


# --- the inverse query ----------------------------------------------------------------------------------


def asked(seed: int) -> tuple[ModelTree, InverseQuery]:
    """Return a tree and a query: 8 numbers of containers, a switch, a word of three (one-hot), a number."""
    features, values = rows_of(seed, 150)
    chance = np.random.default_rng([seed, 1])
    word = chance.integers(0, 3, len(values))
    hot = np.eye(3)[word]
    both = np.column_stack([features, hot])
    tree = model_tree(both, values * (1 + 0.3 * word) * (1 + 0.2 * (features[:, 3] > 2)))
    tunables = (
        Tunable("compress", (1,), ((0.0,), (1.0,))),
        Tunable("memory", (2,), ((640.0,), (1024.0,), (2048.0,))),
        Tunable("codec", (4, 5, 6), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))),
    )
    return tree, InverseQuery((0, 0, 0, 3.0, 0, 0, 0), 0, tuple(range(1, 9)), tunables)


def brute_force(tree: ModelTree, query: InverseQuery) -> dict[int, float]:
    found = {}
    for count in query.containers:
        tried = []
        for chosen in itertools.product(*(each.choices for each in query.tunables)):
            row = np.array(query.features)
            row[query.containers_column] = count
            for tunable, values in zip(query.tunables, chosen, strict=True):
                row[list(tunable.columns)] = values
            tried.append(float(tree.predict(row[None, :])[0]))
        found[count] = min(tried)
    return found


def integer_programs(tree: ModelTree, query: InverseQuery) -> dict[int, float]:
    """One program for each leaf and number: a 0-1 variable for each choice, the box as constraints."""
    sizes = [len(each.choices) for each in query.tunables]
    starts = np.cumsum([0, *sizes])
    found = {}
    for count in query.containers:
        best = np.inf
        for leaf in tree.leaves:
            row = np.array(query.features)
            row[query.containers_column] = count
            tuned = [column for each in query.tunables for column in each.columns]
            fixed = [column for column in range(len(row)) if column not in tuned]
            if not ((row > leaf.above) & (row <= leaf.until))[fixed].all():
                continue
            costs, constraints = np.zeros(starts[-1]), []
            for place, tunable in enumerate(query.tunables):
                pick = np.zeros(starts[-1])
                pick[starts[place] : starts[place + 1]] = 1
                constraints.append(LinearConstraint(pick, 1, 1))
                for number, column in enumerate(tunable.columns):
                    values = np.zeros(starts[-1])
                    values[starts[place] : starts[place + 1]] = [each[number] for each in tunable.choices]
                    costs += leaf.weights[column] * values
                    low = leaf.above[column] + 1e-6 if np.isfinite(leaf.above[column]) else -np.inf
                    constraints.append(LinearConstraint(values, low, leaf.until[column]))
            whole = np.ones(starts[-1])
            solved = milp(costs, integrality=whole, bounds=Bounds(0, 1), constraints=constraints)
            if solved.status == 0:
                line = leaf.intercept + float(row[fixed] @ leaf.weights[fixed]) + float(solved.fun)
                best = min(best, float(np.clip(line, leaf.least, leaf.most)))
        found[count] = best
    return found


def answered(tree: ModelTree, query: InverseQuery) -> dict[int, float]:
    return {each.containers: each.predicted for each in tuned_options(tree, query)}


@pytest.mark.parametrize("seed", range(TREES))
def test_the_closed_form_is_the_best_of_all_settings(seed: int) -> None:
    tree, query = asked(seed)
    assert answered(tree, query) == pytest.approx(brute_force(tree, query), rel=1e-9)


@pytest.mark.parametrize("seed", range(TREES if is_thorough() else 8))
def test_the_closed_form_is_the_integer_programs(seed: int) -> None:
    tree, query = asked(seed)
    assert answered(tree, query) == pytest.approx(integer_programs(tree, query), rel=1e-6)


def test_the_settings_that_are_told_give_the_time_that_is_told() -> None:
    tree, query = asked(3)
    for each in tuned_options(tree, query):
        row = np.array(query.features)
        row[query.containers_column] = each.containers
        for tunable, place in zip(query.tunables, each.chosen, strict=True):
            row[list(tunable.columns)] = tunable.choices[place]
        assert tree.predict(row[None, :])[0] == pytest.approx(each.predicted)


def _dearest(leaf, tunable):
    inside = BEST(leaf._replace(weights=-leaf.weights), tunable)
    return None if inside is None else (inside[0], -inside[1])


def _anywhere(leaf, tunable):
    edge = np.full(len(leaf.above), np.inf)
    return BEST(leaf._replace(above=-edge, until=edge), tunable)


BEST = inverse._best
BUGS = {"the other end": _dearest, "outside the box": _anywhere}


@pytest.mark.parametrize("bug", list(BUGS))
def test_a_planted_bug_is_seen(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverse, "_best", BUGS[bug])
    with pytest.raises(AssertionError):
        _on_twenty_trees()


def _on_twenty_trees() -> None:
    for seed in range(20):
        test_the_closed_form_is_the_best_of_all_settings(seed)


def test_more_options_than_the_journal_takes_are_refused() -> None:
    tree, query = asked(1)
    with pytest.raises(BadInput, match="at most 64"):
        tuned_options(tree, query._replace(containers=tuple(range(1, 66))))


# --- bounds ---------------------------------------------------------------------------------------------

BOUNDS = [
    # ratios, configurations, beta: a further configuration weighs as much as each
    ([1.1] * 19, range(19), 0.05, RatioBound(1.1, True), "19 suffice for 5 %"),
    (
        [1.0, 1.2, *[0.9] * 16],
        range(18),
        0.05,
        RatioBound(1.2, False),
        "18 do not: the largest that was seen",
    ),
    ([float(each) for each in range(1, 40)], range(39), 0.05, RatioBound(38.0, True), "2 of 40 may be above"),
    ([1.0, 2.0, 3.0], [0, 0, 1], 0.5, RatioBound(3.0, True), "repetitions count as one configuration"),
    ([1.0, 1.0, 3.0], [0, 1, 2], 0.5, RatioBound(1.0, True), "each by itself"),
]


@pytest.mark.parametrize(
    ("ratios", "configuration", "beta", "bound", "claim"), BOUNDS, ids=[row[4] for row in BOUNDS]
)
def test_a_bound_is_the_least_that_leaves_beta_above(ratios, configuration, beta, bound, claim) -> None:
    assert ratio_bound(ratios, list(configuration), beta) == bound


def test_nothing_to_calibrate_with_is_refused() -> None:
    with pytest.raises(BadInput, match="profile more runs"):
        ratio_bound([], [], 0.05)


def test_a_bound_is_exceeded_by_the_next_as_often_as_was_said() -> None:
    """Whatever the distribution: of 4,000 draws 5 % are above, within three standard errors."""
    chance = np.random.default_rng(1)
    above = 0
    for _ in range(4000):
        drawn = chance.lognormal(0, 1, 40)
        above += drawn[39] > ratio_bound(list(drawn[:39]), list(range(39)), 0.05).factor
    assert above / 4000 == pytest.approx(0.05, abs=3 * 0.00345)
