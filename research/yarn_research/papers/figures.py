"""A paper's figures as data: rows (the paper's number beside ours) and claims (hold or not).

Law: a row that calibrates, or that only repeats another, has no relative error and counts in no
average. A claim has the paper's value, our measurement, and whether it holds; nothing that
fails is left out.

95 % intervals of means, and what they say of an ordering: right, wrong, or a tie.

Law: what is written in research/notes/paper.md, "How a claim is judged", and nothing else. A verdict is a
function of the values; a change of it changes that page first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec


class FigureRow(msgspec.Struct, frozen=True, omit_defaults=False):
    """One number. ``metric`` names it with its unit; ``relative_error`` is None when it says nothing."""

    label: str
    metric: str
    paper: float | None
    ours: float
    stdev: float
    runs: int
    relative_error: float | None


class PaperClaim(msgspec.Struct, frozen=True):
    """One sentence of the paper, our figure for it, and whether it holds under ``profile``."""

    claim: str
    paper: str
    ours: str
    holds: bool
    profile: str = "paper"


class Figure(msgspec.Struct, frozen=True):
    """One figure: its number, rows, claims, and notes on what the paper leaves open."""

    figure: str
    title: str
    rows: tuple[FigureRow, ...] = ()
    claims: tuple[PaperClaim, ...] = ()
    notes: tuple[str, ...] = ()


def row(
    label: str, metric: str, paper: float | None, values: Sequence[float], counts: bool = True
) -> FigureRow:
    """Make a row from the values of several runs; ``counts`` False gives it no relative error."""
    ours = mean(values)
    error = (ours - paper) / paper if counts and paper else None
    return FigureRow(
        label, metric, paper, round(ours, 3), round(stdev(values), 3), len(values), _short(error)
    )


def _short(error: float | None) -> float | None:
    return None if error is None else round(error, 5)


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean."""
    return math.fsum(values) / len(values)


def stdev(values: Sequence[float]) -> float:
    """Return the sample standard deviation (0 for a single value)."""
    if len(values) < 2:
        return 0.0
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def quantile(values: Sequence[float], ratio: float) -> float:
    """Return the smallest value with at least ``ratio`` of all values at or below it."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(ratio * len(ordered)) - 1))]


def share(values: Sequence[float], most: float) -> float:
    """Return the share of values <= ``most``, as a CDF does."""
    return sum(1 for value in values if value <= most) / len(values)


def errors(figures: Sequence[Figure]) -> tuple[float | None, float | None]:
    """Return the mean and the worst absolute relative error over all rows that count."""
    found = [
        abs(each.relative_error)
        for figure in figures
        for each in figure.rows
        if each.relative_error is not None
    ]
    return (round(mean(found), 5), round(max(found), 5)) if found else (None, None)


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
