"""``yarnctl replay``: decide a whole journal again and compare.

Law: only a journal that was closed, whole and the same is a positive answer.
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
@click.option(
    "--open", "unfinished", is_flag=True, help="The journal is still being written: its end is no error."
)
@output_option
def command(journal: Path, unfinished: bool, output: str) -> None:
    """Decide every record of FILE again; stop at the first difference with exit status 1."""
    journal = journal_at(journal)
    try:
        with ProgressBar("records decided again", lambda: lines_in(*segments(journal))) as progress:
            lines = progress.counted(read(journal, closed=not unfinished))
            done = replay(lines, str(journal), closed=not unfinished)
    except Interrupted as error:
        raise BadInput(error.where, error.problem, "everything before it is the same") from None
    if output == "json":
        print_json(done)
    else:
        click.echo(
            f"{journal}: the same; {done.records} records, {done.decisions} decisions"
            f" with {done.picks} picks, {done.transitions} transitions, {done.refusals} refusals"
        )
