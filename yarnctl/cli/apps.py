"""``yarnctl apps``: show the unfinished applications, from ``GET /v1/applications`` of a running daemon."""

from __future__ import annotations

import click

from yarnctl.api.cluster_answers import Application
from yarnctl.api.paged import Page
from yarnctl.cli.asking import client_at, limit_option, plain, short, showing_options, span
from yarnctl.command_line import print_json, print_table
from yarnctl.errors import Unreachable

COLUMNS = (
    "application",
    "role",
    "queue",
    "user",
    "containers",
    "MiB",
    "vcores",
    "pending",
    "expected",
    "suspending",
    "can be suspended",
    "ends in",
)


@click.command()
@click.option("--queue", help="Show only applications in this queue.")
@click.option("--user", help="Show only applications of this user.")
@click.option("--waiting", is_flag=True, help="Show only applications with pending requests.")
@limit_option
@showing_options
def command(queue: str | None, user: str | None, waiting: bool, limit: int, url: str, output: str) -> None:
    """Show applications: resources in use, pending requests, and containers being suspended.

    Below the table: why each preempting application with pending requests waits.

    Exit status 3: the daemon does not see the cluster, so the list is not known.
    """
    client = client_at(url)
    loop = client.snapshot().loop
    if not loop.reachable:
        raise Unreachable(f"{url}: the applications are not known: {loop.why}; see yarnctl snapshot")
    page = client.applications(queue, user, True if waiting else None, limit)
    if output == "json":
        print_json(page)
        return
    now_ms = page.now_ms
    rows = [
        (
            plain(each.application),
            each.role,
            short(each.queue),
            plain(each.user),
            each.containers,
            each.used.memory_mib,
            each.used.vcores,
            _pending(each),
            each.expected,
            each.suspending,
            plain(_suspension_words(each)),
            ends_in(each, now_ms),
        )
        for each in page.items
    ]
    print_table(COLUMNS, rows, _caption(page))
    for each in page.items:
        if each.waiting is not None:
            click.echo(plain(f"{each.application} waits: {each.waiting.text}"))


def ends_in(application: Application, now_ms: int) -> str:
    """Return the 90 % interval of an application's end, from now on."""
    ends = None if application.when is None else application.when.ends
    if ends is None:
        return "-"
    least, most = (max(0, at_ms - now_ms) for at_ms in (ends.least_at_ms, ends.most_at_ms))
    return f"{least / 1000:.0f} to {most / 1000:.0f} s"


def _caption(page: Page[Application]) -> str:
    kept = sum(each.master_only_ms is not None for each in page.items)
    whole = f"; {kept} suspended completely (only the application master keeps a container)" if kept else ""
    return f"{page.total} applications{whole}"


def _pending(application: Application) -> int | str:
    return (
        application.pending
        if application.left_out is None or application.waiting is not None
        else plain(f"{application.pending}; {application.left_out.text}")
    )


def _suspension_words(application: Application) -> str:
    if not application.runner:
        return f"no: {application.why_not}" if application.why_not else "no"
    count = len(application.left_alone)
    if application.master_only_ms is not None:
        return f"suspended completely for {span(application.master_only_ms)}"
    if not count:
        return "yes"
    reasons = "; ".join(dict.fromkeys(application.left_alone.values()))
    return f"yes, except {count} {'reduce' if count == 1 else 'reduces'}: {reasons}"
