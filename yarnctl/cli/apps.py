"""``yarnctl apps``: the unfinished applications as a running daemon saw them last.

Law: what is shown is what ``GET /v1/applications`` answers.
"""

from __future__ import annotations

import click

from yarnctl.api.cluster_answers import Application
from yarnctl.api.paged import Page
from yarnctl.cli.asking import ask_all, limit_option, plain, short, showing_options, shown, span
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "application",
    "role",
    "queue",
    "user",
    "containers",
    "MiB",
    "vcores",
    "waits for",
    "expected",
    "suspending",
    "may be suspended",
)


@click.command()
@click.option("--queue", help="Only in this queue.")
@click.option("--user", help="Only of this user.")
@click.option("--waiting", is_flag=True, help="Only those that wait for containers.")
@limit_option
@showing_options
def command(queue: str | None, user: str | None, waiting: bool, limit: int, url: str, output: str) -> None:
    """Show the applications: what they hold, wait for, and are being asked to give."""
    filters = {"queue": queue, "user": user, "waiting": True if waiting else None}
    answer = ask_all(url, "v1/applications", filters, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page[Application], answer, url)
    rows = [
        (
            plain(each.application),
            each.role,
            short(each.queue),
            plain(each.user),
            each.containers,
            each.used.memory_mib,
            each.used.vcores,
            _waits_for(each),
            each.expected,
            each.suspending,
            plain(_may_be_suspended(each)),
        )
        for each in page.items
    ]
    print_table(COLUMNS, rows, _caption(page))


def _caption(page: Page[Application]) -> str:
    """Say how many there are, and how many containers masters of jobs keep that are suspended whole."""
    kept = sum(each.master_only_ms is not None for each in page.items)
    whole = f"; {kept} suspended whole: each keeps its master's container" if kept else ""
    return f"{page.total} applications{whole}"


def _waits_for(each: Application) -> int | str:
    """Return how many containers an application waits for, and what else it requests that is left out."""
    return each.pending if each.left_out is None else plain(f"{each.pending}; {each.left_out.text}")


def _may_be_suspended(each: Application) -> str:
    """Say whether an application's reduces may be suspended, and why those that may not are left alone."""
    if not each.runner:
        return f"no: {each.why_not}" if each.why_not else "no"
    count = len(each.left_alone)
    if each.master_only_ms is not None:
        return f"suspended whole for {span(each.master_only_ms)}, its master stays"
    if not count:
        return "yes"
    whys = "; ".join(dict.fromkeys(each.left_alone.values()))
    return f"yes, but not {count} {'reduce' if count == 1 else 'reduces'}: {whys}"
