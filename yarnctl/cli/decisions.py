"""``yarnctl decisions``: show the newest decisions, from ``GET /v1/decisions`` of a running daemon."""

from __future__ import annotations

import click

from yarnctl.api.order_answers import DecisionSummary
from yarnctl.cli.asking import (
    ago,
    client_at,
    counted,
    job_of,
    limit_option,
    plain,
    short,
    showing_options,
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
    client = client_at(url)
    if number is not None:
        decision = client.decision(number)
        if output == "json":
            print_json(decision)
        else:
            click.echo("\n".join(map(plain, decision.explanation.text)))
        return
    page = client.decisions(application, queue, victim, state, limit)
    if output == "json":
        print_json(page)
        return
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
