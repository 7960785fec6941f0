"""The report: one HTML file with everything in it, to be mailed or opened from a disk.

Law: a page's layout is in ``templates``, its text is passed to them here, escaped where it is put
in. Same results, same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from emulator.experiments.report import drawing
from emulator.experiments.report.conclusions import finding, over_ideal, reading
from emulator.experiments.results.figures import Figure
from emulator.experiments.results.runs import Comparison
from emulator.experiments.results.summary import SchemeSummary, evicted_at_ms
from emulator.scenario import Prepared, node_size
from emulator.virtual.run import Result
from emulator.virtual.schemes import SCHEMES
from emulator.virtual.waiting import CAUSES

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).with_name("templates")

COLUMNS = (
    "scheme",
    "production mean s",
    "production median s",
    "production p95 s",
    "research mean s",
    "research median s",
    "research p95 s",
    "lost h",
    "overhead h",
    "suspensions",
    "kills",
    "in use",
    "makespan s",
)
"""The columns of the summary, on the page and in the terminal."""

WAITING_COLUMNS = ("scheme", "class", *(name.replace("_", " ") for name in CAUSES), "all")
"""The columns of the table of what each class waited, in container hours."""

Cell = str | float | int | None


def summary_row(name: str, one: SchemeSummary) -> tuple[Cell, ...]:
    """Return one scheme's line under ``COLUMNS``."""
    times: list[float | None] = []
    for summary in (one.production, one.research):
        times += [_whole(summary.mean_s), _whole(summary.median_s), _whole(summary.p95_s)]
    lost, overhead = round(one.lost_work_s / 3600, 2), round(one.overhead_s / 3600, 2)
    in_use = f"{one.utilisation_ratio:.0%}"
    return (name, *times, lost, overhead, one.suspensions, one.kills, in_use, _whole(one.makespan_s))


def waiting_rows(results: Mapping[str, Result]) -> list[tuple[Cell, ...]]:
    """Return the lines under ``WAITING_COLUMNS``, of the classes that have jobs."""
    rows: list[tuple[Cell, ...]] = []
    for name, result in results.items():
        for each, causes in (result.waiting or {}).items():
            if any(job.job_class == each for job in result.jobs):
                spans_ms = [*causes.values(), sum(causes.values())]
                rows.append((name, each, *(round(span_ms / 3_600_000, 2) for span_ms in spans_ms)))
    return rows


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def report_html(
    outcome: Comparison, *, out: Path | None = None, title: str = "", figures: Sequence[Figure] = ()
) -> str:
    """Return the page. ``out`` is where the journals are; ``figures``: a paper's that this is a run of."""
    summaries = outcome.summaries()
    found = finding(summaries)
    return _rendered(
        "report.html",
        title=found,
        heading=title or found,
        was_run=_what_was_run(outcome.prepared),
        glance_svg=drawing.glance_svg(summaries),
        columns=COLUMNS,
        lines=[_line(summaries, name) for name in summaries],
        reading=reading(summaries),
        waiting_columns=WAITING_COLUMNS[2:],
        waiting=[_WaitingLine(f"{row[0]}: {row[1]}", row[2:]) for row in waiting_rows(outcome.results)],
        completion_svg=drawing.completion_svg(outcome.results),
        occupancy_svg=_occupancy_svg(outcome, out),
        figures=figures,
        facts=_facts(outcome.prepared),
    )


def paper_html(title: str, figures: Sequence[Figure], said: str = "") -> str:
    """Return a page with a paper's figures, its numbers beside ours; ``said`` sums them up."""
    return _rendered("paper.html", title=title, figures=figures, said=said)


# --- templates --------------------------------------------------------------------------------


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # the extra "report" has it

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "shown": _shown,
        "percent": _percent,
        "how_many": _how_many,
        "paper_svg": drawing.paper_svg,
    }
    return made


def _rendered(template: str, **said: object) -> str:
    return _templates().get_template(template).render(said)


def _shown(value: Cell) -> str:
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _percent(ratio: float | None) -> str | None:
    return None if ratio is None else f"{ratio:+.1%}"


def _how_many(figure: Figure) -> str:
    counts = sorted({row.runs for row in figure.rows})
    runs = " or ".join(map(str, counts)) + (" run" if counts == [1] else " runs")
    if any(row.paper is not None for row in figure.rows):
        return f"The paper's number above, ours below: the mean of {runs}."
    return f"The paper gives no numbers; ours are the mean of {runs}."


# --- what is said -----------------------------------------------------------------------------


class _SchemeLine(NamedTuple):
    """One scheme in the table: its name, what it is, and its description."""

    name: str
    what: str
    against_ideal: str
    values: tuple[Cell, ...]


class _WaitingLine(NamedTuple):
    """What one class waited under one scheme: hours by cause, and all of them."""

    name: str
    hours: tuple[Cell, ...]


def _line(summaries: Mapping[str, SchemeSummary], name: str) -> _SchemeLine:
    one = summaries[name]
    ratio = over_ideal(summaries, one, "production")
    against = "" if ratio is None or name == "ideal" else f"{ratio:+.0%}"
    return _SchemeLine(name, SCHEMES[name].what, against, summary_row(name, one)[1:])


def _what_was_run(prepared: Prepared) -> str:
    size = f"{prepared.scenario.nodes} nodes of {_size(prepared)}"
    return f"{len(prepared.jobs)} jobs from {' and '.join(prepared.sources)} on {size}, in virtual time."


def _size(prepared: Prepared) -> str:
    if prepared.scenario.slots is not None:
        return f"{prepared.scenario.slots} containers"
    size = node_size(prepared.scenario)
    return f"{size.memory_mib} MiB and {size.vcores} vcores"


def _occupancy_svg(outcome: Comparison, out: Path | None) -> str:
    scenario = outcome.prepared.scenario
    total_mib = scenario.nodes * node_size(scenario).memory_mib
    marks = {name: evicted_at_ms(out, name) for name in outcome.results}
    return drawing.occupancy_svg(outcome.results, total_mib, marks)


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
