"""Models of durations in one dict: each fits features to durations and predicts centre and spread.

Law: the same numbers in, the same numbers out (no chance in any model). Features are not negative; models
that measure distances take their logarithms, scaled to mean 0 and variance 1. ``gp`` fits the logarithm
of the duration, so that its bounds are never negative and its error grows with the job.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

WITHOUT_SKLEARN = ("ols", "bin")
BINS = 9
"""The number of bins in Table 1."""
NEIGHBOURS = 3


class DurationSpread(NamedTuple):
    """What is predicted: centre and standard deviation, of the duration or of its logarithm."""

    centre: Numbers
    stdev: Numbers
    of_logarithm: bool = False

    def at(self, deviations: float | Numbers) -> Numbers:
        """Return the duration so many standard deviations above the centre."""
        found = self.centre + deviations * self.stdev
        return np.exp(found) if self.of_logarithm else np.maximum(found, 0.0)

    def deviations(self, durations: Numbers) -> Numbers:
        """Return how many standard deviations durations are above the centre."""
        observed = np.log(np.maximum(durations, 1e-9)) if self.of_logarithm else durations
        return (observed - self.centre) / np.maximum(self.stdev, 1e-12)


Predict = Callable[["Numbers"], DurationSpread]
Regression = Callable[["Numbers", "Numbers"], Predict]


def fitted(name: str, features: Numbers, durations: Numbers) -> Predict:
    """Fit a model by name; raises BadInput where it is unknown or not installed."""
    if name not in REGRESSIONS:
        raise BadInput("model", f"unknown model {name[:40]!r}", f"use one of {', '.join(REGRESSIONS)}")
    if name not in WITHOUT_SKLEARN and find_spec("sklearn") is None:
        remedy = f"pip install scikit-learn, or use one of {', '.join(WITHOUT_SKLEARN)}"
        raise BadInput(f"model {name}", "scikit-learn is not installed", remedy)
    if not len(durations):
        raise BadInput(f"model {name}", "no finished run is known", "run the job once")
    return REGRESSIONS[name](features, durations)


def r2(predicted: Numbers, durations: Numbers) -> float:
    """Return the coefficient of determination (Table 2)."""
    rest = float(((durations - predicted) ** 2).sum())
    return 1 - rest / float(((durations - durations.mean()) ** 2).sum())


def _ols(features: Numbers, durations: Numbers) -> Predict:
    """Ordinary least squares; the spread of a new observation."""
    design = _with_one(features)
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ design.T @ durations
    freedom = max(1, len(durations) - np.linalg.matrix_rank(design))
    variance = float(((durations - design @ weights) ** 2).sum()) / freedom

    def predict(asked: Numbers) -> DurationSpread:
        rows = _with_one(asked)
        leverage = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        return DurationSpread(rows @ weights, np.sqrt(variance * (1 + np.maximum(0, leverage))))

    return predict


def _with_one(features: Numbers) -> Numbers:
    return np.column_stack([np.ones(len(features)), features])


def _bin(features: Numbers, durations: Numbers) -> Predict:
    """Mean and spread of the runs in the same bin of the first feature (Verma et al., MRM's "Bin")."""
    first = features[:, 0]
    edges = np.unique(np.quantile(first, np.linspace(0, 1, BINS + 1)[1:-1]))
    place = np.searchsorted(edges, first, side="right")
    means = np.full(len(edges) + 1, durations.mean())
    stdevs = np.full(len(edges) + 1, durations.std())
    for each in range(len(edges) + 1):
        alike = durations[place == each]
        if len(alike):
            means[each] = alike.mean()
            stdevs[each] = alike.std(ddof=1) if len(alike) > 1 else stdevs[each]

    def predict(asked: Numbers) -> DurationSpread:
        found = np.searchsorted(edges, asked[:, 0], side="right")
        return DurationSpread(means[found], stdevs[found])

    return predict


def _ridge(features: Numbers, durations: Numbers) -> Predict:
    from sklearn.linear_model import Ridge

    return _plain(Ridge(alpha=1.0), features, durations, _scaled(features, logarithms=False))


def _kridge(features: Numbers, durations: Numbers) -> Predict:
    from sklearn.kernel_ridge import KernelRidge

    scale = _scaled(features)
    width = 1.0 / max(1, scale(features).shape[1])
    return _plain(KernelRidge(kernel="rbf", alpha=0.1, gamma=width), features, durations, scale)


def _plain(
    model: object, features: Numbers, durations: Numbers, scale: Callable[[Numbers], Numbers]
) -> Predict:
    """Fit a regressor of scikit-learn around the mean; the spread is that of the residuals."""
    mean = float(durations.mean())
    model.fit(scale(features), durations - mean)  # type: ignore[attr-defined]

    def centre(asked: Numbers) -> Numbers:
        return np.asarray(model.predict(scale(asked))).ravel() + mean  # type: ignore[attr-defined]

    stdev = float((durations - centre(features)).std(ddof=1)) if len(durations) > 1 else 0.0
    return lambda asked: DurationSpread(centre(asked), np.full(len(asked), stdev))


def _cca(features: Numbers, durations: Numbers) -> Predict:
    """Canonical correlation: the direction of the features that goes with the duration, then a line."""
    from sklearn.cross_decomposition import CCA

    scale = _scaled(features, logarithms=False)
    model = CCA(n_components=1).fit(scale(features), durations[:, None])
    line = _ols(model.transform(scale(features)), durations)
    return lambda asked: line(model.transform(scale(asked)))


def _kcca(features: Numbers, durations: Numbers) -> Predict:
    """Canonical correlation of kernel features; the mean of the nearest runs (Ganapathi et al.)."""
    from sklearn.cross_decomposition import CCA
    from sklearn.decomposition import KernelPCA
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.pipeline import make_pipeline

    scale = _scaled(features)
    rows = scale(features)
    parts = max(1, min(20, len(rows) // 3))
    kernel = KernelPCA(n_components=parts, kernel="rbf", gamma=1.0 / max(1, rows.shape[1])).fit(rows)
    model = CCA(n_components=1).fit(kernel.transform(rows), np.log(durations)[:, None])
    near = make_pipeline(KNeighborsRegressor(min(NEIGHBOURS, len(rows))))

    def project(asked: Numbers) -> Numbers:
        return np.asarray(model.transform(kernel.transform(scale(asked))))

    return _plain(near, features, durations, project)


def _gp(features: Numbers, durations: Numbers) -> Predict:
    """A Gaussian process on the logarithm: a line in the logarithms of features, a curved part, noise."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

    scale = _scaled(features)
    rows, values = scale(features), np.log(durations)
    lengths = np.full(rows.shape[1], 2.0)
    line = ConstantKernel(1.0, (1e-3, 1e3)) * DotProduct(1.0, "fixed")
    bent = ConstantKernel(0.1, (1e-4, 1e3)) * RBF(lengths, (0.1, 1e3))
    kernel = line + bent + WhiteKernel(1e-2, (1e-6, 10.0))
    mean, unit = float(values.mean()), float(values.std()) or 1.0
    model = GaussianProcessRegressor(kernel, alpha=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound: a feature without effect
        model.fit(rows, (values - mean) / unit)

    def predict(asked: Numbers) -> DurationSpread:
        centre, stdev = model.predict(scale(asked), return_std=True)
        return DurationSpread(centre * unit + mean, stdev * unit, of_logarithm=True)

    return predict


def _scaled(features: Numbers, logarithms: bool = True) -> Callable[[Numbers], Numbers]:
    """Return what scales features as these: without those that do not vary."""

    def shaped(asked: Numbers) -> Numbers:
        return np.log1p(asked) if logarithms else asked

    rows = shaped(features)
    varies = rows.std(axis=0) > 1e-12
    if not varies.any():
        varies[:1] = True
    centre, unit = rows.mean(axis=0)[varies], np.maximum(rows.std(axis=0)[varies], 1e-12)
    return lambda asked: (shaped(asked)[:, varies] - centre) / unit


REGRESSIONS: dict[str, Regression] = {
    "gp": _gp,
    "ols": _ols,
    "ridge": _ridge,
    "cca": _cca,
    "kridge": _kridge,
    "kcca": _kcca,
    "bin": _bin,
}
"""Every model by the name that MRM's Table 2 gives it."""
