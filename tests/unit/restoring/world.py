"""HDFS and settings in memory, and a restorer that works on them."""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.deciding.model import Accepted, Action, Change, ChangeKind, Outcome, Refused, Restore, Withheld
from yarnctl.deciding.records import Record
from yarnctl.errors import Unreachable
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.webhdfs import FileStatus
from yarnctl.restoring.change_file import ChangeFiles
from yarnctl.restoring.restorer import Reading, Restorer, same_value

FOLDER = "/yarnctl/lock"
KINDS: tuple[ChangeKind, ...] = ("queue", "priority", "bounds", "executors", "preemption")
CHANGES: dict[ChangeKind, Change] = {
    "queue": Change("queue", "root.research", "0.9", "0.05"),
    "priority": Change("priority", "application_1_0001", "0", "7"),
    "bounds": Change("bounds", "application_1_0002", '{"upper":6}', '{"upper":2}'),
    "executors": Change("executors", "application_1_0003", "4", "y1-d1"),
    "preemption": Change("preemption", "root.lab", "", "true"),
}


class Trap:
    """Counts points; at number ``at`` it calls ``strike`` once."""

    def __init__(self, at: int = 0, strike: Callable[[], None] = lambda: None) -> None:
        self.at = at
        self.names: list[str] = []
        self._strike = strike

    def point(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self.at:
            self._strike()


class Folder:
    """HDFS: files by path. Every change is two points, before and after its effect; ``away``: no answer."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.trap = Trap()
        self.away = False
        self.listings = 0

    def _ask(self) -> None:
        if self.away:
            raise Unreachable("http://nn: no answer")

    def make_directories(self, path: str, mode: int = 0o700) -> None:
        self._ask()

    def create(self, path: str, data: bytes, *, mode: int = 0o600, overwrite: bool = False) -> None:
        self._ask()
        self.trap.point("hdfs create sent")
        self.files[path] = data[: len(data) // 2]  # a writer that dies leaves a shorter file
        self.trap.point("hdfs create torn")
        self.files[path] = data
        self.trap.point("hdfs create done")

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        self._ask()
        self.trap.point("hdfs rename sent")
        if source not in self.files:
            raise Missing(source)
        self.files[target] = self.files.pop(source)
        self.trap.point("hdfs rename done")

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self._ask()
        self.trap.point("hdfs delete sent")
        gone = self.files.pop(path, None)
        self.trap.point("hdfs delete done")
        return gone is not None

    def listing(self, path: str) -> tuple[FileStatus, ...]:
        self._ask()
        self.listings += 1
        names = sorted(name.removeprefix(path + "/") for name in self.files if name.startswith(path + "/"))
        return tuple(FileStatus("FILE", name) for name in names)

    def find(self, path: str) -> FileStatus | None:
        self._ask()
        return FileStatus("FILE", path.rpartition("/")[2]) if path in self.files else None

    def read(self, path: str, limit_bytes: int = 0) -> bytes:
        self._ask()
        if path not in self.files:
            raise Missing(path)
        return self.files[path]


class Values:
    """Settings by target (None: it is gone); ``answers`` come instead of Accepted, one after the other.

    A request whose answer is Refused or Withheld has no effect. ``late``: so many readings get no answer yet.
    """

    def __init__(self, hdfs: Folder) -> None:
        self.hdfs = hdfs
        self.values: dict[str, str | None] = {}
        self.answers: list[Outcome] = []
        self.requests: list[tuple[str, str]] = []
        self.unread = ""
        self.late = 0
        self.numbered: set[str] = {CHANGES["executors"].target}
        self.ordered_back: set[str] = set()
        self._number = 0

    def read(self, change: Change) -> Reading:
        if self.late:
            self.late -= 1
            return Reading("late", "no answer yet")
        if self.unread:
            return Reading("unread", self.unread)
        if self.late:
            self.late -= 1
            return Reading("late", "no answer yet")
        found = self.values[change.target]
        if found is None:
            return Reading("gone")
        if change.kind == "executors" and change.target not in self.ordered_back:
            return Reading("now", found)  # they may be leaving still
        if same_value(change.kind, found, change.before):
            return Reading("before", found)
        is_now = change.kind == "executors" or same_value(change.kind, found, change.now)
        return Reading("now" if is_now else "other", found)

    def write(self, change: Change) -> Outcome:
        outcome = self.set(change.target, change.before)
        if isinstance(outcome, Accepted):
            self.ordered_back.add(change.target)
        return outcome

    def set(self, target: str, value: str) -> Outcome:
        """Set a value as the cluster would; a driver obeys no order whose number is not above the last."""
        number = self._number + 1
        self.hdfs.trap.point("change sent")
        self.requests.append((target, value))
        if target in self.numbered and number <= self._number:
            return Accepted()
        self._number = number
        self.ordered_back.discard(target)
        outcome = self.answers.pop(0) if self.answers else Accepted()
        if not isinstance(outcome, Refused | Withheld):
            self.values[target] = value
        self.hdfs.trap.point("change made")
        return outcome

    def perform(self, action: Action) -> Outcome:
        """Perform a Restore."""
        assert isinstance(action, Restore)
        return self.write(action.change)


class Host:
    """A process with a restorer: its clock, its records, and whether it leads."""

    def __init__(self, hdfs: Folder, values: Values, holder: str, term: int = 1) -> None:
        self.now_ms = 1_000_000
        self.leads = True
        self.records: list[Record] = []
        files = ChangeFiles(hdfs, FOLDER, holder, lambda: term)  # type: ignore[arg-type]
        self.restorer = Restorer(files, dict.fromkeys(KINDS, values), values.perform, lambda: self.now_ms)
        self.restorer.write = self.records.append
        self.restorer.leads = lambda: self.leads

    def pass_ms(self, span_ms: int, every_ms: int = 250) -> None:
        """Let a span pass, with a tick each quarter of a second."""
        for _ in range(span_ms // every_ms):
            self.now_ms += every_ms
            self.restorer.reconcile()


def lowered_value(change: Change) -> str:
    """Return the value that a setting reads while the change is made."""
    return "2" if change.kind == "executors" else change.now
