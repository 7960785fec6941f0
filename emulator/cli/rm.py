"""``yarn-emulator rm``: the ResourceManager of a live cluster, with its REST and a WebHDFS on one port.

Law: says one line when everything answers, and nothing else on stdout. SIGTERM and SIGINT end it, exit 0.
"""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.live_options import manager_options, work_option


@click.command("rm")
@manager_options
@work_option("The folder that all processes of the cluster share; WebHDFS keeps its files in DIR/hdfs.")
@click.option("--public-url", metavar="URL", help="How others reach it.  [default: by host and port]")
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Of time."
)
@click.option(
    "--node-expiry-ms", type=click.IntRange(min=1), metavar="MS", help="Silence after which a node is lost."
)
@click.option("--am-expiry-ms", type=click.IntRange(min=1), metavar="MS", help="The same for a master.")
def command(
    as_json: bool, public_url: str | None, queues: str | None, allow_hosts: tuple[str, ...], **given: Any
) -> None:
    """Run a ResourceManager: REST as Hadoop's, WebHDFS, and the emulator's own protocol for nodes.

    Start nodes with 'yarn-emulator nm --rm URL'; observe it with 'yarnctl run --rm URL'.
    """
    from emulator.live.programs.manager_program import Options, run
    from yarnctl.listening.names import checked_names

    names = checked_names(allow_hosts)
    options = Options(public_url=public_url or "", queues=queues or "", allow_hosts=names, **given)
    run(options, as_json, click.echo)
