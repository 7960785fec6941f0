"""``yarnctl decisions``: the newest decisions of a running daemon, and why each was taken.

Law: what is shown is what ``GET /v1/decisions`` answers.
"""

from __future__ import annotations

import click

from yarnctl.api.order_answers import DecisionSummary
from yarnctl.api.paged import Page
from yarnctl.cli.asking import (
    ago,
    ask,
    ask_all,
    counted,
    limit_option,
    plain,
    short,
    showing_options,
    shown,
)
from yarnctl.command_line import print_json, print_table

COLUMNS = ("id", "ago", "for", "queue", "needed", "chosen", "unmet", "from", "became", "why")


@click.command()
@click.argument("number", metavar="[ID]", required=False, type=click.IntRange(min=1, max=2**53 - 1))
@click.option("--application", help="Only on behalf of this application.")
@click.option("--queue", help="Only on behalf of this queue.")
@click.option("--victim", help="Only those that chose from this application.")
@click.option("--state", help="Only those with an order in this state.")
@limit_option
@showing_options
def command(
    number: int | None,
    application: str | None,
    queue: str | None,
    victim: str | None,
    state: str | None,
    limit: int,
    url: str,
    output: str,
) -> None:
    """Show the newest decisions, or say why decision ID was taken and what came of it."""
    if number is not None:
        from yarnctl.api.decision_answers import DecisionDetail

        answer = ask(url, f"v1/decisions/{number}")
        if output == "json":
            print_json(answer)
        else:
            click.echo("\n".join(map(plain, shown(DecisionDetail, answer, url).explanation.text)))
        return
    filters = {"application": application, "queue": queue, "victim": victim, "state": state}
    answer = ask_all(url, "v1/decisions", filters, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page[DecisionSummary], answer, url)
    print_table(COLUMNS, [_row(each, page.now_ms) for each in page.items], f"{page.total} decisions")


def _row(each: DecisionSummary, now_ms: int) -> tuple[object, ...]:
    return (
        each.id,
        ago(each.at_ms, now_ms),
        plain(each.application),
        short(each.queue),
        each.shortfall,
        each.chosen,
        each.unmet,
        plain(", ".join(each.victims)) or None,
        _became(each),
        plain(each.why),
    )


def _became(each: DecisionSummary) -> str:
    """Return what became of the orders; of those that were not sent, their number."""
    if not each.withheld:
        return counted(each.states)
    if each.withheld == each.chosen:
        return f"would order {each.withheld}"
    return f"{counted(each.states)}; {each.withheld} of them not sent"
