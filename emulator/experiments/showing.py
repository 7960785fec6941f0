"""Run an experiment for a command: progress, folder, report, and the table or the JSON.

The commands differ only in where the scenario comes from. Results go to stdout. Progress goes to stderr: a
bar on a terminal, else a line for each scheme that takes longer than a second.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import click

from emulator.experiments.report.conclusions import RULE, reasons
from emulator.experiments.report.drawing import picture_svg
from emulator.experiments.report.page import Provenance, report_html
from emulator.experiments.report.scheme_tables import (
    COLUMNS,
    WAITING_COLUMNS,
    narrow_text,
    outcome_rows,
    summary_row,
    time_lost_rows,
    waiting_by_class,
    waiting_rows,
)
from emulator.experiments.results import runs
from emulator.experiments.results.folder import Folder
from emulator.scenario import Prepared
from yarnctl import command_line
from yarnctl.command_line import print_json, print_table
from yarnctl.deciding.time_lost import SAVES, TimeCause
from yarnctl.extras import require_extra


@contextmanager
def shown_progress(schemes: int) -> Iterator[runs.RunProgress]:
    """Show the progress of ``schemes`` runs while the block lasts."""
    if not sys.stderr.isatty():
        yield _print_finished
        return
    with command_line.ProgressBar("running schemes", schemes) as bar:
        yield lambda name, wall_s: bar.step(f"{name} {'was done before' if wall_s is None else 'done'}")


def _print_finished(scheme: str, wall_s: float | None) -> None:
    """Print that a scheme is done, if it took longer than a second."""
    if wall_s is not None and wall_s > command_line.WORTH_SHOWING_S:
        click.echo(f"{scheme}: {wall_s:.1f} s", err=True)


def run_shown(
    prepared: Prepared,
    *,
    command: str,
    date: str,
    out: Path | None,
    journal: bool = True,
    workers: int | None = None,
    replace: bool = False,
    picture: bool = False,
) -> runs.Comparison:
    """Run an experiment and show its progress on stderr; with ``out``, write the report (and picture) too.

    ``command`` and ``date`` (ISO 8601) are what the report says of its origin. Raises BadInput if the page
    cannot be made because the extra ``report`` is not installed.
    """

    def pages(comparison: runs.Comparison) -> dict[str, str]:
        drawn = {"demo.svg": picture_svg(comparison)} if picture else {}
        made = Provenance(date, runs.program_version(), command)
        return {"report.html": report_html(comparison, made), **drawn}

    if out is not None:
        require_extra("report")
        Folder(out, prepared.identity).require_ours()
    with shown_progress(len(prepared.scenario.schemes)) as progress:
        return runs.run_experiment(
            prepared,
            out=out,
            journal=journal,
            workers=workers,
            replace=replace,
            progress=progress,
            pages=pages,
        )


def print_outcome(comparison: runs.Comparison, output: str, out: Path | None) -> None:
    """Print an experiment's outcome on stdout as ``table``, ``wide`` or ``json``; notes go to stderr."""
    for note in comparison.prepared.notes:
        click.echo(f"note: {note}", err=True)
    if output == "json":
        print_json(runs.compare_json(comparison))
        return
    summaries = comparison.summaries()
    waits = "Container hours that each class waited, by cause:"
    if output == "wide":
        print_table(COLUMNS, [summary_row(name, one) for name, one in summaries.items()])
        click.echo(f"\n{waits}")
        print_table(WAITING_COLUMNS, waiting_rows(comparison.results))
    else:
        click.echo(narrow_text(list(summaries), outcome_rows(summaries)))
        click.echo(waits)
        click.echo(narrow_text(list(summaries), waiting_by_class(comparison.results)), nl=False)
    _print_time_lost(comparison)
    print_reasons(comparison)
    if out is not None:
        click.echo(f"report: {out / 'report.html'}")


def _print_time_lost(comparison: runs.Comparison) -> None:
    """Print where production's time went under yarnctl, and what would have saved it."""
    rows = time_lost_rows(comparison.results)
    if not rows:
        return
    schemes = [name for name, result in comparison.results.items() if result.time_lost]
    click.echo("\nContainer hours that production waited, as yarnctl found the causes:")
    click.echo(narrow_text(schemes, rows), nl=False)
    for row in rows:
        if saves := SAVES.get(cast(TimeCause, row.label)):
            click.echo(textwrap.fill(f"{row.label}: {saves}", 80, break_on_hyphens=False))


def print_reasons(comparison: runs.Comparison) -> None:
    """Print which scheme is recommended and why, folded to 80 columns; nothing if there is no choice."""
    sentences = reasons(comparison.summaries())
    if sentences:
        click.echo()
    for sentence in [*sentences, RULE] if sentences else ():
        click.echo(textwrap.fill(sentence, 80, break_on_hyphens=False))
