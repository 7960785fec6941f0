"""A lowered queue comes back: whatever fails, at whatever point, and whoever does it."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.soak.lowered_queue import ANSWERS, KINDS, LIVES, MAXIMUM, cases, play, points, problem
from tests.thoroughness import is_thorough
from tests.unit.daemon.test_loop import Lock, busy, daemon, kinds
from tests.unit.daemon.test_queue_caps import Queues, capping_loop
from yarnctl.deciding.model import Suspend, Withdraw
from yarnctl.deciding.records import Record
from yarnctl.journal.chain import MemoryJournal
from yarnctl.restoring.change_file import ChangeFiles


@pytest.mark.parametrize(
    "ticks", [LIVES[0], *(pytest.param(each, marks=pytest.mark.thorough) for each in LIVES[1:])]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_point_leaves_nothing_lowered(tmp_path: Path, kind: str, ticks: int) -> None:
    """Each point with each answer to the first change; without ``--thorough`` with one of them in turn."""
    played = [case for case in cases() if (case.kind, case.ticks) == (kind, ticks)]
    assert len(played) == sum(len(points(ticks, answer)) for answer in ANSWERS)
    if not is_thorough():
        played = [case for case in played if ANSWERS.index(case.answer) == case.at % len(ANSWERS)]
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
    monkeypatch.setattr(ChangeFiles, "create", lambda *_: "changes-none")
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


def test_an_end_with_a_full_disk_restores_and_is_still_an_error() -> None:
    cluster = busy()
    queues = Queues(MAXIMUM)
    loop = capping_loop(cluster, queues)
    journal = loop.recorder.journal = Filling()
    while queues.maximum_ratio() == MAXIMUM:
        loop._once()
    journal.full = True
    loop.stop()
    with pytest.raises(OSError, match="No space left"):
        loop.run()
    assert (queues.maximum_ratio(), queues.hdfs.files) == (MAXIMUM, {})
