"""A lowered queue under faults: a daemon is killed, its disk fills or its host is lost, at each point.

Law: every step of a cap is a point: before and after each write to the journal, each request to HDFS and
each change of the scheduler, and some ticks while the queue is capped. At the instant of the fault the queue
is at its maximum, or ``yarnctl check`` names it with the command that restores it; after the next daemon has
run it is at its maximum, no record is left in HDFS, and every journal replays.
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
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Literal, NamedTuple, Self

from tests.unit.daemon.test_loop import Attached, Lock, busy
from tests.unit.daemon.test_queue_caps import RESEARCH, Queues
from tests.unit.restoring.world import FOLDER, Host, Trap
from yarnctl.attach.check.preflight import Facts
from yarnctl.attach.check.rules import RULES
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Outcome, SetQueueMaximum, Unknown
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Lowering, Performed, Record, Restored, Restoring
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import Rebuilt, rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.restoring.change_file import stored_records

AHEAD = count(1 << 50, 1 << 20)
"""A clock that leaps over every wake-up, in each life on from the one before: no loop ever waits."""
MAXIMUM = 0.9
FIX = f"yarn schedulerconf -update {RESEARCH}:maximum-capacity=90"
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


class Cluster(Queues):
    """A scheduler and HDFS; ``first`` is the answer to the first change."""

    def __init__(self, first: str = "accepted") -> None:
        super().__init__(MAXIMUM)
        self.first = first

    def perform(self, action: SetQueueMaximum) -> Outcome:
        answer, self.first = self.first, "accepted"
        if answer == "no-answer, not made":
            self.hdfs.trap.point("change sent")
            self.hdfs.trap.point("change made")
            return Unknown(ClientFault("no answer"))
        outcome = super().perform(action)
        return outcome if answer == "accepted" else Unknown(ClientFault("no answer"))

    def process(self, name: str, term: int) -> None:
        """Another process works on this cluster from now on."""
        self.host = Host(self.hdfs, self.values, name, term)
        self.host.restorer.lost()
        self.caps = QueueCaps(self.limits, self.perform, self.names, self.host.restorer)

    def named_by_check(self) -> str:
        """Return the fix that ``yarnctl check`` names, "" if it finds nothing."""
        keys = {f"yarn.scheduler.capacity.{RESEARCH}.maximum-capacity": f"{self.maximum_ratio() * 100:g}"}
        stored = stored_records(self.hdfs, FOLDER)  # type: ignore[arg-type]
        word = RULES["lowered"](Facts(scheduler=keys, lowered=stored, lock_path=FOLDER))
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
        return record.action in ("set-queue-maximum", "restore")
    return isinstance(record, Lowering | Restoring | Restored)


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
    tiny, cluster = busy(), Cluster(case.answer)
    here = folder / "here"
    struck = _first_life(case, tiny, here, cluster)
    cluster.hdfs.trap = Trap()
    cluster.process("two", 2)
    state = folder / "elsewhere" if case.kind == "lost-host" else here
    state.mkdir(exist_ok=True)
    with JournalOf(state) as journal:
        _loop(tiny, journal, cluster, journal.rebuilt).run(max(LIVES))
    for journal_path in (here / "journal.jsonl", state / "journal.jsonl"):
        repair(journal_path)
        if journal_path.stat().st_size:
            replay(read(journal_path), str(journal_path), closed=False)
    return Ended(*struck, cluster.maximum_ratio(), len(cluster.hdfs.files))


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


def _first_life(case: Case, tiny: Attached, state: Path, cluster: Cluster) -> tuple[str, bool, str]:
    """Live until the fault, or to the end with a full disk; return where it struck and how things stood."""
    state.mkdir(parents=True)
    struck: list[tuple[str, bool, str]] = []

    def strike() -> None:
        struck.append((trap.names[-1], cluster.maximum_ratio() != MAXIMUM, cluster.named_by_check()))
        if case.kind != "full-disk":
            raise Died
        journal.full = True

    trap = Trap(case.at, strike)
    file = JournalFile(state / "journal.jsonl", durable=False)
    journal = WatchedJournal(file, trap)
    cluster.hdfs.trap = trap
    loop = _loop(tiny, journal, cluster, None)
    _watch(loop, cluster, trap)
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


def _watch(loop: Loop, cluster: Cluster, trap: Trap) -> None:
    """Make each tick while the queue is held a point, too."""
    once, ticks = loop._once, count(1)

    def watched() -> int:
        if cluster.host.restorer.open and next(ticks) in WATCHED:
            trap.point("held")
        return once()

    loop._once = watched  # type: ignore[method-assign]


def _loop(
    tiny: Attached, journal: WatchedJournal | JournalOf, cluster: Cluster, rebuilt: Rebuilt | None
) -> Loop:
    gate = WriteGuard(Lock(), tiny.permission.why_nothing, Misdirection())
    going_on = rebuilt.remembered.ledger.open if rebuilt else ()
    restorer = cluster.host.restorer
    restorer._clock = lambda: tiny.now_ms
    return Loop(
        Controller(DEFAULT, validate=True, remembered=rebuilt and rebuilt.remembered),
        GuardedPort(tiny, gate, enforce=True, open_orders=going_on),
        journal.file if isinstance(journal, JournalOf) else journal, Publisher(),
        clock_ms=lambda: next(AHEAD), queue_caps=cluster.caps, restorer=restorer,
        epoch=rebuilt.epoch if rebuilt else "",
    )  # fmt: skip


# --- all of them ------------------------------------------------------------------------------


@cache
def points(ticks: int, answer: str = ANSWERS[0]) -> tuple[str, ...]:
    """Return the points of a life without a fault, in order."""
    with tempfile.TemporaryDirectory() as folder:
        cluster, trap = Cluster(answer), Trap()
        cluster.hdfs.trap = trap
        file = JournalFile(Path(folder) / "journal.jsonl", durable=False)
        loop = _loop(busy(), WatchedJournal(file, trap), cluster, None)
        _watch(loop, cluster, trap)
        loop.run(ticks)
        file.close()
        return tuple(trap.names)


def cases() -> Iterator[Case]:
    """Return every case: each life, each of its points, each fault, each answer."""
    for ticks in LIVES:
        for answer in ANSWERS:
            for at in range(1, len(points(ticks, answer)) + 1):
                for kind in KINDS:
                    yield Case(ticks, at, kind, answer)


def problem(ended: Ended) -> str:
    """Return what is wrong with how a case ended, "" if nothing is."""
    if ended.maximum_ratio != MAXIMUM:
        return f"the queue ends at {ended.maximum_ratio:g}"
    if ended.records_left:
        return f"{ended.records_left} files are left in HDFS"
    if ended.lowered_at_fault and FIX not in ended.fix_at_fault:
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
    where = sum(len(points(ticks, answer)) for ticks in LIVES for answer in ANSWERS)
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
