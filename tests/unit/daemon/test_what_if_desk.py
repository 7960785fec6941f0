"""What-if questions to a loop: answered between ticks, and nothing of cluster, journal or ledger changes."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.unit.daemon.test_loop import Attached, Lock, busy, daemon
from tests.unit.deciding.tiny import TinyJob
from yarnctl.api.what_if_answers import WhatIfOut
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.questions.what_if_desk import ANSWER_MAX_S, PENDING_MAX, Question, WhatIfDesk, state_hash
from yarnctl.deciding.model import Snapshot, TaskView
from yarnctl.deciding.records import Decision, encode
from yarnctl.deciding.what_if.supposed import LostNode, NewApplication
from yarnctl.errors import BadInput, Unreachable
from yarnctl.journal.chain import MemoryJournal
from yarnctl.units import Resources

SLOT = Resources(1024, 1)
NEW = NewApplication(queue="production", user="ann", containers=2, size=SLOT, master_size=SLOT)


class Asked(Attached):
    """A tiny cluster that is read for questions; its tasks take an hour more."""

    def tasks(self, job: TinyJob) -> tuple[TaskView, ...]:
        return tuple(task._replace(remaining_ms=task.remaining_ms + 3_600_000) for task in super().tasks(job))

    def observe_soon(self) -> Snapshot | None:
        return None if self.away else self.snapshot()

    def node_load(self, node: str, snapshot: Snapshot, require_time: Callable[[], None]) -> LostNode:
        held = {
            job.name: (SLOT,) * sum(where == node for where, _ in job.running.values())
            for job in self.jobs.values()
        }
        return LostNode(node=node, size=Resources(4096, 4), held=held)


def asked_daemon() -> tuple[Asked, Loop, MemoryJournal]:
    cluster = Asked(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 9)
    cluster.submit("production-1", "production", 1)
    loop, journal = daemon(cluster, lock=Lock())
    loop.what_if = WhatIfDesk(cluster.tasks_of, cluster.node_load)
    loop._observe_soon = cluster.observe_soon
    ticks(loop, 5)
    return cluster, loop, journal


def ticks(loop: Loop, count: int) -> None:
    """Run ticks; :meth:`Loop.run` would withdraw the orders at its end."""
    for _ in range(count):
        loop._once()


def ask(loop: Loop, question: Question) -> WhatIfOut | Exception:
    """Ask from another thread, as the service does, and run one tick."""
    desk, found = loop.what_if, list[WhatIfOut | Exception]()
    assert desk is not None
    handed = threading.Event()
    desk.on_wake = handed.set

    def wait() -> None:
        try:
            found.append(desk.ask(question))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert handed.wait(60)
    ticks(loop, 1)
    thread.join(60)
    return found[0]


def answer(loop: Loop, question: Question) -> WhatIfOut:
    found = ask(loop, question)
    assert isinstance(found, WhatIfOut), found
    return found


def test_question_changes_neither_journal_nor_ledger_nor_cluster() -> None:
    (cluster, loop, journal), (other, twin, twins) = asked_daemon(), asked_daemon()
    assert answer(loop, Question(application=NEW)).chosen
    ticks(twin, 1)
    assert [encode(record) for record in journal.records] == [encode(record) for record in twins.records]
    asked_hash = state_hash(loop.controller.ledger, cluster.snapshot())
    assert asked_hash == state_hash(twin.controller.ledger, other.snapshot())
    assert cluster.actions == other.actions


def test_answer_names_the_state_that_was_copied() -> None:
    cluster, loop, _ = asked_daemon()
    first = answer(loop, Question(application=NEW))
    assert first.state_hash == state_hash(loop.controller.ledger, cluster.snapshot())
    assert answer(loop, Question(application=NEW)).state_hash == first.state_hash
    cluster.submit("production-2", "production", 0, 1)
    assert answer(loop, Question(application=NEW)).state_hash != first.state_hash


def test_chosen_tasks_are_those_that_are_then_ordered() -> None:
    cluster, loop, journal = asked_daemon()
    promised = answer(loop, Question(application=NEW))
    cluster.submit("production-2", "production", 0, 1)  # its master, and later its two tasks
    ticks(loop, 12)
    cluster.jobs["production-2"].pending = 2
    ticks(loop, 60)
    decisions = [each for each in journal.records if isinstance(each, Decision)]
    picks = [pick.task.attempt for each in decisions for pick in each.picks]
    assert [each.attempt for each in promised.chosen] == picks
    assert len(picks) == 3
    assert promised.complete is not None


def test_lost_node_shows_what_production_then_takes() -> None:
    _, loop, _ = asked_daemon()
    nodes = [f"n{number:02d}" for number in range(5)]
    found = answer(loop, Question(node=nodes[4]))  # production-1 runs there
    assert [each.requester for each in found.chosen] == ["production-1"]
    assert found.starts is None
    assert found.waits == ""


def test_unknown_queue_is_refused_with_the_nearest() -> None:
    _, loop, _ = asked_daemon()
    found = ask(loop, Question(guarantees={"productoin": 0.5}))
    assert isinstance(found, BadInput)
    assert "production" in str(found)


def test_loop_answers_one_question_after_each_tick_without_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, loop, _ = asked_daemon()
    cluster.away = True
    monkeypatch.setattr(loop, "_clock_ms", lambda: 0)
    desk, handed = loop.what_if, threading.Semaphore(0)
    assert desk is not None
    desk.on_wake = handed.release
    threads = [threading.Thread(target=_quiet, args=(desk,)) for _ in range(2)]
    for thread in threads:
        thread.start()
        assert handed.acquire(timeout=60)
    assert loop._once() == 0
    assert desk.is_asked
    assert loop._once() > 0
    assert not desk.is_asked
    for thread in threads:
        thread.join(60)


def test_answer_that_takes_too_long_is_cancelled() -> None:
    cluster, loop, _ = asked_daemon()
    reads, seconds = list[tuple[str, ...]](), [0.0]

    def late(names: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
        reads.append(names)
        seconds[0] += ANSWER_MAX_S - 1
        return {}

    loop.what_if = WhatIfDesk(late, cluster.node_load, lambda: seconds[0])
    found = ask(loop, Question(application=NEW))
    assert isinstance(found, Unreachable)
    assert "takes more than 3 s" in str(found)
    assert len(reads) == 2


def test_unseen_cluster_has_no_answer() -> None:
    cluster, loop, _ = asked_daemon()
    cluster.away = True
    assert isinstance(ask(loop, Question(application=NEW)), Unreachable)


def test_pending_questions_are_bounded() -> None:
    desk = WhatIfDesk(lambda _: {}, lambda node, *_: LostNode(node=node, size=SLOT))
    started = threading.Semaphore(0)
    desk.on_wake = started.release
    threads = [threading.Thread(target=_quiet, args=(desk,)) for _ in range(PENDING_MAX)]
    for thread in threads:
        thread.start()
        assert started.acquire(timeout=60)
    with pytest.raises(Unreachable, match="pending"):
        desk.ask(Question(application=NEW))
    controller = daemon(busy())[0].controller
    for left in reversed(range(PENDING_MAX)):
        desk.answer(controller, lambda: None)
        assert len(desk._pending) == left
    for thread in threads:
        thread.join(60)


def _quiet(desk: WhatIfDesk) -> None:
    with pytest.raises(Unreachable):
        desk.ask(Question(application=NEW))
