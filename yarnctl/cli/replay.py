"""``yarnctl replay``: decide a whole journal again and compare."""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import output_option, print_json
from yarnctl.journal.file import read
from yarnctl.journal.replay import replay


@click.command()
@click.argument("journal", metavar="FILE", type=click.Path(path_type=Path))
@output_option
def command(journal: Path, output: str) -> None:
    """Decide every record of FILE again; stop at the first difference with exit status 1."""
    done = replay(read(journal), str(journal))
    if output == "json":
        print_json(done)
    else:
        click.echo(
            f"{journal}: the same; {done.records} records, {done.decisions} decisions"
            f" with {done.picks} picks, {done.transitions} transitions, {done.refusals} refusals"
        )
