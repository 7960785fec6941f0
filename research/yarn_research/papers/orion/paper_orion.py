"""ORiON's figures: predicted times (Figs 3 to 5) and upper bounds here, placement in modules beside.

Law: research/notes/paper.md (section ORiON) says how each claim is judged; it stood there before the runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from yarn_research.market.recorded import Table, source_note, tables
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, errors, mean, row
from yarn_research.papers.mrm_models import single
from yarn_research.papers.orion.bound_figure import figure_bound
from yarn_research.papers.orion.placed_figures import FIGURES as PLACED
from yarn_research.papers.orion.placed_figures import PlacementReading
from yarn_research.papers.paper_pythia import figure_numbers
from yarn_research.placement.learned_times import MODELS, By, grown_tree, late, quality
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.admission.mechanisms.orion import OURS, OrionChoices
from yarnctl.errors import BadInput
from yarnctl.prediction.bounded_times import RunTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

FIGURES = ("3", "4", "5", *PLACED)
BY_NAME_ALONE = ("certified", "bound")
"""Ours, and not among ``all``."""
SHARES = (20, 40, 60, 80)
SPLITS, CERTIFIED_SPLITS, SEEDS = 5, 50, 20
BEST_RATIO, NEAR_RATIO, NEAR = 0.65, 0.75, 0.01
CURVE = (10.0, 400.0, 15.0, 1.5)
"""Ernest's terms: constant, 1 / n, ln n, n (seconds); the numbers are ours."""
SHOWN = {**MODELS, "grown_tree": grown_tree}
MOST_NODES, CURVE_RUNS, NOISE = 60, 120, 0.05


def figure_3() -> Figure:
    """Fig 3: three models on one curve with noise."""
    nodes = np.arange(1.0, MOST_NODES + 1)
    truth = _curve(nodes)
    found: dict[str, list[float]] = {name: [] for name in MODELS}
    for seed in range(SEEDS):
        chance = np.random.default_rng([seed, 3])
        drawn = chance.integers(1, MOST_NODES + 1, CURVE_RUNS).astype(float)
        runs = _curve(drawn) * (1 + NOISE * chance.standard_normal(CURVE_RUNS))
        for name, fit in MODELS.items():
            missed = fit(drawn[:, None], runs)(nodes[:, None]) - truth
            found[name].append(float(np.sqrt((missed**2).mean())))
    rows = [row(name, "root mean square error, s", None, values) for name, values in found.items()]
    means = [mean(found[name]) for name in ("model_tree", "tree", "line")]
    told = " < ".join(f"{each:.2f}" for each in means) + " s"
    claim = PaperClaim("tree with lines < tree < line", "so", told, means[0] < means[1] < means[2])
    return Figure("3", "Ernest's curve with noise", tuple(rows), (claim,))


def _curve(nodes: NDArray[np.float64]) -> NDArray[np.float64]:
    constant, inverse, logarithm, linear = CURVE
    return constant + inverse / nodes + logarithm * np.log(nodes) + linear * nodes


class QualityCell(NamedTuple):
    """One table and share: the median R^2 of each model."""

    table: str
    share: int
    r2: dict[str, float]


def cells(known: list[Table]) -> list[QualityCell]:
    """Return every cell of Figs 4 and 5."""
    found = []
    with ProgressBar("tables", len(known)) as progress:
        for table in progress.counted(known):
            runs = RunTable(table.features, table.duration_s, table.configuration)
            by: By = "configuration" if table.name.startswith("c3o/") else "row"
            for share in SHARES:
                splits = [quality(runs, share / 100, seed, by, SHOWN) for seed in range(SPLITS)]
                medians = {name: statistics.median(each[name] for each in splits) for name in SHOWN}
                found.append(QualityCell(table.name, share, medians))
    return found


def _is_spark(name: str) -> bool:
    """Say whether a recorded table is of Spark (the README of the tables)."""
    folder, _, stem = name.partition("/")
    return folder == "c3o" or (folder in ("scout", "bell") and "spark" in stem.lower())


def figures_4_5(number: str, runtimes: Path | None) -> Figure:
    """Figs 4 and 5: R^2 by table and share to learn; the claims are of both together."""
    known = tables(runtimes)
    found = cells(known)
    shown = [each for each in found if _is_spark(each.table) == (number == "5")]
    rows: list[FigureRow] = [
        single(f"{each.table}, {each.share} %", f"R^2, {name}", None, value)
        for each in shown
        for name, value in each.r2.items()
    ]
    others = [max(each.r2[name] for name in MODELS if name != "model_tree") for each in found]
    best = [each.r2["model_tree"] > other for each, other in zip(found, others, strict=True)]
    near = [each.r2["model_tree"] >= other - NEAR for each, other in zip(found, others, strict=True)]
    grown = [each.r2["model_tree"] > max(each.r2.values(), default=0.0) - 1e-15 for each in found]
    claims = (
        _share_claim(f"best, part of {len(found)} cells", best, BEST_RATIO),
        _share_claim(f"within {NEAR:g} of the best", near, NEAR_RATIO),
    )
    worse = sorted({each.table for each, holds in zip(found, near, strict=True) if not holds})
    title = "R^2 on recorded tables: " + ("Spark" if number == "5" else "Hadoop, Flink, TensorFlow")
    notes = (
        source_note(runtimes, known),
        f"not within {NEAR:g} somewhere: {', '.join(worse)}",
        f"best of all with a tree grown to single rows, too: {sum(grown) / len(grown):.1%}",
    )
    return Figure(number, title, tuple(rows), claims, notes)


def _share_claim(claim: str, held: Sequence[bool], least: float) -> PaperClaim:
    ratio = sum(held) / len(held)
    return PaperClaim(claim, f">= {least:.0%}", f"{ratio:.1%}", ratio >= least)


def certified(runtimes: Path | None) -> Figure:
    """Upper bounds on recorded run times, and the prediction itself beside them."""
    known = tables(runtimes)
    rows, above = [], {}
    points = []
    with ProgressBar("tables", len(known)) as progress:
        for table in progress.counted(known):
            runs = RunTable(table.features, table.duration_s, table.configuration)
            found = [late(runs, 0.75, seed) for seed in range(CERTIFIED_SPLITS)]
            above[table.name] = mean([each.conformal for each in found])
            points.append(mean([each.point for each in found]))
            rows.append(row(table.name, "above the bound", None, [each.conformal for each in found]))
            rows.append(row(table.name, "above the prediction", None, [each.point for each in found]))
    over, worst = mean(list(above.values())), max(above, key=lambda name: above[name])
    claims = (
        PaperClaim("runs above their bound", "5 % +- 1.5", f"{over:.2%}", abs(over - 0.05) <= 0.015),
        PaperClaim("no table above 9 %", "<= 9 %", f"{above[worst]:.2%} ({worst})", above[worst] <= 0.09),
    )
    notes = (source_note(runtimes, known), f"above the prediction itself: {mean(points):.1%}")
    return Figure("certified", f"95 % bounds, {CERTIFIED_SPLITS} splits a table", tuple(rows), claims, notes)


def _placed(number: str, reading: PlacementReading) -> Figure:
    """Return a figure on placement under its own number; some show the same replays otherwise."""
    figure = PLACED[number](reading)
    if figure.figure == number:
        return figure
    return replace(figure, figure=number, notes=(*figure.notes, f"the same replays as Fig {figure.figure}"))


def paper_orion(
    wanted: str, runtimes: Path | None = None, choices: OrionChoices | None = None
) -> dict[str, Any]:
    """Run the figures; return the report. ``choices``: how those on placement read Alg 2 (None: as we do)."""
    numbers = figure_numbers(wanted, FIGURES, BY_NAME_ALONE)
    if choices is not None and wanted != "all" and not {*PLACED, "bound"} & set(numbers):
        remedy = f"one of {', '.join(PLACED)}, bound, all"
        raise BadInput("--choose", f"figure {wanted} places nothing", remedy)
    read = choices or OURS
    made: dict[str, Callable[[], Figure]] = {
        "3": figure_3,
        "4": partial(figures_4_5, "4", runtimes),
        "5": partial(figures_4_5, "5", runtimes),
        "certified": partial(certified, runtimes),
        "bound": partial(figure_bound, read),
    }
    made |= {number: partial(_placed, number, PlacementReading(read)) for number in PLACED}
    found = [made[number]() for number in numbers]
    mean_error, worst_error = errors(found)
    return {
        "paper": "orion",
        "calibrated_on": [],
        "figures": found,
        "mean_abs_relative_error": mean_error,
        "worst_abs_relative_error": worst_error,
    }
