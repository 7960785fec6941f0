"""``yarnctl pause``: pause a running daemon, by ``POST /v1/loop/pause``.

Exit status 0: the daemon pauses; 2: an invalid span, or no token with the scope ``operate``.
"""

from __future__ import annotations

import click

from yarnctl.cli.asking import client_at, url_option
from yarnctl.cli.checkpoints import span_ms
from yarnctl.command_line import output_option, print_json


@click.command()
@click.option("--for", "span", metavar="SPAN", help="End the pause after this time: 30m, 2h, at most 30d.")
@click.option("--why", default="paused by request", show_default=True, help="The reason, for all to see.")
@url_option
@output_option
def command(span: str | None, why: str, url: str, output: str) -> None:
    """Pause the daemon: it withdraws its orders, restores what it lowered, and sends no order.

    The pause ends after --for, or with yarnctl resume. A restart does not end it.
    The command needs a token with the scope operate: set YARNCTL_TOKEN_FILE to its file.
    """
    for_ms = None if span is None else span_ms(span, "--for")
    commanded = client_at(url).pause_loop(why, for_ms)
    if output == "json":
        print_json(commanded)
        return
    click.echo(f"the daemon pauses {'until yarnctl resume' if span is None else f'for {span}'}")
