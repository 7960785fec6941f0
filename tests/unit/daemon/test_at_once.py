"""The orders of one step in parallel: a fixed order of outcomes, checks before each send, frozen daemons."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.unit.attach.fake_cluster import EPOCH, SLOT, App, FakeCluster, application, attempt, container
from tests.unit.daemon.test_loop import Lock, busy, daemon
from tests.unit.hadoop.replaying import NEVER_S, Heard, Reply
from yarnctl.attach.connection.application_guard import CHANGES_EACH
from yarnctl.attach.port import AttachedPort
from yarnctl.daemon.at_once import OrdersAtOnce
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Drain,
    Kill,
    ObservationRequest,
    Outcome,
    Refused,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withheld,
)
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.hadoop.lock import LockFile
from yarnctl.journal.rendering import said
from yarnctl.units import times

TEN = 10


def suspension(number: int) -> Suspend:
    names = (application(1), attempt(1, number), container(1, number + 1))
    return Suspend(f"o-{number}", *names, 1, EPOCH)


def kill(number: int) -> Kill:
    return Kill(f"o-{number}", application(1), attempt(1, number), container(1, number + 1))


def drained(number: int) -> Drain:
    return Drain(f"o-{number}", application(number), str(number), container(number, 2), 1, ())


ORDERS = [suspension(number) for number in range(1, TEN + 1)]


class Threads:
    """Performs by a function of the action; notes what begins and ends, and the most at a time."""

    def __init__(self, doing: Callable[[Action], Outcome | None] = lambda _: None) -> None:
        self.doing = doing
        self.noted: list[str] = []
        self.most = self._now = 0
        self._lock = threading.Lock()

    def perform(self, action: Action) -> Outcome:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.noted.append(f"+{name_of(action)}")
        try:
            return self.doing(action) or Accepted()
        finally:
            with self._lock:
                self._now -= 1
                self.noted.append(f"-{name_of(action)}")


def name_of(action: Action) -> str:
    return getattr(action, "order", type(action).__name__)


# --- which go out together ------------------------------------------------------------------------------


def test_each_outcomes_come_in_the_order_of_the_actions_whichever_ends_first() -> None:
    ended = [threading.Event() for _ in range(TEN + 1)]

    def last_first(action: Action) -> Outcome:
        number = int(name_of(action).partition("-")[2])
        if number < TEN:
            assert ended[number + 1].wait(NEVER_S)
        ended[number].set()
        return Unknown(OrdersName(number))  # type: ignore[arg-type]

    threads = Threads(last_first)
    outcomes = list(OrdersAtOnce(threads.perform, at_once=TEN).each(ORDERS))
    assert [outcome.why for outcome in outcomes] == list(range(1, TEN + 1))  # type: ignore[union-attr]
    assert next(word for word in threads.noted if word[0] == "-") == f"-o-{TEN}"


class OrdersName(int):
    """Stands for the reason of one order."""


def test_each_another_action_waits_for_orders_before_it_and_orders_behind_it_wait() -> None:
    threads = Threads(lambda _: time.sleep(0.01))
    cap = SetQueueMaximum("root.research", 0.5)
    steps: list[Action] = [*ORDERS[:3], cap, *ORDERS[3:6]]
    list(OrdersAtOnce(threads.perform, at_once=8).each(steps))
    place = threads.noted.index("+SetQueueMaximum")
    assert set(threads.noted[:place]) == {f"{sign}o-{n}" for sign in "+-" for n in (1, 2, 3)}
    assert threads.noted[place + 1] == "-SetQueueMaximum"


@pytest.mark.parametrize(
    "lane",
    [
        [drained(number) for number in range(1, 5)],
        [Suspend(f"o-{n}", application(1), attempt(1, 1), container(1, 2), 1, EPOCH) for n in range(1, 5)],
    ],
    ids=["drains", "one container"],
)
def test_each_a_lane_is_performed_one_after_the_other(lane: Sequence[Action]) -> None:
    threads = Threads(lambda _: time.sleep(0.005))
    list(OrdersAtOnce(threads.perform, at_once=8).each(lane))
    assert threads.noted == [f"{sign}o-{n}" for n in range(1, 5) for sign in "+-"]


def test_each_threads_have_a_bound() -> None:
    threads = Threads(lambda _: time.sleep(0.01))
    assert len(list(OrdersAtOnce(threads.perform, at_once=3).each(ORDERS))) == TEN
    assert threads.most == 3


def test_each_closed_early_begins_no_other_and_waits_for_those_that_run() -> None:
    """A journal that cannot be written ends the step: what is withdrawn afterwards was sent before."""
    slow, begun = threading.Event(), threading.Event()

    def held(action: Action) -> Outcome | None:
        if name_of(action) == "o-2":
            begun.set()
            assert slow.wait(NEVER_S)
        elif name_of(action) == "o-1":
            assert begun.wait(NEVER_S)
        return None

    threads = Threads(held)
    performing = OrdersAtOnce(threads.perform, at_once=2).each([*ORDERS[:2], *ORDERS[1:2] * 5])
    assert next(performing) == Accepted()
    threading.Timer(0.05, slow.set).start()
    performing.close()
    assert threads.noted.count("-o-2") == 1, "the one that ran has ended, and none began after it"


def test_each_sends_single_actions_without_a_thread() -> None:
    seen: list[str] = []

    def perform(_: Action) -> Outcome:
        seen.append(threading.current_thread().name)
        return Accepted()

    list(OrdersAtOnce(perform, at_once=8).each(ORDERS[:1]))
    assert seen == [threading.current_thread().name]


# --- by the daemon --------------------------------------------------------------------------------------


def test_tick_writes_the_same_journal_with_threads_and_without() -> None:
    found = []
    for at_once in (1, 8):
        cluster = busy()
        loop, journal = daemon(cluster, lock=Lock())
        loop.port.orders = OrdersAtOnce(loop.port.perform, cluster.announce, at_once)
        loop.run(60)
        found.append(journal.encoded())
        assert sum(isinstance(action, Suspend) for action in cluster.actions) == 3
    assert found[0] == found[1]


@pytest.fixture
def crowded() -> Iterator[FakeCluster]:
    """A cluster with one job of ten reduces, all of which can be suspended."""
    with FakeCluster() as cluster:
        for number in range(4):
            cluster.nodes[f"n{number}:1"] = times(SLOT, 4)
        cluster.research(1, ["n0:1", *(f"n{number % 4}:1" for number in range(TEN))])
        asks = [(0, SLOT, TEN)]
        cluster.add(App(2, "production", state="ACCEPTED", user="bob", asks=asks, submitted_at_ms=EPOCH))
        yield cluster


def guarded(cluster: FakeCluster, lock: Lock | LockFile, at_once: int = 16, **more) -> GuardedPort:
    port: AttachedPort = cluster.port(**more)
    assert port.observe(ObservationRequest()).cluster == "seen"
    guard = WriteGuard(lock, port.permission.why_nothing, Misdirection())
    port.permission.host = lambda: guard.closed()[1]
    found = GuardedPort(port, guard, enforce=True)
    found.orders = OrdersAtOnce(found.perform, port.announce, at_once)
    return found


def requests_in(cluster: FakeCluster) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in cluster.hdfs.files if "/yarnctl/requests/" in path)


def slowly(cluster: FakeCluster, op: str, doing: Callable[[Heard], None]) -> None:
    """Let every operation of HDFS of this name do something first, outside of the server's lock."""
    answer = cluster.hdfs.replay.answer

    def slow(heard: Heard) -> Reply:
        if heard.query.get("op", "").upper() == op:
            doing(heard)
        return answer(heard)

    cluster.hdfs.replay.answer = slow


def test_ten_suspensions_wait_for_slow_answers_together(crowded: FakeCluster) -> None:
    together = threading.Barrier(TEN)

    def wait(_: Heard) -> None:
        together.wait(NEVER_S)

    slowly(crowded, "RENAME", wait)
    outcomes = list(guarded(crowded, Lock()).perform_each(ORDERS))
    assert outcomes == [Accepted()] * TEN
    assert len(requests_in(crowded)) == TEN


def test_one_orders_failure_touches_no_other(crowded: FakeCluster) -> None:
    crowded.hdfs.denied = f"/yarnctl/requests/job_{EPOCH}_0001/{attempt(1, 4)}"
    crowded.attempt(1, 7).update(state="SUCCEEDED")
    port = guarded(crowded, Lock(), allow_kill=True)
    outcomes = list(port.perform_each([*ORDERS[:5], kill(6), kill(7), kill(8)]))
    kinds = [type(outcome).__name__ for outcome in outcomes]
    assert kinds == ["Accepted"] * 3 + ["Withheld", "Accepted", "Accepted", "Refused", "Accepted"]
    assert len(requests_in(crowded)) == 4


def test_facts_keep_the_order_of_the_orders_whichever_began_first(
    crowded: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = guarded(crowded, Lock())
    inner = port.port
    assert isinstance(inner, AttachedPort)
    gates = {action.order: threading.Event() for action in ORDERS}
    begin = inner._tracking.begin

    def last_first(order: str, *words):
        number = int(order.partition("-")[2])
        if number < TEN:
            assert gates[f"o-{number + 1}"].wait(NEVER_S)
        try:
            return begin(order, *words)
        finally:
            gates[order].set()

    monkeypatch.setattr(inner._tracking, "begin", last_first)
    list(port.perform_each(ORDERS))
    names = tuple(action.order for action in ORDERS)
    assert list(inner._tracking.orders) == list(reversed(names))
    inner.observe(ObservationRequest(cluster=False, orders=names))
    assert list(inner._tracking.orders) == list(names)


# --- a lock that is lost, a daemon that is stopped in between --------------------------------------------


def test_a_lock_lost_within_a_batch_stops_what_has_not_got_its_name(crowded: FakeCluster) -> None:
    """The lock is lost when the first file of the batch is being written: no request appears at all."""
    lock = Lock()

    def lose(_: Heard) -> None:
        lock.held = False

    slowly(crowded, "CREATE", lose)
    outcomes = list(guarded(crowded, lock, at_once=4).perform_each(ORDERS))
    assert all(isinstance(outcome, Withheld) for outcome in outcomes), outcomes
    assert requests_in(crowded) == [], "no request, and no temporary file"


def test_a_daemon_stopped_within_a_batch_sends_nothing_when_it_continues(crowded: FakeCluster) -> None:
    """Its lock has run out by its own clock: another daemon may act. Only what had its name before counts."""
    clock = [0.0]
    held = [threading.Event(), threading.Event()]
    lock = LockFile(crowded.port()._connection.hdfs, "/yarnctl/lock", "here", 15_000, lambda: clock[0])  # type: ignore[arg-type]
    assert lock.acquire()
    port = guarded(crowded, lock, at_once=4)
    named: list[str] = []

    def stop_third(heard: Heard) -> None:
        """The first two requests get their names; then the process is stopped for a minute."""
        named.append(heard.path)
        if len(named) == 2:
            clock[0] += 60.0
            held[0].set()

    def wait_for_the_stop(heard: Heard) -> None:
        """Orders 3 to 10 write their files until then."""
        if heard.path.rpartition("/")[2] not in ("o-1", "o-2"):
            assert held[0].wait(NEVER_S)

    slowly(crowded, "RENAME", stop_third)
    slowly(crowded, "CREATE", wait_for_the_stop)
    outcomes = list(port.perform_each(ORDERS))
    assert outcomes[:2] == [Accepted(), Accepted()]
    assert all(isinstance(outcome, Withheld) for outcome in outcomes[2:])
    assert "lock" in said(outcomes[2].why)  # type: ignore[union-attr]
    assert requests_in(crowded) == ["o-1.request.json", "o-2.request.json"]


def test_kills_of_one_job_are_sent_in_parallel_and_each_is_read_before(crowded: FakeCluster) -> None:
    crowded.attempt(1, 3).update(assignedContainerId=container(1, 99))
    port = guarded(crowded, Lock(), allow_kill=True)
    four, most = threading.Barrier(CHANGES_EACH), threading.Event()

    def slow(heard: Heard) -> Reply:
        """The first changes are answered when as many as may go together are there."""
        if heard.method == "PUT" and not most.is_set():
            four.wait(NEVER_S)
            most.set()
        return answer(heard)

    answer, crowded.rm.answer = crowded.rm.answer, slow
    outcomes = list(port.perform_each([kill(number) for number in range(1, TEN + 1)]))
    assert [number for number, outcome in enumerate(outcomes, 1) if isinstance(outcome, Refused)] == [3]
    assert sorted(word for word in crowded.changes if word.startswith("KILL")) == sorted(
        f"KILL {attempt(1, number)}" for number in range(1, TEN + 1) if number != 3
    )
