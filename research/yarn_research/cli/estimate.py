"""``yarn-research estimate``: how well run times of a table are predicted, and how often a bound is exceeded.

Law: everything is checked before anything is fitted; the same file, options and seed give the same answer.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.prediction.bounded_times import RunTable

SPLITS = 5


@click.command("estimate")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--target", required=True, metavar="COLUMN", help="The run time.")
@click.option("--features", required=True, metavar="A,B,...", help="What it is predicted by; words, too.")
@click.option(
    "--learn", default="20,40,60,80", show_default=True, metavar="PERCENT,...", help="Shares to learn."
)
@click.option(
    "--split-by",
    default="",
    metavar="COLUMNS",
    help="Rows alike in these are one configuration, and are not parted.  [default: in all features]",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**32))
@output_option
def command(
    file: Path, target: str, features: str, learn: str, split_by: str, seed: int, output: str
) -> None:
    """Predict the run times in FILE (comma or tab separated) from a share of their configurations."""
    from yarn_research.placement.user_table import read_table

    shares = _shares(learn)
    predictors, alike_in = _names("--features", features), _names("--split-by", split_by)
    if not predictors:
        raise BadInput("--features", "names no column", "give at least one")
    if target in predictors:
        raise BadInput("--features", f"{target} is the column to predict", "remove it from the list")
    table = read_table(file, target, predictors, alike_in)
    told = estimated(table, shares, seed)
    if output == "json":
        print_json(told)
        return
    rows = [(name, *(_short(found[share]) for share in found)) for name, found in told["r2"].items()]
    print_table(("R^2", *(f"{share} %" for share in shares)), rows, f"{file.name}: {told['rows']} rows")
    late = told["late_ratio"]
    click.echo(
        f"longer than the bound (5 %): {_short(late['conformal'])}, than predicted: {_short(late['point'])}"
    )


def estimated(table: RunTable, shares: list[int], seed: int) -> dict[str, Any]:
    """Return R^2 by model and share (median of five splits), and the late ratios (means)."""
    from yarn_research.placement.learned_times import MODELS, late, quality

    count = len(table.configurations)
    if count < 2:
        raise BadInput("--split-by", "all rows are of one configuration", "name columns that tell them apart")
    r2: dict[str, dict[str, float | None]] = {name: {} for name in MODELS}
    lates = []
    for share in shares:
        if max(2, round(share / 100 * count)) >= count:
            for found in r2.values():
                found[str(share)] = None
            continue
        splits = [quality(table, share / 100, seed + at, "configuration") for at in range(SPLITS)]
        for name, found in r2.items():
            found[str(share)] = _finite(statistics.median(each[name] for each in splits))
        lates += [late(table, share / 100, seed + at) for at in range(SPLITS)]
    return {
        "rows": len(table.duration),
        "r2": r2,
        "late_ratio": {
            "conformal": _mean(each.conformal for each in lates),
            "point": _mean(each.point for each in lates),
        },
    }


def _mean(ratios: Iterable[float]) -> float | None:
    found = list(ratios)
    return statistics.fmean(found) if found else None


def _finite(number: float) -> float | None:
    return number if abs(number) < float("inf") else None


def _short(number: float | None) -> str:
    return "-" if number is None else f"{number:.3f}"


def _shares(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= 99 for word in words):
        raise BadInput(
            "--learn", f"{text[:40]!r} is not a list of percentages from 1 to 99", "use 20,40,60,80"
        )
    return sorted({int(word) for word in words})


def _names(option: str, text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if len(set(names)) < len(names):
        raise BadInput(option, "names a column twice", "name each once")
    return names
