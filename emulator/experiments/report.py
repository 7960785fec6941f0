"""The report: one HTML file with everything in it, to be mailed or opened from a disk.

Law: the page reaches for nothing outside itself, and says what was run before it says what came
of it. Same results, same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from emulator.experiments import drawing
from emulator.experiments.figures import Figure
from emulator.experiments.instants import evicted_at_ms
from emulator.experiments.reading import finding, over_ideal, reading
from emulator.experiments.runs import Outcome
from emulator.experiments.summary import SchemeSummary
from emulator.scenario import Prepared, node_size
from emulator.schemes import SCHEMES

STYLE = Path(__file__).with_name("report.css")

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


def summary_row(name: str, one: SchemeSummary) -> tuple[str | float | int | None, ...]:
    """Return one scheme's line under ``COLUMNS``."""
    times: list[float | None] = []
    for summary in (one.production, one.research):
        times += [_whole(summary.mean_s), _whole(summary.median_s), _whole(summary.p95_s)]
    lost, overhead = round(one.lost_work_s / 3600, 2), round(one.overhead_s / 3600, 2)
    in_use = f"{one.utilisation_ratio:.0%}"
    return (name, *times, lost, overhead, one.suspensions, one.kills, in_use, _whole(one.makespan_s))


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def report_html(
    outcome: Outcome, *, out: Path | None = None, title: str = "", figures: Sequence[Figure] = ()
) -> str:
    """Return the page. ``out`` is where the journals are; ``figures``: a paper's that this is a run of."""
    summaries = outcome.summaries()
    parts = [
        f"<h1>{escape(title or finding(summaries))}</h1>",
        f'<p class="quiet">{escape(_what_was_run(outcome.prepared))}</p>',
        _figure(drawing.glance_svg(summaries), "What each class waits on average, and the work thrown away."),
        "<h2>Scheme by scheme</h2>",
        _summary_table(summaries),
        f'<p class="quiet">{_HOW_TO_READ}</p>',
        f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in reading(summaries))}</ul>",
        "<h2>How long jobs take</h2>",
        _figure(drawing.completion_svg(outcome.results), "Part of the jobs that took no longer."),
        _occupancy(outcome, out),
        _paper(figures),
        "<h2>The scenario</h2>",
        _facts(outcome.prepared),
    ]
    return _page(finding(summaries), parts)


def paper_html(title: str, figures: Sequence[Figure], said: str = "") -> str:
    """Return a page with a paper's figures, its numbers beside ours; ``said`` sums them up."""
    summed = f'<p class="quiet">{escape(said)}</p>' if said else ""
    return _page(title, [f"<h1>{escape(title)}</h1>", summed, _paper(figures)])


_HOW_TO_READ = (
    "Completion times count from submission; p95 is the nearest rank. Lost: container hours spent on keys or "
    "maps that were executed again. Overhead: relaunch, re-shuffle, skip and replay. In use: memory held, of "
    "all there is, until the last job ends."
)


def _page(title: str, parts: Iterable[str]) -> str:
    style = STYLE.read_text(encoding="utf-8")
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n"
        "</main>\n</body>\n</html>\n"
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _what_was_run(prepared: Prepared) -> str:
    scenario = prepared.scenario
    size = f"{scenario.nodes} nodes of {_size(prepared)}"
    return f"{len(prepared.jobs)} jobs from {' and '.join(prepared.sources)} on {size}, in virtual time."


def _size(prepared: Prepared) -> str:
    if prepared.scenario.slots is not None:
        return f"{prepared.scenario.slots} containers"
    size = node_size(prepared.scenario)
    return f"{size.memory_mib} MiB and {size.vcores} vcores"


def _summary_table(summaries: Mapping[str, SchemeSummary]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in COLUMNS)
    rows = []
    for name, one in summaries.items():
        cells = [_cell(value) for value in summary_row(name, one)]
        cells[0] = f'<td title="{escape(SCHEMES[name].what)}">{escape(name)}</td>'
        ratio = over_ideal(summaries, one, "production")
        if ratio is not None and name != "ideal":
            cells[1] = cells[1].replace("<td>", f'<td title="{ratio:+.0%} against ideal">', 1)
        mark = ' class="ours"' if name == "natjam" else ""
        rows.append(f"<tr{mark}>{''.join(cells)}</tr>")
    return _table(head, rows)


def _table(head: str, rows: Iterable[str]) -> str:
    inner = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table>{inner}</table></div>'


def _cell(value: object) -> str:
    shown = "-" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
    return f"<td>{escape(shown)}</td>"


def _occupancy(outcome: Outcome, out: Path | None) -> str:
    scenario = outcome.prepared.scenario
    total_mib = scenario.nodes * node_size(scenario).memory_mib
    marks = {name: evicted_at_ms(out, name) for name in outcome.results}
    svg = drawing.occupancy_svg(outcome.results, total_mib, marks)
    if not svg:
        return ""
    caption = "Memory held by each class. Above it, a mark for every task suspended (under kill: killed)."
    return f"<h2>Who holds the cluster</h2>{_figure(svg, caption)}"


def _facts(prepared: Prepared) -> str:
    scenario = prepared.scenario
    facts: list[tuple[str, object]] = [
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
    entries = [f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts]
    return f"<dl>{''.join(entries)}</dl>"


def _pair(ratios: tuple[float, float]) -> str:
    return "/".join(f"{ratio * 100:g}" for ratio in ratios)


# --- paper against ours -----------------------------------------------------------------------


def _paper(figures: Sequence[Figure]) -> str:
    return "\n".join(_one(figure) for figure in figures)


def _one(figure: Figure) -> str:
    parts = [f"<h2>Paper against ours: figure {escape(figure.figure)}. {escape(figure.title)}</h2>"]
    if figure.rows:
        parts.append(_figure(drawing.paper_svg(figure), _how_many(figure)))
        parts.append(_rows(figure))
    if figure.claims:
        parts.append(_claims(figure))
    parts += [f'<p class="quiet">{escape(note)}</p>' for note in figure.notes]
    return "\n".join(parts)


def _how_many(figure: Figure) -> str:
    counts = sorted({row.runs for row in figure.rows})
    runs = " or ".join(map(str, counts)) + (" run" if counts == [1] else " runs")
    if any(row.paper is not None for row in figure.rows):
        return f"The paper's number above, ours below: the mean of {runs}."
    return f"The paper gives no numbers; ours are the mean of {runs}."


def _rows(figure: Figure) -> str:
    names = ("paper", "ours", "s.d.", "runs", "error")
    head = '<th class="words">what</th>' + "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for row in figure.rows:
        error = None if row.relative_error is None else f"{row.relative_error:+.1%}"
        cells = "".join(map(_cell, (row.paper, row.ours, row.stdev, row.runs, error)))
        rows.append(f'<tr><td class="words">{escape(f"{row.label}: {row.metric}")}</td>{cells}</tr>')
    return _table(head, rows)


def _claims(figure: Figure) -> str:
    names = ("profile", "paper", "ours", "holds")
    head = '<th class="words">claim</th>' + "".join(f"<th>{name}</th>" for name in names)
    rows = []
    for claim in figure.claims:
        said = '<td class="yes">yes</td>' if claim.holds else '<td class="no">no</td>'
        cells = "".join(map(_cell, (claim.profile, claim.paper, claim.ours)))
        rows.append(f'<tr><td class="words">{escape(claim.claim)}</td>{cells}{said}</tr>')
    return _table(head, rows)
