"""``yarnctl check``: is this cluster fit, and what is to be mended where it is not?

Law: it only reads. Exit status 0: nothing fails; 1: something does; 3: no ResourceManager answers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarnctl.cli.asking import plain
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.attach.fitness import Finding


@click.command()
@click.option("--rm", "managers", multiple=True, metavar="URL", help="A ResourceManager; more for HA.")
@click.option("--name-node", "name_nodes", multiple=True, metavar="URL", help="WebHDFS; more for HA.")
@click.option("--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with [cluster].")
@click.option("--user", help="Who we are to the cluster.  [default: yarnctl]")
@click.option("--hurried", multiple=True, metavar="QUEUE", help="Queue that gets room.  [production]")
@click.option("--victims", multiple=True, metavar="QUEUE", help="Queue that gives way.  [research]")
@click.option(
    "--mode",
    type=click.Choice(["queues", "deadlines"]),
    default="queues",
    show_default=True,
    help="As in run.",
)
@click.option("--requests", default="/yarnctl/requests", show_default=True, metavar="PATH", help="In HDFS.")
@click.option("--store", default="/yarnctl/checkpoints", show_default=True, metavar="PATH", help="In HDFS.")
@output_option
def command(
    managers: tuple[str, ...],
    name_nodes: tuple[str, ...],
    config: Path | None,
    user: str | None,
    hurried: tuple[str, ...],
    victims: tuple[str, ...],
    mode: str,
    requests: str,
    store: str,
    output: str,
) -> int:
    """Say whether a cluster is fit for checkpoint preemption, and how to mend what is not."""
    from yarnctl.attach.fitness import Facts
    from yarnctl.attach.fitness_rules import judge
    from yarnctl.checkpoint.opening import checked_root
    from yarnctl.config import load_cluster
    from yarnctl.daemon.checking import gather

    environment = {**os.environ, "YARNCTL_USER": os.environ.get("YARNCTL_USER") or "yarnctl"}
    options = {"resource_managers": managers, "name_nodes": name_nodes, "user": user}
    cluster = load_cluster(config, environment, options)
    hurried, victims = hurried or ("production",), victims or ("research",)
    if mode == "queues" and (both := sorted(set(hurried) & set(victims))):
        raise BadInput("--victims", f"{both[0]} is among the hurried queues, too", "name each queue once")
    begin = Facts(
        mode=mode,
        hurried=hurried,
        victims=victims,
        requests_root=checked_root("--requests", requests),
        store_root=checked_root("--store", store),
    )
    return _tell(judge(gather(cluster, begin, lambda: time.time_ns() // 1_000_000)), output)


def _tell(findings: Sequence[Finding], output: str) -> int:
    """Print the findings; return 1 if any of them keeps the cluster from being fit."""
    counts = {
        word: sum(one.severity == word for one in findings) for word in ("ok", "warn", "fail", "unknown")
    }
    if output == "json":
        print_json({"fit": not counts["fail"], **counts, "findings": findings})
    else:
        rows = [(one.id, one.severity, plain(one.seen), plain(one.fix) or None) for one in findings]
        title = ", ".join(f"{number} {word}" for word, number in counts.items())
        print_table(("check", "severity", "seen", "fix"), rows, title)
        for one in findings:
            if one.severity in ("fail", "warn"):
                click.echo(f"{one.id}: {one.matters}")
    return 1 if counts["fail"] else 0
