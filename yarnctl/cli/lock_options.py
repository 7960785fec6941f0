"""The options that name the lock by which one daemon acts; ``run`` and ``restore`` share them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from yarnctl.cli.grouped_help import RareOption
from yarnctl.command_line import option_group
from yarnctl.errors import BadInput
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress

LOGIN = "--lock-login-file"


class LockOptions(NamedTuple):
    """The options that begin with ``--lock``."""

    lock: str = "hdfs"
    lock_session_s: int = 10
    lock_login_file: Path | None = None


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
        click.option(
            LOGIN,
            cls=RareOption,
            type=click.Path(path_type=Path, dir_okay=False),
            help="With a lock in ZooKeeper: file with USER:PASSWORD. Only this login may use the folder."
            " Mode 600.",
        ),
    )
    return option_group(LockOptions, "locking", options, section="Fail-over")(command)


def lock_of(locking: LockOptions) -> ZooKeeperAddress | None:
    """Return where a lock in ZooKeeper is, None for the lock in HDFS; raises BadInput."""
    from yarnctl.hadoop.zookeeper_lock import lock_address

    address = lock_address(locking.lock, locking.lock_session_s)
    if address is None:
        if locking.lock_login_file is not None:
            raise BadInput(LOGIN, "the lock is in HDFS", "remove it, or set --lock zookeeper://...")
        return None
    require_extra("ha")
    return address._replace(login=_login_in(locking.lock_login_file))


def _login_in(file: Path | None) -> str:
    from yarnctl.service.security.tokens import read_secret

    login = "" if file is None else read_secret(file, LOGIN)
    if login and not re.fullmatch(r"[A-Za-z0-9._-]{1,64}:.+", login):  # not shown: it is a secret
        raise BadInput(LOGIN, "is not USER:PASSWORD", "write both as its only line")
    return login
