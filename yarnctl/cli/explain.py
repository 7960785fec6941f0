"""``yarnctl explain``: explain a decision and its cost, from a journal or from a running daemon's records."""

from __future__ import annotations

import os
from pathlib import Path

import click

from yarnctl.command_line import ProgressBar, lines_in, output_option, print_json
from yarnctl.errors import BadInput, Different

SHOWN_MAX = 3  # Maximum number of ids that an error about an ambiguous short id lists


@click.command()
@click.option("--journal", type=click.Path(path_type=Path), help="Journal to read.")
@click.option(
    "--url",
    help="Address of the daemon, queried without --journal."
    "  [env: YARNCTL_URL; default: http://127.0.0.1:8188]",
)
@click.argument("wanted", metavar="ID")
@output_option
def command(journal: Path | None, url: str | None, wanted: str, output: str) -> None:
    """Explain why ID was chosen, why the next candidate was not, which application got the container, and the
    cost.

    ID is an application, job, container, task attempt, order (o-000081), decision (its number) or, with
    --journal, an admission (adm-...). Applications, containers and attempts may be shortened to their end, as
    in tables: 1346_0001. A daemon keeps only its newest decisions; a journal contains all. Instants are local
    time; with -o json they are ms since 1970.
    """
    if not wanted.strip():
        remedy = "give the ID of an application, container, attempt, order, decision or admission"
        raise BadInput("ID", "is empty", remedy)
    if journal is None:
        _query(url, wanted, output)
    elif url is not None:
        raise BadInput("--url", "cannot be combined with --journal", "give one of them")
    else:
        _read(journal, wanted, output)


def _read(journal: Path, wanted: str, output: str) -> None:
    from yarnctl.cli.asking import plain
    from yarnctl.journal.explaining.explain import explain, in_words
    from yarnctl.journal.file import read
    from yarnctl.journal.segments import segments

    wanted = _in_full(journal, wanted)
    with ProgressBar("records read", lambda: lines_in(*segments(journal))) as progress:
        found = explain((line.record for line in progress.counted(read(journal))), wanted)
    if not found.found:
        remedy = "it contains decisions and their candidates only; see yarnctl apps for other jobs"
        raise Different(f"{journal}: no record contains {wanted}; {remedy}")
    if output == "json":
        print_json(found)
    else:
        click.echo("\n".join(map(plain, in_words(found))))


def _in_full(journal: Path, wanted: str) -> str:
    """Return the journal's only id with the end ``wanted``, else ``wanted``; BadInput for several."""
    import msgspec

    from yarnctl.journal.file import read
    from yarnctl.short_ids import ending, ids_in, resolved

    if ending(wanted) is None:
        return wanted
    texts = (msgspec.json.encode(line.record).decode() for line in read(journal))
    found = resolved(wanted, (each for text in texts for each in ids_in(text)))
    if len(found) > 1:
        raise BadInput(wanted, f"is ambiguous: {', '.join(found[:SHOWN_MAX])}", "give the full ID")
    return found[0] if found else wanted


def _query(url: str | None, wanted: str, output: str) -> None:
    from yarnctl.cli.asking import client_at, plain
    from yarnctl.client.requesting import DEFAULT_URL

    if wanted.startswith("adm-"):
        remedy = f"add --journal, or run yarnctl admissions {wanted}"
        raise BadInput(wanted, "admissions are explained from a journal only", remedy)
    address = url if url is not None else os.environ.get("YARNCTL_URL") or DEFAULT_URL
    found = client_at(address).explanation(wanted)
    if output == "json":
        print_json(found)
    else:
        click.echo("\n".join(map(plain, found.text)))
