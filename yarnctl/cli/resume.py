"""``yarnctl resume``: end pauses of a running daemon, by ``POST /v1/loop/continue`` or of one queue.

Exit status 0: the pauses end, or there was none; 2: no such queue, or no token with the scope ``operate``.
"""

from __future__ import annotations

import click

from yarnctl.cli.asking import client_at, plain, url_option
from yarnctl.command_line import output_option, print_json


@click.command()
@click.argument("queue", required=False)
@url_option
@output_option
def command(queue: str | None, url: str, output: str) -> None:
    """End the pause of QUEUE; without QUEUE, the operator's pause and the pauses of all queues.

    A queue is paused when other applications receive the containers freed for it. The pause ends by itself.
    The command needs a token with the scope operate: set YARNCTL_TOKEN_FILE to its file.
    """
    client = client_at(url)
    done = client.continue_loop() if queue is None else client.resume_queue(queue)
    if output == "json":
        print_json(done)
        return
    lines = ["resumed the loop"] if queue is None and done.loop.loop_state == "paused" else []
    names = [each.queue for each in done.loop.aside if queue is None or each.queue == done.queue]
    lines += [f"resumed queue {name}" for name in names]
    nothing = "nothing is paused" if queue is None else f"queue {done.queue} is not paused"
    for line in lines or [f"nothing to resume: {nothing}"]:
        click.echo(plain(line))
