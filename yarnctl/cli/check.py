"""``yarnctl check``: is this cluster fit, and what is to be mended where it is not?

Law: it only reads. Exit status 0: nothing fails; 1: something does; 3: no ResourceManager answers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.cluster import cluster_of, cluster_options, folder_options, queue_options, queues_of
from yarnctl.command_line import output_option, print_json, print_table

if TYPE_CHECKING:
    from yarnctl.attach.fitness import Finding


@click.command()
@cluster_options
@queue_options
@folder_options
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
    from yarnctl.daemon.checking import gather

    cluster = cluster_of(managers, name_nodes, config, user)
    hurried, victims = queues_of(hurried, victims, mode)
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
