"""The daemon's loop and its guards, over a tiny cluster: it observes, acts, pauses, stands aside, stops."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from tests.property.playing import require_replayed
from tests.unit.deciding.freed_containers import misdirect
from tests.unit.deciding.tiny import TinyCluster
from yarnctl.attach.eligibility.permission import MONITOR
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import SHOW_EVERY_MS, Loop
from yarnctl.daemon.state_dir import InUse, StateDir
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Change,
    DisablePreemption,
    Observation,
    ObservationRequest,
    OrderAction,
    Outcome,
    Refused,
    Release,
    Restore,
    SetPriority,
    SetQueueMaximum,
    Snapshot,
    Suspend,
    TaskView,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.queue_hold import Misdirection, QueueLimits
from yarnctl.deciding.reasons.eligibility import EligibilityReason
from yarnctl.deciding.reasons.modes import (
    ClusterFault,
    HdfsUnwritable,
    LockHeldElsewhere,
    LockRanOut,
    LockUnconfirmed,
    ModeReason,
    NotEnforcing,
    NothingInTheWay,
    PreemptionUnknown,
    YarnPreempts,
)
from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.records import (
    Decision,
    Performed,
    QueueResumed,
    Record,
    Refusal,
    Stance,
    StoodAside,
    Transition,
)
from yarnctl.deciding.settings import DEFAULT, LossRule
from yarnctl.deciding.what_if.supposed import LostNode
from yarnctl.errors import BadInput, Different, Unreachable
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.wire.node_activities import NodeActivities
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.rendering import joined, said, text
from yarnctl.loop import ClusterIdentity
from yarnctl.restoring.restorer import Key, Restorer
from yarnctl.service.answers.explanations import everything_about, summary
from yarnctl.units import Resources


class Lock:
    """A lock that tests give and take."""

    kind: Literal["hdfs", "zookeeper"] = "hdfs"
    every_ms = 2_000
    leader = ""

    def __init__(self, held: bool = True) -> None:
        self.held = held
        self.has_rival = True
        self.released = False
        self.on_free: Callable[[], None] = lambda: None

    def acquire(self) -> bool:
        return self.held

    def renew(self) -> bool:
        return self.held

    def release(self) -> None:
        self.released = True


class Aside:
    """A permission check that knows one reason, ``why``, and the host's."""

    def __init__(self) -> None:
        self.why: ModeReason | None = None
        self.host: Callable[[], ModeReason | None] = lambda: None
        self.term: Callable[[], int] = lambda: 0

    def why_nothing(self) -> ModeReason | None:
        return self.why

    def preempted_queues(self) -> tuple[str, ...]:
        return ()

    def is_preemptable(self, queue: str) -> bool:
        return False


class NoScheduler:
    """Queues that nobody tells of."""

    def limits(self, queue: str) -> tuple[str, QueueLimits] | str:
        return "no scheduler here"

    def preemption_key(self, queue: str) -> str:
        raise Unreachable("no scheduler here")


def unrecorded(node: str) -> NodeActivities:
    raise Missing(f"no record of {node}")


class Attached(TinyCluster):
    """A tiny cluster that grants by itself as time goes on, and may stand aside or be away."""

    away = False
    looks = 0
    last_problem: ModeReason | None = None

    def left_alone(self) -> dict[str, EligibilityReason]:
        return {}

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self.permission = Aside()
        self.queue_settings = NoScheduler()
        self.activities = ActivityReader(unrecorded, lambda: self.now_ms)
        self.restorer = Restorer(None, {}, self.perform, lambda: self.now_ms)

    def announce(self, actions: Sequence[OrderAction]) -> None:
        self.announced = [action.order for action in actions]

    def has_news(self) -> bool | None:
        return None

    def use_budgets(self, budgets: tuple[LossRule, ...], left_alone_users: tuple[str, ...]) -> None:
        raise AssertionError("no file of settings is read again")

    def observe_soon(self) -> Snapshot | None:
        raise AssertionError("nobody looks while the loop does")

    def tasks_of(self, applications: tuple[str, ...]) -> dict[str, tuple[TaskView, ...]]:
        return {name: self.tasks(self.jobs[name]) for name in applications}

    def node_load(self, node: str, snapshot: Snapshot, require_time: Callable[[], None]) -> LostNode:
        raise AssertionError("no question is asked")

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        self.adopted = [order.order for order in orders]

    def expect(self, orders: Iterable[Order]) -> None:
        self.expected = [order.order for order in orders]

    def observe(self, request: ObservationRequest) -> Observation:
        if self.away:
            raise Unreachable("http://rm: nobody answers")
        self.advance(self.now_ms + 250)
        self.schedule()
        return super().observe(request)


def busy() -> Attached:
    cluster = Attached(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 10)
    cluster.submit("production-1", "production", 0, 3)
    return cluster


def daemon(
    cluster: Attached,
    *,
    enforce: bool = True,
    lock: Lock | None = None,
    preempting: tuple[str, ...] = DEFAULT.preempting_queues,
) -> tuple[Loop, MemoryJournal]:
    journal, misdirection = MemoryJournal(), Misdirection()
    gate = WriteGuard(lock, cluster.permission.why_nothing, misdirection)
    settings = msgspec.structs.replace(DEFAULT, observe_only=not enforce, preempting_queues=preempting)
    ahead = count(1 << 50, 1 << 20)  # a clock that leaps over every wake-up: the loop never waits
    loop = Loop(
        Controller(settings, validate=True), GuardedPort(cluster, gate, enforce=enforce), journal,
        Publisher(), clock_ms=lambda: next(ahead), lock=lock, observe_soon=cluster.observe_soon,
        problem=lambda: cluster.last_problem, left_alone=cluster.left_alone,
    )  # fmt: skip
    return loop, journal


def kinds(cluster: Attached) -> list[str]:
    return [type(action).__name__ for action in cluster.actions]


def test_it_observes_by_default() -> None:
    cluster = busy()
    loop, journal = daemon(cluster, enforce=False)
    loop.run(40)
    assert cluster.actions == []
    outcomes = [record.outcome for record in journal.records if isinstance(record, Performed)]
    assert outcomes
    assert all(isinstance(outcome, Withheld) for outcome in outcomes)
    assert loop.publisher.view.loop.mode == "observe"


def test_it_acts_when_told_to() -> None:
    cluster = busy()
    loop, _ = daemon(cluster, lock=Lock())
    loop.run(60)
    assert kinds(cluster).count("Suspend") == 3
    assert kinds(cluster).count("Release") == 3
    assert cluster.jobs["production-1"].pending == 0
    assert {
        action.order for action in cluster.actions if isinstance(action, Suspend | Release | Withdraw)
    } == {f"o-00000{number}" for number in (1, 2, 3)}


@pytest.mark.parametrize(
    ("action", "key"),
    [
        (SetQueueMaximum("root.research", 0.2), ("queue", "root.research")),
        (DisablePreemption("root.research"), ("preemption", "root.research")),
        (SetPriority("a-1", 3), ("priority", "a-1")),
        (Restore(Change("queue", "root.research", "1.0", "0.2")), None),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_what_was_sent_after_the_lock_was_lost_is_left_to_the_leader(
    action: Action, key: Key | None, fails: bool
) -> None:
    """Frozen after its check, right before the request: only afterwards it knows."""
    cluster, lock, late = busy(), Lock(), list[Key]()
    port = daemon(cluster, lock=lock)[0].port
    port.sent_late = late.append

    def freeze(action: Action) -> Outcome:
        lock.held = not key
        if fails:
            raise Unreachable("its answer is lost")
        return Accepted()

    cluster.perform = freeze  # type: ignore[method-assign]
    port.perform(action)
    assert late == ([] if key is None else [key])


def test_a_request_that_was_sent_while_the_lock_was_held_is_not_late() -> None:
    cluster, late = busy(), list[Key]()
    port = daemon(cluster, lock=Lock())[0].port
    port.sent_late = late.append
    cluster.perform = lambda action: Accepted()  # type: ignore[method-assign]
    assert port.perform(SetQueueMaximum("root.research", 0.2)) == Accepted()
    assert late == []


def test_a_lock_that_is_free_again_is_tried_at_the_next_tick() -> None:
    """Between two attempts lie seconds: the standby is woken."""
    lock = Lock(held=False)
    loop, _ = daemon(busy(), lock=lock)
    now_ms = 1_000
    loop._clock_ms = lambda: now_ms
    loop.lock_renewal.renew(now_ms)

    def get() -> bool:
        lock.held = True
        return True

    lock.acquire = get  # type: ignore[method-assign]
    loop.lock_renewal.renew(now_ms)
    assert not lock.held, "its next attempt is 2 s later"
    lock.on_free()
    assert loop._poked
    loop.lock_renewal.renew(now_ms)
    assert lock.held


@pytest.mark.parametrize(
    ("kind", "reason"), [("hdfs", HdfsUnwritable("away")), ("zookeeper", LockUnconfirmed("away"))]
)
def test_a_lock_that_cannot_be_renewed_blocks_at_the_second_failure(kind: Any, reason: ModeReason) -> None:
    lock = Lock()
    lock.kind = kind
    loop, _ = daemon(busy(), lock=lock)

    def fail() -> bool:
        raise Unreachable("away")

    lock.renew = fail  # type: ignore[method-assign]
    loop.lock_renewal.renew(10_000)
    assert loop.guard.closed()[0] == "running"
    loop.lock_renewal.renew(20_000)
    assert loop.guard.closed() == ("blocked", reason)
    status = loop.status()
    assert (status.leads, status.lock, status.store_problem) == (True, kind, reason)


@pytest.mark.parametrize("closed", ["lock", "aside", "paused"])
def test_a_closed_gate_decides_nothing(closed: str) -> None:
    cluster, lock = busy(), Lock()
    loop, _ = daemon(cluster, lock=lock)
    lock.held = closed != "lock"
    cluster.permission.why = YarnPreempts("root.research", MONITOR) if closed == "aside" else None
    if closed == "paused":
        loop.pause("maintenance")
    loop.run(30)
    assert cluster.actions == []
    state = {"lock": "waiting", "aside": "blocked", "paused": "paused"}[closed]
    assert loop.status().state == state
    assert loop.status().why


def test_a_gate_that_closes_in_between_still_takes_back() -> None:
    """Orders under way are withdrawn or released by facts; nothing new begins."""
    cluster, lock = busy(), Lock()
    port = GuardedPort(
        cluster, WriteGuard(lock, cluster.permission.why_nothing, Misdirection()), enforce=True
    )
    lock.held = False
    names = ("o-000001", "research-1", "a", "c-research-1-002")
    assert isinstance(port.perform(Suspend(*names, 1, 0)), Withheld)  # no failure of the attempt
    assert isinstance(port.perform(Release(*names, 1)), Unknown)  # asked again: it is waited for
    assert not isinstance(port.perform(Withdraw(*names)), Refused)


def test_what_an_earlier_life_may_have_sent_is_not_forgotten_while_the_gate_is_closed() -> None:
    """Killed after the request was written: "surely not sent" would leave the request standing for ever."""
    cluster, lock = busy(), Lock()
    gate = WriteGuard(lock, cluster.permission.why_nothing, Misdirection())
    port = GuardedPort(cluster, gate, enforce=True, open_orders=["o-000001"])
    lock.held = False
    earlier, new = Suspend("o-000001", "r-1", "a", "c-2", 1, 0), Suspend("o-000002", "r-1", "b", "c-3", 1, 0)
    assert isinstance(port.perform(earlier), Unknown)
    assert isinstance(port.perform(new), Withheld)


@pytest.mark.parametrize("fault", [OverflowError("inf"), RecursionError(), KeyError("x"), ValueError("n")])
def test_no_error_of_the_port_ends_the_daemon(fault: Exception) -> None:
    """A port promises not to raise; what a job's owner wrote may make it break its promise."""
    cluster = busy()
    loop, _ = daemon(cluster)
    loop.run(2)
    whole = cluster.observe
    times = iter(range(3))

    def broken(request: ObservationRequest) -> Observation:
        if next(times, None) is not None:
            raise fault
        return whole(request)

    cluster.observe = broken  # type: ignore[method-assign]
    loop.run(5)
    status = loop.status()
    assert status.tick_errors == 3
    assert type(fault).__name__ in status.last_error
    cluster.actions.clear()
    loop.run(40)
    assert cluster.actions  # it goes on


def test_who_answers_may_end_in_an_error_too() -> None:
    cluster = busy()
    port = GuardedPort(
        cluster, WriteGuard(None, cluster.permission.why_nothing, Misdirection()), enforce=True
    )

    def broken() -> ClusterIdentity:
        raise RecursionError

    cluster.identify = broken  # type: ignore[method-assign]
    assert port.identify() == ClusterIdentity("", 0)
    assert "RecursionError" in port.last_error


def test_stopping_takes_back_and_gives_the_lock_up() -> None:
    cluster, lock = busy(), Lock()
    cluster.drain_ms = 1 << 40
    loop, journal = daemon(cluster, lock=lock)
    loop.run(6)
    assert kinds(cluster) == ["Suspend"] * 3 + ["Withdraw"] * 3
    assert lock.released
    assert loop.publisher.view.loop.state == "stopped"
    whys = [record.why for record in journal.records if isinstance(record, Transition) and record.why]
    assert whys == [Stopping()] * 3


def test_it_ends_in_order_and_says_why() -> None:
    """The last view is published while the lock is still held: its reason is the end's own."""

    class Lost(Lock):
        def release(self) -> None:
            self.released, self.held = True, False

    lock = Lost()
    loop, _ = daemon(busy(), lock=lock)
    published: list[tuple[str, str, bool]] = []
    publish = loop.publisher.tick

    def noted(controller, seen, status, *more) -> None:
        published.append((status.state, joined(status.why), lock.released))
        publish(controller, seen, status, *more)

    loop.publisher.tick = noted  # type: ignore[method-assign, assignment]
    loop.run(3)
    assert published[-1] == ("stopped", "completed 3 ticks (--ticks)", False)
    assert lock.released
    loop.stop()
    lock.held = True
    loop.run()
    assert published[-1][:2] == ("stopped", "stopped on request")


def test_an_end_by_an_error_is_said_and_the_lock_given_up() -> None:
    class Full(MemoryJournal):
        def append(self, records) -> None:
            raise OSError("no space left on device")

    lock = Lock()
    loop, _ = daemon(busy(), lock=lock)
    loop.recorder.journal = Full()
    with pytest.raises(OSError, match="no space"):
        loop.run(5)
    assert lock.released
    assert joined(loop.publisher.view.loop.why) == "the loop failed: OSError: no space left on device"


def test_a_stance_says_why() -> None:
    for enforce, stance in ((True, "enforcing"), (False, "observing")):
        loop, journal = daemon(busy(), enforce=enforce, lock=Lock() if enforce else None)
        loop.run(4)
        stances = [record for record in journal.records if isinstance(record, Stance)]
        assert [one.stance for one in stances] == [stance]
        assert stances[0].why == (NothingInTheWay() if enforce else NotEnforcing())


def test_in_quiet_times_it_looks_now_and_then_for_people() -> None:

    class Quiet(Attached):
        def observe(self, request: ObservationRequest) -> Observation:
            return msgspec.structs.replace(super().observe(request), snapshot=None, cluster="quiet")

        def observe_soon(self) -> Snapshot | None:
            self.looks += 1
            return None if self.away else TinyCluster.observe(self, ObservationRequest()).snapshot

    cluster = Quiet(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 4)
    loop, _ = daemon(cluster, lock=Lock())
    ages, shown = [], []
    publish = loop.publisher.tick

    def noted(*given) -> None:
        publish(*given)
        view = loop.publisher.view
        shown.append(view.snapshot)
        ages.append(-1 if view.snapshot_at_ms is None else given[1].now_ms - view.snapshot_at_ms)

    loop.publisher.tick = noted  # type: ignore[method-assign, assignment]
    loop.run(100)
    assert max(ages) < SHOW_EVERY_MS + 250
    assert min(ages) >= 0
    assert 2 < cluster.looks <= 2 + 100 * 250 // SHOW_EVERY_MS
    assert all(snapshot is not None and snapshot.applications for snapshot in shown)
    assert loop.publisher.view.no_demand
    cluster.away = True  # a look that fails leaves what was seen
    loop.run(101)
    assert loop.publisher.view.snapshot is not None


def test_a_cluster_that_is_away_is_waited_for() -> None:
    cluster = busy()
    cluster.away = True
    loop, _ = daemon(cluster, lock=Lock())
    loop.run(5)
    assert loop.status().state == "waiting"
    assert "nobody answers" in joined(loop.status().why)


def hide(cluster: Attached, why: str) -> None:
    """Let the port see nothing and say why, as the attached port does: it never raises."""
    cluster.last_problem = ClusterFault(why)

    def hidden(request: ObservationRequest) -> Observation:
        return Observation(now_ms=1, as_of_ms=1, cluster="unreachable")

    cluster.observe = hidden  # type: ignore[method-assign]


def test_a_manager_that_does_not_answer_is_not_told_as_an_older_error() -> None:
    cluster = busy()
    loop, _ = daemon(cluster, lock=Lock())
    loop.port.note("lock", "the lock: HDFS is in safe mode")
    hide(cluster, "http://rm: connection refused")
    loop.run(2)
    status = loop.status()
    assert (status.state, status.why) == ("waiting", (ClusterFault("http://rm: connection refused"),))
    assert (status.problem, status.reachable) == (ClusterFault("http://rm: connection refused"), False)
    assert (status.last_error, status.tick_errors) == ("http://rm: connection refused", 3)


@pytest.mark.parametrize("is_hidden", [True, False])
def test_a_lock_that_ran_out_is_not_called_anothers(is_hidden: bool) -> None:
    """A tick may last longer than the lock, for instance while the ResourceManager does not answer."""
    cluster, lock = busy(), Lock()
    loop, _ = daemon(cluster, lock=lock)
    loop.run(1)
    if is_hidden:
        hide(cluster, "http://rm: no answer")
    observe = cluster.observe

    def slow(request: ObservationRequest) -> Observation:
        lock.held = False
        return observe(request)

    cluster.observe = slow  # type: ignore[method-assign]
    lock.renew = lambda: True  # type: ignore[method-assign]
    lock.acquire = lambda: True  # type: ignore[method-assign]
    loop._once()
    assert loop.status().state == "waiting"
    hidden = ClusterFault("http://rm: no answer")
    assert loop.status().why == ((hidden,) if is_hidden else (LockRanOut(),))
    lock.acquire = lambda: False  # type: ignore[method-assign]
    loop._once()
    assert loop.status().why == (LockHeldElsewhere(), *((hidden,) if is_hidden else ()))


def test_an_error_that_is_back_is_logged_again(caplog) -> None:
    cluster = busy()
    loop, _ = daemon(cluster)
    for is_away in (True, True, False, True):
        cluster.away = is_away
        loop._once()
    told = [line.getMessage() for line in caplog.records if "nobody answers" in line.getMessage()]
    assert len([line for line in told if line.startswith("observing failed")]) == 2


def test_a_cluster_that_is_not_seen_is_an_error_each_minute(caplog) -> None:
    cluster = busy()
    loop, _ = daemon(cluster)
    instants_s = [0, 1, 59, 60, 90, 119, 120, 180]
    loop._clock_ms = lambda: now_ms
    now_ms = loop._seen_at_ms = 7_000
    loop._once()
    hide(cluster, "http://rm: connection refused")
    errors: list[tuple[int, str]] = []
    for second in instants_s:
        now_ms = 7_000 + 1000 * second
        caplog.clear()
        loop._publish()
        loop._once()
        errors += [(second, line.getMessage()) for line in caplog.records if line.levelno == logging.ERROR]
    assert [second for second, _ in errors] == [60, 120, 180]
    assert all(story.endswith("will retry: http://rm: connection refused") for _, story in errors)


class Biased(Attached):
    """YARN gives queue etl nothing while ``gives_nothing``, whatever is freed for it.

    Queue serving waits from ``serving_ms`` on; ``then`` is called once, at ``then_ms``.
    """

    def __init__(self, serving_ms: int, then_ms: int) -> None:
        super().__init__(5, 4, {"etl": 10, "serving": 9, "research": 1})
        self.serving_ms, self.then_ms = serving_ms, then_ms
        self.then: Callable[[], None] | None = None
        self.gives_nothing = True
        self.submit("research-1", "research", 10)
        self.submit("research-2", "research", 10)
        self.submit("etl-1", "etl", 0, 3)

    def schedule(self) -> None:
        if self.now_ms >= self.serving_ms and "serving-1" not in self.jobs:
            self.submit("serving-1", "serving", 0, 3)
        if self.now_ms >= self.then_ms and self.then is not None:
            then, self.then = self.then, None
            then()
        etl = self.jobs["etl-1"]
        hidden = etl.pending if self.gives_nothing else 0
        etl.pending -= hidden
        super().schedule()
        etl.pending += hidden


PRODUCTION = ("etl", "serving")


def test_a_queue_whose_containers_go_elsewhere_is_paused_and_the_other_served() -> None:
    cluster = Biased(serving_ms=60_000, then_ms=99_000)
    loop, journal = daemon(cluster, lock=Lock(), preempting=PRODUCTION)
    shown: list[Any] = []

    def look() -> None:
        view = loop.publisher.view
        shown.extend((view.loop.state, view.loop.aside, everything_about(view, "etl-1").rendered[-1]))

    cluster.then = look
    loop.run(400)
    (begun,) = [record for record in journal.records if isinstance(record, StoodAside)]
    assert (begun.why.queue, begun.why.until_ms - begun.at_ms) == ("etl", 300_000)
    assert {receiver for _, receiver in begun.why.orders} <= {"research-1", "research-2"}
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    later = {one.trigger.queue for one in decisions if (one.trigger.as_of_ms or 0) > begun.at_ms}
    assert later == {"serving"}  # a decision on a snapshot from before may still follow
    assert (cluster.jobs["etl-1"].pending, cluster.jobs["serving-1"].pending) == (3, 0)
    refusals = [record for record in journal.records if isinstance(record, Refusal)]
    assert [record.why for record in refusals if record.at_ms > begun.at_ms] == [begun.why]
    assert shown[:2] == ["running", (begun.why,)]
    assert f"no container is ordered: {text(begun.why)}" in shown[2]
    require_replayed(journal)
    journal.records = [without_aside(record) for record in journal.records]
    with pytest.raises(Different):
        require_replayed(journal)


def without_aside(record: Record) -> Record:
    """Return a record without the queues that are paused in its snapshot."""
    if not isinstance(record, Observed) or record.change is None:
        return record
    return msgspec.structs.replace(record, change=msgspec.structs.replace(record.change, aside=None))


def paused(then_ms: int) -> tuple[Loop, MemoryJournal, Biased]:
    """A loop with queue etl paused for 5 minutes; from ``then_ms`` on YARN gives it containers."""
    cluster = Biased(0, then_ms)
    loop, journal = daemon(cluster, lock=Lock(), preempting=PRODUCTION)
    watch = loop.guard.misdirection
    misdirect(watch, "etl")
    watch.apply([watch.pause("etl", 0, None)])
    return loop, journal, cluster


def served(journal: MemoryJournal) -> list[tuple[str, bool]]:
    """Return the queues that decisions were for, each with whether it was after 20 s."""
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    return list(dict.fromkeys((one.trigger.queue, one.at_ms > 20_000) for one in decisions))


@pytest.mark.parametrize("way", ["resume", "continue", "nothing"])
def test_an_operator_ends_a_pause_early(way: str) -> None:
    loop, journal, cluster = paused(20_000)

    def resume() -> None:
        cluster.gives_nothing = False
        if way == "resume":
            loop.resume("serving")  # not paused: nothing happens
            loop.resume("etl")
        elif way == "continue":
            loop.go_on()

    cluster.then = resume
    loop.run(200)
    assert ("serving", False) in served(journal)
    assert (("etl", True) in served(journal)) is (way != "nothing")
    assert ("etl", False) not in served(journal)
    resumed = [one.queue for one in journal.records if isinstance(one, QueueResumed)]
    assert resumed == (["etl"] if way == "resume" else [])
    stances = [one.stance for one in journal.records if isinstance(one, Stance)]
    assert ("continued" in stances) is (way == "continue")


def test_a_pause_ends_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    loop, journal, cluster = paused(20_000)

    def later() -> None:
        cluster.gives_nothing = False
        cluster.now_ms += 300_000

    cluster.then = later
    loop.run(200)
    assert cluster.jobs["etl-1"].pending == 0
    assert served(journal) == [("serving", False), ("etl", True)]
    assert "containers are freed for queue etl again" in [line.getMessage() for line in caplog.records]


def test_one_daemon_per_state_directory(tmp_path: Path) -> None:
    with StateDir(tmp_path / "state", lambda: "abcd1234") as first:
        assert first.instance == "abcd1234"
        with pytest.raises(InUse, match="another yarnctl"):
            StateDir(tmp_path / "state", lambda: "other")
    with StateDir(tmp_path / "state", lambda: "other") as again:
        assert again.instance == "abcd1234"
    (tmp_path / "state" / "instance").write_text("../../x")
    with pytest.raises(BadInput, match="invalid instance name"):
        StateDir(tmp_path / "state", lambda: "other")


def test_a_state_directory_has_a_place_of_its_own_which_a_copy_has_not(tmp_path: Path) -> None:
    """By it a restarted daemon knows that whoever held the cluster's lock from here is dead."""
    with StateDir(tmp_path / "state", lambda: "abcd1234") as first:
        place = first.journal_path
        shutil.copytree(tmp_path / "state", tmp_path / "copy")
        with StateDir(tmp_path / "copy", lambda: "other") as copy:
            assert copy.instance == first.instance
            assert copy.journal_path != place
    assert place
    with StateDir(tmp_path / "state", lambda: "other") as again:
        assert again.journal_path == place


def test_what_is_only_observed_is_told_as_that(caplog) -> None:
    caplog.set_level(logging.INFO)
    loop, journal = daemon(busy(), enforce=False)
    loop.run(40)
    told = [line.getMessage() for line in caplog.records]
    assert any(line.startswith("decision 1 for production-1: would order ") for line in told)
    assert not any(" -> " in line for line in told)
    ends = [record for record in journal.records if isinstance(record, Transition)]
    assert {end.target for end in ends} == {"simulated"}
    for end in ends:
        assert f"{end.order}: not sent, is simulated: {said(end.why)}" in told
    decided = loop.publisher.view.decisions[-1]
    assert summary(decided).withheld == len(decided.record.orders) > 0
    (story, *_) = explain(journal.records, decided.record.orders[0]).orders
    assert story.sent == "withheld"
    text = "\n".join(in_words(explain(journal.records, story.order)))
    assert "  result   none: the order was not sent (it would have freed its container after 4 s)" in text
    assert "  cost     none: the order was not sent" in text
    found = explain(journal.records, "production-1")
    assert (found.tallies, found.rendered) == ([], [f"{len(found.orders)} orders were not sent"])


def test_what_is_really_asked_is_told_as_before(caplog) -> None:
    caplog.set_level(logging.INFO)
    loop, _ = daemon(busy(), lock=Lock())
    loop.run(60)
    told = [line.getMessage() for line in caplog.records]
    assert any(" -> " in line for line in told)
    assert not any("would order" in line or "not sent" in line for line in told)
    assert {summary(each).withheld for each in loop.publisher.view.decisions} == {0}


def test_a_stance_is_logged_once(caplog) -> None:
    caplog.set_level(logging.INFO)
    cluster = busy()
    loop, _ = daemon(cluster, lock=Lock())
    loop.run(10)
    cluster.permission.why = PreemptionUnknown()
    loop.run(20)
    told = [line.getMessage() for line in caplog.records if "blocked" in line.getMessage()]
    assert told == [f"blocked: {text(PreemptionUnknown())}"]


def test_the_number_of_nodes_shown_is_that_of_now() -> None:
    """After a restart of the ResourceManager it is met with no node yet; others come and go later."""
    cluster = busy()
    loop, _ = daemon(cluster)
    cluster.identify = lambda: ClusterIdentity("1", 0)  # type: ignore[method-assign]
    whole = cluster.observe
    nodes = 3

    def counted(request: ObservationRequest) -> Observation:
        seen = whole(request)
        snapshot = seen.snapshot and msgspec.structs.replace(seen.snapshot, node_count=nodes)
        return msgspec.structs.replace(seen, snapshot=snapshot)

    cluster.observe = counted  # type: ignore[method-assign]
    shown = []
    for nodes in (3, 2, 5):
        while (
            loop.port.last_observation is None
            or loop.port.last_observation.snapshot is None
            or nodes != count_of(loop)
        ):
            loop._once()
            assert loop.ticks < 100
        shown.append(count_of(loop))
    assert shown == [3, 2, 5]
    view = loop.publisher.view.loop
    assert view.cluster is not None
    assert view.cluster.node_count == 5


def count_of(loop: Loop) -> int:
    who = loop.status().cluster
    return -1 if who is None else who.node_count


def test_the_number_of_nodes_follows_in_quiet_times(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Attached(3, 4, {"production": 11, "research": 1})
    cluster.submit("research-1", "research", 2)
    loop, _ = daemon(cluster)
    loop.run(3)
    shown = loop.port.snapshot
    assert shown is not None
    loop._observe_soon = lambda: msgspec.structs.replace(shown, node_count=2)
    assert loop.port.last_observation is not None
    loop.port.last_observation = msgspec.structs.replace(loop.port.last_observation, cluster="quiet")
    loop.port.snapshot_at_ms = loop.port.last_observation.now_ms - SHOW_EVERY_MS
    assert loop._shown() is not None
    assert count_of(loop) == 2


def test_view_counts_applications_with_other_resource_types() -> None:
    """The vectors of a cluster's applications differ in length."""

    class WithGpus(Attached):
        def observe(self, request: ObservationRequest) -> Observation:
            seen = super().observe(request)
            if seen.snapshot is None:
                return seen
            rows = tuple(
                msgspec.structs.replace(row, used=Resources(*row.used, 2)) if row.containers else row
                for row in seen.snapshot.applications
            )
            shown = msgspec.structs.replace(seen.snapshot, applications=rows, resource_names=("yarn.io/gpu",))
            return msgspec.structs.replace(seen, snapshot=shown)

    cluster = WithGpus(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 10)
    cluster.submit("production-1", "production", 0, 3)
    loop, _ = daemon(cluster, lock=Lock())
    loop.run(3)
    sample = loop.publisher.view.occupancy[0]
    assert sample.preemptable.used == Resources(20 * 1024, 20, 4)
    assert kinds(cluster).count("Suspend") == 3


def test_news_of_a_task_under_order_ends_the_wait() -> None:
    loop, _ = daemon(busy())
    now_ms = count(0, 1)
    loop._clock_ms = lambda: next(now_ms)
    found = iter([False, False, True])
    loop.port.news = lambda: next(found)
    loop._wait_until(1 << 40)
    assert next(found, "all were asked for") == "all were asked for"


def test_without_orders_nothing_is_listed_while_the_loop_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, _ = daemon(busy())
    spans: list[float] = []
    asked_for: list[int] = []
    monkeypatch.setattr(loop._wake, "wait", lambda span_s: spans.append(span_s))
    loop._clock_ms = lambda: int(sum(spans) * 1000)
    loop.port.news = lambda: asked_for.append(1)
    loop._wait_until(1000)
    assert (spans, asked_for) == ([0.06, 0.94], [1])


def test_a_failed_listing_is_no_news() -> None:
    loop, _ = daemon(busy())

    def fail() -> bool:
        raise OSError("no listing")

    loop.port.news = fail
    assert loop.port.has_news() is None
    assert "no listing" in loop.port.last_error
