"""The cluster and its queues: options that several commands share, and their values' checks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from yarnctl.cli.settings_file import placed, use_file
from yarnctl.command_line import option_group
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.config import ClusterAddress

DEFAULT_STORE = "/yarnctl/checkpoints"
DEFAULT_REQUESTS = "/yarnctl/requests"
PREEMPTING, PREEMPTABLE = ("production",), ("research",)

Function = Callable[..., Any]
Mode = Literal["queues", "guarantees", "deadlines"]


class ClusterOptions(NamedTuple):
    """``--rm``, ``--name-node``, ``--config`` and ``--user``; None or empty: not given."""

    managers: tuple[str, ...] = ()
    name_nodes: tuple[str, ...] = ()
    config: Path | None = None
    user: str | None = None


class QueueOptions(NamedTuple):
    """``--preempting``, ``--preemptable`` and ``--mode``; no queue: the default of each."""

    preempting: tuple[str, ...] = ()
    preemptable: tuple[str, ...] = ()
    mode: Mode = "queues"


class FolderOptions(NamedTuple):
    """``--requests`` and ``--store``: folders in HDFS, each a path or an address."""

    requests: str = DEFAULT_REQUESTS
    store: str = DEFAULT_STORE


def cluster_options(command: Function) -> Function:
    """Add the options that name a cluster and the user there; the argument ``cluster``."""
    options = (
        click.option(
            "--rm", "managers", multiple=True, metavar="URL", help="ResourceManager; repeat it for HA."
        ),
        click.option(
            "--name-node",
            "name_nodes",
            multiple=True,
            metavar="URL",
            help="NameNode (WebHDFS); repeat it for HA.",
        ),
        click.option(
            "--config",
            type=click.Path(path_type=Path, dir_okay=False),
            is_eager=True,
            callback=use_file,
            help="TOML file of settings with [run] and [cluster] (docs/install.md).  [env: YARNCTL_CONFIG;"
            " default: /etc/yarnctl/yarnctl.toml if it exists]",
        ),
        click.option("--user", help="User name that yarnctl uses on the cluster.  [default: yarnctl]"),
    )
    return option_group(ClusterOptions, "cluster", options, section="Cluster")(_placing(command))


def _placing(command: Function) -> Function:
    """Return the command; its errors about options name the variable or the file that set the option."""

    @functools.wraps(command)
    def with_places(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except BadInput as error:
            context = click.get_current_context(silent=True)
            raise (error if context is None else placed(error, context)) from None

    return with_places


def queue_options(command: Function) -> Function:
    """Add ``--preempting``, ``--preemptable`` and ``--mode``; the argument ``queues``."""
    options = (
        click.option(
            "--preempting",
            multiple=True,
            metavar="QUEUE",
            help="Queue of production jobs, by full path or own name; a parent means all leaves below it;"
            " repeatable.  [production]",
        ),
        click.option(
            "--preemptable",
            multiple=True,
            metavar="QUEUE",
            help="Queue of research jobs, which can be preempted; repeatable.  [research]",
        ),
        click.option(
            "--mode",
            type=click.Choice(["queues", "guarantees", "deadlines"]),
            default="queues",
            show_default=True,
            help="Preempt between named queues, up to each queue's guarantee, or by deadlines in one queue.",
        ),
    )
    return option_group(QueueOptions, "queues", options, section="Queues")(command)


def folder_options(command: Function) -> Function:
    """Add ``--requests`` and ``--store``; the argument ``folders``."""
    options = (
        click.option(
            "--requests",
            default=DEFAULT_REQUESTS,
            show_default=True,
            metavar="PATH",
            help="HDFS folder for the daemon's suspend requests.",
        ),
        click.option(
            "--store",
            default=DEFAULT_STORE,
            show_default=True,
            metavar="PATH",
            help="HDFS folder for the jobs' checkpoints.",
        ),
    )
    return option_group(FolderOptions, "folders", options, section="Folders in HDFS")(command)


def cluster_of(options: ClusterOptions, *, hdfs: bool = True, yarn: bool = True) -> ClusterAddress:
    """Return the cluster that options, environment and file name; raises BadInput.

    ``hdfs``, ``yarn``: the caller uses it.
    """
    import msgspec

    from yarnctl.config import load_cluster

    values = {"resource_managers": options.managers, "name_nodes": options.name_nodes, "user": options.user}
    cluster = load_cluster(options.config, os.environ, values, hdfs=hdfs, yarn=yarn)
    return cluster if cluster.user else msgspec.structs.replace(cluster, user="yarnctl")


def folders_of(cluster: ClusterAddress, folders: FolderOptions) -> tuple[ClusterAddress, str, str]:
    """Return the cluster (with the HDFS that a folder's address names), the requests' and the store's path.

    A folder is a path, or an address as ``yarnctl wrap --store`` accepts it; raises BadInput for others.
    """
    import msgspec

    roots = []
    for option, text in (("--requests", folders.requests), ("--store", folders.store)):
        root, hosts = folder_of(option, text)
        known = {urlsplit(one).netloc.lower() for one in cluster.name_nodes}
        if hosts and not cluster.name_nodes:
            cluster = msgspec.structs.replace(cluster, name_nodes=hosts)
        elif hosts and not known & {urlsplit(one).netloc.lower() for one in hosts}:
            problem = f"the cluster uses another HDFS ({', '.join(cluster.name_nodes)})"
            raise BadInput(f"{option} {text[:120]}", problem, f"give the path only: {root}")
        roots.append(root)
    return cluster, roots[0], roots[1]


def folder_of(option: str, text: str) -> tuple[str, tuple[str, ...]]:
    """Return the path of a folder in HDFS and the NameNodes in its address (none for a plain path)."""
    from yarnctl.checkpoint.opened_store import checked_root
    from yarnctl.task_runner.wrapping import refuse_address

    if "://" not in text:
        return checked_root(option, text), ()
    refuse_address(option, text)
    parts = urlsplit(text)
    if parts.scheme == "file":
        raise BadInput(
            f"{option} {text[:120]}", "the folder must be in HDFS", "give a path such as /yarnctl/checkpoints"
        )
    scheme = "https" if parts.scheme == "swebhdfs" else "http"
    hosts = tuple(f"{scheme}://{host}" for host in parts.netloc.split(",") if host)
    return checked_root(option, parts.path), hosts


def optional_queues(queues: QueueOptions, admission: str | None) -> frozenset[str]:
    """Return the default queues that may be missing: ``--mode deadlines`` needs one, admission alone none."""
    if queues.mode == "queues" and admission is None:
        return frozenset()
    preempting, preemptable = queues_of(queues)
    return frozenset((*preempting, *preemptable)) - {*queues.preempting, *queues.preemptable}


def queues_of(queues: QueueOptions) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the preempting and the preemptable queues; they may overlap except with ``--mode queues``.

    With deadlines one queue has both roles: a queue that is named in one role has the other, too, if no
    other queue is named there. With guarantees no name means every leaf queue.
    """
    if queues.mode == "guarantees":
        return queues.preempting, queues.preemptable
    if queues.mode == "deadlines":
        preempting = queues.preempting or queues.preemptable
        return preempting or PREEMPTING, queues.preemptable or preempting or PREEMPTABLE
    preempting, preemptable = queues.preempting or PREEMPTING, queues.preemptable or PREEMPTABLE
    if both := sorted(set(preempting) & set(preemptable)):
        problem = f"{both[0]} is also a preempting queue"
        raise BadInput("--preemptable", problem, "name each queue once")
    return preempting, preemptable
