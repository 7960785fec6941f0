"""``yarnctl budgets``: the loss budgets of a running daemon.

Law: what is shown is what ``GET /v1/budgets`` answers.
"""

from __future__ import annotations

import click

from yarnctl.api.order_answers import BudgetOut
from yarnctl.api.paged import Page
from yarnctl.cli.asking import ask_all, limit_option, plain, short, showing_options, shown, span
from yarnctl.command_line import print_json, print_table

COLUMNS = ("budget of", "may lose", "over", "lost", "left", "containers", "sooner by")


@click.command()
@limit_option
@showing_options
def command(limit: int, url: str, output: str) -> None:
    """Show how much work may be lost, was lost, and what that bought."""
    answer = ask_all(url, "v1/budgets", {}, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page[BudgetOut], answer, url)
    rows = [
        (
            plain(_owner(each)),
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


def _owner(each: BudgetOut) -> str:
    if each.application is not None:
        return f"job {each.application} of {each.user}"
    return f"user {each.user}" if each.queue is None else f"queue {short(each.queue)}"
