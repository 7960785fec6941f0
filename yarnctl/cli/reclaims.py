"""``yarnctl reclaims``: the reclaim lists of a running daemon.

Law: what is shown is what ``GET /v1/reclaims`` answers.
"""

from __future__ import annotations

from collections import Counter

import click

from yarnctl.api.order_answers import EntryOut, ReclaimList
from yarnctl.api.paged import Page
from yarnctl.cli.asking import (
    Answer,
    ago,
    ask,
    ask_all,
    counted,
    limit_option,
    part,
    plain,
    short,
    showing_options,
    shown,
    span,
)
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "order",
    "victim",
    "attempt",
    "node",
    "state",
    "asked",
    "kept keys",
    "left to do",
    "cost",
    "room to",
)


@click.command()
@click.argument("wanted", metavar="[ID]", required=False)
@click.option("--queue", help="Only of applications in this queue.")
@click.option("--victim", help="Only orders against this application.")
@click.option("--state", help="Only orders in this state.")
@click.option("--retired", is_flag=True, help="Also orders that have left their lists.")
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
    """Show the containers that yarnctl has ordered for each preempting application, or for ID."""
    filters = {"victim": victim, "state": state, "retired": retired}
    if wanted is None:
        answer = ask_all(url, "v1/reclaims", {**filters, "queue": queue}, limit)
    else:
        answer = ask(url, f"v1/reclaims/{part(wanted)}", {**filters, "retired": True})
    if output == "json":
        print_json(answer)
    elif wanted is None:
        _print_lists(shown(Page[ReclaimList], answer, url))
    else:
        _print_list(shown(ReclaimList, answer, url), _now_ms(url))


def _now_ms(url: str) -> int:
    answer: Answer = ask(url, "v1/snapshot")
    return int(answer.get("now_ms", 0))


def _print_lists(page: Page[ReclaimList]) -> None:
    if not page.items:
        click.echo("no reclaim lists: no preempting application has pending asks, and no order is open")
    for each in page.items:
        _print_list(each, page.now_ms)
    if page.total > len(page.items):
        click.echo(f"{page.total - len(page.items)} more: --limit {page.total}", err=True)


def _cost(entry: EntryOut) -> str | None:
    """Return what leaving and coming back has cost, or what it is expected to."""
    if entry.cost_ms is not None:
        return f"{span(entry.cost_ms)} (expected {span(entry.predicted_cost_ms)})"
    return None if entry.predicted_cost_ms is None else f"expected {span(entry.predicted_cost_ms)}"


def _print_list(each: ReclaimList, now_ms: int) -> None:
    waits = "not there any more" if each.pending is None else f"waits for {each.pending}"
    would = f", would order {each.would_order} (observing)" if each.would_order else ""
    title = f"{each.application} ({short(each.queue or '-')}): {waits}, {each.expected} expected{would};"
    rows = [
        (
            entry.order,
            plain(entry.victim),
            plain(entry.attempt),
            plain(entry.node),
            "would order" if entry.observed else entry.state.replace("_", " "),
            ago(entry.asked_at_ms, now_ms),
            entry.keys_done,
            span(entry.remaining_ms),
            _cost(entry),
            plain(entry.receiver_application) or None,
        )
        for entry in each.entries
    ]
    sent = counted(Counter(entry.state for entry in each.entries if not entry.observed))
    title = plain(f"{title} {sent or 'no order is open'}")
    if rows:
        print_table(COLUMNS, rows, title)
    else:
        click.echo(title)
