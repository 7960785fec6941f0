"""``python -m tests.hadoop up|down``: a real Hadoop for a person (``make hadoop-up``, ``make hadoop-down``).

Law: ``up`` returns when every node is in service and says all that one needs to know; ``down`` leaves
no process behind.
"""

from __future__ import annotations

import json
import shutil
import sys

import click

from tests.hadoop import daemons
from tests.hadoop.artifacts import VERSIONS, NotToBeHad, cache_folder
from tests.hadoop.configuration import Shape
from tests.hadoop.daemons import DaemonDied
from tests.hadoop.launcher import STATE, Cluster

FOLDER = cache_folder() / "cluster"


@click.group()
def main() -> None:
    """Start and stop a real Hadoop on loopback."""


@main.command()
@click.option("--hadoop", "version", type=click.Choice(VERSIONS), default="3.4.2", show_default=True)
@click.option("--set-up", type=click.Choice(["dual-queue", "deadline"]), default="dual-queue")
@click.option("--nodes", type=click.IntRange(1, 20), default=3, show_default=True)
@click.option("--memory-mib", type=click.IntRange(512), default=1024, show_default=True, help="Of each node.")
def up(version: str, set_up: str, nodes: int, memory_mib: int) -> None:
    """Start NameNode, DataNode, ResourceManager, NodeManagers and JobHistoryServer."""
    if any(True for _ in daemons.of_cluster(FOLDER)):
        click.echo(f"error: a cluster runs in {FOLDER}; make hadoop-down ends it", err=True)
        sys.exit(2)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    click.echo(f"Hadoop {version}: starting; logs in {FOLDER}/log", err=True)
    try:
        Cluster(Shape(version, set_up, nodes, memory_mib), FOLDER).up()
    except (DaemonDied, NotToBeHad) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)
    told = json.loads((FOLDER / STATE).read_text(encoding="utf-8"))
    for name in ("rm", "hdfs", "history", "streaming-jar", "superuser"):
        click.echo(f"{name:14} {told[name]}")
    click.echo("for the commands of docs/attach.md, in each shell:")
    for name, value in told_to_shells(told).items():
        click.echo(f"export {name}={value}")


def told_to_shells(told: dict[str, str]) -> dict[str, str]:
    """Return the variables by which docs/attach.md's commands find this cluster."""
    return {
        "HADOOP_CONF_DIR": told["hadoop-conf-dir"], "PATH": f"{told['bin']}:$PATH", "YARNCTL_RM": told["rm"],
        "YARNCTL_NAME_NODE": told["hdfs"],
        "YARNCTL_STORE": f"webhdfs://{told['hdfs'].removeprefix('http://')}/yarnctl/checkpoints",
        "HDFS_SUPERUSER": told["superuser"], "STREAMING_JAR": told["streaming-jar"],
    }  # fmt: skip


@main.command()
def down() -> None:
    """Stop everything that was started, and wait for it."""
    if not any(True for _ in daemons.of_cluster(FOLDER)):
        click.echo("nothing runs", err=True)
        return
    daemons.stop_all(FOLDER)
    click.echo("stopped")


if __name__ == "__main__":
    main()
