"""Tables of a comparison: narrow with a column per scheme, wide with a line per scheme.

Rows are the same on the page and in the terminal. A time is rounded to seconds. A span of container time is
in hours. A value that a scheme does not have is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from emulator.experiments.report.conclusions import against_ideal, over_ideal
from emulator.experiments.results.summary import ClassSummary, SchemeSummary
from emulator.virtual.run import Result
from emulator.virtual.waiting import CAUSES
from yarnctl.deciding.time_lost import TIME_CAUSES

CLASSES = ("production", "research")
Cell = str | float | int | None
Summaries = Mapping[str, SchemeSummary]


class MetricRow(NamedTuple):
    """A line of a narrow table: a label and a cell for each scheme. Without cells it is a heading."""

    label: str
    cells: tuple[Cell, ...] = ()


def outcome_rows(summaries: Summaries) -> list[MetricRow]:
    """Return the narrow table of what came of each scheme."""
    rows: list[MetricRow] = []
    for job_class in CLASSES:
        times: list[ClassSummary] = [getattr(one, job_class) for one in summaries.values()]
        rows.append(MetricRow(f"{job_class} s"))
        rows.append(MetricRow("  mean", tuple(_whole(each.mean_s) for each in times)))
        if "ideal" in summaries:
            over = (over_ideal(summaries, one, job_class) for one in summaries.values())
            rows.append(MetricRow("  vs ideal", tuple(map(against_ideal, over))))
        rows.append(MetricRow("  median", tuple(_whole(each.median_s) for each in times)))
        rows.append(MetricRow("  p95", tuple(_whole(each.p95_s) for each in times)))
    schemes = summaries.values()
    return [
        *rows,
        MetricRow("lost h", tuple(_short_hours(one.lost_work_s) for one in schemes)),
        MetricRow("overhead h", tuple(_short_hours(one.overhead_s) for one in schemes)),
        MetricRow("suspensions", tuple(one.suspensions for one in schemes)),
        MetricRow("kills", tuple(one.kills for one in schemes)),
        MetricRow("in use", tuple(f"{one.utilisation_ratio:.0%}" for one in schemes)),
        MetricRow("makespan s", tuple(_whole(one.makespan_s) for one in schemes)),
    ]


def waiting_by_class(results: Mapping[str, Result]) -> list[MetricRow]:
    """Return the narrow table of the container hours that each class waited, by cause.

    A cause for which no scheme let a class wait has no line, and a class without jobs has no block.
    """
    rows: list[MetricRow] = []
    for job_class in CLASSES:
        spans = [(result.waiting or {}).get(job_class, {}) for result in results.values()]
        names = [name for name in CAUSES if any(each.get(name) for each in spans)]
        if not names or not any(
            job.job_class == job_class for result in results.values() for job in result.jobs
        ):
            continue
        rows.append(MetricRow(f"{job_class} h"))
        for name in names:
            cells = tuple(_short_hours(each.get(name, 0) / 1000) if each else None for each in spans)
            rows.append(MetricRow(f"  {name.replace('_', ' ')}", cells))
        cells = tuple(_short_hours(sum(each.values()) / 1000) if each else None for each in spans)
        rows.append(MetricRow("  all", cells))
    return rows


def time_lost_rows(results: Mapping[str, Result]) -> list[MetricRow]:
    """Return the narrow table of the container hours that production waited, as yarnctl found the causes.

    Only of schemes in which it runs; a cause for which nothing waited has no line.
    """
    spans = [result.time_lost for result in results.values() if result.time_lost]
    return [
        MetricRow(cause, tuple(_short_hours(each.get(cause, 0) / 1000) for each in spans))
        for cause in TIME_CAUSES
        if any(each.get(cause) for each in spans)
    ]


def narrow_text(schemes: Sequence[str], rows: Sequence[MetricRow]) -> str:
    """Return a narrow table as text: labels to the left, a right-aligned column per scheme."""
    texts = [["-" if cell is None else str(cell) for cell in row.cells] for row in rows]
    label = max(len(row.label) for row in rows)
    widths = [
        max(len(name), *(len(cells[place]) for cells in texts if cells)) for place, name in enumerate(schemes)
    ]
    lines = [("", schemes), *((row.label, cells) for row, cells in zip(rows, texts, strict=True))]
    return "".join(
        (
            f"{head:<{label}}"
            + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths, strict=False))
        ).rstrip()
        + "\n"
        for head, cells in lines
    )


COLUMNS = (
    "scheme",
    *(f"{each} {figure} s" for each in CLASSES for figure in ("mean", "median", "p95")),
    "lost h",
    "overhead h",
    "suspensions",
    "kills",
    "in use",
    "makespan s",
)
"""The columns of the wide table of what came of each scheme."""

WAITING_COLUMNS = ("scheme", "class", *(name.replace("_", " ") for name in CAUSES), "all")
"""The columns of the wide table of what each class waited, in container hours."""


def summary_row(name: str, summary: SchemeSummary) -> tuple[Cell, ...]:
    """Return one scheme's line under ``COLUMNS``."""
    times: list[float | None] = []
    for own in (summary.production, summary.research):
        times += [_whole(own.mean_s), _whole(own.median_s), _whole(own.p95_s)]
    in_use = f"{summary.utilisation_ratio:.0%}"
    hours = _hours(summary.lost_work_s), _hours(summary.overhead_s)
    return (name, *times, *hours, summary.suspensions, summary.kills, in_use, _whole(summary.makespan_s))


def waiting_rows(results: Mapping[str, Result]) -> list[tuple[Cell, ...]]:
    """Return the lines under ``WAITING_COLUMNS``, of the classes that have jobs."""
    rows: list[tuple[Cell, ...]] = []
    for name, result in results.items():
        for each, causes in (result.waiting or {}).items():
            if any(job.job_class == each for job in result.jobs):
                spans_ms = [*causes.values(), sum(causes.values())]
                rows.append((name, each, *(_hours(span_ms / 1000) for span_ms in spans_ms)))
    return rows


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _hours(span_s: float) -> float:
    return round(span_s / 3600, 2)


def _short_hours(span_s: float) -> str:
    """Return a span in hours with the decimals that four characters hold: eight schemes fit a line."""
    hours = span_s / 3600
    return (
        "0"
        if not span_s
        else f"{hours:.2f}"
        if hours < 9.995
        else f"{hours:.1f}"
        if hours < 99.95
        else f"{hours:.0f}"
    )
