"""The model tree and the inverse query, held against trees by hand, brute force, and integer programs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.thoroughness import is_thorough
from tests.unit.prediction.leaf_programs import asked, by_highs, by_scip, leaves_for, rows_of
from yarnctl.errors import BadInput
from yarnctl.prediction import model_tree as trees
from yarnctl.prediction import options as inverse
from yarnctl.prediction.model_tree import LEAF, ModelTree, model_tree
from yarnctl.prediction.options import InverseQuery, RatioBound, ratio_bound, tuned_options

TREES = 500 if is_thorough() else 60


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


def test_model_tree_of_two_rows_has_a_leaf_for_each_where_one_row_is_enough() -> None:
    tree = model_tree(np.array([[0.0], [1.0]]), np.array([10.0, 20.0]), lines=False, least_rows=1)
    assert tree.predict(np.array([[0.0], [1.0]])).tolist() == [10.0, 20.0]


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
    [(np.zeros((0, 2)), np.zeros(0)), (np.zeros((3, 2)), np.zeros(2)),
     (np.array([[np.nan], [1.0]]), np.zeros(2)), (np.zeros((2, 1)), np.array([np.inf, 1.0]))],
)  # fmt: skip
def test_what_makes_no_tree_is_refused(features, values) -> None:
    with pytest.raises(BadInput):
        model_tree(features, values)


# --- the inverse query ----------------------------------------------------------------------------------


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


def answered(tree: ModelTree, query: InverseQuery) -> dict[int, float]:
    return {each.containers: each.predicted for each in tuned_options(tree, query)}


@pytest.mark.parametrize("seed", range(TREES))
def test_the_closed_form_is_the_best_of_all_settings(seed: int) -> None:
    tree, query = asked(seed)
    assert answered(tree, query) == pytest.approx(brute_force(tree, query), rel=1e-9)


@pytest.mark.parametrize("seed", range(TREES if is_thorough() else 8))
def test_the_closed_form_is_the_integer_programs(seed: int) -> None:
    tree, query = asked(seed)
    assert answered(tree, query) == pytest.approx(by_highs(tree, query), rel=1e-6)


@pytest.mark.parametrize("seed", range(TREES if is_thorough() else 8))
def test_the_closed_form_is_what_scip_finds_leaf_by_leaf(seed: int) -> None:
    """The product as it stands: the least containers x time, with any time, and in time for half of them."""
    tree, query = asked(seed)
    options = tuned_options(tree, query)
    times = sorted(each.predicted for each in options)
    for time_max in (times[-1] + 1, (times[3] + times[4]) / 2, times[0] / 2):
        costs = [each.containers * each.predicted for each in options if each.predicted <= time_max]
        found = [by_scip(leaf, query, time_max) for leaf in leaves_for(tree, query)]
        solved = [each for each in found if each is not None]
        assert bool(solved) == bool(costs)
        if costs:
            assert min(solved) == pytest.approx(min(costs), rel=1e-6)


def test_the_settings_that_are_told_give_the_time_that_is_told() -> None:
    tree, query = asked(3)
    for each in tuned_options(tree, query):
        row = np.array(query.features)
        row[query.containers_column] = each.containers
        for tunable, place in zip(query.tunables, each.chosen, strict=True):
            row[list(tunable.columns)] = tunable.choices[place]
        assert tree.predict(row[None, :])[0] == pytest.approx(each.predicted)


def _dearest(leaves, tunable):
    place, added = BEST(leaves._replace(weights=-leaves.weights), tunable)
    return place, np.where(np.isfinite(added), -added, np.inf)


def _anywhere(leaves, tunable):
    edge = np.full(leaves.above.shape, np.inf)
    return BEST(leaves._replace(above=-edge, until=edge), tunable)


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
    with pytest.raises(BadInput, match="maximum of 64"):
        tuned_options(tree, query._replace(containers=tuple(range(1, 66))))


BOUNDS = [
    # ratios, configurations, beta: a further configuration weighs as much as each
    ([1.1] * 19, range(19), 0.05, RatioBound(1.1, True), "19 suffice for 5 %"),
    ([1.0, 1.2, *[0.9] * 16], range(18), 0.05, RatioBound(1.2, False),
     "18 do not: the largest that was seen"),
    ([float(each) for each in range(1, 40)], range(39), 0.05, RatioBound(38.0, True), "2 of 40 may be above"),
    ([1.0, 2.0, 3.0], [0, 0, 1], 0.5, RatioBound(3.0, True), "repetitions count as one configuration"),
    ([1.0, 1.0, 3.0], [0, 1, 2], 0.5, RatioBound(1.0, True), "each by itself"),
]  # fmt: skip


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
