"""Progress of an experiment on stderr: a bar on a terminal, else a line per scheme over a second.

Law: stdout belongs to results. Nothing is shown of what was over before one could read it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from emulator.experiments.results.runs import Progress
from yarnctl import command_line


class Lines:
    """One line per scheme that took its time."""

    def finished(self, scheme: str, wall_s: float | None) -> None:
        """Say that a scheme is done, if it was worth waiting for."""
        if wall_s is not None and wall_s > command_line.WORTH_SHOWING_S:
            click.echo(f"{scheme}: {wall_s:.1f} s", err=True)


class OnBar:
    """A step of the bar per scheme."""

    def __init__(self, bar: command_line.ProgressBar) -> None:
        self.bar = bar

    def finished(self, scheme: str, wall_s: float | None) -> None:
        """Move the bar."""
        self.bar.step(f"{scheme} done" if wall_s is not None else f"{scheme} was done before")


@contextmanager
def shown_progress(schemes: int) -> Iterator[Progress]:
    """Show the progress of ``schemes`` runs while the block lasts."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    with command_line.ProgressBar("running schemes", schemes) as bar:
        yield OnBar(bar)
