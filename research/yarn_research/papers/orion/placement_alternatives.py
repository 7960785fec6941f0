"""What each reading of ORiON's Alg 2 changes in Figs 6, 7, 8 and 12.

Law: research/notes/paper.md (section ORiON, Readings) has ours and the others. The set-up has no hourly budget, so that
readings of B_c are compared where each pool may cost what five of its seven containers cost.
"""

from __future__ import annotations

from yarn_research.papers.figures import mean
from yarn_research.papers.orion.placed_figures import (
    GAPS_S,
    PlacementReading,
    figure_6,
    figure_7,
    figure_8,
    figure_12,
    met_mean,
    played,
)
from yarn_research.papers.paper_justice import PaperReading
from yarn_research.placement.placement_readings import READINGS
from yarnctl.command_line import ProgressBar

BUDGET_CONTAINERS, APPLICATIONS = 5, 75
JUDGED = (figure_6, figure_7, figure_8, figure_12)


class PlacementAlternative(PaperReading, frozen=True):
    """A reading, and what becomes of 75 applications by the gap between two (10, 20, 30 s)."""

    met_ratio: dict[str, float]
    late_of_admitted_ratio: dict[str, float]
    containers_mean: dict[str, float]


def readings() -> dict[str, PlacementReading]:
    """Return every reading by its name; those of the budget with one."""
    found = {
        name: PlacementReading(choices) for name, choices in READINGS.items() if choices.budget == "pool"
    }
    for name in ("ours", "budget=application"):
        found[f"{name}, B_c: {BUDGET_CONTAINERS} containers"] = PlacementReading(
            READINGS[name], BUDGET_CONTAINERS
        )
    return found


def placement_alternatives() -> list[PlacementAlternative]:
    """Judge Figs 6, 7, 8 and 12 under every reading."""
    known = readings()
    with ProgressBar("readings", len(known)) as progress:
        return [_alternative(name, known[name]) for name in progress.counted(known)]


def _alternative(name: str, reading: PlacementReading) -> PlacementAlternative:
    claims = [claim for figure in JUDGED for claim in figure(reading).claims]
    failed = tuple(f"{claim.claim}: {claim.ours}" for claim in claims if not claim.holds)
    cells = {f"{gap_s:g}": played(APPLICATIONS, gap_s, reading) for gap_s in GAPS_S}
    return PlacementAlternative(
        name,
        name == "ours",
        len(failed),
        failed,
        {gap: round(met_mean(cell), 3) for gap, cell in cells.items()},
        {gap: round(mean([one.late_of_admitted_ratio for one in cell]), 3) for gap, cell in cells.items()},
        {gap: round(mean([one.containers_mean for one in cell]), 2) for gap, cell in cells.items()},
    )
