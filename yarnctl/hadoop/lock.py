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
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable

import msgspec

from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import ExistsAlready, Missing
from yarnctl.hadoop.http.session import passed_s
from yarnctl.hadoop.webhdfs import WebHdfs

_TERM = re.compile(r"term-([0-9]{1,12})")
RECORD_BYTES = 1 << 16
KIND = "hdfs"
LOCK_PATH = "/yarnctl/lock"  # The directory in HDFS by which at most one daemon acts per cluster


class LockRecord(msgspec.Struct, frozen=True):
    """A term. ``beat`` grows with every renewal; ``place``: an id that one process at a time has, or ""."""

    holder: str
    term: int
    beat: int
    ttl_ms: int
    released: bool = False
    place: str = ""


class LockFile:
    """One candidate for a lock. ``clock`` returns seconds; it advances while the machine sleeps, never back.

    ``holder`` names this process: no other, before or after it, has the same name. ``place`` names what one
    process at a time has (a file under a system lock, on this host, since this boot) and what this one
    has now: a former holder with the same place is dead. All methods raise as the store does (then try
    again later). ``has_rival``: whether the last :meth:`acquire` found another holder.
    """

    def __init__(
        self,
        hdfs: WebHdfs,
        path: str,
        holder: str,
        ttl_ms: int = 15_000,
        clock: Callable[[], float] = passed_s,
        place: str = "",
    ) -> None:
        self._store = hdfs
        self.path = path
        self.holder = holder
        self.ttl_ms = ttl_ms
        self._clock = clock
        self._record = LockRecord(holder, 0, 0, ttl_ms, place=place)
        self._renewed_at: float | None = None
        self._last_read: tuple[LockRecord, float] | None = None
        self.has_rival = False

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
        names = self._names()
        terms = _terms(names)
        self.has_rival = False
        if not terms:
            self._store.make_directories(self.path, 0o755)
            return self._begin(1, began, names)
        rival = self.read(max(terms))
        if rival.released or self._is_expired(rival) or self._is_unchanged(rival, began):
            return self._begin(max(terms) + 1, began, names)
        self.has_rival = True
        return False

    def require_kind(self, is_there: bool = False) -> None:
        """Write the kind beside the lock, once; raises BadInput if this folder has another."""
        if not is_there:
            with contextlib.suppress(ExistsAlready):
                self._store.create(f"{self.path}/kind", KIND.encode(), mode=0o644)
                return
        found = self._store.read(f"{self.path}/kind", RECORD_BYTES).decode("ascii", "replace")[:40]
        if found != KIND:
            remedy = "stop the daemons that use it, and run yarnctl restore --all with that lock"
            raise BadInput(f"{self.path}/kind", f"is {found!r}, this lock is {KIND!r}", remedy)

    def forget_kind(self) -> None:
        """Let a lock of another kind be used in this folder from now on."""
        self._store.delete(f"{self.path}/kind")

    def renew(self) -> bool:
        """Renew the lock. False: it is lost, stop acting at once. Call every ``ttl_ms / 5``."""
        began = self._clock()
        if not self.held or self._highest() != self._record.term:
            self._renewed_at = None
            return False
        self._replace(msgspec.structs.replace(self._record, beat=self._record.beat + 1))
        self._renewed_at = began
        return self.held

    def release(self) -> None:
        """Release the lock so that the next candidate can acquire it at once."""
        if self.held and self._highest() == self._record.term:
            self._replace(msgspec.structs.replace(self._record, beat=self._record.beat + 1, released=True))
        self._renewed_at = None

    def current(self) -> LockRecord | None:
        """Return the record of the highest term, for display; None if there is none."""
        top = self._highest()
        return None if top is None else self.read(top)

    def read(self, term: int) -> LockRecord:
        """Return a term's record; one that cannot be read is an unfinished write, and expires like others."""
        try:
            return msgspec.json.decode(self._store.read(self._name(term), RECORD_BYTES), type=LockRecord)
        except (msgspec.MsgspecError, UnicodeError, Missing):
            return LockRecord("(unreadable)", term, 0, self.ttl_ms)

    def _names(self) -> list[str]:
        try:
            return [row.name for row in self._store.listing(self.path)]
        except Missing:
            return []

    def _highest(self) -> int | None:
        return max(_terms(self._names()), default=None)

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
        self.require_kind("kind" in names)
        record = LockRecord(self.holder, term, 0, self.ttl_ms, place=self._record.place)
        try:
            self._store.create(self._name(term), msgspec.json.encode(record), mode=0o644)
        except ExistsAlready:
            self.has_rival = True
            return False
        self._record, self._renewed_at, self._last_read = record, began, None
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
