"""``yarnctl decisions``: show the newest decisions, from ``GET /v1/decisions`` of a running daemon."""

from __future__ import annotations

import click

from yarnctl.api.order_answers import DecisionSummary
from yarnctl.api.paged import Page
from yarnctl.cli.asking import (
    ago,
    ask,
    ask_all,
    counted,
    job_of,
    limit_option,
    plain,
    short,
    showing_options,
    shown,
)
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "id",
    "age",
    "for",
    "job",
    "queue",
    "needed",
    "chosen",
    "unmet",
    "from",
    "jobs",
    "orders",
    "reason",
)


@click.command()
@click.argument("number", metavar="[ID]", required=False, type=click.IntRange(min=1, max=2**53 - 1))
@click.option("--application", help="Show only decisions for this application.")
@click.option("--queue", help="Show only decisions for this queue.")
@click.option("--victim", help="Show only decisions that chose tasks of this application.")
@click.option("--state", help="Show only decisions with an order in this state.")
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
    """Show the newest decisions, or explain decision ID and its outcome."""
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


def _row(decision: DecisionSummary, now_ms: int) -> tuple[object, ...]:
    return (
        decision.id,
        ago(decision.at_ms, now_ms),
        plain(decision.application),
        job_of(decision.application, decision.names),
        short(decision.queue),
        decision.shortfall,
        decision.chosen,
        decision.unmet,
        plain(", ".join(decision.victims)) or None,
        ", ".join(filter(None, (job_of(each, decision.names) for each in decision.victims))) or None,
        _orders(decision),
        plain(decision.why),
    )


def _orders(decision: DecisionSummary) -> str:
    if not decision.withheld:
        return counted(decision.states)
    if decision.withheld == decision.chosen:
        return f"would order {decision.withheld}"
    return f"{counted(decision.states)}; {decision.withheld} of them not sent"
