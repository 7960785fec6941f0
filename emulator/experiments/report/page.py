"""The report: one HTML file with everything in it, to be mailed or opened from a disk.

A page's layout is in ``templates``; its text is passed to them here and escaped there. The same results and
the same provenance give the same bytes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.experiments.report import drawing
from emulator.experiments.report.conclusions import RULE, finding, reasons, recommended
from emulator.experiments.report.scheme_tables import Cell, outcome_rows, waiting_by_class
from emulator.experiments.results.runs import Comparison
from emulator.scenario import Prepared, node_size
from emulator.virtual.schemes import SCHEMES

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")


class Provenance(NamedTuple):
    """When a report was made (``date``: ISO 8601), by which version, and the command that repeats it."""

    date: str
    version: str
    command: str


def report_html(comparison: Comparison, provenance: Provenance) -> str:
    """Return the page of a comparison."""
    summaries = comparison.summaries()
    found = recommended(summaries)
    best = None if found is None else found.scheme
    return (
        _templates()
        .get_template("report.html")
        .render(
            title=finding(summaries),
            was_run=_what_was_run(comparison.prepared),
            made=provenance,
            best=best,
            reasons=reasons(summaries),
            rule=RULE,
            glance_svg=drawing.glance_svg(summaries),
            schemes={name: SCHEMES[name].what for name in summaries},
            rows=outcome_rows(summaries),
            waiting=waiting_by_class(comparison.results),
            completion_svg=drawing.completion_svg(comparison.results, best),
            occupancy_svg=_occupancy_svg(comparison),
            facts=_facts(comparison.prepared),
        )
    )


def environment(*more: Path) -> Environment:
    """Return the templates of a page; those of the folders ``more`` besides."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # the extra "report" has it

    made = Environment(
        loader=FileSystemLoader([TEMPLATES, *more]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["shown"] = _shown
    return made


@cache
def _templates() -> Environment:
    return environment()


def _shown(value: Cell) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _what_was_run(prepared: Prepared) -> str:
    size = f"{prepared.scenario.nodes} nodes of {_size(prepared)}"
    return f"{len(prepared.jobs)} jobs from {' and '.join(prepared.sources)} on {size}, in virtual time."


def _size(prepared: Prepared) -> str:
    if prepared.scenario.slots is not None:
        return f"{prepared.scenario.slots} containers"
    size = node_size(prepared.scenario)
    return f"{size.memory_mib} MiB and {size.vcores} vcores"


def _occupancy_svg(comparison: Comparison) -> str:
    scenario = comparison.prepared.scenario
    total_mib = scenario.nodes * node_size(scenario).memory_mib
    return drawing.occupancy_svg(comparison.results, total_mib)


def _facts(prepared: Prepared) -> list[tuple[str, object]]:
    scenario = prepared.scenario
    return [
        ("queues", f"{_pair(scenario.shares)}, under the caps {_pair(scenario.caps)} (production/research)"),
        ("policies", f"{scenario.job_policy} over jobs, {scenario.task_policy} over tasks"),
        ("profile, timing, mode", f"{scenario.profile}, {scenario.timing}, {scenario.mode}"),
        ("arrival rates", f"x {scenario.load:g}"),
        ("masters", f"at most {scenario.am_ratio:.0%} of a queue"),
        ("seed", scenario.seed),
        ("faults", len(scenario.faults) or "none"),
        *(("note", note) for note in prepared.notes),
        ("identity", prepared.identity),
    ]


def _pair(ratios: tuple[float, float]) -> str:
    return "/".join(f"{ratio * 100:g}" for ratio in ratios)
