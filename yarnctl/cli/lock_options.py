"""The options that name the lock by which one daemon acts; ``run`` and ``restore`` share them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yarnctl.cli.grouped_help import RareOption
from yarnctl.command_line import option_group
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress


class LockOptions(NamedTuple):
    """``--lock`` and ``--lock-session-s``."""

    lock: str = "hdfs"
    lock_session_s: int = 10


def lock_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the lock; the argument ``locking``."""
    options = (
        click.option(
            "--lock",
            default="hdfs",
            show_default=True,
            metavar="PLACE",
            help="Lock by which one daemon of a cluster acts: hdfs, or zookeeper://HOST:2181,HOST:2181/FOLDER"
            " (extra ha). All daemons of a cluster use the same.",
        ),
        click.option(
            "--lock-session-s",
            cls=RareOption,
            type=click.IntRange(4, 30),
            default=10,
            show_default=True,
            help="With a lock in ZooKeeper: seconds after which the lock of a dead leader is free. A leader"
            " acts only within half of them after its lock was confirmed.",
        ),
    )
    return option_group(LockOptions, "locking", options, section="Fail-over")(command)


def lock_of(locking: LockOptions) -> ZooKeeperAddress | None:
    """Return where a lock in ZooKeeper is, None for the lock in HDFS; raises BadInput."""
    from yarnctl.hadoop.zookeeper_lock import lock_address

    address = lock_address(locking.lock, locking.lock_session_s)
    if address is not None:
        require_extra("ha")
    return address
