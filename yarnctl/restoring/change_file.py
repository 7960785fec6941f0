"""Records in HDFS of lowered settings, beside the lock: the next daemon of any host restores by them.

* A record is one file; it has all changes of one decision, and is complete before the first is made.
* Its name has the term of the lock and the process that restores it. A process takes a record over by one
  atomic rename to its own name; a process whose file is gone leaves the value alone.
* A file is removed when the end of each change in it was observed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.deciding.model import Change
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.lock import KIND
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs
from yarnctl.hadoop.zookeeper_lock import KIND as ZOOKEEPER

RECORD_BYTES = 1 << 20
FILE_MODE, FOLDER_MODE = 0o644, 0o755
_NAME = re.compile(r"changes-([0-9]{12,19})-([0-9A-Za-z\-]{1,100})-([0-9]{6})\.json")


class ChangeRecord(msgspec.Struct, frozen=True):
    """The content of a file. ``lock``: the kind of the lock whose terms its name counts."""

    changes: tuple[Change, ...]
    lock: str = KIND


class StoredRecord(NamedTuple):
    """A file; ``record`` None: its content is not a valid record."""

    name: str
    term: int
    holder: str
    number: int
    record: ChangeRecord | None


class ChangeFiles:
    """The records in ``folder`` as seen by ``holder``, whose lock has ``term``. Raises as the store does."""

    def __init__(
        self,
        hdfs: WebHdfs,
        folder: str,
        holder: str,
        term: Callable[[], int] = lambda: 0,
        lock_kind: str = KIND,
    ) -> None:
        self._hdfs = hdfs
        self._lock_kind = lock_kind
        self._folder = folder
        self.holder = holder
        self.term = term
        self._number = 0
        self._own: set[str] = set()
        self._invalid: set[str] = set()

    def create(self, changes: Sequence[Change]) -> str:
        """Write a new record, complete when this returns, and return its name."""
        name = self._new_name()
        self._hdfs.make_directories(self._folder, FOLDER_MODE)
        self.replace(name, changes)
        return name

    def leave(self, changes: Sequence[Change]) -> None:
        """Write a record for the leader, which this process is not: it takes the record over."""
        self._own.discard(self.create(changes))

    def replace(self, name: str, changes: Sequence[Change]) -> None:
        """Write the content of a record of this process anew."""
        beside = f"{self._folder}/.{name}.tmp"
        data = msgspec.json.encode(ChangeRecord(tuple(changes), self._lock_kind))
        self._hdfs.create(beside, data, mode=FILE_MODE, overwrite=True)
        self._hdfs.rename(beside, self.path(name), overwrite=True)

    def take_over(self, name: str) -> str | None:
        """Make the record of another process this one's; return its new name, None if it is gone."""
        new = self._new_name()
        try:
            self._hdfs.rename(self.path(name), self.path(new))
        except Missing:
            return None
        return new

    def exists(self, name: str) -> bool:
        """Return whether the record is still this process's: it has not been taken over."""
        return self._hdfs.find(self.path(name)) is not None

    def remove(self, name: str) -> None:
        """Remove a record, if it still exists."""
        self._hdfs.delete(self.path(name))

    def has_others(self) -> bool:
        """Return whether another process has left a record since the last call of ``others``."""
        known = self._own | self._invalid
        return any(
            _NAME.fullmatch(row.name) and row.name not in known for row in _listed(self._hdfs, self._folder)
        )

    def others(self) -> tuple[StoredRecord, ...]:
        """Return the records of other processes, older terms first; remove half ones (lock's holder only)."""
        for row in _listed(self._hdfs, self._folder):
            if row.name.startswith(".changes-"):
                self._hdfs.delete(self.path(row.name))
        stored = stored_records(self._hdfs, self._folder, (self._lock_kind,))
        found = [one for one in stored if one.name not in self._own]
        self._invalid = {one.name for one in found if one.record is None}
        numbers = [one.number for one in found if one.holder == self.holder]  # of an earlier process
        self._number = max([self._number, *numbers])
        return tuple(found)

    def path(self, name: str) -> str:
        """Return the path of a record."""
        return f"{self._folder}/{name}"

    def _new_name(self) -> str:
        self._number += 1
        name = f"changes-{self.term():012d}-{self.holder}-{self._number:06d}.json"
        self._own.add(name)
        return name


def stored_records(
    hdfs: WebHdfs, folder: str, lock_kinds: Collection[str] = (KIND, ZOOKEEPER)
) -> tuple[StoredRecord, ...]:
    """Return every record in ``folder``, older terms first. Raises as the store does.

    One under another kind of lock than ``lock_kinds`` has no valid content: terms of two cannot be compared.
    """
    found = []
    for row in _listed(hdfs, folder):
        match = _NAME.fullmatch(row.name)
        if match is None:
            continue
        try:
            record = msgspec.json.decode(hdfs.read(f"{folder}/{row.name}", RECORD_BYTES), type=ChangeRecord)
            if record.lock not in lock_kinds:
                raise ValueError(f"a record under a lock of kind {record.lock!r}")
            for change in record.changes:
                _require_values(change)
        except Missing:  # removed since the listing
            continue
        except (msgspec.MsgspecError, ValueError):
            record = None
        found.append(StoredRecord(row.name, int(match[1]), match[2], int(match[3]), record))
    return tuple(sorted(found, key=lambda one: (one.term, one.name)))


def _require_values(change: Change) -> None:
    """Raise ValueError unless the values are of their kind; bounds are parsed when they are read."""
    match change.kind:
        case "queue":
            if not 0 <= float(change.now) < float(change.before) <= 1:
                raise ValueError(f"{change.now} to {change.before} is not a lowered maximum")
        case "priority":
            int(change.before)
            int(change.now)
        case "preemption":
            if (change.before, change.now) not in (("", "true"), ("false", "true")):
                raise ValueError(f"{change.before!r} to {change.now!r} switches no preemption off")
        case "executors":
            if int(change.before) < 1 or not change.now.split():
                raise ValueError(f"{change.before} executors, decisions {change.now!r}")


def _listed(hdfs: WebHdfs, folder: str) -> tuple[FileStatus, ...]:
    try:
        return hdfs.listing(folder)
    except Missing:
        return ()


def command_for(change: Change) -> str:
    """Return the command that restores a setting without yarnctl, "" if there is none."""
    if change.kind == "queue":
        percent = float(change.before) * 100
        return f"yarn schedulerconf -update {change.target}:maximum-capacity={percent:.10g}"
    if change.kind == "preemption":  # no value: the key is taken away
        return f"yarn schedulerconf -update {change.target}:disable_preemption={change.before}"
    if change.kind == "priority":  # in two steps: see ApplicationPriority
        steps = (neighbour(change), int(change.before))
        return " && ".join(
            f"yarn application -appId {change.target} -updatePriority {step}" for step in steps
        )
    return ""


def neighbour(change: Change) -> int:
    """Return the priority beside that before a change, towards that after it."""
    before, now = int(change.before), int(change.now)
    return before + (now > before) - (now < before)


def described(change: Change) -> str:
    """Return a change in words, without its end: ``the maximum of root.x from 90 % to 20 %``."""
    match change.kind:
        case "queue":
            before, now = (float(text) * 100 for text in (change.before, change.now))
            return f"the maximum of {change.target} from {before:g} % to {now:g} %"
        case "priority":
            return f"the priority of {change.target} from {change.before} to {change.now}"
        case "preemption":
            return f"disable_preemption of {change.target} from {change.before or 'absent'} to {change.now}"
        case "bounds":
            return f"the bounds of the Flink job of {change.target}"
        case "executors":
            return f"the executors of {change.target}, of which it had {change.before}"
