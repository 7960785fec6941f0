"""Progress on stderr: a bar on a terminal, else a line per scheme that took more than a second.

Law: stdout belongs to results. Nothing is shown of what was over before one could read it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from emulator.experiments.runs import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

WORTH_SAYING_S = 1.0


class Lines:
    """One line per scheme that took its time."""

    def finished(self, scheme: str, wall_s: float | None) -> None:
        """Say that a scheme is done, if it was worth waiting for."""
        if wall_s is not None and wall_s > WORTH_SAYING_S:
            click.echo(f"{scheme}: {wall_s:.1f} s", err=True)


class OnBar:
    """A step of the bar per scheme."""

    def __init__(self, bar: Bar, task: TaskID) -> None:
        self.bar = bar
        self.task = task

    def finished(self, scheme: str, wall_s: float | None) -> None:
        """Move the bar."""
        said = f"{scheme} done" if wall_s is not None else f"{scheme} was done before"
        self.bar.update(self.task, advance=1, description=said)


@contextmanager
def shown_progress(schemes: int) -> Iterator[Progress]:
    """Show the progress of ``schemes`` runs while the block lasts."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (SpinnerColumn(), TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn())
    with Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        yield OnBar(bar, bar.add_task("running schemes", total=schemes))
