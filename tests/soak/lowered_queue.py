"""A lowered queue under faults: a daemon is killed, its disk fills or its host is lost, at each point.

Law: every step of a hold is a point: before and after each write to the journal, each request to HDFS and
each change of the scheduler, and some ticks while the queue is held. At the instant of the fault the queue is
at its maximum, or ``yarnctl check`` names it with the command that mends it; after the next daemon has run it
is at its maximum, no record is left in HDFS, and every journal replays.
``python -m tests.soak.lowered_queue`` counts.
"""

from __future__ import annotations

import argparse
import errno
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple, Self

from tests.unit.daemon.test_loop import Attached, Lock, busy
from yarnctl.attach.check.preflight import Facts
from yarnctl.attach.check.rules import RULES
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, Outcome, SetQueueMaximum, Unknown
from yarnctl.deciding.queue_hold import Misdirection, QueueLimits
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import HoldEnded, HoldFound, Holding, Performed, Record
from yarnctl.deciding.settings import DEFAULT
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.lowered_queues import LoweredFile, command_for, read_all
from yarnctl.hadoop.webhdfs import FileStatus, WebHdfs
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import Rebuilt, rebuild, repair
from yarnctl.journal.replay import replay

AHEAD = count(1 << 50, 1 << 20)
"""A clock that leaps over every wake-up, in each life on from the one before: no loop ever waits."""
QUEUE, MAXIMUM, GUARANTEE = "root.research", 0.9, 0.05
FOLDER = "/yarnctl/lock"
LIVES = (30, 120)
"""Ticks of a life: it stops while the queue is held; the demand ends first, and the queue is back before."""
WATCHED = (1, 2, 3, 20, 40)
"""Ticks of a hold that are points."""
FaultKind = Literal["kill", "full-disk", "lost-host"]
KINDS: tuple[FaultKind, ...] = ("kill", "full-disk", "lost-host")
ANSWERS = ("accepted", "no-answer, made", "no-answer, not made")
"""What comes of the request that lowers the queue."""


class Died(BaseException):
    """kill -9."""


class Trap:
    """Counts points; at number ``at`` it calls ``strike`` once."""

    def __init__(self, at: int, strike: Callable[[], None]) -> None:
        self.at = at
        self.names: list[str] = []
        self._strike = strike

    def point(self, name: str) -> None:
        self.names.append(name)
        if len(self.names) == self.at:
            self._strike()


class Folder:
    """HDFS: files by path. Every request is two points, before and after its effect."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.trap = Trap(0, lambda: None)

    def create(self, path: str, data: bytes, *, mode: int = 0o600, overwrite: bool = False) -> None:
        self.trap.point("hdfs create sent")
        self.files[path] = data[: len(data) // 2]  # a writer that dies leaves a shorter file
        self.trap.point("hdfs create torn")
        self.files[path] = data
        self.trap.point("hdfs create done")

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        self.trap.point("hdfs rename sent")
        self.files[target] = self.files.pop(source)
        self.trap.point("hdfs rename done")

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.trap.point("hdfs delete sent")
        gone = self.files.pop(path, None)
        self.trap.point("hdfs delete done")
        return gone is not None

    def listing(self, path: str) -> tuple[FileStatus, ...]:
        names = sorted(name.removeprefix(path + "/") for name in self.files if name.startswith(path + "/"))
        return tuple(FileStatus("FILE", name) for name in names)

    def read(self, path: str, limit_bytes: int = 0) -> bytes:
        if path not in self.files:
            raise Missing(path)
        return self.files[path]

    @property
    def store(self) -> WebHdfs:
        return self  # type: ignore[return-value]


class Scheduler:
    """The ResourceManager's configuration of the queue; ``first`` is the answer to the first change."""

    def __init__(self, hdfs: Folder, first: str = "accepted") -> None:
        self.maximum_ratio = MAXIMUM
        self.hdfs = hdfs
        self.first = first
        self.trap = Trap(0, lambda: None)

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        return f"root.{queue}", QueueLimits(GUARANTEE, self.maximum_ratio)

    def stands(self, path: str) -> float | str | None:
        assert path == QUEUE
        return self.maximum_ratio

    def perform(self, action: SetQueueMaximum) -> Outcome:
        answer, self.first = self.first, "accepted"
        self.trap.point("change sent")
        if answer != "no-answer, not made":
            self.maximum_ratio = action.ratio
        assert self.maximum_ratio == MAXIMUM or self.is_recorded, "lowered, and no record in HDFS says so"
        self.trap.point("change made")
        return Accepted() if answer == "accepted" else Unknown(ClientFault("no answer"))

    @property
    def is_recorded(self) -> bool:
        """Whether a record in HDFS names the queue and its maximum."""
        records = [record for record in read_all(self.hdfs.store, FOLDER).values() if record is not None]
        return any((one.queue, one.before_ratio) == (QUEUE, MAXIMUM) for r in records for one in r.queues)

    def named_by_check(self) -> str:
        """Return the fix that ``yarnctl check`` names, "" if it finds nothing."""
        keys = {f"yarn.scheduler.capacity.{QUEUE}.maximum-capacity": f"{self.maximum_ratio * 100:g}"}
        facts = Facts(scheduler=keys, lowered=read_all(self.hdfs.store, FOLDER), lock_path=FOLDER)
        word = RULES["lowered"](facts)
        return word.fix if word.severity in ("warn", "fail") else ""


class WatchedJournal:
    """A journal on disk with a point before and after each record of a hold; ``full``: nothing fits on it."""

    def __init__(self, file: JournalFile, trap: Trap) -> None:
        self.file, self.trap = file, trap
        self.full = False

    def append(self, records: Sequence[Record]) -> None:
        of_a_hold = any(is_of_a_hold(record) for record in records)
        if of_a_hold:
            self.trap.point("journal before")
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.file.append(records)
        if of_a_hold:
            self.trap.point("journal after")


def is_of_a_hold(record: Record) -> bool:
    if isinstance(record, Performed):
        return record.action == "set-queue-maximum"
    return isinstance(record, Holding | HoldFound | HoldEnded)


class Case(NamedTuple):
    """One fault: in how long a life, at which point (from 1), what, how the first change is answered."""

    ticks: int
    at: int
    kind: FaultKind
    answer: str


class Ended(NamedTuple):
    """How a case ended. ``point``: where it was struck ("": the life had fewer points)."""

    point: str
    lowered_at_fault: bool
    fix_at_fault: str
    maximum_ratio: float
    records_left: int


def play(case: Case, folder: Path) -> Ended:
    """Live one life with a fault, and the next without; raises Different if a journal does not replay."""
    hdfs, cluster = Folder(), busy()
    scheduler = Scheduler(hdfs, case.answer)
    here = folder / "here"
    struck = _first_life(case, cluster, here, hdfs, scheduler)
    hdfs.trap = scheduler.trap = Trap(0, lambda: None)
    state = folder / "elsewhere" if case.kind == "lost-host" else here
    state.mkdir(exist_ok=True)
    with JournalOf(state) as journal:
        holder = _holder(scheduler, hdfs, "two", journal.rebuilt)
        _loop(cluster, journal, holder, journal.rebuilt).run(max(LIVES))
    for journal_path in (here / "journal.jsonl", state / "journal.jsonl"):
        repair(journal_path)
        if journal_path.stat().st_size:
            replay(read(journal_path), str(journal_path), closed=False)
    return Ended(*struck, scheduler.maximum_ratio, len(hdfs.files))


class JournalOf:
    """The journal in a state directory, mended and read first; closed as by a daemon that ends in order."""

    def __init__(self, state: Path) -> None:
        path = state / "journal.jsonl"
        repair(path)
        self.rebuilt = rebuild(path)
        self.file = JournalFile(path, durable=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _first_life(
    case: Case, cluster: Attached, state: Path, hdfs: Folder, scheduler: Scheduler
) -> tuple[str, bool, str]:
    """Live until the fault, or to the end with a full disk; return where it struck and how things stood."""
    state.mkdir(parents=True)
    struck: list[tuple[str, bool, str]] = []

    def strike() -> None:
        struck.append((trap.names[-1], scheduler.maximum_ratio != MAXIMUM, scheduler.named_by_check()))
        if case.kind != "full-disk":
            raise Died
        journal.full = True

    trap = Trap(case.at, strike)
    file = JournalFile(state / "journal.jsonl", durable=False)
    journal = WatchedJournal(file, trap)
    hdfs.trap = scheduler.trap = trap
    holder = _holder(scheduler, hdfs, "one", None)
    loop = _loop(cluster, journal, holder, None)
    _watch(loop, holder, trap)
    if case.kind != "full-disk":
        loop._end = lambda: None  # type: ignore[method-assign]  # who is killed ends nothing
    try:
        loop.run(case.ticks)
        loop._undo()
    except Died:
        pass
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    file.file.close()
    return struck[0] if struck else ("", False, "")


def _watch(loop: Loop, holder: QueueCaps, trap: Trap) -> None:
    """Make each tick while the queue is held a point, too."""
    once, ticks = loop._once, count(1)

    def watched() -> int:
        if holder.capped and next(ticks) in WATCHED:
            trap.point("held")
        return once()

    loop._once = watched  # type: ignore[method-assign]


def _loop(
    cluster: Attached, journal: WatchedJournal | JournalOf, holder: QueueCaps, rebuilt: Rebuilt | None
) -> Loop:
    gate = WriteGuard(Lock(), cluster.permission.why_nothing, Misdirection())
    going_on = rebuilt.remembered.ledger.open if rebuilt else ()
    return Loop(
        Controller(DEFAULT, validate=True, remembered=rebuilt and rebuilt.remembered),
        GuardedPort(cluster, gate, enforce=True, open_orders=going_on),
        journal.file if isinstance(journal, JournalOf) else journal, Publisher(),
        clock_ms=lambda: next(AHEAD), queue_caps=holder, epoch=rebuilt.epoch if rebuilt else "",
    )  # fmt: skip


def _holder(scheduler: Scheduler, hdfs: Folder, name: str, rebuilt: Rebuilt | None) -> QueueCaps:
    keeper = LoweredFile(hdfs.store, FOLDER, name)
    held = None if rebuilt is None else rebuilt.held
    return QueueCaps(
        scheduler.limits, scheduler.perform, ("research",), held, maximum_of=scheduler.stands, cap_file=keeper
    )


# --- all of them ------------------------------------------------------------------------------


def points(ticks: int) -> tuple[str, ...]:
    """Return the points of a life without a fault, in order."""
    with tempfile.TemporaryDirectory() as folder:
        hdfs, trap = Folder(), Trap(0, lambda: None)
        scheduler = Scheduler(hdfs)
        hdfs.trap = scheduler.trap = trap
        file = JournalFile(Path(folder) / "journal.jsonl", durable=False)
        holder = _holder(scheduler, hdfs, "one", None)
        loop = _loop(busy(), WatchedJournal(file, trap), holder, None)
        _watch(loop, holder, trap)
        loop.run(ticks)
        file.close()
        return tuple(trap.names)


def cases() -> Iterator[Case]:
    """Return every case: each life, each of its points, each fault, each answer."""
    for ticks in LIVES:
        for at in range(1, len(points(ticks)) + 1):
            for kind in KINDS:
                for answer in ANSWERS:
                    yield Case(ticks, at, kind, answer)


def problem(ended: Ended) -> str:
    """Return what is wrong with how a case ended, "" if nothing is."""
    if ended.maximum_ratio != MAXIMUM:
        return f"the queue ends at {ended.maximum_ratio:g}"
    if ended.records_left:
        return f"{ended.records_left} files are left in HDFS"
    if ended.lowered_at_fault and command_for(QUEUE, MAXIMUM) not in ended.fix_at_fault:
        return f"the queue is lowered, and check says {ended.fix_at_fault or 'nothing'}"
    return ""


def summary() -> dict[str, object]:
    """Play all cases; return what came of them."""
    kinds: Counter[str] = Counter()
    named = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases()):
            ended = play(case, Path(folder) / str(number))
            kinds[case.kind.replace("-", "_")] += 1
            named += ended.lowered_at_fault
            if story := problem(ended):
                wrong += 1
                print(f"{case}: {story}", file=sys.stderr)
    played = sum(kinds.values())
    where = sum(len(points(ticks)) for ticks in LIVES)
    return {"points": where, "cases": played, **kinds, "lowered_at_fault": named, "wrong": wrong}


def main() -> int:
    """Print the summary as JSON; exit status 1 if anything is wrong."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    logging.disable(logging.CRITICAL)
    told = summary()
    print(json.dumps(told))
    return 1 if told["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
