"""The lock by which one daemon acts in a cluster: in HDFS, or in ZooKeeper."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from typing import Literal, Protocol

from yarnctl.hadoop.lock import LOCK_PATH, LockFile, LockKind, LockRecord
from yarnctl.hadoop.term_folders import remove_older_terms
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.zookeeper_lock import ZooKeeperAddress, ZooKeeperLock
from yarnctl.restoring.change_file import ChangeFiles
from yarnctl.restoring.restorer import Restorer


class DaemonLock(Protocol):
    """The part of a lock that guard and loop need. All methods raise YarnctlError: try again later."""

    every_ms: int  # The interval of attempts and renewals
    on_free: Callable[[], None]  # Called, on any thread, when the holder that was found is gone

    @property
    def kind(self) -> Literal["hdfs", "zookeeper"]:
        """Where the lock is."""

    @property
    def held(self) -> bool:
        """Whether this process certainly holds the lock."""

    @property
    def has_rival(self) -> bool:
        """Whether the last try to acquire it found another holder."""

    @property
    def leader(self) -> str:
        """The other holder that was found, and its host; "" for none."""

    def acquire(self) -> bool:
        """Try once to get the lock; return whether this process holds it."""

    def renew(self) -> bool:
        """Renew the lock; False: it is lost."""

    def release(self) -> None:
        """Release the lock, or leave the queue for it."""


class NamedLock(DaemonLock, Protocol):
    """A lock as the commands need it: with its terms and its kind."""

    holder: str
    ttl_ms: int

    @property
    def term(self) -> int:
        """The last term that this process held; 0: none. Terms grow."""

    def current(self) -> LockRecord | None:
        """Return the record of the holder, for display."""

    def require_kind(self) -> None:
        """Raise BadInput if daemons of this cluster use another lock."""

    def forget_kind(self) -> None:
        """Let another kind of lock be used from now on."""


def make_lock(
    address: ZooKeeperAddress | None, hdfs: WebHdfs, holder: str, place: str, requests_root: str
) -> NamedLock:
    """Return a candidate for the lock in ZooKeeper, or in HDFS (None); ``place``: see ``LockFile``."""
    host, fence = socket.gethostname(), partial(remove_older_terms, hdfs, requests_root)
    if address is None:
        return LockFile(hdfs, LOCK_PATH, holder, place=place, host=host, fence=fence)
    from yarnctl.hadoop.kazoo_session import KazooSession

    lock_kind = LockKind(hdfs, LOCK_PATH)
    session = KazooSession(address)
    return ZooKeeperLock(session, address, lock_kind, holder, place=place, host=host, fence=fence)


def lead(restorer: Restorer, lock: NamedLock, hdfs: WebHdfs) -> None:
    """Let the holder of a lock restore: also what the records of earlier holders name."""
    restorer.files = ChangeFiles(hdfs, LOCK_PATH, lock.holder, lambda: lock.term, lock.kind)
    restorer.leads = lambda: lock.held
    restorer.lost()
