"""Which cluster, and which of its queues: the options of every command that attaches to one.

Law: nothing is opened here; what cannot be meant is refused before anything else happens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from yarnctl.errors import BadInput

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


def cluster_of(given: Given, *, hdfs: bool = True) -> ClusterAddress:
    """Return the cluster these options mean, together with environment and file; raises BadInput.

    ``hdfs``: the command uses HDFS.
    """
    from yarnctl.config import load_cluster

    options = {
        "resource_managers": given["managers"],
        "name_nodes": given["name_nodes"],
        "user": given["user"],
    }
    environment = {**os.environ, "YARNCTL_USER": os.environ.get("YARNCTL_USER") or "yarnctl"}
    return load_cluster(given["config"], environment, options, hdfs=hdfs)


def folders_of(cluster: ClusterAddress, given: Given) -> tuple[ClusterAddress, str, str]:
    """Return the cluster with the HDFS that its folders name, and the folders of requests and of checkpoints.

    A folder is a path, or an address as ``yarnctl wrap --store`` takes it; BadInput for any other form, and
    for an address of another HDFS than the cluster's.
    """
    import msgspec

    roots = []
    for option, text in (("--requests", given["requests"]), ("--store", given["store"])):
        root, hosts = folder_of(option, text)
        known = {urlsplit(one).netloc.lower() for one in cluster.name_nodes}
        if hosts and not cluster.name_nodes:
            cluster = msgspec.structs.replace(cluster, name_nodes=hosts)
        elif hosts and not known & {urlsplit(one).netloc.lower() for one in hosts}:
            told = f"is in another HDFS than {', '.join(cluster.name_nodes)}"
            raise BadInput(f"{option} {text[:120]}", told, f"write its path alone: {root}")
        roots.append(root)
    return cluster, roots[0], roots[1]


def folder_of(option: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the path of a folder in HDFS, and the NameNodes that its address names (a path alone: none)."""
    from yarnctl.checkpoint.opened_store import checked_root
    from yarnctl.task_runner.wrapping import refuse_address

    if "://" not in text:
        return checked_root(option, text), ()
    refuse_address(option, text)
    parts = urlsplit(text)
    if parts.scheme == "file":
        raise BadInput(f"{option} {text[:120]}", "is no folder in HDFS", "name one like /yarnctl/checkpoints")
    scheme = "https" if parts.scheme == "swebhdfs" else "http"
    hosts = tuple(f"{scheme}://{host}" for host in parts.netloc.split(",") if host)
    return checked_root(option, parts.path), hosts


PREEMPTING, PREEMPTABLE = ("production",), ("research",)


def defaults_of(given: Given) -> frozenset[str]:
    """Return the queues that no option names and that may be missing.

    By deadlines one queue is enough, and a gate alone needs neither.
    """
    if given["mode"] == "queues" and given["admission"] is None:
        return frozenset()
    hurried, victims = given["preempting"] or PREEMPTING, given["preemptable"] or PREEMPTABLE
    return frozenset((*hurried, *victims)) - {*given["preempting"], *given["preemptable"]}


def queues_of(given: Given) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the preempting and the preemptable queues, by deadlines maybe the same ones."""
    hurried, victims = given["preempting"] or PREEMPTING, given["preemptable"] or PREEMPTABLE
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
    click.option(
        "--preempting",
        multiple=True,
        metavar="QUEUE",
        help="Leaf queue that gets room, by its full path or its own name.  [production]",
    ),
    click.option(
        "--preemptable",
        multiple=True,
        metavar="QUEUE",
        help="Leaf queue whose jobs give way, named likewise.  [research]",
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
