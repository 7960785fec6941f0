"""95 % intervals of means, and what they say of an ordering: right, wrong, or a tie.

Law: what is written in docs/paper.md, "How a claim is judged", and nothing else. A verdict is a
function of the values; whoever wants another one changes that page first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from emulator.experiments.results.figures import mean, stdev

Verdict = Literal["holds", "tie", "fails"]

T_975 = (
    *(12.7062, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.306, 2.26216, 2.22814),
    *(2.20099, 2.17881, 2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596),
    *(2.07961, 2.07387, 2.06866, 2.0639, 2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227),
)
"""Student's t, 0.975 quantile, for 1 to 30 degrees of freedom."""
Z_975 = 1.959964


class Interval(NamedTuple):
    """The 95 % interval of a mean."""

    low: float
    centre: float
    high: float


def t_975(degrees: int) -> float:
    """Return Student's 0.975 quantile; beyond the table by its expansion in 1 / degrees (to 1e-4)."""
    if degrees <= len(T_975):
        return T_975[degrees - 1]
    z = Z_975
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2


def interval(values: Sequence[float]) -> Interval:
    """Return the 95 % interval of the mean of at least two values; of one value, that value alone."""
    centre = mean(values)
    if len(values) < 2 or not math.isfinite(centre):
        return Interval(min(values), centre, max(values))
    half = t_975(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(centre - half, centre, centre + half)


def above_zero(values: Sequence[float], resolution: float = 0.0) -> Verdict:
    """Say whether the mean of ``values`` is above 0 (by ``resolution`` at least): holds, tie or fails."""
    found = interval(values)
    if found.low > 0 and found.centre >= resolution:
        return "holds"
    if found.high < 0 and -found.centre >= resolution:
        return "fails"
    return "tie"


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return what a claim of several parts is: it fails if one fails, holds if all hold."""
    order: tuple[Verdict, ...] = ("fails", "tie", "holds")
    return next(verdict for verdict in order if verdict in verdicts)
