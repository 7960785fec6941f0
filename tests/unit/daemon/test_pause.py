"""An operator's pause: it ends by itself, in the journal and over a restart, and is not lengthened."""

from __future__ import annotations

import threading
from itertools import count
from pathlib import Path

import msgspec
import pytest

from tests.unit.daemon.test_loop import Lock, busy, kinds
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.records import Stance
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import Rebuilt, rebuild
from yarnctl.journal.replay import replay

TICK_MS = 1 << 20
"""The clock leaps over every wake-up: a loop never waits."""
FOR_MS = 200 * TICK_MS


class Life:
    """A daemon on a journal, which continues the pause of the one before. ``cluster``: 3 containers wait."""

    def __init__(self, path: Path, begin_ms: int = 1 << 50) -> None:
        self.cluster = busy()
        self.rebuilt: Rebuilt | None = rebuild(path)
        self.clock = count(begin_ms, TICK_MS)
        guard = WriteGuard(Lock(), self.cluster.permission.why_nothing, Misdirection())
        if self.rebuilt is not None:
            guard.paused = self.rebuilt.paused_from(begin_ms)
        settings = msgspec.structs.replace(DEFAULT, observe_only=False)
        remembered = None if self.rebuilt is None else self.rebuilt.remembered
        fold = None if self.rebuilt is None else self.rebuilt.fold
        self.path, self.journal = path, JournalFile(path, durable=False, segment_bytes=2_000, fold=fold)
        self.loop = Loop(
            Controller(settings, remembered=remembered),
            GuardedPort(self.cluster, guard, enforce=True),
            self.journal, Publisher(), clock_ms=lambda: next(self.clock),
        )  # fmt: skip

    def run(self, ticks: int) -> list[str]:
        """Run; return the states that were written to the journal, with those of the lives before."""
        self.loop.run(ticks)
        self.journal.close()
        replay(read(self.path, closed=True), str(self.path))
        return [one.record.stance for one in read(self.path, closed=True) if isinstance(one.record, Stance)]


def test_a_pause_ends_by_itself_and_the_journal_has_both_ends(tmp_path: Path) -> None:
    life = Life(tmp_path / "journal.jsonl")
    life.loop.pause("upgrade", 20 * TICK_MS)
    assert life.run(60) == ["paused", "enforcing"]
    assert life.cluster.jobs["production-1"].pending == 0


@pytest.mark.parametrize("for_ms", [FOR_MS, None])
def test_a_restart_continues_a_pause(tmp_path: Path, for_ms: int | None) -> None:
    path = tmp_path / "journal.jsonl"
    first = Life(path)
    first.loop.pause("upgrade", for_ms)
    first.run(3)
    second = Life(path, next(first.clock))
    assert second.loop.guard.paused == first.loop.guard.paused
    second.run(10)
    third = Life(path, next(second.clock) + FOR_MS)
    assert third.run(60)[-1] == ("paused" if for_ms is None else "enforcing")
    assert ("Suspend" in kinds(third.cluster)) is (for_ms is not None)


def test_resume_is_kept_over_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Life(path)
    first.loop.pause("upgrade", FOR_MS)
    first.loop.run(3)
    first.loop.go_on()
    assert first.run(6) == ["paused", "continued", "enforcing"]
    second = Life(path, next(first.clock))
    assert second.loop.guard.paused is None


class Contested:
    """A lock; ``seen`` is set once a thread waits for it, or has released it."""

    def __init__(self) -> None:
        self.seen = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.seen.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self.seen.set()


def test_pause_that_is_set_while_an_older_one_ends_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, lock = Life(tmp_path / "journal.jsonl").loop, Contested()
    loop.guard.paused = Paused("upgrade", 1)
    monkeypatch.setattr(loop.guard, "pausing", lock)
    service = threading.Thread(target=loop.pause, args=("repair",))

    def is_over(_: Paused, now_ms: int) -> bool:
        service.start()
        assert lock.seen.wait(60)
        return True

    monkeypatch.setattr(Paused, "is_over", is_over)
    loop.guard.end_pause(2)
    service.join(60)
    assert loop.guard.paused == Paused("repair")


def test_another_end_of_a_pause_is_written_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = Life(path)
    first.loop.pause("upgrade", FOR_MS)
    first.loop.run(2)
    first.loop.pause("upgrade", 2 * FOR_MS)
    assert first.run(4) == ["paused", "paused"]
    assert Life(path, next(first.clock)).loop.guard.paused == first.loop.guard.paused


def test_a_clock_that_is_set_back_does_not_lengthen_a_pause(tmp_path: Path) -> None:
    path, back_ms = tmp_path / "journal.jsonl", 1 << 40
    first = Life(path)
    first.loop.pause("upgrade", FOR_MS)
    first.run(3)
    second = Life(path, (1 << 50) - back_ms)
    before, after = first.loop.guard.paused, second.loop.guard.paused
    assert isinstance(before, Paused)
    assert isinstance(after, Paused)
    assert after.until_ms - ((1 << 50) - back_ms) < FOR_MS
    second.run(3)
    third = Life(path, next(second.clock) + FOR_MS)
    assert third.run(5)[-1] == "enforcing"
