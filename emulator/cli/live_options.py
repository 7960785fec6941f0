"""Options that the programs of a live cluster share: ``serve``, ``rm`` and ``nm`` have them in one form.

Law: a name, a type, a default and nothing else; ``--help`` costs no more by them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

SLOT_MIB = 1024
"""A slot is a container of this size with one vcore."""


def work_option(what: str) -> Decorator:
    """``--work DIR``; ``what`` is its help."""
    return click.option(
        "--work",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("yarn-emulator-work"),
        show_default=True,
        metavar="DIR",
        help=what,
    )


def containers_option(what: str) -> Decorator:
    """``--containers process|modelled``; ``what`` says what modelled means here."""
    kinds = click.Choice(("process", "modelled"))
    return click.option("--containers", type=kinds, default="process", show_default=True, help=what)


allow_host_option = click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Host name that is answered, too, besides the address's own and the one it is advertised by.",
)


def manager_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a ResourceManager can be told, wherever it runs."""
    for add in reversed(_MANAGER):
        command = add(command)
    return command


_MANAGER: tuple[Decorator, ...] = (
    click.option(
        "--port", type=click.IntRange(0, 65535), default=8088, show_default=True, help="0: a free one."
    ),
    click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at."),
    click.option(
        "--queues", metavar="NAME=SHARE,...", help="Shares in percent.  [default: production=95,research=5]"
    ),
    click.option(
        "--scheduler-xml",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        metavar="FILE",
        help="Queues from a capacity-scheduler.xml instead.",
    ),
    click.option(
        "--dialect", type=click.Choice(("3.4", "3.5")), default="3.4", show_default=True, help="Hadoop's."
    ),
    click.option(
        "--superuser",
        default="yarnctl",
        show_default=True,
        metavar="NAME",
        help="Who may do everything in WebHDFS: yarnctl reads checkpoints of all owners.",
    ),
    click.option("--seed", type=int, default=1, show_default=True, help="Draws when each node beats."),
    allow_host_option,
    click.option("--faults", is_flag=True, help="Let tests break WebHDFS through /emulator/v1/faults."),
    click.option("--json", "as_json", is_flag=True, help="Say the line as JSON."),
)
