"""Running an experiment for a command: progress, the folder, the page, the table or the JSON.

Law: the three commands that run experiments differ in where the scenario comes from, and in
nothing else.

Progress of an experiment on stderr: a bar on a terminal, else a line per scheme over a second.

Law: stdout belongs to results. Nothing is shown of what was over before one could read it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from emulator.experiments.report.conclusions import finding, over_ideal, reading
from emulator.experiments.report.drawing import picture_svg
from emulator.experiments.report.page import (
    COLUMNS,
    WAITING_COLUMNS,
    report_html,
    summary_row,
    waiting_rows,
)
from emulator.experiments.results.folder import Folder
from emulator.experiments.results.runs import Comparison, RunProgress, compare_json, run_experiment
from emulator.scenario import Prepared
from yarnctl import command_line
from yarnctl.command_line import print_json, print_table
from yarnctl.extras import require_extra


@contextmanager
def shown_progress(schemes: int) -> Iterator[RunProgress]:
    """Show the progress of ``schemes`` runs while the block lasts."""
    if not sys.stderr.isatty():
        yield _say_finished
        return
    with command_line.ProgressBar("running schemes", schemes) as bar:
        yield lambda name, wall_s: bar.step(f"{name} {'was done before' if wall_s is None else 'done'}")


def _say_finished(scheme: str, wall_s: float | None) -> None:
    """Say that a scheme is done, if it was worth waiting for."""
    if wall_s is not None and wall_s > command_line.WORTH_SHOWING_S:
        click.echo(f"{scheme}: {wall_s:.1f} s", err=True)


def run_shown(
    prepared: Prepared,
    *,
    out: Path | None,
    journal: bool = True,
    workers: int | None = None,
    replace: bool = False,
    picture: bool = False,
) -> Comparison:
    """Run an experiment, showing progress on stderr; with ``out``, write the page (and picture) too.

    Raises BadInput if the page cannot be made because the extra ``report`` is not installed.
    """

    def pages(outcome: Comparison) -> dict[str, str]:
        drawn = {"demo.svg": picture_svg(outcome, out)} if picture else {}
        return {"report.html": report_html(outcome, out=out), **drawn}

    if out is not None:
        require_extra("report")
        Folder(out, prepared.identity).require_ours()
    with shown_progress(len(prepared.scenario.schemes)) as progress:
        return run_experiment(
            prepared,
            out=out,
            journal=journal,
            workers=workers,
            replace=replace,
            progress=progress,
            pages=pages,
        )


def print_outcome(outcome: Comparison, output: str, out: Path | None) -> None:
    """Print an experiment's outcome on stdout; what else is to be said goes to stderr."""
    for note in outcome.prepared.notes:
        click.echo(f"note: {note}", err=True)
    if output == "json":
        print_json(compare_json(outcome))
        return
    print_table(COLUMNS, [summary_row(name, one) for name, one in outcome.summaries().items()])
    click.echo("\nContainer hours that each class waited, by cause:")
    print_table(WAITING_COLUMNS, waiting_rows(outcome.results))
    if out is not None:
        click.echo(f"report: {out / 'report.html'}")


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:+.0%}" if ratio < 1 else f"x {ratio + 1:.1f}"


def print_reading(outcome: Comparison, out: Path) -> None:
    """Print a narrow table and its conclusions, sentence by sentence."""
    summaries = outcome.summaries()
    columns = (
        "scheme",
        "production s",
        "vs ideal",
        "research s",
        "vs ideal",
        "lost h",
        "suspended",
        "killed",
    )
    rows = []
    for name, one in summaries.items():
        times: list[object] = []
        for job_class in ("production", "research"):
            ratio = over_ideal(summaries, one, job_class)
            mean_s = getattr(one, job_class).mean_s
            times += [None if mean_s is None else round(mean_s), _times(ratio)]
        rows.append((name, *times, round(one.lost_work_s / 3600, 1), one.suspensions, one.kills))
    print_table(columns, rows)
    click.echo("Mean completion time of each class; container hours of work that was done and thrown away.\n")
    for line in reading(summaries):
        click.echo(f"  {line}")
    click.echo(f"\nIn short: {finding(summaries)}.")
    click.echo(f"The whole picture: {out / 'report.html'}")
