"""``yarnctl explain``: why a decision was made, and what it cost.

Law: an answer is read from a journal whose chain is whole (one that is still open will do), or from the
records that a running daemon keeps in memory; the text is the same.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from yarnctl.command_line import ProgressBar, lines_in, output_option, print_json
from yarnctl.errors import BadInput, Different

SHOWN_MAX = 3
"""How many of the ids that a short form may mean are named."""


@click.command()
@click.option("--journal", type=click.Path(path_type=Path), help="The journal to read.")
@click.option(
    "--url",
    help="Where the daemon listens that is asked if no journal is given."
    " [env: YARNCTL_URL; default: http://127.0.0.1:8188]",
)
@click.argument("wanted", metavar="ID")
@output_option
def command(journal: Path | None, url: str | None, wanted: str, output: str) -> None:
    """Say why ID was chosen, why not the next one, who took its place, and what it cost.

    ID is that of an application (or its job), a container, a task attempt, an order (o-000081), an admission
    (adm-..., which only a journal explains), or the number of a decision. The first three may be given by
    their end, as tables show them: 1346_0001. A daemon remembers its newest decisions only, a journal holds
    all. Instants are local time; -o json has them in ms since 1970.
    """
    if not wanted.strip():
        raise BadInput(
            "ID",
            "is empty",
            "name an application, a container, an attempt, an order, a decision or an admission",
        )
    if journal is None:
        _ask(url, wanted, output)
    elif url is not None:
        raise BadInput("--url", "is of no use beside --journal", "give one of them")
    else:
        _read(journal, wanted, output)


def _read(journal: Path, wanted: str, output: str) -> None:
    """Explain from a journal."""
    from yarnctl.cli.asking import plain
    from yarnctl.journal.explaining.explain import explain, in_words
    from yarnctl.journal.file import read
    from yarnctl.journal.segments import segments

    wanted = _in_full(journal, wanted)
    with ProgressBar("records read", lambda: lines_in(*segments(journal))) as progress:
        found = explain((line.record for line in progress.counted(read(journal))), wanted)
    if not found.found:
        remedy = (
            "it holds decisions, and whom they looked at; for a job that was never looked at see yarnctl apps"
        )
        raise Different(f"{journal}: no record names {wanted}; {remedy}")
    if output == "json":
        print_json(found)
    else:
        click.echo("\n".join(map(plain, in_words(found))))


def _in_full(journal: Path, wanted: str) -> str:
    """Return the one id of the journal that ends as a short form does; itself if ``wanted`` is none."""
    import msgspec

    from yarnctl.journal.file import read
    from yarnctl.short_ids import ending, ids_in, resolved

    if ending(wanted) is None:
        return wanted
    texts = (msgspec.json.encode(line.record).decode() for line in read(journal))
    found = resolved(wanted, (each for text in texts for each in ids_in(text)))
    if len(found) > 1:
        raise BadInput(wanted, f"may be {', '.join(found[:SHOWN_MAX])}", "give the whole id")
    return found[0] if found else wanted


def _ask(url: str | None, wanted: str, output: str) -> None:
    """Let a daemon explain."""
    from yarnctl.api.decision_answers import Explained
    from yarnctl.cli.asking import DEFAULT_URL, ask, part, plain, shown

    if wanted.startswith("adm-"):
        remedy = f"ask 'yarnctl admissions {wanted}', or give its --journal"
        raise BadInput(wanted, "a daemon shows an admission, a journal explains it", remedy)
    address = url if url is not None else os.environ.get("YARNCTL_URL") or DEFAULT_URL
    answer = ask(address, f"v1/explanations/{part(wanted)}")
    if output == "json":
        print_json(answer)
    else:
        click.echo("\n".join(map(plain, shown(Explained, answer, address).text)))
