"""Which cluster, and which of its queues: the options of every command that attaches to one.

Law: nothing is opened here; what cannot be meant is refused before anything else happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.errors import BadInput
from yarnctl.old_names import renamed_option

if TYPE_CHECKING:
    from yarnctl.config import ClusterAddress

DEFAULT_STORE = "/yarnctl/checkpoints"
DEFAULT_REQUESTS = "/yarnctl/requests"

Function = Callable[..., Any]
Given = Mapping[str, Any]
"""What a command was given, by the names of its options."""


def cluster_options(command: Function) -> Function:
    """Add the options that name a cluster and our user there: the arguments of :func:`cluster_of`."""
    return _with(command, _CLUSTER)


def queue_options(command: Function) -> Function:
    """Add ``--preempting``, ``--preemptable`` and ``--mode``: the arguments of :func:`queues_of`."""
    return _with(command, _QUEUES)


def folder_options(command: Function) -> Function:
    """Add ``--requests`` and ``--store``, the two folders in HDFS."""
    return _with(command, _FOLDERS)


def cluster_of(given: Given) -> ClusterAddress:
    """Return the cluster these options mean, together with environment and file; raises BadInput."""
    from yarnctl.config import load_cluster

    options = {
        "resource_managers": given["managers"],
        "name_nodes": given["name_nodes"],
        "user": given["user"],
    }
    environment = {**os.environ, "YARNCTL_USER": os.environ.get("YARNCTL_USER") or "yarnctl"}
    return load_cluster(given["config"], environment, options)


def queues_of(given: Given) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the preempting and the preemptable queues, by deadlines maybe the same ones."""
    hurried, victims = given["preempting"] or ("production",), given["preemptable"] or ("research",)
    if given["mode"] == "queues" and (both := sorted(set(hurried) & set(victims))):
        raise BadInput(
            "--preemptable", f"{both[0]} is among the preempting queues, too", "name each queue once"
        )
    return hurried, victims


def _with(command: Function, options: Sequence[Callable[[Function], Function]]) -> Function:
    for add in reversed(options):
        command = add(command)
    return command


_CLUSTER = (
    click.option("--rm", "managers", multiple=True, metavar="URL", help="A ResourceManager; more for HA."),
    click.option("--name-node", "name_nodes", multiple=True, metavar="URL", help="WebHDFS; more for HA."),
    click.option(
        "--config", type=click.Path(path_type=Path, dir_okay=False), help="TOML file with [cluster]."
    ),
    click.option("--user", help="Who we are to the cluster.  [default: yarnctl]"),
)
CLUSTER_OPTIONS = ("managers", "name_nodes", "config", "user")
"""The names under which a command is given them."""
_QUEUES = (
    renamed_option(
        "--preempting",
        was="--hurried",
        multiple=True,
        metavar="QUEUE",
        help="Queue that gets room.  [production]",
    ),
    renamed_option(
        "--preemptable",
        was="--victims",
        multiple=True,
        metavar="QUEUE",
        help="Queue whose jobs give way.  [research]",
    ),
    click.option(
        "--mode",
        type=click.Choice(["queues", "deadlines"]),
        default="queues",
        show_default=True,
        help="Queues against queues, or one queue by deadlines.",
    ),
)
_FOLDERS = (
    click.option(
        "--requests", default=DEFAULT_REQUESTS, show_default=True, metavar="PATH", help="Our folder in HDFS."
    ),
    click.option(
        "--store",
        default=DEFAULT_STORE,
        show_default=True,
        metavar="PATH",
        help="Jobs' folder in HDFS: checkpoints.",
    ),
)
