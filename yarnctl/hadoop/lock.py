"""A lock in HDFS with at most one holder at a time.

The holder is decided by one atomic operation only, the exclusive create of the next *term*. A lock is a
directory of files ``term-1``, ``term-2``, ...; the owner of the highest term is the holder. Only it ever
writes to a term again (a renewal replaces its own record), so a late write of a dead holder harms nothing.

Clocks of different hosts are never compared. A holder counts as dead when its record has not changed for its
own ``ttl_ms`` as measured by the rival. The holder counts itself as holder only until half of ``ttl_ms``
after it *began* its last renewal that succeeded, and may begin one only until then: so it stops before the
earliest instant at which a rival may start.

A holder is one process: two of one name (a state directory that was copied) are two holders. A restarted
process need not wait for its own past term: its *place*, something on this host that one process at a time
can have, shows that the old process is dead.

Terms of two kinds of lock cannot be compared. So the kind stands in a file beside the terms, and a process of
another kind never begins a term; ``yarnctl restore --all`` removes the file once nothing is lowered.

A renewal is one transaction of the NameNode and writes no block: it sets the modification time of the term's
file, which a rival reads with the listing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal

import msgspec

from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import ExistsAlready, Missing
from yarnctl.hadoop.http.session import passed_s
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs

_TERM = re.compile(r"term-([0-9]{1,12})")
RECORD_BYTES = 1 << 16
KIND: Literal["hdfs"] = "hdfs"
LOCK_PATH = "/yarnctl/lock"  # The directory in HDFS by which at most one daemon acts per cluster


class LockRecord(msgspec.Struct, frozen=True):
    """A term. ``beat`` grows with every renewal: the modification time of the file, which it does not have.

    ``place``: an id that one process at a time has, or ""; ``host``: the holder's, for display.
    """

    holder: str
    term: int
    ttl_ms: int
    beat: int = 0
    released: bool = False
    place: str = ""
    host: str = ""

    @property
    def leader(self) -> str:
        """The holder and its host."""
        return f"{self.holder} on {self.host}" if self.host else self.holder


class LockKind:
    """The kind of the lock by which one daemon acts in a cluster: the file ``kind`` in a folder of HDFS."""

    def __init__(self, hdfs: WebHdfs, folder: str) -> None:
        self._hdfs = hdfs
        self._path = f"{folder}/kind"

    def require(self, kind: str, is_there: bool = False) -> None:
        """Write the kind, once; raises BadInput if the folder has another."""
        if not is_there:
            with contextlib.suppress(ExistsAlready):
                self._hdfs.create(self._path, kind.encode(), mode=0o644)
                return
        if (found := self.found()) != kind:
            remedy = "stop the daemons that use it, and run yarnctl restore --all with that lock"
            remedy += "; remove the file if that lock no longer exists"
            raise BadInput(self._path, f"is {found!r}, this lock is {kind!r}", remedy)

    def found(self) -> str:
        """Return the kind that is written, "" if none is."""
        try:
            return self._hdfs.read(self._path, RECORD_BYTES).decode("ascii", "replace")[:200]
        except Missing:
            return ""

    def forget(self) -> None:
        """Let a lock of another kind be used from now on."""
        self._hdfs.delete(self._path)


class LockFile:
    """One candidate for a lock. ``clock`` returns seconds; it advances while the machine sleeps, never back.

    ``holder`` names this process: no other, before or after it, has the same name. ``place`` names what one
    process at a time has (a file under a system lock, on this host, since this boot) and what this one
    has now: a former holder with the same place is dead. All methods raise as the store does (then try
    again later). ``has_rival``: whether the last :meth:`acquire` found another holder, ``leader``: which one.
    ``on_free`` is not called: nothing but a listing shows that the lock is free. ``fence`` is called with
    each new term before it is held, and ends what is left of older ones.
    """

    kind: Literal["hdfs"] = KIND
    every_ms = 2_000  # The interval of attempts and renewals

    def __init__(
        self,
        hdfs: WebHdfs,
        path: str,
        holder: str,
        ttl_ms: int = 15_000,
        clock: Callable[[], float] = passed_s,
        place: str = "",
        host: str = "",
        fence: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._store = hdfs
        self._fence = fence
        self._kind = LockKind(hdfs, path)
        self.path = path
        self.holder = holder
        self.ttl_ms = ttl_ms
        self._clock = clock
        self._record = LockRecord(holder, 0, ttl_ms, place=place, host=host)
        self._renewed_at: float | None = None
        self._last_read: tuple[LockRecord, float] | None = None
        self.has_rival = False
        self.leader = ""
        self.on_free: Callable[[], None] = lambda: None

    @property
    def held(self) -> bool:
        """Whether this process certainly holds the lock now. Check it before every action."""
        return self._renewed_at is not None and (self._clock() - self._renewed_at) * 1000 < self.ttl_ms / 2

    @property
    def term(self) -> int:
        """The last term that this process held; 0: none."""
        return self._record.term

    def acquire(self) -> bool:
        """Try once; return whether this process holds the lock. Call again every second while it does not."""
        began = self._clock()
        rows = self._rows()
        terms = _terms(rows)
        self.has_rival, self.leader = False, ""
        if not terms:
            self._store.make_directories(self.path, 0o755)
            return self._begin(1, began, rows)
        rival = self._read(max(terms), rows)
        if rival.released or self._is_expired(rival) or self._is_unchanged(rival, began):
            return self._begin(max(terms) + 1, began, rows)
        self.has_rival, self.leader = True, rival.leader
        return False

    def require_kind(self) -> None:
        """Write the kind beside the lock, once; raises BadInput if this folder has another."""
        self._kind.require(KIND)

    def forget_kind(self) -> None:
        """Let a lock of another kind be used in this folder from now on."""
        self._kind.forget()

    def renew(self) -> bool:
        """Renew the lock. False: it is lost, stop acting at once. Call every ``every_ms``."""
        began = self._clock()
        term = self._record.term
        rows = self._rows() if self.held else {}
        if self._renewed_at is None or max(_terms(rows), default=None) != term:
            self._renewed_at = None
            return False
        passed_ms = max(1, int((began - self._renewed_at) * 1000))
        try:
            self._store.set_modified(self._name(term), rows[f"term-{term}"].modified_at_ms + passed_ms)
        except Missing:  # the next holder has removed it
            self._renewed_at = None
            return False
        self._renewed_at = began
        return self.held

    def release(self) -> None:
        """Release the lock so that the next candidate can acquire it at once."""
        if self.held and max(_terms(self._rows()), default=None) == self._record.term:
            self._replace(msgspec.structs.replace(self._record, released=True))
        self._renewed_at = None

    def current(self) -> LockRecord | None:
        """Return the record of the highest term, for display; None if there is none."""
        rows = self._rows()
        top = max(_terms(rows), default=None)
        return None if top is None else self._read(top, rows)

    def _read(self, term: int, rows: Mapping[str, FileStatus]) -> LockRecord:
        """Return a term's record; one that cannot be read is an unfinished write, and expires like others."""
        try:
            found = msgspec.json.decode(self._store.read(self._name(term), RECORD_BYTES), type=LockRecord)
        except (msgspec.MsgspecError, UnicodeError, Missing):
            found = LockRecord("(unreadable)", term, self.ttl_ms)
        return msgspec.structs.replace(found, beat=rows[f"term-{term}"].modified_at_ms)

    def _rows(self) -> dict[str, FileStatus]:
        try:
            return {row.name: row for row in self._store.listing(self.path)}
        except Missing:
            return {}

    def _name(self, term: int) -> str:
        return f"{self.path}/term-{term}"

    def _is_expired(self, record: LockRecord) -> bool:
        """Return whether a record belongs to this process or to an earlier one with its place."""
        return record.holder == self.holder or (bool(record.place) and record.place == self._record.place)

    def _is_unchanged(self, record: LockRecord, now: float) -> bool:
        if self._last_read is None or self._last_read[0] != record:
            self._last_read = (record, now)
            return False
        return (now - self._last_read[1]) * 1000 >= record.ttl_ms

    def _begin(self, term: int, began: float, names: Collection[str]) -> bool:
        # Each request counts: on a machine that answers slowly the time of the lock passes meanwhile
        self._kind.require(KIND, "kind" in names)
        record = msgspec.structs.replace(self._record, term=term, released=False)
        try:
            self._store.create(self._name(term), msgspec.json.encode(record), mode=0o644)
        except ExistsAlready:
            self.has_rival = True
            return False
        self._record, self._last_read = record, None
        self._fence(term)
        self._renewed_at = began
        for old in _terms(names)[:8]:  # only the highest counts
            self._store.delete(self._name(old))
        return self.held

    def _replace(self, record: LockRecord) -> None:
        """Write a temporary file and rename it, so that half a record is never read."""
        beside = f"{self.path}/renewal-{record.term}"
        self._store.create(beside, msgspec.json.encode(record), mode=0o644, overwrite=True)
        self._store.rename(beside, self._name(record.term), overwrite=True)
        self._record = record


def _terms(names: Iterable[str]) -> list[int]:
    return sorted(int(match[1]) for match in map(_TERM.fullmatch, names) if match)
