"""``yarn-emulator serve``: a whole live cluster in one process, tasks as real processes.

Law: says one line when everything answers, and nothing else on stdout. SIGTERM and SIGINT end it and every
process it has started, exit 0.
"""

from __future__ import annotations

from pathlib import Path

import click

SLOT_MIB = 1024


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
@click.option("--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--containers",
    type=click.Choice(("process", "modelled")),
    default="process",
    show_default=True,
    help="modelled: run no task's process.",
)
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Of heartbeats and of everything modelled; processes take the time they take.",
)
@click.option(
    "--dialect", type=click.Choice(("3.4", "3.5")), default="3.4", show_default=True, help="Hadoop's."
)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("yarn-emulator-work"),
    show_default=True,
    metavar="DIR",
    help="Files of WebHDFS and of containers.",
)
@click.option("--queues", metavar="NAME=SHARE,...", help="In percent.  [default: production=95,research=5]")
@click.option(
    "--scheduler-xml",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Queues from a capacity-scheduler.xml instead.",
)
@click.option(
    "--superuser",
    default="yarnctl",
    show_default=True,
    metavar="NAME",
    help="Who may do everything in WebHDFS: yarnctl reads checkpoints of all owners.",
)
@click.option(
    "--workload",
    "workloads",
    multiple=True,
    metavar="QUEUE=SPEC",
    help="Submit the jobs of a trace at their instants, modelled; repeatable.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Draws when each node beats.")
@click.option("--faults", is_flag=True, help="Let tests break WebHDFS through /emulator/v1/faults.")
@click.option("--json", "as_json", is_flag=True, help="Say the line as JSON.")
def command(
    nodes: int,
    slots: int,
    port: int,
    host: str,
    containers: str,
    speed: float,
    dialect: str,
    work: Path,
    queues: str | None,
    scheduler_xml: Path | None,
    superuser: str,
    workloads: tuple[str, ...],
    seed: int,
    faults: bool,
    as_json: bool,
) -> None:
    """Run a whole cluster: ResourceManager, NodeManagers and masters here, tasks as real processes.

    Submit with 'yarn-emulator submit --rm URL', attach with 'yarnctl run --rm URL'.
    """
    from emulator.live.all_in_one import Plan, run
    from emulator.live.manager_program import Options

    options = Options(
        port=port,
        host=host,
        work=work,
        queues=queues or "",
        scheduler_xml=scheduler_xml,
        dialect="3.5" if dialect == "3.5" else "3.4",
        speed=speed,
        superuser=superuser,
        seed=seed,
        faults=faults,
    )
    plan = Plan(nodes=nodes, memory_mib=slots * SLOT_MIB, vcores=slots, processes=containers == "process")
    run(options, plan, workloads, as_json, click.echo, lambda text: click.echo(text, err=True))
