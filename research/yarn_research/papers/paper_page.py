"""A page with the figures of a paper: its numbers beside ours, drawn and as tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.experiments.report.drawing import INK, SCHEME_COLOURS, new_figure, styled, text_of
from emulator.experiments.report.page import environment
from yarn_research.papers.figures import Figure, FigureRow

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.axes import Axes

TEMPLATES = Path(__file__).with_name("templates")


def paper_html(title: str, figures: Sequence[Figure], said: str = "") -> str:
    """Return a page with a paper's figures, its numbers beside ours; ``said`` sums them up."""
    return _templates().get_template("paper.html").render(title=title, figures=figures, said=said)


@cache
def _templates() -> Environment:
    made = environment(TEMPLATES)
    made.filters |= {"percent": _percent, "how_many": _how_many, "paper_svg": paper_svg}
    return made


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:+.1%}"


def _how_many(figure: Figure) -> str:
    counts = sorted({row.runs for row in figure.rows})
    runs = " or ".join(map(str, counts)) + (" run" if counts == [1] else " runs")
    if any(row.paper is not None for row in figure.rows):
        return f"The paper's number above, ours below: the mean of {runs}."
    return f"The paper gives no numbers; ours are the mean of {runs}."


def paper_svg(figure: Figure) -> str:
    """Draw the paper's number beside ours, a panel per metric; nothing if there are no rows.

    The whisker is one standard deviation of ours to either side.
    """
    metrics = {row.metric: [each for each in figure.rows if each.metric == row.metric] for row in figure.rows}
    if not metrics:
        return ""
    labels = [[row.label for row in rows] for rows in metrics.values()]
    shared = all(each == labels[0] for each in labels)
    counts = [len(each) for each in labels[: 1 if shared else None]]
    row_inches = 0.36 if any(row.paper is not None for row in figure.rows) else 0.21
    with styled(f"paper-{figure.figure}"):
        drawn = new_figure(9.6, 0.6 + sum(0.35 + row_inches * count for count in counts))
        if shared:
            panels = drawn.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        else:
            heights = [1 + count for count in counts]
            panels = drawn.subplots(len(metrics), 1, height_ratios=heights, squeeze=False)[:, 0]
        for axes, (metric, rows) in zip(panels, metrics.items(), strict=True):
            _beside(axes, metric, rows)
        known = [dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)) for axes in panels]
        handles = {label: handle for each in reversed(known) for label, handle in each.items()}
        drawn.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=2)
        return text_of(drawn)


def _beside(axes: Axes, metric: str, rows: Sequence[FigureRow]) -> None:
    """Draw the rows of one metric from above: the paper's bar, if there is one, and under it ours."""
    theirs = [(place, row.paper) for place, row in enumerate(rows) if row.paper is not None]
    aside = 0.19 if theirs else 0.0
    if theirs:
        _row_of_bars(axes, [(place - aside, value, 0.0) for place, value in theirs], _PAPER)
    _row_of_bars(axes, [(place + aside, row.ours, row.stdev) for place, row in enumerate(rows)], _OURS)
    labels = [textwrap.fill(row.label, 40) for row in rows]
    axes.set_yticks(range(len(rows)), labels, parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.axvline(0, color=INK, linewidth=0.6)
    axes.margins(x=0.16)
    axes.set_title(metric, parse_math=False)


def _row_of_bars(axes: Axes, bars: Sequence[tuple[float, float, float]], looks: Mapping[str, Any]) -> None:
    """Draw bars of (place, value, standard deviation), each with its number at its end."""
    axes.barh([bar[0] for bar in bars], [bar[1] for bar in bars], height=0.36, **looks)
    spread = [bar for bar in bars if bar[2]]
    if spread:
        places, values, deviations = zip(*spread, strict=True)
        axes.errorbar(values, places, xerr=deviations, **_WHISKER)
    for place, value, stdev in bars:
        side = -1 if value < 0 else 1
        axes.annotate(
            f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}",
            (value + side * stdev, place),
            (4 * side, 0),
            textcoords="offset points",
            va="center",
            ha="left" if side > 0 else "right",
            fontsize="x-small",
        )


_PAPER: dict[str, Any] = {"color": "#8b919c", "label": "the paper"}
_OURS: dict[str, Any] = {"color": SCHEME_COLOURS["natjam"], "label": "ours, with one standard deviation"}
_WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 1, "capsize": 2}
