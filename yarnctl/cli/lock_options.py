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
    from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress, ZooKeeperTls

LOGIN = "--lock-login-file"


class LockOptions(NamedTuple):
    """The options that begin with ``--lock``."""

    lock: str = "hdfs"
    lock_session_s: int = 10
    lock_login_file: Path | None = None
    lock_tls_ca: Path | None = None
    lock_tls_certificate: Path | None = None
    lock_tls_key: Path | None = None


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
        click.option(
            "--lock-tls-ca",
            cls=RareOption,
            type=click.Path(path_type=Path, dir_okay=False),
            help="With a lock in ZooKeeper: PEM file with authorities of its servers. Connect with TLS.",
        ),
        click.option(
            "--lock-tls-certificate",
            cls=RareOption,
            type=click.Path(path_type=Path, dir_okay=False),
            help="PEM file with this host's certificate and its chain, for servers that require one.",
        ),
        click.option(
            "--lock-tls-key",
            cls=RareOption,
            type=click.Path(path_type=Path, dir_okay=False),
            help="PEM file with the key of --lock-tls-certificate, without a passphrase.",
        ),
    )
    return option_group(LockOptions, "locking", options, section="Fail-over")(command)


def lock_of(locking: LockOptions) -> ZooKeeperAddress | None:
    """Return where a lock in ZooKeeper is, None for the lock in HDFS; raises BadInput."""
    from yarnctl.hadoop.zookeeper_lock import lock_address

    address = lock_address(locking.lock, locking.lock_session_s)
    if address is None:
        if locking[2:] != LockOptions()[2:]:
            problem = "the lock in HDFS has no login and no TLS of its own"
            remedy = f"remove {LOGIN} and --lock-tls-..., or set --lock zookeeper://..."
            raise BadInput("--lock hdfs", problem, remedy)
        return None
    require_extra("ha")
    return address._replace(login=_login_in(locking.lock_login_file), tls=_tls_of(locking))


def _login_in(file: Path | None) -> str:
    from yarnctl.service.security.tokens import read_secret

    login = "" if file is None else read_secret(file, LOGIN)
    if login and not re.fullmatch(r"[A-Za-z0-9._-]{1,64}:.+", login):  # not shown: it is a secret
        raise BadInput(LOGIN, "is not USER:PASSWORD", "write both as its only line")
    return login


def _tls_of(locking: LockOptions) -> ZooKeeperTls:
    import ssl

    from yarnctl.hadoop.zookeeper_lock import ZooKeeperTls

    tls = ZooKeeperTls(locking.lock_tls_ca, locking.lock_tls_certificate, locking.lock_tls_key)
    if tls == ZooKeeperTls():
        return tls
    if tls.authorities is None or (tls.certificate is None) != (tls.key is None):
        problem = "is missing, or a certificate without its key, or the reverse"
        raise BadInput("--lock-tls-ca", problem, "set --lock-tls-ca, and the other two or none of them")
    context, where = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), f"--lock-tls-ca {tls.authorities}"
    try:
        context.load_verify_locations(tls.authorities)
        if tls.certificate is not None:
            where = f"--lock-tls-certificate {tls.certificate}"
            context.load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; ValueError: a NUL in the path
        remedy = "name readable PEM files, a key of that certificate, and none with a passphrase"
        raise BadInput(where, f"cannot be used ({type(error).__name__})", remedy) from None
    return tls
