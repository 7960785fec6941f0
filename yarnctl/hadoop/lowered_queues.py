"""Keep records in HDFS of the queues with a lowered maximum, so that a daemon on another host can restore it.

Law: a record is written before the queue is lowered and removed after it is restored. Each process writes one
file of its own in the lock's folder, by a temporary file and a rename. The holder of the lock may read and
remove the files of others, because their writers do not hold the lock any more. A record has the maximum that
was set and the one before: whether the queue still has it must be read before restoring.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs

RECORD_BYTES = 1 << 20
_NAME = re.compile(r"lowered-[0-9A-Za-z\-]{1,100}\.json")
_HALF = re.compile(rf"\.{_NAME.pattern}\.tmp")


class LoweredQueue(msgspec.Struct, frozen=True):
    """One queue: its full path, its maximum before, and the one that was set (ratios of its parent)."""

    queue: str
    before_ratio: float
    ratio: float


class LoweredRecord(msgspec.Struct, frozen=True):
    """The content of a file: which process lowered which queues."""

    holder: str
    queues: tuple[LoweredQueue, ...]


class LoweredFile:
    """The records in ``folder``; this process writes that of ``holder``. Methods raise as the store does."""

    def __init__(self, store: WebHdfs, folder: str, holder: str) -> None:
        self._store = store
        self._folder = folder
        self._holder = holder
        self.name = f"lowered-{holder}.json"

    def write(self, queues: Sequence[LoweredQueue]) -> None:
        """Write this process's record; it is complete in HDFS when this returns."""
        beside = f"{self._folder}/.{self.name}.tmp"
        data = msgspec.json.encode(LoweredRecord(self._holder, tuple(queues)))
        self._store.create(beside, data, mode=0o644, overwrite=True)
        self._store.rename(beside, self.path(self.name), overwrite=True)

    def all(self) -> Mapping[str, LoweredRecord | None]:
        """Return every record by file (None: unreadable). The lock's holder only: removes half ones."""
        for row in _listed(self._store, self._folder):
            if _HALF.fullmatch(row.name) and row.name != f".{self.name}.tmp":
                self._store.delete(self.path(row.name))
        return read_all(self._store, self._folder)

    def remove(self, name: str) -> None:
        """Remove a record, if it still exists."""
        self._store.delete(self.path(name))

    def path(self, name: str) -> str:
        """Return the path of a record."""
        return f"{self._folder}/{name}"


def read_all(store: WebHdfs, folder: str) -> dict[str, LoweredRecord | None]:
    """Return every record in ``folder`` by its file's name; None for a file with other content."""
    names = [row.name for row in _listed(store, folder) if _NAME.fullmatch(row.name)]
    found = ((name, _read(store, f"{folder}/{name}")) for name in names)
    return {name: record for name, record in found if not isinstance(record, Missing)}


def _listed(store: WebHdfs, folder: str) -> tuple[FileStatus, ...]:
    try:
        return store.listing(folder)
    except Missing:
        return ()


def _read(store: WebHdfs, path: str) -> LoweredRecord | Missing | None:
    try:
        return msgspec.json.decode(store.read(path, RECORD_BYTES), type=LoweredRecord)
    except Missing as gone:  # removed since the listing
        return gone
    except (msgspec.MsgspecError, UnicodeError):
        return None


def command_for(queue: str, ratio: float) -> str:
    """Return the command by which an administrator sets a queue's maximum in a configuration store."""
    return f"yarn schedulerconf -update {queue}:maximum-capacity={ratio * 100:.10g}"


def same_ratio(left: float, right: float) -> bool:
    """Return whether two maxima are equal: they are sent as percentages of ten digits."""
    return abs(left - right) < 1e-7
