"""``yarnctl explain``: why a decision was taken, and what it cost.

Law: an answer is read off a journal whose chain is whole; a journal that is still open will do.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import output_option, print_json
from yarnctl.errors import BadInput, Different
from yarnctl.journal.explain import explain, in_words
from yarnctl.journal.file import read


@click.command()
@click.option("--journal", required=True, type=click.Path(path_type=Path), help="The journal to read.")
@click.argument("wanted", metavar="ID")
@output_option
def command(journal: Path, wanted: str, output: str) -> None:
    """Say why ID was chosen, why not the next one, who took its place, and what it cost.

    ID is that of an application, a container, a task attempt or an order.
    """
    if not wanted.strip():
        raise BadInput("ID", "is empty", "name an application, a container, a task attempt or an order")
    found = explain((line.record for line in read(journal)), wanted)
    if not found.found:
        raise Different(f"{journal}: no record names {wanted}")
    if output == "json":
        print_json(found)
    else:
        click.echo("\n".join(in_words(found)))
