"""``yarn-emulator rm``: the ResourceManager of a live cluster, with its REST and a WebHDFS on one port.

Law: says one line when everything answers, and nothing else on stdout. SIGTERM and SIGINT end it, exit 0.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("rm")
@click.option("--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--public-url", metavar="URL", help="How others reach it.  [default: by host and port]")
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("yarn-emulator-work"),
    show_default=True,
    metavar="DIR",
    help="The folder that all processes of the cluster share; WebHDFS keeps its files in DIR/hdfs.",
)
@click.option(
    "--queues", metavar="NAME=SHARE,...", help="Shares in percent.  [default: production=95,research=5]"
)
@click.option(
    "--scheduler-xml",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Queues from a capacity-scheduler.xml instead.",
)
@click.option(
    "--dialect", type=click.Choice(("3.4", "3.5")), default="3.4", show_default=True, help="Hadoop's."
)
@click.option(
    "--speed", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Of time."
)
@click.option(
    "--node-expiry-ms", type=click.IntRange(min=1), metavar="MS", help="Silence after which a node is lost."
)
@click.option("--am-expiry-ms", type=click.IntRange(min=1), metavar="MS", help="The same for a master.")
@click.option("--superuser", metavar="NAME", help="Who may do everything in WebHDFS.  [default: yarnctl]")
@click.option("--seed", type=int, default=1, show_default=True, help="Draws when each node beats.")
@click.option("--faults", is_flag=True, help="Let tests break WebHDFS through /emulator/v1/faults.")
@click.option("--json", "as_json", is_flag=True, help="Say the line as JSON.")
def command(
    port: int,
    host: str,
    public_url: str | None,
    work: Path,
    queues: str | None,
    scheduler_xml: Path | None,
    dialect: str,
    speed: float,
    node_expiry_ms: int | None,
    am_expiry_ms: int | None,
    superuser: str | None,
    seed: int,
    faults: bool,
    as_json: bool,
) -> None:
    """Run a ResourceManager: REST as Hadoop's, WebHDFS, and the emulator's own protocol for nodes.

    Start nodes with 'yarn-emulator nm --rm URL'; observe it with 'yarnctl run --rm URL'.
    """
    from emulator.live.manager_program import Options, run

    run(
        Options(
            port=port,
            host=host,
            public_url=public_url or "",
            work=work,
            queues=queues or "",
            scheduler_xml=scheduler_xml,
            dialect="3.5" if dialect == "3.5" else "3.4",
            speed=speed,
            node_expiry_ms=node_expiry_ms,
            am_expiry_ms=am_expiry_ms,
            superuser=superuser or "",
            seed=seed,
            faults=faults,
        ),
        as_json,
        click.echo,
    )
