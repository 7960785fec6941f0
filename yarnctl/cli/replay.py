"""``yarnctl replay``: run the controller on a journal's input again and compare its output.

Exit status 0 only for a complete, closed journal (``--open``: also an open one) with equal output.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import ProgressBar, lines_in, output_option, print_json
from yarnctl.errors import BadInput
from yarnctl.journal.file import Interrupted, journal_at, read
from yarnctl.journal.replay import replay
from yarnctl.journal.segments import segments


@click.command()
@click.argument("journal", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--open", "unfinished", is_flag=True, help="Accept a journal that is still being written.")
@output_option
def command(journal: Path, unfinished: bool, output: str) -> None:
    """Run the controller on the input recorded in FILE and compare; exit with 1 at the first difference."""
    journal = journal_at(journal)
    try:
        with ProgressBar("records replayed", lambda: lines_in(*segments(journal))) as progress:
            lines = progress.counted(read(journal, closed=not unfinished))
            done = replay(lines, str(journal), closed=not unfinished)
    except Interrupted as error:
        raise BadInput(error.where, error.problem, "all records before it are equal") from None
    if output == "json":
        print_json(done)
    else:
        if done.not_replayed:
            click.echo(
                f"{done.not_replayed} records were not replayed, only their chain was checked: their"
                " controller began in a segment that was pruned"
            )
        click.echo(
            f"{journal}: equal; {done.records} records, {done.decisions} decisions"
            f" with {done.picks} picks, {done.transitions} transitions, {done.refusals} refusals"
        )
