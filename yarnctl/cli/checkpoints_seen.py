"""``yarnctl checkpoints seen``: the checkpoints that a running daemon saw in answer to its orders.

Law: what is shown is what ``GET /v1/checkpoints`` answers.
"""

from __future__ import annotations

import click

from yarnctl.api.order_answers import CheckpointOut
from yarnctl.api.paged import Page
from yarnctl.cli.asking import ago, ask_all, limit_option, plain, showing_options, shown
from yarnctl.command_line import print_json, print_table

COLUMNS = ("order", "seen", "attempt", "generation", "keys done", "for")


@click.command("seen")
@click.option("--application", help="Only of this application.")
@click.option("--attempt", help="Only of this task attempt.")
@limit_option
@showing_options
def command(application: str | None, attempt: str | None, limit: int, url: str, output: str) -> None:
    """Show the newest checkpoints that a running daemon has seen, and for whom they were made."""
    answer = ask_all(url, "v1/checkpoints", {"application": application, "attempt": attempt}, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page[CheckpointOut], answer, url)
    rows = [
        (
            plain(each.order),
            ago(each.at_ms, page.now_ms),
            plain(each.attempt),
            each.generation,
            each.keys_done,
            plain(each.asker),
        )
        for each in page.items
    ]
    print_table(COLUMNS, rows, f"{page.total} checkpoints")
