"""A paper's figures as data: rows (the paper's number beside ours) and claims (hold or not).

Law: a row that calibrates, or that only repeats another, has no relative error and counts in no
average. A claim says what the paper says, what we measured, and whether it holds; nothing that
fails is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec


class Row(msgspec.Struct, frozen=True, omit_defaults=False):
    """One number. ``metric`` names it with its unit; ``relative_error`` is None when it says nothing."""

    label: str
    metric: str
    paper: float | None
    ours: float
    stdev: float
    runs: int
    relative_error: float | None


class Claim(msgspec.Struct, frozen=True):
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
    rows: tuple[Row, ...] = ()
    claims: tuple[Claim, ...] = ()
    notes: tuple[str, ...] = ()


def row(label: str, metric: str, paper: float | None, values: Sequence[float], counts: bool = True) -> Row:
    """Make a row from the values of several runs; ``counts`` False gives it no relative error."""
    ours = mean(values)
    error = (ours - paper) / paper if counts and paper else None
    return Row(label, metric, paper, round(ours, 3), round(stdev(values), 3), len(values), _short(error))


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
