"""Holding queues back: written down first, put back in any case, also after a death at any point."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.daemon.test_loop import Attached, Lock, busy, daemon
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.queue_caps import RETRY_MS, QueueCaps
from yarnctl.deciding.model import Accepted, Outcome, Refused, SetQueueMaximum, Unknown, Withheld
from yarnctl.deciding.queue_hold import CAP_AFTER_MS, HeldQueues, QueueCap, QueueLimits
from yarnctl.deciding.queue_names import QueueTree, capped
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.reasons.orders import DemandOver, QueueServing
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Holding, Performed, Record, State, performed
from yarnctl.errors import Different
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import rebuild, repair
from yarnctl.journal.replay import replay

RESEARCH = "root.research"


class Queues:
    """A scheduler's configuration; ``answers`` come instead of Accepted, one after the other."""

    def __init__(self, maximum_ratio: float = 1.0) -> None:
        self.maximum_ratio = maximum_ratio
        self.answers: list[Outcome] = []
        self.done: list[SetQueueMaximum] = []
        self.why = ""

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        return self.why or (f"root.{queue}", QueueLimits(0.05, self.maximum_ratio))

    def stands(self, path: str) -> float | str | None:
        return self.why or self.maximum_ratio

    def perform(self, action: SetQueueMaximum) -> Outcome:
        self.done.append(action)
        outcome = self.answers.pop(0) if self.answers else Accepted()
        if not isinstance(outcome, Refused | Withheld):
            self.maximum_ratio = action.ratio
        return outcome


def holder_of(queues: Queues, held: dict[str, Holding] | None = None, enabled: bool = True) -> QueueCaps:
    return QueueCaps(
        queues.limits, queues.perform, ("research",), held, maximum_of=queues.stands, enabled=enabled
    )


def test_a_hold_begins_with_an_order_and_outlives_the_last_ask() -> None:
    when = QueueCap()
    assert not when.is_due(0, open_orders=0, waiting=True)
    assert when.is_due(1000, open_orders=1, waiting=True)
    assert when.is_due(9000, open_orders=0, waiting=True)
    assert when.is_due(9000 + CAP_AFTER_MS - 1, open_orders=0, waiting=False)
    assert not when.is_due(9000 + CAP_AFTER_MS, open_orders=0, waiting=False)
    assert not when.is_due(9001 + CAP_AFTER_MS, open_orders=0, waiting=True)


def test_it_is_lowered_once_and_put_back_to_what_it_was() -> None:
    queues, told = Queues(0.8), list[Record]()
    holder = holder_of(queues)
    for at_ms in (0, 250, 500):
        holder.reconcile(told.append, at_ms, 1, True, None)
    assert queues.maximum_ratio == 0.05
    holder.reconcile(told.append, 500 + CAP_AFTER_MS, 0, False, None)
    assert queues.maximum_ratio == 0.8
    assert [type(record) for record in told] == [Holding, Performed] * 2
    assert [action.back for action in queues.done] == [False, True]


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


def test_reconcile_lowers_and_restores_parents_too() -> None:
    maxima = dict.fromkeys(("root.research", "root.research.lab", *TREE.leaves[2:]), 1.0)
    before = dict(maxima)

    def limits(queue: str) -> tuple[str, QueueLimits]:
        return queue, QueueLimits(0.3, maxima[queue])

    def perform(action: SetQueueMaximum) -> Outcome:
        maxima[action.queue] = action.ratio
        return Accepted()

    records = list[Record]()
    holder = QueueCaps(
        limits, perform, TREE.leaves[2:], maximum_of=lambda path: maxima[path], tree=lambda: TREE
    )
    holder.reconcile(records.append, 0, 1, True, None)
    assert maxima == dict.fromkeys(before, 0.3)
    holder.reconcile(records.append, CAP_AFTER_MS, 0, False, None)
    assert maxima == before


@pytest.mark.parametrize("why", ["closed", "stop"])
def test_it_is_put_back_when_yarnctl_may_not_act_and_when_it_stops(why: str) -> None:
    queues, told = Queues(), list[Record]()
    holder = holder_of(queues)
    holder.reconcile(told.append, 0, 1, True, None)
    if why == "closed":
        holder.reconcile(told.append, 250, 1, True, Paused("paused by a person"))
    else:
        holder.stop(told.append, 250)
    assert queues.maximum_ratio == 1.0
    assert holder.capped == {}


@pytest.mark.parametrize("how", ["not shown", "refused"])
def test_a_scheduler_that_cannot_be_changed_is_told_once(how: str, caplog: pytest.LogCaptureFixture) -> None:
    queues, told = Queues(), list[Record]()
    if how == "not shown":
        queues.why = "HTTP 400 only supported by MutableConfScheduler"
    else:
        queues.answers = [Refused(ClientFault("HTTP 403"))]
    holder = holder_of(queues)
    for at_ms in range(0, 60_000, 1000):
        holder.reconcile(told.append, at_ms, 1, True, None)
    assert queues.maximum_ratio == 1.0
    assert holder.capped == {}
    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 1
    assert len(queues.done) == (how == "refused")


def test_a_gate_that_closes_in_between_is_no_no_of_the_scheduler() -> None:
    queues, told = Queues(), list[Record]()
    holder = holder_of(queues)
    queues.answers = [Withheld(ClientFault("another yarnctl holds the lock"))]
    holder.reconcile(told.append, 0, 1, True, None)
    assert holder.capped == {}
    holder.reconcile(told.append, 250, 1, True, None)
    assert list(holder.capped) == [RESEARCH]
    maxima = HeldQueues()
    for record in told:
        assert not isinstance(record, Holding) or maxima.problem(record) == ""
        maxima.apply(record)
    assert list(maxima.held) == [RESEARCH]


def test_a_try_that_fails_is_made_again_less_and_less_often() -> None:
    queues, told = Queues(), list[Record]()
    holder = holder_of(queues)
    queues.answers = [Unknown(ClientFault("no answer"))]  # perhaps lowered: it must be put back
    holder.reconcile(told.append, 0, 1, True, None)
    assert RESEARCH in holder.capped
    queues.answers = [Refused(ClientFault("HTTP 503")), Unknown(ClientFault("no answer"))]
    tries = []
    for at_ms in range(CAP_AFTER_MS, CAP_AFTER_MS + 60_000, 250):
        before = len(queues.done)
        holder.reconcile(told.append, at_ms, 0, False, None)
        tries += [at_ms - CAP_AFTER_MS] * (len(queues.done) - before)
    assert tries == [0, RETRY_MS, 3 * RETRY_MS]
    assert (queues.maximum_ratio, holder.capped) == (1.0, {})


def test_without_the_option_only_what_an_earlier_run_left_is_put_back() -> None:
    queues, told = Queues(0.05), list[Record]()
    left = Holding(0, RESEARCH, 0.75, 0.05, QueueServing(), lowers=True)
    holder = holder_of(queues, {RESEARCH: left}, enabled=False)
    holder.reconcile(told.append, 1000, 3, True, None)
    assert queues.maximum_ratio == 0.75
    holder.reconcile(told.append, 1250, 3, True, None)
    assert len(queues.done) == 1


# --- in the loop, and after deaths --------------------------------------------------------------


class Died(BaseException):
    """kill -9."""


def holding_loop(cluster: Attached, queues: Queues, held: dict[str, Holding] | None = None) -> Loop:
    loop, _ = daemon(cluster, lock=Lock())
    loop._queue_caps = holder_of(queues, held)
    return loop


def test_a_run_holds_while_it_serves_and_leaves_nothing_behind(tmp_path: Path) -> None:
    cluster, queues = busy(), Queues(0.9)
    loop = holding_loop(cluster, queues)
    journal = JournalFile(tmp_path / "journal.jsonl", durable=False, segment_bytes=1)
    loop.recorder.journal = journal
    loop.run(60)
    journal.close()
    assert [action.back for action in queues.done][:2] == [False, True]
    assert queues.maximum_ratio == 0.9
    records = [line.record for line in read(journal.path, closed=True) if not isinstance(line.record, State)]
    replay(read(journal.path, closed=True), str(journal.path))
    first = next(place for place, record in enumerate(records) if isinstance(record, Holding))
    assert isinstance(records[first + 1], Performed), "written down first, done then"


class Mortal(MemoryJournal):
    """A journal on disk whose process dies before or after the chosen append of a hold."""

    def __init__(self, file: JournalFile, die: Callable[[], None]) -> None:
        super().__init__()
        self.file, self.die = file, die

    def append(self, records) -> None:
        held = any(
            isinstance(record, Holding) or (isinstance(record, Performed) and bool(record.queue))
            for record in records
        )
        if held:
            self.die()
        self.file.append(records)
        if held:
            self.die()


@pytest.mark.parametrize("point", range(1, 9))
def test_a_death_at_any_point_leaves_nothing_lowered(tmp_path: Path, point: int) -> None:
    """Before and after each of the four records of a hold: the next run puts back, or finds it so."""
    path = tmp_path / "journal.jsonl"
    cluster, queues, left = busy(), Queues(0.9), [point]

    def die() -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Died

    loop = holding_loop(cluster, queues)
    file = JournalFile(path, durable=False)
    loop.recorder.journal = Mortal(file, die)
    loop._end = lambda: None  # type: ignore[method-assign]  # who is killed ends nothing

    def live() -> None:
        loop.run(200)
        loop._undo()

    with pytest.raises(Died):
        live()
    file.file.close()
    repair(path)
    rebuilt = rebuild(path)
    assert rebuilt is not None
    if queues.maximum_ratio != 0.9:
        assert rebuilt.held[RESEARCH].before_ratio == 0.9
    again, _ = daemon(cluster, lock=Lock())
    again.controller._remembered = rebuilt.remembered
    again._queue_caps = holder_of(queues, rebuilt.held, enabled=False)
    told: list[Record] = []
    again._queue_caps.reconcile(told.append, again.controller.now_ms, 0, False, None)
    assert queues.maximum_ratio == 0.9


def test_the_journal_tells_lowered_from_put_back_and_lies_from_truth() -> None:
    maxima = HeldQueues()
    lowered = Holding(1, RESEARCH, 0.9, 0.05, QueueServing(), lowers=True)
    back = Holding(2, RESEARCH, 0.05, 0.9, DemandOver())
    assert maxima.problem(back)
    assert maxima.problem(lowered) == ""
    maxima.apply(lowered)
    assert maxima.problem(lowered)
    assert maxima.problem(performed(1, SetQueueMaximum("root.etl", 0.05), Accepted()))
    assert maxima.problem(performed(1, SetQueueMaximum(RESEARCH, 0.05), Accepted())) == ""
    maxima.apply(performed(1, SetQueueMaximum(RESEARCH, 0.05), Accepted()))
    assert maxima.problem(performed(1, SetQueueMaximum(RESEARCH, 0.05), Accepted()))
    assert maxima.problem(Holding(2, RESEARCH, 0.05, 1.0, DemandOver()))
    assert maxima.problem(back) == ""
    maxima.apply(back)
    maxima.apply(performed(2, SetQueueMaximum(RESEARCH, 0.9, back=True), Accepted()))
    assert maxima.held == {}


def test_replay_sees_a_change_that_no_record_calls_for(tmp_path: Path) -> None:
    cluster, queues = busy(), Queues(0.9)
    loop = holding_loop(cluster, queues)
    journal = JournalFile(tmp_path / "journal.jsonl", durable=False)
    loop.recorder.journal = journal
    loop.run(60)
    journal.close()
    records = [line.record for line in read(journal.path, closed=True)]
    forged = tmp_path / "forged.jsonl"
    with JournalFile(forged, durable=False) as file:
        file.append([record for record in records if not isinstance(record, Holding)])
    with pytest.raises(Different, match="no record says so"):
        replay(read(forged, closed=True), str(forged))


def test_a_request_that_brings_no_order_keeps_no_queue_capped() -> None:
    when = QueueCap()
    assert when.is_due(0, open_orders=1, waiting=True)
    assert when.is_due(CAP_AFTER_MS, open_orders=0, waiting=True)
    assert not when.is_due(10 * CAP_AFTER_MS, open_orders=0, waiting=True)
    assert not when.is_due(11 * CAP_AFTER_MS, open_orders=0, waiting=True)
    assert when.is_due(12 * CAP_AFTER_MS, open_orders=1, waiting=True), "the next order begins it again"
