"""``yarn-emulator serve``: a whole live cluster in one process, tasks as real processes.

Law: says one line when everything answers, and nothing else on stdout. SIGTERM and SIGINT end it and every
process it has started, exit 0.

``yarn-emulator rm``: the ResourceManager of a live cluster, with its REST and a WebHDFS on one port.

Law: says one line when everything answers, and nothing else on stdout. SIGTERM and SIGINT end it, exit 0.
"""

from __future__ import annotations

from typing import Any

import click

from emulator.cli.live_options import SLOT_MIB, containers_option, manager_options, work_option


@click.command("serve")
@click.option("--nodes", type=click.IntRange(1, 20_000), default=3, show_default=True, metavar="N")
@click.option(
    "--slots",
    type=click.IntRange(1, 10_000),
    default=4,
    show_default=True,
    metavar="N",
    help="Containers (1024 MiB, 1 vcore) per node.",
)
@manager_options
@work_option("Files of WebHDFS and of containers.")
@containers_option("modelled: run no task's process.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Of heartbeats and of everything modelled; processes take the time they take.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="QUEUE=SPEC",
    help="Submit the jobs of a trace at their instants, modelled; repeatable.",
)
def command(
    nodes: int,
    slots: int,
    containers: str,
    workloads: tuple[str, ...],
    queues: str | None,
    as_json: bool,
    allow_hosts: tuple[str, ...],
    **given: Any,
) -> None:
    """Run a whole cluster: ResourceManager, NodeManagers and masters here, tasks as real processes.

    Submit with 'yarn-emulator submit --rm URL', attach with 'yarnctl run --rm URL'.
    """
    from emulator.live.programs.all_in_one import ClusterPlan, run
    from emulator.live.programs.manager_program import Options
    from yarnctl.listening.names import checked_names

    options = Options(queues=queues or "", allow_hosts=checked_names(allow_hosts), **given)
    plan = ClusterPlan(
        nodes=nodes, memory_mib=slots * SLOT_MIB, vcores=slots, processes=containers == "process"
    )
    run(options, plan, workloads, as_json, click.echo, lambda text: click.echo(text, err=True))


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
def resource_manager(
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
