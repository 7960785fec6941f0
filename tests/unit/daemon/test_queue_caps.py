"""Capping queues: when, which, and what is recorded first."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.unit.daemon.test_loop import Attached, Lock, busy, daemon
from tests.unit.restoring.world import FOLDER, Folder, Host, Values
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.deciding.model import Accepted, Change, Outcome, Refused, SetQueueMaximum, Unknown, Withheld
from yarnctl.deciding.queue_hold import CAP_AFTER_MS, QueueCap, QueueLimits
from yarnctl.deciding.queue_names import QueueTree, capped
from yarnctl.deciding.reasons.modes import ModeReason, Paused
from yarnctl.deciding.reasons.orders import DemandOver, MayNotAct, QueueServing, ReadBack
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Lowering, Performed, Record, Restored, Restoring, State, performed
from yarnctl.errors import Different
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import OpenChanges
from yarnctl.journal.replay import replay
from yarnctl.restoring.change_file import stored_records

RESEARCH = "root.research"
GUARANTEE = 0.05


class Queues:
    """A scheduler's configuration, its caps and their restorer; ``answers`` come instead of Accepted."""

    def __init__(self, maximum_ratio: float = 1.0, *names: str, tree: QueueTree | None = None) -> None:
        self.hdfs = Folder()
        self.values = Values(self.hdfs)
        self.host = Host(self.hdfs, self.values, "one")
        self.names = names or (RESEARCH,)
        paths = capped(self.names, tree)
        self.values.values = dict.fromkeys(paths, repr(maximum_ratio))
        self.why = ""
        self.requests: list[SetQueueMaximum] = []
        self.caps = QueueCaps(self.limits, self.perform, self.names, self.host.restorer, tree=lambda: tree)

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        return self.why or (queue, QueueLimits(GUARANTEE, self.maximum_ratio(queue)))

    def maximum_ratio(self, queue: str = RESEARCH) -> float:
        return float(self.values.values[queue] or "nan")

    def perform(self, action: SetQueueMaximum) -> Outcome:
        self.requests.append(action)
        recorded = [one.record for one in stored_records(self.hdfs, FOLDER)]  # type: ignore[arg-type]
        assert any(
            change.target == action.queue for record in recorded if record for change in record.changes
        ), "lowered, and no record in HDFS says so"
        return self.values.set(action.queue, repr(action.ratio))

    def tick(self, at_ms: int, orders: int, waiting: bool, closed: ModeReason | None = None) -> None:
        """Do as the loop after a tick."""
        self.host.now_ms = 1_000_000 + at_ms
        self.caps.reconcile(self.host.records.append, at_ms, orders, waiting, closed)
        if closed is not None:
            self.host.restorer.make_due(MayNotAct())
        self.host.restorer.reconcile()


def test_a_cap_begins_with_an_order_and_outlives_the_last_request() -> None:
    when = QueueCap()
    assert not when.is_due(0, open_orders=0, waiting=True)
    assert when.is_due(1000, open_orders=1, waiting=True)
    assert when.is_due(9000, open_orders=0, waiting=True)
    assert when.is_due(9000 + CAP_AFTER_MS - 1, open_orders=0, waiting=False)
    assert not when.is_due(9000 + CAP_AFTER_MS, open_orders=0, waiting=False)
    assert not when.is_due(9001 + CAP_AFTER_MS, open_orders=0, waiting=True)


def test_a_request_that_brings_no_order_keeps_no_queue_capped() -> None:
    when = QueueCap()
    assert when.is_due(0, open_orders=1, waiting=True)
    assert when.is_due(CAP_AFTER_MS, open_orders=0, waiting=True)
    assert not when.is_due(10 * CAP_AFTER_MS, open_orders=0, waiting=True)
    assert not when.is_due(11 * CAP_AFTER_MS, open_orders=0, waiting=True)
    assert when.is_due(12 * CAP_AFTER_MS, open_orders=1, waiting=True), "the next order begins it again"


def test_a_queue_is_lowered_once_and_restored_to_its_value_before() -> None:
    queues = Queues(0.8)
    for at_ms in (0, 250, 500):
        queues.tick(at_ms, 1, True)
    assert queues.maximum_ratio() == GUARANTEE
    queues.tick(500 + CAP_AFTER_MS, 0, False)
    queues.tick(2000 + CAP_AFTER_MS, 0, False)
    assert queues.maximum_ratio() == 0.8
    assert [type(record) for record in queues.host.records] == [
        Lowering,
        Performed,
        Restoring,
        Performed,
        Restored,
    ]
    assert (queues.hdfs.files, len(queues.requests)) == ({}, 1)


TREE = QueueTree(
    ("root.prod.etl", "root.prod.web", "root.research.ds", "root.research.lab.a", "root.research.lab.b"),
    ("root", "root.prod", "root.research", "root.research.lab"),
)
CAPPED = [
    (("root.research.ds",), ()),
    (("root.research.lab.a", "root.research.lab.b"), ("root.research.lab",)),
    (TREE.leaves[2:], ("root.research", "root.research.lab")),
    ((*TREE.leaves[2:], "root.prod.web"), ("root.research", "root.research.lab")),
    (TREE.leaves, ("root.prod", "root.research", "root.research.lab")),
]


@pytest.mark.parametrize(("leaves", "parents"), CAPPED)
def test_capped_adds_parents_whose_leaves_are_all_preemptable(
    leaves: tuple[str, ...], parents: tuple[str, ...]
) -> None:
    assert capped(leaves, TREE) == (*parents, *leaves)
    assert capped(leaves, None) == leaves


def test_all_queues_of_a_decision_are_recorded_in_one_write() -> None:
    queues = Queues(1.0, *TREE.leaves[2:], tree=TREE)
    before = dict(queues.values.values)
    queues.tick(0, 1, True)
    assert queues.values.values == dict.fromkeys(before, repr(GUARANTEE))
    assert len(before) == 5
    (stored,) = stored_records(queues.hdfs, FOLDER)  # type: ignore[arg-type]
    assert stored.record is not None
    assert {change.target for change in stored.record.changes} == set(before)
    queues.tick(CAP_AFTER_MS, 0, False)
    queues.tick(CAP_AFTER_MS + 1_500, 0, False)
    assert queues.values.values == before
    assert queues.hdfs.files == {}


def test_it_is_restored_when_yarnctl_may_not_act() -> None:
    queues = Queues()
    queues.tick(0, 1, True)
    queues.tick(250, 1, True, Paused("paused by a person"))
    queues.tick(1500, 1, True, Paused("paused by a person"))
    assert (queues.maximum_ratio(), queues.hdfs.files) == (1.0, {})


@pytest.mark.parametrize("how", ["not shown", "refused"])
def test_a_scheduler_that_cannot_be_changed_is_logged_once(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    queues = Queues()
    if how == "not shown":
        queues.why = "HTTP 400 only supported by MutableConfScheduler"
    else:
        queues.values.answers = [Refused(ClientFault("HTTP 403"))]
    for at_ms in range(0, 60_000, 1000):
        queues.tick(at_ms, 1, True)
    assert (queues.maximum_ratio(), queues.hdfs.files) == (1.0, {})
    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 1
    assert len(queues.requests) == (how == "refused")


def test_a_guard_that_closes_in_between_does_not_disable_capping() -> None:
    queues = Queues()
    queues.values.answers = [Withheld(ClientFault("another yarnctl holds the lock"))]
    queues.tick(0, 1, True)
    assert queues.hdfs.files == {}
    queues.tick(250, 1, True)
    assert queues.maximum_ratio() == GUARANTEE


def test_a_request_without_an_answer_counts_as_made() -> None:
    queues = Queues()
    queues.values.answers = [Unknown(ClientFault("no answer"))]
    queues.tick(0, 1, True)
    assert len(queues.hdfs.files) == 1
    queues.tick(CAP_AFTER_MS, 0, False)
    queues.tick(CAP_AFTER_MS + 1_500, 0, False)
    assert (queues.maximum_ratio(), queues.hdfs.files) == (1.0, {})


def test_what_cannot_be_recorded_is_not_lowered(caplog: pytest.LogCaptureFixture) -> None:
    queues = Queues()
    queues.tick(0, 0, False)
    queues.hdfs.away = True
    for at_ms in range(250, 60_000, 250):
        queues.tick(at_ms, 1, True)
    assert (queues.maximum_ratio(), queues.requests) == (1.0, [])
    assert len([line for line in caplog.records if "queue capping paused" in line.message]) == 1


# --- in the loop --------------------------------------------------------------------------------


def capping_loop(cluster: Attached, queues: Queues) -> Loop:
    loop, _ = daemon(cluster, lock=Lock())
    loop._queue_caps, loop._restorer = queues.caps, queues.host.restorer
    queues.host.restorer._clock = lambda: cluster.now_ms
    queues.host.restorer.write = loop._write
    return loop


def recorded(tmp_path: Path) -> tuple[Queues, list[Record], JournalFile]:
    """Return a run that caps, restores and ends."""
    cluster, queues = busy(), Queues(0.9)
    loop = capping_loop(cluster, queues)
    journal = JournalFile(tmp_path / "journal.jsonl", durable=False)
    loop.recorder.journal = journal
    loop.run(60)
    journal.close()
    return queues, [line.record for line in read(journal.path, closed=True)], journal


def test_a_run_caps_while_it_serves_and_leaves_nothing_behind(tmp_path: Path) -> None:
    queues, records, journal = recorded(tmp_path)
    assert (queues.maximum_ratio(), queues.hdfs.files) == (0.9, {})
    first = next(place for place, record in enumerate(records) if isinstance(record, Lowering))
    assert isinstance(records[first + 1], Performed), "recorded first, made then"
    assert any(isinstance(record, Restored) and record.why == ReadBack() for record in records)
    assert not any(isinstance(record, State) for record in records[1:])
    replay(read(journal.path, closed=True), str(journal.path))


def test_replay_sees_a_change_that_no_record_calls_for(tmp_path: Path) -> None:
    _, records, _ = recorded(tmp_path)
    forged = tmp_path / "forged.jsonl"
    with JournalFile(forged, durable=False) as file:
        file.append([record for record in records if not isinstance(record, Lowering)])
    with pytest.raises(Different, match="no record says"):
        replay(read(forged, closed=True), str(forged))


def test_the_fold_of_changes_refuses_what_cannot_come_next() -> None:
    fold = OpenChanges()
    change = Change("queue", RESEARCH, "0.9", "0.05")
    lowering = Lowering(1, (change,), QueueServing())
    back = Restoring(2, change, DemandOver())
    end = Restored(3, "queue", RESEARCH, "0.9", ReadBack())
    made = performed(1, SetQueueMaximum(RESEARCH, 0.05), Accepted())
    assert all(fold.problem(record) for record in (back, end, made))
    fold.apply(lowering)
    assert not any(fold.problem(record) for record in (back, end, made))
    assert fold.problem(Restoring(2, Change("queue", RESEARCH, "1.0", "0.05"), DemandOver()))
    assert fold.problem(performed(1, SetQueueMaximum("root.etl", 0.05), Accepted()))
    fold.apply(end)
    assert fold.open == {}
