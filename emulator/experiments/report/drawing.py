"""Drawing: results as SVG text, the same bytes for the same results; and a comparison in one picture.

Law: no clock, no font file and no display enters a picture. Lines and words have the colour of the page they
are on (``currentColor``); a scheme and a class have one colour everywhere, chosen to be readable on white and
on black.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from emulator.experiments.report.conclusions import finding
from emulator.experiments.results.runs import Comparison
from emulator.experiments.results.summary import SchemeSummary, completions_ms
from emulator.scenario import node_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from emulator.virtual.run import MemorySample, Result


INK = "#010203"
"""A placeholder of the page's own colour until the picture is text."""

SCHEME_COLOURS = {
    "ideal": "#8b919c",
    "hard-cap": "#a679c4",
    "soft-cap": "#4a86d0",
    "kill": "#dd4b4b",
    "yarn": "#e8862e",
    "yarn-tuned": "#c2a021",
    "natjam": "#12996f",
    "mix": "#0b6b8a",
}
CLASS_COLOURS = {"production": "#3b7bd9", "research": "#e0ab4b"}
MARK_COLOURS = {"suspended": "#12996f", "killed": "#c2255c"}
MARK_HEIGHTS = {"suspended": (103, 110), "killed": (112, 119)}
"""Where the marks of each kind begin and end, on the axis of the cluster's percentages."""

STRETCH = 1.5
"""A scheme that lasts this many times longer than all others does not squeeze them."""

MOST_MARKS = 2000
MOST_POINTS = 500


def styled(salt: str) -> AbstractContextManager[None]:
    """Draw in our own style while the context lasts; ``salt`` keeps the ids of two pictures apart."""
    import matplotlib

    settings: Any = {
        "svg.hashsalt": salt,
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 10,
        "axes.titlelocation": "left",
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.linewidth": 0.6,
        "grid.color": INK,
        "grid.alpha": 0.12,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.constrained_layout.use": True,
    }
    return matplotlib.rc_context(settings)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of so many inches, with no window and no state behind it."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    FigureCanvasSVG(figure)
    return figure


def text_of(figure: Figure) -> str:
    """Return the picture without what a page does not need: prologue, metadata, ids of groups."""
    buffer = io.StringIO()
    # What savefig(transparent=True) does, without its first drawing that only lays out: print_svg does that.
    figure.set(facecolor="none", edgecolor="none")
    for axes in figure.axes:
        axes.patch.set(facecolor="none", edgecolor="none")
    canvas: Any = figure.canvas
    canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'<g id="[A-Za-z]+[A-Za-z0-9_.]*">', "<g>", text)
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans', sans-serif")
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), text)
    return text.replace(INK, "currentColor")


# --- at a glance ----------------------------------------------------------------------------


def glance_svg(summaries: Mapping[str, SchemeSummary]) -> str:
    """Draw what production waits, what research waits and what is lost, a bar per scheme."""
    with styled("glance"):
        figure = new_figure(9.6, 0.55 + 0.33 * len(summaries))
        glance(figure.subplots(1, 3, sharey=True), summaries)
        return text_of(figure)


def glance(panels: Sequence[Axes], summaries: Mapping[str, SchemeSummary]) -> None:
    """Draw the bars into three panels."""
    names, all_of = list(summaries), summaries.values()
    columns: tuple[tuple[str, list[float]], ...] = (
        ("production: mean completion (s)", [one.production.mean_s or 0 for one in all_of]),
        ("research: mean completion (s)", [one.research.mean_s or 0 for one in all_of]),
        ("work lost (container hours)", [one.lost_work_s / 3600 for one in all_of]),
    )
    for axes, (title, values) in zip(panels, columns, strict=True):
        _bars(axes, names, values, title, "{:.1f}" if "lost" in title else "{:.0f}")
    panels[0].invert_yaxis()


def _bars(axes: Axes, names: Sequence[str], values: Sequence[float], title: str, form: str) -> None:
    places = range(len(names))
    axes.barh(places, values, color=[SCHEME_COLOURS[name] for name in names], height=0.66)
    for place, value in zip(places, values, strict=True):
        axes.annotate(form.format(value), (value, place), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(places, names)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)
    axes.set_xlim(0, max([*values, 1e-9]) * 1.22)
    axes.set_title(title)


# --- distribution of completion times -------------------------------------------------------


def completion_svg(results: Mapping[str, Result], best: str | None) -> str:
    """Draw the distribution of completion times: a panel per class, a line per scheme, ``best`` thicker."""
    with styled("completion"):
        figure = new_figure(9.6, 3.7)
        panels = figure.subplots(1, 2, sharey=True)
        for axes, job_class in zip(panels, ("production", "research"), strict=True):
            _distributions(axes, results, job_class, best)
        panels[0].set_ylabel("part of the jobs done within")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
        return text_of(figure)


def _distributions(axes: Axes, results: Mapping[str, Result], job_class: str, best: str | None) -> None:
    for name, result in results.items():
        spans = [span / 1000 for span in completions_ms(result, job_class)]
        parts = [(rank + 1) / len(spans) for rank in range(len(spans))]
        axes.step(
            spans,
            parts,
            where="post",
            label=name,
            color=SCHEME_COLOURS[name],
            linewidth=2.2 if name == best else 1.3,
            linestyle="--" if name == "ideal" else "-",
            zorder=3 if name == best else 2,
        )
    axes.set_xscale("log")
    axes.set_xlabel("completion time (s)")
    axes.set_title(job_class)
    axes.set_ylim(0, 1.02)
    axes.grid(True)


# --- occupancy over time --------------------------------------------------------------------


def occupancy_svg(results: Mapping[str, Result], total_mib: int) -> str:
    """Draw the containers of each class over time, a panel per scheme, with suspensions and kills above.

    Schemes that run each class alone have no shared cluster and no panel.
    """
    shown = [name for name in results if name != "ideal" and results[name].samples]
    if not shown:
        return ""
    with styled("occupancy"):
        figure = new_figure(9.6, 0.7 + 1.55 * -(-len(shown) // 2))
        occupancy(figure, {name: results[name] for name in shown}, total_mib)
        return text_of(figure)


def occupancy(figure: Figure | SubFigure, results: Mapping[str, Result], total_mib: int) -> None:
    """Draw the occupancy of each scheme into a panel, two panels a row; all panels share both axes."""
    rows, columns = -(-len(results) // 2), min(2, len(results))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels: list[Axes] = [axes for row in grid for axes in row]
    for axes in panels[len(results) :]:
        axes.set_axis_off()
    panels = panels[: len(results)]
    for axes, (name, result) in zip(panels, results.items(), strict=True):
        _areas(axes, result.samples, total_mib)
        axes.set_title(name, color=SCHEME_COLOURS[name], fontweight="bold")
        _marks(axes, result)
        axes.set_xlabel("time (min)")
        axes.label_outer()
    ends = [result.samples[-1].at_ms / 60_000 for result in results.values()]
    shown_min = _shown_min(ends)
    for axes, end in zip(panels, ends, strict=True):
        if end > shown_min:
            axes.annotate(
                f"until {end:.0f} min", (1, 0.3), xycoords="axes fraction", ha="right", fontsize="small"
            )
    panels[0].set_xlim(0, shown_min)
    panels[0].set_ylim(0, 121)
    panels[0].set_yticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    occupancy_legend(figure, panels[0])


def _shown_min(ends: Sequence[float]) -> float:
    """Return how far the time axis goes: one scheme that takes far longer is cut off."""
    longest, *others = sorted(ends, reverse=True)
    return others[0] * 1.05 if others and longest > others[0] * STRETCH else longest


def _areas(axes: Axes, samples: Sequence[MemorySample], total_mib: int) -> None:
    every = max(1, -(-len(samples) // MOST_POINTS))
    kept = samples[::every]
    minutes = [sample.at_ms / 60_000 for sample in kept]
    parts = {
        job_class: [getattr(sample, f"{job_class}_mib") * 100 / total_mib for sample in kept]
        for job_class in CLASS_COLOURS
    }
    axes.stackplot(
        minutes,
        *parts.values(),
        labels=list(parts),
        colors=[*CLASS_COLOURS.values()],
        alpha=0.85,
        linewidth=0,
    )


def _marks(axes: Axes, result: Result) -> None:
    """Mark suspensions and kills, and give their counts at the title's right."""
    counts = (f"{result.suspensions:,} suspended", f"{result.kills:,} killed")
    axes.set_title(", ".join(counts), loc="right", fontsize="small")
    for kind, instants_ms in (("suspended", result.suspended_at_ms), ("killed", result.killed_at_ms)):
        minutes: list[float] = []
        heights: list[float] = []
        for at_ms in instants_ms[:: max(1, -(-len(instants_ms) // MOST_MARKS))]:
            minutes += [at_ms / 60_000] * 2 + [math.nan]  # one line with gaps: a small file
            heights += [*MARK_HEIGHTS[kind], math.nan]
        if minutes:
            axes.plot(minutes, heights, color=MARK_COLOURS[kind], linewidth=0.7, alpha=0.8)


def occupancy_legend(figure: Figure | SubFigure, axes: Axes) -> None:
    """Say above the panels what the colours and marks mean."""
    from matplotlib.lines import Line2D

    handles, labels = axes.get_legend_handles_labels()
    for kind, colour in MARK_COLOURS.items():
        handles.append(Line2D([], [], color=colour, marker="|", linestyle="none", markersize=9))
        labels.append(f"a task {kind}")
    figure.legend(handles, labels, loc="outside upper center", ncols=4)


# --- alone ----------------------------------------------------------------------------------


def alone(svg: str) -> str:
    """Return a picture that can be a file of its own: on white, in black."""
    head, _, rest = svg.partition(">")
    style = 'style="background:#ffffff;color:#1f2328"'
    return f'{head} {style}>\n<rect width="100%" height="100%" fill="#ffffff"/>{rest}'


BESIDE = ("soft-cap", "yarn-tuned", "natjam", "mix")
"""The schemes whose occupancy is shown: no preemption, YARN's own, and yarnctl's two."""


def picture_svg(comparison: Comparison) -> str:
    """Draw means and losses of all schemes, and under them the occupancy under four."""
    summaries, results = comparison.summaries(), comparison.results
    scenario = comparison.prepared.scenario
    total_mib = scenario.nodes * node_size(scenario).memory_mib
    shown = [name for name in BESIDE if name in results and results[name].samples]
    with styled("picture"):
        below = 0.6 + 1.5 * -(-len(shown) // 2)
        figure = new_figure(9.6, 1.0 + 0.3 * len(summaries) + (below if shown else 0))
        heights = [0.3 * len(summaries) + 0.3, below] if shown else [1]
        rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        title = textwrap.fill(finding(summaries), 110)
        figure.suptitle(title, fontsize=10.5, fontweight="bold", x=0.01, ha="left")
        glance(rows[0].subplots(1, 3, sharey=True), summaries)
        if shown:
            occupancy(rows[1], {name: results[name] for name in shown}, total_mib)
        return alone(text_of(figure))
