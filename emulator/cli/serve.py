"""``yarn-emulator serve``: a whole live cluster in one process, with tasks as real processes.

``yarn-emulator rm``: the ResourceManager of a live cluster, with its REST API and a WebHDFS on one port.

Both print their address on stdout when everything answers; ``serve`` also prints the next commands (not with
``--json``). SIGTERM and SIGINT end them with exit status 0, and ``serve`` ends every process it has started.
"""

from __future__ import annotations

from pathlib import Path

import click

from emulator.cli import live_options


@click.command("serve")
@click.option(
    "--nodes",
    type=click.IntRange(1, 20_000),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of nodes.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 10_000),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of containers (1024 MiB, 1 vcore) of a node.",
)
@live_options.manager_options
@live_options.work_option("Folder of the files of WebHDFS and of containers.")
@live_options.containers_option("process: tasks are real processes; modelled: they only take time.")
@live_options.speed_option
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="QUEUE=SPEC",
    help="Submit the jobs of a trace at their instants, as modelled jobs; repeatable.",
)
def command(
    nodes: int,
    slots: int,
    port: int,
    host: str,
    queues: str | None,
    scheduler_xml: Path | None,
    node_labels: str,
    resource_types: Path | None,
    dialect: live_options.Dialect,
    superuser: str,
    seed: int,
    allow_hosts: tuple[str, ...],
    faults: bool,
    as_json: bool,
    work: Path,
    containers: str,
    speed: float,
    workloads: tuple[str, ...],
) -> None:
    """Run a whole cluster: ResourceManager, NodeManagers and masters in this process, tasks as processes.

    Attach with 'yarnctl run --rm URL'; submit with 'yarn-emulator submit --rm URL'.
    """
    from emulator.live.programs.all_in_one import ClusterPlan, run
    from emulator.live.programs.manager_program import Options
    from yarnctl.listening.names import checked_names

    options = Options(
        port=port,
        host=host,
        work=work,
        queues=queues or "",
        scheduler_xml=scheduler_xml,
        node_labels=node_labels,
        resource_types=resource_types,
        dialect=dialect,
        speed=speed,
        superuser=superuser,
        seed=seed,
        faults=faults,
        allow_hosts=checked_names(allow_hosts),
    )
    plan = ClusterPlan(
        nodes=nodes, memory_mib=slots * live_options.SLOT_MIB, vcores=slots, processes=containers == "process"
    )
    run(options, plan, workloads, as_json, click.echo, lambda text: click.echo(text, err=True))


@click.command("rm")
@live_options.manager_options
@live_options.work_option(
    "Folder that all processes of the cluster share; WebHDFS keeps its files in DIR/hdfs."
)
@click.option("--public-url", metavar="URL", help="Address for other hosts.  [default: by host and port]")
@live_options.speed_option
@click.option(
    "--node-expiry-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Time without a heartbeat after which a node is lost.",
)
@click.option(
    "--am-expiry-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Time without a heartbeat after which a master is lost.",
)
def resource_manager(
    port: int,
    host: str,
    queues: str | None,
    scheduler_xml: Path | None,
    node_labels: str,
    resource_types: Path | None,
    dialect: live_options.Dialect,
    superuser: str,
    seed: int,
    allow_hosts: tuple[str, ...],
    faults: bool,
    as_json: bool,
    work: Path,
    public_url: str | None,
    speed: float,
    node_expiry_ms: int | None,
    am_expiry_ms: int | None,
) -> None:
    """Run a ResourceManager: REST as Hadoop's, WebHDFS, and the emulator's own protocol for nodes.

    Start nodes with 'yarn-emulator nm --rm URL'; observe it with 'yarnctl run --rm URL'.
    """
    from emulator.live.programs.manager_program import Options, run
    from yarnctl.listening.names import checked_names

    options = Options(
        port=port,
        host=host,
        public_url=public_url or "",
        work=work,
        queues=queues or "",
        scheduler_xml=scheduler_xml,
        node_labels=node_labels,
        resource_types=resource_types,
        dialect=dialect,
        speed=speed,
        node_expiry_ms=node_expiry_ms,
        am_expiry_ms=am_expiry_ms,
        superuser=superuser,
        seed=seed,
        faults=faults,
        allow_hosts=checked_names(allow_hosts),
    )
    run(options, as_json, click.echo)
