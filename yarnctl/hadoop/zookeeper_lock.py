"""A lock in ZooKeeper with at most one holder at a time.

A candidate is an ephemeral node with a sequence number; the one with the lowest number is the holder. Its
term is its node's ``czxid``, which grows in the whole ensemble, not the session's id, whose high byte is a
server's number.

The client's own state is no guard: a process that was frozen hears of its lost session only after it has run
again. So the holder counts itself as holder only until half of the session's time-out after it *began* its
last request that found its node, in this session. The server extends a session when a request arrives, thus
never before that, so the holder stops before a rival can start.

The time-out that the server grants cannot be read; this one is requested, and 4 to 30 s of it are accepted.
The file ``kind`` in HDFS names this folder of this ensemble, by its node's ``czxid``: daemons with another
one, or with the lock in HDFS, do not start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from yarnctl.errors import BadInput, nearest
from yarnctl.hadoop.http.session import passed_s
from yarnctl.hadoop.lock import LockKind, LockRecord

KIND: Literal["zookeeper"] = "zookeeper"
SESSION_MIN_S, SESSION_MAX_S = 4, 30
DEFAULT_PORT = 2181
EXAMPLE = "zookeeper://zk1:2181,zk2:2181/yarnctl"
_CANDIDATE = re.compile(r"([0-9A-Za-z-]{1,100})-([0-9]{10})")
_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:]{2,45}\]")
_FOLDER = re.compile(r"(/[A-Za-z0-9._-]{1,100}){1,10}")


class ZooKeeperTls(NamedTuple):
    """PEM files: authorities of the servers (None: no TLS), and this process's certificate with its key."""

    authorities: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


class ZooKeeperAddress(NamedTuple):
    """The folder of a lock: ``hosts`` with ports, the folder's path, and the requested session time-out.

    ``login``: USER:PASSWORD, which alone may use the folder ("": everybody may).
    """

    hosts: tuple[str, ...]
    folder: str
    session_ms: int
    login: str = ""
    tls: ZooKeeperTls = ZooKeeperTls()

    def __repr__(self) -> str:
        """Return the place, without the password."""
        return f"zookeeper://{','.join(self.hosts)}{self.folder}"


class NodeStatus(NamedTuple):
    """A node: the transaction that created it, and the session that owns it (0: none)."""

    czxid: int
    session: int


class ZooKeeperSession(Protocol):
    """The part of a client that the lock needs. All methods raise Unreachable within a bounded time."""

    @property
    def session(self) -> int:
        """The id of the session; 0 while there is none."""

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder, which is made if it is missing."""

    def require_own(self, folder: str) -> None:
        """Raise BadInput if the session has a login, and another one may use the folder, too."""

    def create(self, path: str, data: bytes) -> None:
        """Create an ephemeral node of this session; ZooKeeper appends a sequence number of ten digits."""

    def status(self, path: str, on_gone: Callable[[], None] | None = None) -> NodeStatus | None:
        """Return a node's status, None if it is gone; ``on_gone`` is called once after it is gone."""

    def read(self, path: str) -> bytes | None:
        """Return a node's data, None if it is gone."""

    def delete(self, path: str) -> None:
        """Delete a node, if it exists."""

    def close(self) -> None:
        """End the session: its nodes are gone."""


def lock_address(text: str, session_s: int) -> ZooKeeperAddress | None:
    """Return where a lock of ``--lock`` lies, None for that in HDFS; raises BadInput."""
    where = f"--lock {text[:120]}"
    if text == "hdfs":
        return None
    scheme, separator, rest = text.partition("://")
    if scheme != KIND or not separator:
        remedy = nearest(scheme, ("hdfs", KIND), "") if separator or scheme != KIND else ""
        raise BadInput(where, "unknown lock", remedy or f"use hdfs, or {EXAMPLE}")
    names, slash, path = rest.partition("/")
    hosts = []
    for name in names.split(","):
        try:
            port = urlsplit(f"//{name}").port
        except ValueError:
            port = 0
        host = name.rpartition(":")[0] if re.search(r":[0-9]+$", name) else name
        if port == 0 or not _HOST.fullmatch(host):
            raise BadInput(where, f"{name[:80]!r} is not HOST or HOST:PORT", f"for example {EXAMPLE}")
        hosts.append(f"{host}:{port or DEFAULT_PORT}")
    if not slash or not _FOLDER.fullmatch(f"/{path}"):
        raise BadInput(where, f"{path[:80]!r} is not the path of a folder", f"for example {EXAMPLE}")
    if not SESSION_MIN_S <= session_s <= SESSION_MAX_S:
        raise BadInput("--lock-session-s", f"{session_s} is not from {SESSION_MIN_S} to {SESSION_MAX_S}")
    return ZooKeeperAddress(tuple(hosts), f"/{path}", session_s * 1000)


class ZooKeeperLock:
    """One candidate for a lock; the attributes are those of :class:`yarnctl.hadoop.lock.LockFile`.

    ``on_free`` is called on another thread when the holder that :meth:`acquire` found is gone. ``clock``
    returns seconds; it advances while the machine sleeps, never back.
    """

    kind: Literal["zookeeper"] = KIND

    def __init__(
        self,
        session: ZooKeeperSession,
        address: ZooKeeperAddress,
        lock_kind: LockKind,
        holder: str,
        clock: Callable[[], float] = passed_s,
        place: str = "",
        host: str = "",
        fence: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._session = session
        self._fence = fence
        self._folder = address.folder
        self._lock_kind = lock_kind
        self.holder = holder
        self.ttl_ms = address.session_ms
        self.every_ms = address.session_ms // 5
        self._clock = clock
        self._record = LockRecord(holder, 0, address.session_ms, place=place, host=host)
        self._node = ""
        self._renewed_at: float | None = None
        self.term = 0
        self.has_rival = False
        self.leader = ""
        self.on_free: Callable[[], None] = lambda: None

    @property
    def held(self) -> bool:
        """Whether this process certainly holds the lock now. Check it before every action."""
        return self._renewed_at is not None and (self._clock() - self._renewed_at) * 1000 < self.ttl_ms / 2

    def acquire(self) -> bool:
        """Try once; return whether this process holds the lock. Call again every ``every_ms``."""
        self._renewed_at = None
        self.has_rival, self.leader = False, ""
        names = self._candidates()
        if not any(_holder_of(name) == self.holder for name in names):
            self.require_kind()
            self._session.create(f"{self._folder}/{self.holder}-", msgspec.json.encode(self._record))
            names = self._candidates()
        for name in names:
            if _holder_of(name) == self.holder:
                return self._confirm(name)
            rival = self._read(name)
            if rival is None:
                continue
            if rival.place and rival.place == self._record.place:  # an earlier process of this place is dead
                self._session.delete(f"{self._folder}/{name}")
            elif self._session.status(f"{self._folder}/{name}", self._freed) is not None:
                self.has_rival, self.leader = True, rival.leader
                return False
        return False

    def renew(self) -> bool:
        """Confirm the lock. False: it is lost, stop acting at once. Call every ``every_ms``."""
        return self.held and self._confirm(self._node)

    def release(self) -> None:
        """Release the lock so that the next candidate can acquire it at once; end the session."""
        self._renewed_at = None
        self._session.close()

    def current(self) -> LockRecord | None:
        """Return the record of the first candidate, for display; None if there is none."""
        return next((found for name in self._candidates() if (found := self._read(name))), None)

    def require_kind(self) -> None:
        """Write the kind in HDFS, once; raises BadInput for another kind there, or an open folder."""
        self._session.names(self._folder)
        self._session.require_own(self._folder)
        folder = self._session.status(self._folder)
        if folder is not None:
            self._lock_kind.require(f"{KIND} {self._folder} {folder.czxid:x}")

    def forget_kind(self) -> None:
        """Let a lock of another kind be used from now on."""
        self._lock_kind.forget()

    def _confirm(self, name: str) -> bool:
        """Hold the lock for half of the time-out from now if a node is there, of this session."""
        began = self._clock()
        found = self._session.status(f"{self._folder}/{name}")
        if found is None or found.session != self._session.session:  # of a session that was lost since
            self._renewed_at = None
            return False
        if found.czxid != self.term:
            self.require_kind()  # again: an empty folder could be replaced until the node was in it
            self._fence(found.czxid)
        self._node, self.term, self._renewed_at = name, found.czxid, began
        return self.held

    def _candidates(self) -> list[str]:
        """Return the nodes of candidates, the holder's first."""
        names = [name for name in self._session.names(self._folder) if _CANDIDATE.fullmatch(name)]
        return sorted(names, key=lambda name: (name[-10:], name))

    def _read(self, name: str) -> LockRecord | None:
        data = self._session.read(f"{self._folder}/{name}")
        if data is None:
            return None
        try:
            return msgspec.json.decode(data, type=LockRecord)
        except (msgspec.MsgspecError, UnicodeError):
            return LockRecord("(unreadable)", 0, self.ttl_ms)

    def _freed(self) -> None:
        self.on_free()


def _holder_of(name: str) -> str:
    match = _CANDIDATE.fullmatch(name)
    return match[1] if match else ""
