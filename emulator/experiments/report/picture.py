"""The picture: a comparison in one drawing, for a README.

Law: it shows what the report shows, by the same strokes, and stands alone: on white, in black.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

from emulator.experiments.report import drawing
from emulator.experiments.report.conclusions import finding
from emulator.experiments.results.instants import evicted_at_ms
from emulator.experiments.results.runs import Outcome
from emulator.scenario import node_size

BESIDE = ("soft-cap", "yarn-tuned", "natjam")
"""The schemes whose occupancy is shown: no preemption, YARN's own, and ours."""


def picture_svg(outcome: Outcome, out: Path | None) -> str:
    """Draw means and losses of all schemes, and under them who holds the cluster under three."""
    summaries, results = outcome.summaries(), outcome.results
    scenario = outcome.prepared.scenario
    total_mib = scenario.nodes * node_size(scenario).memory_mib
    shown = [name for name in BESIDE if name in results and results[name].samples]
    with drawing.styled("picture"):
        figure = drawing.new_figure(9.6, 1.0 + 0.3 * len(summaries) + (1.9 if shown else 0))
        heights = [0.3 * len(summaries) + 0.3, 1.9] if shown else [1]
        rows = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        title = textwrap.fill(finding(summaries), 110)
        figure.suptitle(title, fontsize=10.5, fontweight="bold", x=0.01, ha="left")
        drawing.glance(rows[0].subplots(1, 3, sharey=True), summaries)
        if shown:
            marks = {name: evicted_at_ms(out, name) for name in shown}
            panels = rows[1].subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
            drawing.occupancy(list(panels), {name: results[name] for name in shown}, total_mib, marks)
            drawing.occupancy_legend(rows[1], panels[0])
        return drawing.alone(drawing.text_of(figure))
