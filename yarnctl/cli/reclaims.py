"""``yarnctl reclaims``: show the reclaim lists, from ``GET /v1/reclaims`` of a running daemon."""

from __future__ import annotations

from collections import Counter

import click

from yarnctl.api.order_answers import EntryOut, ReclaimList
from yarnctl.api.paged import Page
from yarnctl.cli.asking import (
    ago,
    client_at,
    counted,
    job_of,
    limit_option,
    plain,
    short,
    showing_options,
    span,
)
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "order",
    "victim",
    "job",
    "attempt",
    "node",
    "state",
    "sent",
    "keys done",
    "remaining",
    "cost",
    "container to",
)


@click.command()
@click.argument("wanted", metavar="[ID]", required=False)
@click.option("--queue", help="Show only applications in this queue.")
@click.option("--victim", help="Show only orders to tasks of this application.")
@click.option("--state", help="Show only orders in this state.")
@click.option("--retired", is_flag=True, help="Show also finished orders.")
@limit_option
@showing_options
def command(
    wanted: str | None,
    queue: str | None,
    victim: str | None,
    state: str | None,
    retired: bool,
    limit: int,
    url: str,
    output: str,
) -> None:
    """Show the containers that yarnctl reclaims for each production application, or for ID."""
    client = client_at(url)
    if wanted is None:
        page = client.reclaims(queue, victim, state, retired, limit)
        print_json(page) if output == "json" else _print_lists(page)
        return
    reclaims = client.reclaims_of(wanted, victim, state)
    print_json(reclaims) if output == "json" else _print_list(reclaims, client.snapshot().now_ms)


def _print_lists(page: Page[ReclaimList]) -> None:
    if not page.items:
        click.echo("no reclaim lists: no production application has pending requests, and no order is open")
    for each in page.items:
        _print_list(each, page.now_ms)
    if page.total > len(page.items):
        click.echo(f"{page.total - len(page.items)} more; show them with --limit {page.total}", err=True)


def _state(entry: EntryOut) -> str:
    if entry.observed and entry.state in ("ordered", "simulated"):
        return "would order" if entry.state == "ordered" else "would have freed"
    return entry.state.replace("_", " ")


def _cost(entry: EntryOut) -> str | None:
    if entry.cost_ms is not None:
        return f"{span(entry.cost_ms)} (predicted {span(entry.predicted_cost_ms)})"
    return None if entry.predicted_cost_ms is None else f"predicted {span(entry.predicted_cost_ms)}"


def _print_list(reclaims: ReclaimList, now_ms: int) -> None:
    pending = "has ended" if reclaims.pending is None else f"{reclaims.pending} pending"
    would = f", would order {reclaims.would_order} (observing)" if reclaims.would_order else ""
    job = "" if reclaims.user is None else f"{reclaims.name or 'unnamed'}, user {reclaims.user}, "
    name = f"{reclaims.application} ({job}{short(reclaims.queue or '-')})"
    title = f"{name}: {pending}, {reclaims.expected} expected{would};"
    rows = [
        (
            entry.order,
            plain(entry.victim),
            job_of(entry.victim, entry.names),
            plain(entry.attempt),
            plain(entry.node),
            _state(entry),
            ago(entry.ordered_at_ms, now_ms),
            entry.keys_done,
            span(entry.remaining_ms),
            _cost(entry),
            plain(entry.receiver_application) or None,
        )
        for entry in reclaims.entries
    ]
    sent = counted(Counter(entry.state for entry in reclaims.entries if not entry.observed))
    title = plain(f"{title} {'no open orders' if sent == '-' else sent}")
    if rows:
        print_table(COLUMNS, rows, title)
    else:
        click.echo(title)
