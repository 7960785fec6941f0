"""Options that ``serve``, ``rm`` and ``nm`` share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Dialect = Literal["3.4", "3.5"]

SLOT_MIB = 1024
"""A slot is a container of this size with one vcore."""


def work_option(text: str) -> Decorator:
    """Return the option ``--work DIR``; ``text`` is its help."""
    return click.option(
        "--work",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("yarn-emulator-work"),
        show_default=True,
        metavar="DIR",
        help=text,
    )


def containers_option(text: str) -> Decorator:
    """Return the option ``--containers process|modelled``; ``text`` is its help."""
    kinds = click.Choice(("process", "modelled"))
    return click.option("--containers", type=kinds, default="process", show_default=True, help=text)


speed_option = click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Factor of heartbeats and of everything modelled; real processes are not faster.",
)

allow_host_option = click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Accept requests to this host name, too; repeatable.",
)


def manager_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a ResourceManager."""
    for add in reversed(_MANAGER):
        command = add(command)
    return command


_MANAGER: tuple[Decorator, ...] = (
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=8088,
        show_default=True,
        help="Port to listen on; 0: any free one.",
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option(
        "--queues", metavar="NAME=SHARE,...", help="Shares in percent.  [default: production=95,research=5]"
    ),
    click.option(
        "--scheduler-xml",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Read the queues from a capacity-scheduler.xml instead.",
    ),
    click.option(
        "--node-labels",
        default="",
        metavar="NAME:NODES[:shared],...",
        help="Set labels of the nodes that register first, with --scheduler-xml.",
    ),
    click.option(
        "--resource-types",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Read resource types and each node's amounts from a resource-types.xml, with --scheduler-xml.",
    ),
    click.option(
        "--dialect",
        type=click.Choice(("3.4", "3.5")),
        default="3.4",
        show_default=True,
        help="Hadoop version of the REST answers.",
    ),
    click.option(
        "--superuser",
        default="yarnctl",
        show_default=True,
        metavar="NAME",
        help="Superuser of WebHDFS: yarnctl reads the checkpoints of all owners.",
    ),
    click.option(
        "--seed", type=int, default=1, show_default=True, help="Seed of the nodes' heartbeat phases."
    ),
    allow_host_option,
    click.option("--faults", is_flag=True, help="Let tests break WebHDFS through /emulator/v1/faults."),
    click.option("--json", "as_json", is_flag=True, help="Print the address as one line of JSON."),
)
