"""Models and bounds: each learns what it can, and a bound is exceeded as often as it says."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from yarn_research.market import regressions, upper_bounds
from yarn_research.market.job_features import JobFeatures, RecordedRun, features_of, training
from yarn_research.market.regressions import REGRESSIONS, WITHOUT_SKLEARN, DurationSpread, fitted, r2
from yarnctl.errors import BadInput
from yarnctl.prediction.bounded_times import least_calibrating


def drawn(seed: int, count: int = 90):
    """Jobs of Table 1's kind: the duration grows with maps over slots and with what is shuffled."""
    chance = np.random.default_rng(seed)
    maps = chance.integers(1, 480, count).astype(float)
    reduces = np.where(maps > 30, maps // 15, 0.0)
    ratio = chance.choice([0.001, 1.0], count)
    durations = 20 + 15 * np.ceil(maps / 80) + 0.3 * maps * ratio
    noise = np.exp(chance.normal(0, 0.05, count))
    return np.column_stack([maps, reduces, ratio, np.ones(count)]), durations * noise


@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_model_predicts_jobs_it_has_not_seen(name):
    learned, asked = drawn(1), drawn(2)
    found = fitted(name, *learned)(asked[0])
    assert r2(found.at(0.0), asked[1]) > (0.3 if name == "bin" else 0.75)
    assert (found.stdev > 0).all()


def test_the_process_knows_more_than_lines_and_bins():
    learned, asked = drawn(1), drawn(2)
    told = {name: r2(fitted(name, *learned)(asked[0]).at(0.0), asked[1]) for name in ("gp", "ols", "bin")}
    assert told["gp"] > told["ols"] - 0.01
    assert told["gp"] > told["bin"]


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [([1.0, 2.0, 6.0], 1.0), ([3.0, 3.0, 3.0], 0.0), ([1.0, 4.0, 7.0], 1 - 5 / 14), ([6.0, 3.0, 3.0], -1.5)],
)
def test_r2_is_the_share_of_the_variance_that_is_explained(predicted, expected):
    """Durations of mean 3: their squared distances from it are 4, 1 and 9."""
    assert r2(np.array(predicted), np.array([1.0, 2.0, 6.0])) == pytest.approx(expected)


def test_least_squares_by_hand():
    predict = fitted("ols", np.array([[1.0], [2.0], [3.0], [4.0]]), np.array([3.0, 5.0, 7.0, 9.5]))
    found = predict(np.array([[5.0]]))
    assert found.centre[0] == pytest.approx(6.125 + 2.15 * 2.5)
    # s^2 = 0.075 / 2; a new observation at 5: 1 + 1/4 + 2.5^2 / 5
    assert found.stdev[0] == pytest.approx(math.sqrt(0.0375 * (1 + 0.25 + 1.25)))


def test_bins_are_the_mean_and_spread_of_jobs_alike():
    features = np.repeat(np.arange(9.0), 4)[:, None]
    durations = features.ravel() * 10 + np.tile([1.0, 2.0, 3.0, 4.0], 9)
    found = fitted("bin", features, durations)(np.array([[8.0]]))
    assert found.centre[0] == pytest.approx(82.5)
    assert found.stdev[0] == pytest.approx(np.std([1, 2, 3, 4], ddof=1))


def test_without_scikit_learn_two_models_are_left(monkeypatch):
    monkeypatch.setattr(regressions, "find_spec", lambda _: None)
    for name in REGRESSIONS:
        if name in WITHOUT_SKLEARN:
            fitted(name, *drawn(1))
        else:
            with pytest.raises(BadInput, match="scikit-learn is not installed"):
                fitted(name, *drawn(1))


@pytest.mark.parametrize(("name", "rows"), [("oracle", 3), ("gp", 0)])
def test_what_cannot_be_fitted_is_refused(name, rows):
    features, durations = drawn(1)
    with pytest.raises(BadInput):
        fitted(name, features[:rows], durations[:rows])


def test_a_feature_that_never_varies_is_no_obstacle():
    features, durations = np.ones((12, 2)), 30 + np.arange(12.0)
    for name in REGRESSIONS:
        if name not in ("cca", "kcca"):
            assert fitted(name, features, durations)(features).at(0.0) == pytest.approx(35.5, rel=0.05)


def exceeded(deviations_of, repeats: int = 1, count: int = 39) -> float:
    """Return how often a bound from so many configurations is exceeded by the next, over many draws."""
    chance = np.random.default_rng(5)
    above = []
    for _ in range(3000):
        level = chance.standard_t(3, count + 1)  # heavy tails: no Gaussian
        known = np.repeat(level[:count], repeats)
        configuration = np.repeat(np.arange(count), repeats)
        spread = DurationSpread(np.zeros(len(known)), np.ones(len(known)))
        above.append(level[count] > deviations_of(spread, known, configuration))
    return float(np.mean(above))


@pytest.mark.parametrize("repeats", [1, 5])
def test_a_conformal_bound_is_exceeded_in_one_of_twenty(repeats):
    assert exceeded(upper_bounds.conformal_deviations, repeats) == pytest.approx(0.05, abs=0.012)


def test_repetitions_counted_as_configurations_are_seen():
    """The planted bug: each row counts as a configuration, so five repetitions feign five times as much."""

    def by_row(spread, durations, configuration):
        return upper_bounds.conformal_deviations(spread, durations, np.arange(len(durations)))

    assert exceeded(by_row, 5, 25) > 0.062
    assert exceeded(upper_bounds.conformal_deviations, 5, 25) < 0.05


def test_too_few_configurations_bound_nothing():
    assert least_calibrating() == 19
    spread = DurationSpread(np.zeros(18), np.ones(18))
    assert upper_bounds.conformal_deviations(spread, np.arange(18.0), np.arange(18)) == math.inf
    spread = DurationSpread(np.zeros(19), np.ones(19))
    assert upper_bounds.conformal_deviations(spread, np.arange(19.0), np.arange(19)) == 18


def test_quantiles():
    assert upper_bounds.gaussian_deviations() == pytest.approx(NormalDist().inv_cdf(0.95))
    told = {1: 6.3138, 6: 1.9432, 30: 1.6973}
    for freedom, paper in told.items():
        assert upper_bounds.student_deviations(freedom) == pytest.approx(paper, abs=1e-4)


def test_few_configurations_widen_a_gaussian_bound():
    """Configurations differ by more than repetitions show; who leaves one out sees it."""
    chance = np.random.default_rng(7)
    configuration = np.repeat(np.arange(8), 7)
    features = np.repeat(np.arange(1.0, 9), 7)[:, None]
    durations = 100 + np.repeat(chance.normal(0, 20, 8), 7) + chance.normal(0, 1, 56)
    alike = np.full(56, 100.0) + chance.normal(0, 5, 56)
    fit = REGRESSIONS["ols"]
    wide = upper_bounds.widened_deviations(features, durations, configuration, fit)
    assert wide > upper_bounds.widened_deviations(features, alike, configuration, fit)
    assert upper_bounds.widened_deviations(features, alike, configuration, fit) >= 1.89


COUNTERS = {
    "HDFS_BYTES_READ": 1000,
    "MAP_OUTPUT_BYTES": 250,
    "REDUCE_SHUFFLE_BYTES": 200,
    "HDFS_BYTES_WRITTEN": 50,
}


def test_features_are_what_the_counters_say():
    assert features_of(8, 2, COUNTERS) == JobFeatures(8, 2, 0.25, 0.25)
    assert features_of(8, 0, COUNTERS) == JobFeatures(8, 0, 0.25, 0.0)
    assert features_of(1, 1, {}) == JobFeatures(1, 1, 1.0, 1.0)


def test_runs_with_a_preempted_attempt_do_not_train():
    job = JobFeatures(8, 2, 0.25, 0.25)
    runs = [RecordedRun(job, 10, 20), RecordedRun(job, 99, 99, preempted=1)]
    features, durations = training(runs)
    assert features.tolist() == [[8, 2, 0.25, 0.25]]
    assert durations.tolist() == [[10, 20]]
    assert training([])[0].shape == (0, 4)
