"""``yarnctl budgets``: show the loss budgets, from ``GET /v1/budgets`` of a running daemon."""

from __future__ import annotations

import click

from yarnctl.api.order_answers import BudgetOut
from yarnctl.cli.asking import client_at, limit_option, plain, short, showing_options, span
from yarnctl.command_line import print_json, print_table

COLUMNS = ("budget of", "may lose", "window", "lost", "left", "containers", "time saved")


@click.command()
@limit_option
@showing_options
def command(limit: int, url: str, output: str) -> None:
    """Show how much research work may be lost, how much was lost, and the containers freed by it."""
    page = client_at(url).budgets(limit)
    if output == "json":
        print_json(page)
        return
    rows = [
        (
            plain(owner_of(each)),
            f"{each.may_lose_ratio * 100:g} %",
            span(each.window_ms),
            span(each.lost_ms),
            f"{span(each.left_ms)} of {each.container_mib} MiB",
            each.bought.containers,
            span(each.bought.waiting_saved_ms),
        )
        for each in page.items
    ]
    print_table(COLUMNS, rows, f"{page.total} budgets")


def owner_of(budget: BudgetOut) -> str:
    """Return the owner of a budget as text."""
    if budget.application is not None:
        return f"job {budget.application} of {budget.user}"
    return f"user {budget.user}" if budget.queue is None else f"queue {short(budget.queue)}"
