"""A lowered queue comes back: whatever fails, at whatever point, and whoever does it."""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.soak.lowered_queue import (
    ANSWERS,
    FOLDER,
    GUARANTEE,
    KINDS,
    LIVES,
    MAXIMUM,
    QUEUE,
    Folder,
    Scheduler,
    cases,
    play,
    points,
    problem,
)
from tests.unit.daemon.test_loop import Lock, busy, daemon, kinds
from yarnctl.daemon.queue_caps import RETRY_MS, CapRecords, QueueCaps
from yarnctl.deciding.model import Accepted, Outcome, SetQueueMaximum, Suspend, Unknown, Withdraw
from yarnctl.deciding.queue_hold import CAP_AFTER_MS, HeldQueues, QueueLimits
from yarnctl.deciding.reasons.modes import LockHeldElsewhere
from yarnctl.deciding.records import HoldEnded, HoldFound, Holding, Performed, Record
from yarnctl.errors import Unreachable
from yarnctl.hadoop.lowered_queues import LoweredFile, LoweredQueue, command_for, read_all
from yarnctl.journal.chain import MemoryJournal

FIX = "yarn schedulerconf -update root.research:maximum-capacity=90"


@pytest.mark.parametrize(
    "ticks", [LIVES[0], *(pytest.param(each, marks=pytest.mark.thorough) for each in LIVES[1:])]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_point_leaves_nothing_lowered(tmp_path: Path, kind: str, ticks: int) -> None:
    played = [case for case in cases() if (case.kind, case.ticks) == (kind, ticks)]
    assert len(played) == len(points(ticks)) * len(ANSWERS)
    lowered = 0
    for number, case in enumerate(played):
        ended = play(case, tmp_path / str(number))
        assert ended.point, f"{case} was not struck"
        assert problem(ended) == "", case
        lowered += ended.lowered_at_fault
    assert lowered > 0, "no fault struck while the queue was lowered"


def test_the_points_are_those_of_a_whole_hold() -> None:
    assert {
        "hdfs create sent", "hdfs create torn", "hdfs rename sent", "hdfs rename done", "journal before",
        "journal after", "change sent", "change made", "held", "hdfs delete sent", "hdfs delete done",
    } <= set(points(LIVES[0]))  # fmt: skip


def test_a_queue_lowered_without_a_record_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CapRecords, "write", lambda *_: True)
    with pytest.raises(AssertionError, match="no record in HDFS"):
        play(next(cases()), tmp_path)


# --- a disk that is full ----------------------------------------------------------------------


class Filling(MemoryJournal):
    """A journal on a disk that is full from some point on."""

    full = False

    def append(self, records: Sequence[Record]) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(records)


def test_with_a_full_disk_open_orders_are_withdrawn_and_the_error_is_told() -> None:
    cluster = busy()
    cluster.drain_ms = 1 << 40
    loop, _ = daemon(cluster, lock=Lock())
    journal = loop.recorder.journal = Filling()
    while kinds(cluster).count("Suspend") != 3:
        loop._once()
    journal.full = True
    cluster.submit("production-2", "production", 0, 3)
    with pytest.raises(OSError, match="No space left"):
        loop.run(loop.ticks + 20_000)
    asked = {action.order for action in cluster.actions if isinstance(action, Suspend)}
    withdrawn = {action.order for action in cluster.actions if isinstance(action, Withdraw)}
    assert len(asked) == 3
    assert asked <= withdrawn
    assert loop.publisher.view.loop.state == "stopped"


def test_an_end_with_a_full_disk_puts_back_and_does_not_pass_for_a_good_one() -> None:
    hdfs = Folder()
    scheduler = Scheduler(hdfs)
    loop, _ = daemon(busy(), lock=Lock())
    loop._queue_caps = holder_of(scheduler, hdfs)
    journal = loop.recorder.journal = Filling()
    while scheduler.maximum_ratio == MAXIMUM:
        loop._once()
    journal.full = True
    loop.stop()
    with pytest.raises(OSError, match="No space left"):
        loop.run()
    assert (scheduler.maximum_ratio, hdfs.files) == (MAXIMUM, {})


# --- records of others ------------------------------------------------------------------------


def holder_of(scheduler: Scheduler, hdfs: Folder, *, enabled: bool = True) -> QueueCaps:
    keeper = LoweredFile(hdfs.store, FOLDER, "one")
    limits, stands = scheduler.limits, scheduler.stands
    return QueueCaps(
        limits, scheduler.perform, ("research",), maximum_of=stands, cap_file=keeper, enabled=enabled
    )


def left_behind(before_ratio: float = MAXIMUM) -> tuple[Folder, Scheduler]:
    """Another daemon has lowered the queue, and is gone."""
    hdfs = Folder()
    LoweredFile(hdfs.store, FOLDER, "gone").write([LoweredQueue(QUEUE, before_ratio, GUARANTEE)])
    scheduler = Scheduler(hdfs)
    scheduler.maximum_ratio = GUARANTEE
    return hdfs, scheduler


def kinds_of(records: list[Record]) -> list[str]:
    return [type(record).__name__ for record in records]


def test_what_a_lost_host_left_is_put_back_only_by_who_may_act() -> None:
    hdfs, scheduler = left_behind()
    holder, told = holder_of(scheduler, hdfs, enabled=False), list[Record]()
    holder.reconcile(told.append, 0, 0, False, LockHeldElsewhere())
    assert (scheduler.maximum_ratio, told) == (GUARANTEE, [])
    holder.reconcile(told.append, 250, 0, False, None)
    assert kinds_of(told) == ["HoldFound", "Holding", "Performed"]
    assert (scheduler.maximum_ratio, hdfs.files, holder.capped) == (MAXIMUM, {}, {})
    believed(told)


def believed(told: list[Record]) -> None:
    """Every record can come after those before it, and at the end nothing is held."""
    maxima = HeldQueues()
    for record in told:
        if isinstance(record, Holding | HoldFound | HoldEnded) or (
            isinstance(record, Performed) and record.queue
        ):
            assert maxima.problem(record) == ""
        maxima.apply(record)
    assert maxima.held == {}


@pytest.mark.parametrize("now", [0.5, None], ids=["changed by an administrator", "removed"])
def test_a_maximum_that_is_not_as_it_was_set_is_left_alone(now: float | None) -> None:
    hdfs, scheduler = left_behind()
    scheduler.maximum_ratio = now  # type: ignore[assignment]
    holder, told = holder_of(scheduler, hdfs), list[Record]()
    holder.reconcile(told.append, 0, 0, False, None)
    assert kinds_of(told) == ["HoldFound", "HoldEnded"]
    assert (scheduler.maximum_ratio, hdfs.files) == (now, {})
    believed(told)


def test_the_record_in_hdfs_names_every_lowered_queue() -> None:
    """After the loss of a host, the next daemon restores what the record names, and nothing else."""
    hdfs, told = Folder(), list[Record]()
    keeper = LoweredFile(hdfs.store, FOLDER, "one")
    holder = QueueCaps(
        lambda queue: (f"root.{queue}", QueueLimits(GUARANTEE, MAXIMUM)), lambda action: Accepted(),
        ("research", "batch"), maximum_of=lambda path: GUARANTEE, cap_file=keeper, enabled=True,
    )  # fmt: skip
    holder.reconcile(told.append, 0, 1, True, None)
    (record,) = read_all(hdfs.store, FOLDER).values()
    assert record is not None
    assert {one.queue for one in record.queues} == {"root.research", "root.batch"}


def test_of_two_records_of_one_queue_the_larger_maximum_counts() -> None:
    hdfs, scheduler = left_behind(0.4)
    LoweredFile(hdfs.store, FOLDER, "also-gone").write([LoweredQueue(QUEUE, MAXIMUM, GUARANTEE)])
    told = list[Record]()
    holder_of(scheduler, hdfs).reconcile(told.append, 0, 0, False, None)
    assert (scheduler.maximum_ratio, hdfs.files) == (MAXIMUM, {})


def test_a_record_that_cannot_be_read_stays_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    hdfs, scheduler = left_behind()
    (name,) = hdfs.files
    hdfs.files[name] = b'{"holder":"gone","queu'
    holder, told = holder_of(scheduler, hdfs), list[Record]()
    for at_ms in range(0, 20_000, 250):
        holder.reconcile(told.append, at_ms, 0, False, None)
    assert (told, list(hdfs.files)) == ([], [name])
    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 1
    assert scheduler.named_by_check().endswith(f"hdfs dfs -rm {name}")


def test_what_another_lowered_while_we_had_not_the_lock_is_seen_when_we_have_it_again() -> None:
    hdfs = Folder()
    scheduler = Scheduler(hdfs)
    holder, told = holder_of(scheduler, hdfs), list[Record]()
    holder.reconcile(told.append, 0, 0, False, None)
    LoweredFile(hdfs.store, FOLDER, "gone").write([LoweredQueue(QUEUE, MAXIMUM, GUARANTEE)])
    scheduler.maximum_ratio = GUARANTEE
    holder.reconcile(told.append, 250, 0, False, LockHeldElsewhere())
    holder.reconcile(told.append, 500, 0, False, None)
    assert (scheduler.maximum_ratio, hdfs.files) == (MAXIMUM, {})


# --- what does not answer ---------------------------------------------------------------------


class Away(Folder):
    """An HDFS that may be away."""

    away = False

    def create(self, path: str, data: bytes, *, mode: int = 0o600, overwrite: bool = False) -> None:
        self.ask()
        super().create(path, data, mode=mode, overwrite=overwrite)

    def listing(self, path: str):
        self.ask()
        return super().listing(path)

    def delete(self, path: str, *, recursive: bool = False) -> bool:
        self.ask()
        return super().delete(path)

    def ask(self) -> None:
        if self.away:
            raise Unreachable("http://nn: nobody answers")


def test_what_cannot_be_recorded_is_not_lowered(caplog: pytest.LogCaptureFixture) -> None:
    hdfs = Away()
    scheduler, told = Scheduler(hdfs), list[Record]()
    holder = holder_of(scheduler, hdfs)
    holder.reconcile(told.append, 0, 0, False, None)
    hdfs.away = True
    for at_ms in range(250, 60_000, 250):
        holder.reconcile(told.append, at_ms, 1, True, None)
    assert (scheduler.maximum_ratio, told) == (MAXIMUM, [])
    assert len([line for line in caplog.records if "cannot record" in line.message]) == 1
    hdfs.away = False
    holder.reconcile(told.append, 60_000 + RETRY_MS, 1, True, None)
    assert scheduler.maximum_ratio == GUARANTEE


def test_nothing_is_lowered_before_it_is_known_what_others_left() -> None:
    hdfs = Away()
    hdfs.away = True
    scheduler, told = Scheduler(hdfs), list[Record]()
    holder = holder_of(scheduler, hdfs)
    holder.reconcile(told.append, 0, 1, True, None)
    hdfs.away = False
    holder.reconcile(told.append, 250, 1, True, None)
    assert scheduler.maximum_ratio == MAXIMUM
    holder.reconcile(told.append, RETRY_MS, 1, True, None)
    assert scheduler.maximum_ratio == GUARANTEE


def test_a_record_that_cannot_be_removed_is_removed_later() -> None:
    hdfs = Away()
    scheduler, told = Scheduler(hdfs), list[Record]()
    holder = holder_of(scheduler, hdfs)
    holder.reconcile(told.append, 0, 1, True, None)
    hdfs.away = True
    holder.reconcile(told.append, CAP_AFTER_MS, 0, False, None)
    assert (scheduler.maximum_ratio, len(hdfs.files)) == (MAXIMUM, 1)
    hdfs.away = False
    holder.reconcile(told.append, CAP_AFTER_MS + RETRY_MS, 0, False, None)
    assert hdfs.files == {}


@pytest.mark.parametrize("how", ["not seen", "not changed"])
def test_a_resource_manager_that_is_away_is_asked_again_and_the_command_is_told(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    hdfs = Folder()
    scheduler, told = Scheduler(hdfs), list[Record]()
    holder = holder_of(scheduler, hdfs)
    holder.reconcile(told.append, 0, 1, True, None)
    whole = scheduler.perform

    def away(action: SetQueueMaximum) -> Outcome:
        return Unknown()

    if how == "not seen":
        holder._maximum_of = lambda path: "http://rm: nobody answers"
    else:
        holder._perform = away
    holder.reconcile(told.append, CAP_AFTER_MS, 0, False, None)
    assert (scheduler.maximum_ratio, len(hdfs.files)) == (GUARANTEE, 1)
    assert FIX in caplog.text
    holder._maximum_of, holder._perform = scheduler.stands, whole
    holder.reconcile(told.append, CAP_AFTER_MS + RETRY_MS, 0, False, None)
    assert (scheduler.maximum_ratio, hdfs.files) == (MAXIMUM, {})
    believed(told)


def test_the_command_is_exact() -> None:
    assert command_for(QUEUE, 0.9) == FIX
    assert command_for(QUEUE, 1.0).endswith("=100")
    assert command_for(QUEUE, 1 / 3).endswith("=33.33333333")
