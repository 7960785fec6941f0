"""A node on a clock that the test turns: the grid, lost answers, resync, containers once and for all."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.live.node.node_manager import Gone, LiveNode
from emulator.live.wire.messages import (
    EXIT_ABORTED,
    EXIT_KILLED_BY_MASTER,
    Doorbell,
    EndedContainer,
    MasterLaunch,
    NodeOrders,
    NodeRegistered,
    NodeRegistration,
    NodeReport,
    Signal,
    TaskLaunch,
    TaskStop,
)
from emulator.live.wire.real_time_driver import RealTimeDriver

START_MS = 1_000_000_000_000
PHASE_MS = 250


class TurnedPace(RealTimeDriver):
    """A pace whose wall clock is turned by hand."""

    def __init__(self) -> None:
        self.wall = START_MS
        super().__init__(Kernel(), wall_ms=lambda: self.wall)

    def wake(self) -> None:
        pass

    def to(self, at_ms: int) -> None:
        """Let time pass, instant by instant, until ``at_ms`` after the start."""
        while (next_ms := self.kernel.next_at_ms()) is not None and next_ms <= START_MS + at_ms:
            self.wall = max(self.wall, next_ms)
            self.catch_up()
        self.wall = START_MS + at_ms
        self.catch_up()


class Started:
    """A container as a launcher holds it."""

    def __init__(self, launch: TaskLaunch | MasterLaunch, gone: Gone) -> None:
        self.launch, self.gone = launch, gone
        self.signals: list[Signal] = []
        self.ends = 0

    def notify(self, signal: Signal) -> None:
        self.signals.append(signal)

    def end(self) -> None:
        self.ends += 1


class Rig:
    """A node, its ResourceManager (a script) and its launcher (a list)."""

    def __init__(self) -> None:
        self.pace = TurnedPace()
        self.registrations: list[NodeRegistration] = []
        self.reports: list[tuple[int, NodeReport]] = []
        self.orders: dict[int, NodeOrders] = {}
        self.lost: set[int] = set()
        self.kept: list[Callable[[], None]] = []
        self.keep = False
        self.started: list[Started] = []
        self.rung: list[Doorbell] = []
        shape = NodeRegistration(node="n:1", address="http://n:1", memory_mib=4096, vcores=4)
        self.node = LiveNode(shape, self, self.pace, self)
        self.node.join()

    # the wire
    def register_node(
        self, registration: NodeRegistration, answered: Callable[[NodeRegistered | None], None]
    ) -> None:
        self.registrations.append(registration)
        answered(NodeRegistered(epoch=1, heartbeat_ms=1000, phase_ms=PHASE_MS))

    def node_heartbeat(self, report: NodeReport, answered: Callable[[NodeOrders | None], None]) -> None:
        sent = len(self.reports) + 1
        self.reports.append((self.pace.kernel.now_ms - START_MS, report))
        orders = self.orders.pop(sent, NodeOrders(number=report.number))
        if not orders.resync:
            orders = msgspec.structs.replace(orders, number=report.number)
        if self.keep:
            self.kept.append(lambda: answered(orders))
        else:
            answered(None if sent in self.lost else orders)

    # the launcher
    def launch_task(self, node: str, launch: TaskLaunch, gone: Gone) -> Started:
        self.started.append(Started(launch, gone))
        return self.started[-1]

    def launch_master(self, node: str, launch: MasterLaunch, gone: Gone) -> Started:
        self.started.append(Started(launch, gone))
        return self.started[-1]

    def notify_modelled(self, bell: Doorbell) -> None:
        self.rung.append(bell)

    @property
    def beats(self) -> list[int]:
        return [at_ms for at_ms, _ in self.reports]

    def ended(self) -> tuple[EndedContainer, ...]:
        return self.last.ended

    @property
    def last(self) -> NodeReport:
        return self.reports[-1][1]


def task(container: str, *, modelled: bool = False) -> TaskLaunch:
    return TaskLaunch(container=container, application="a", kind="reduce", command=("x",), modelled=modelled)


def test_it_beats_on_the_grid_and_counts_up() -> None:
    rig = Rig()
    rig.pace.to(3300)
    assert rig.beats == [250, 1250, 2250, 3250]
    assert [report.number for _, report in rig.reports] == [1, 2, 3, 4]


def test_a_late_wake_up_neither_shifts_the_grid_nor_makes_up_for_beats() -> None:
    rig = Rig()
    rig.pace.to(300)
    rig.pace.wall = START_MS + 4700  # the process was stopped for a while
    rig.pace.catch_up()
    rig.pace.to(7000)
    assert rig.beats == [250, 1250, 5250, 6250]


def test_a_lost_answer_is_asked_for_again_with_the_same_content() -> None:
    rig = Rig()
    rig.lost = {2, 3}
    rig.node.start(task("c1"))
    rig.pace.to(1000)
    rig.started[0].gone(0, "")
    rig.pace.to(1500)
    rig.node.start(task("c2"))
    rig.started[1].gone(5, "")
    rig.pace.to(4300)
    reports = [report for _, report in rig.reports]
    assert [report.number for report in reports] == [1, 2, 2, 2, 3]
    assert reports[1] == reports[2] == reports[3]
    assert [one.container for one in reports[3].ended] == ["c1"]
    assert [one.container for one in reports[4].ended] == ["c2"]
    rig.pace.to(5300)
    assert rig.ended() == ()


def test_at_most_one_beat_is_under_way() -> None:
    rig = Rig()
    rig.keep = True
    rig.pace.to(3300)
    assert rig.beats == [250]
    rig.keep = False
    rig.kept[0]()
    rig.pace.to(4300)
    assert [(at_ms, report.number) for at_ms, report in rig.reports] == [(250, 1), (4250, 2)]


def test_a_resourcemanager_that_does_not_know_it_is_told_what_runs_and_what_ended() -> None:
    rig = Rig()
    rig.node.start(task("c1"))
    rig.node.start(task("c2"))
    rig.pace.to(300)
    rig.started[0].gone(0, "")
    rig.orders[2] = NodeOrders(number=0, resync=True)
    rig.pace.to(2300)
    assert [one.running for one in rig.registrations] == [(), ("c2",)]
    (at_ms, report) = rig.reports[2]
    assert (at_ms, report.number, [one.container for one in report.ended]) == (2250, 1, ["c1"])
    assert report.running == ("c2",)
    rig.pace.to(3300)
    assert rig.ended() == ()


def test_an_answer_that_comes_after_a_new_registration_changes_nothing() -> None:
    rig = Rig()
    rig.orders[1] = NodeOrders(number=1, stop=("c1",))
    rig.node.start(task("c1"))
    rig.keep = True
    rig.pace.to(300)
    rig.keep = False
    rig.node.join()
    rig.kept[0]()
    assert rig.started[0].ends == 0


def test_a_container_is_started_once_however_often_it_is_asked_for() -> None:
    rig = Rig()
    rig.node.start(task("c1"))
    rig.node.start(task("c1"))
    rig.started[0].gone(0, "")
    rig.node.start(task("c1"))
    assert len(rig.started) == 1


def test_a_stop_is_told_as_it_was_meant_and_only_once_it_is_over() -> None:
    rig = Rig()
    rig.node.start(task("c1"))
    rig.node.stop(TaskStop(container="c1"))
    rig.node.stop(TaskStop(container="c1", exit_status=-1))
    rig.pace.to(300)
    assert rig.last.running == ("c1",)
    assert rig.ended() == ()
    rig.pace.to(700)
    rig.started[0].gone(143, "")
    rig.pace.to(1300)
    assert rig.ended() == (EndedContainer("c1", EXIT_KILLED_BY_MASTER, START_MS + 700),)
    rig.node.stop(TaskStop(container="c1"))
    rig.pace.to(2300)
    assert rig.ended() == ()


def test_a_container_stopped_before_its_start_is_over_and_never_starts() -> None:
    rig = Rig()
    rig.node.stop(TaskStop(container="c1"))
    rig.node.start(task("c1"))
    rig.pace.to(300)
    assert rig.started == []
    assert [one.container for one in rig.last.ended] == ["c1"]


def test_orders_of_a_heartbeat() -> None:
    rig = Rig()
    master = MasterLaunch(
        container="am", application="a", attempt=1, memory_mib=1, vcores=1, user="u", job=msgspec.Raw(b"{}")
    )
    rig.orders[1] = NodeOrders(number=1, masters=(master, master))
    rig.orders[2] = NodeOrders(number=2, signals=(Doorbell("am", "OUTPUT_THREAD_DUMP"),), stop=("am", "c9"))
    rig.pace.to(1300)
    assert [each.launch for each in rig.started] == [master]
    assert rig.started[0].signals == ["OUTPUT_THREAD_DUMP"]
    assert rig.started[0].ends == 1
    rig.started[0].gone(143, "")
    rig.pace.to(2300)
    assert [(one.container, one.exit_status) for one in rig.last.ended] == [
        ("c9", EXIT_ABORTED),
        ("am", EXIT_ABORTED),
    ]


def test_a_container_that_is_over_before_its_launcher_returns() -> None:
    rig = Rig()
    launch = rig.launch_task

    def at_once(node: str, asked: TaskLaunch, gone: Gone) -> Started:
        started = launch(node, asked, gone)
        gone(127, "no such program")
        return started

    rig.launch_task = at_once  # type: ignore[method-assign, assignment]
    rig.node.start(task("c1"))
    rig.pace.to(300)
    assert rig.last.running == ()
    assert rig.ended() == (EndedContainer("c1", 127, START_MS, "no such program"),)


def test_a_modelled_container_is_held_until_the_first_beat_at_or_after_its_end() -> None:
    rig = Rig()
    for name, end_ms in (("c1", 1250), ("c2", 1251), ("c3", 500)):
        rig.node.start(task(name, modelled=True))
        rig.node.stop(TaskStop(container=name, exit_status=0, at_ms=START_MS + end_ms))
    rig.node.stop(TaskStop(container="c3", exit_status=9, at_ms=START_MS + 5000))  # of two ends the earlier
    rig.pace.to(300)
    assert rig.last.running == ("c1", "c2", "c3")
    rig.pace.to(1300)
    assert rig.ended() == (EndedContainer("c3", 0, START_MS + 500), EndedContainer("c1", 0, START_MS + 1250))
    rig.pace.to(2300)
    assert rig.ended() == (EndedContainer("c2", 0, START_MS + 1251),)
    assert rig.started == []


def test_signals_of_a_modelled_container() -> None:
    rig = Rig()
    for name in ("c1", "c2", "c3"):
        rig.node.start(task(name, modelled=True))
    rig.orders[1] = NodeOrders(
        number=1,
        signals=(Doorbell("c1", "OUTPUT_THREAD_DUMP"), Doorbell("c2", "GRACEFUL_SHUTDOWN"),
            Doorbell("c9", "OUTPUT_THREAD_DUMP")),
        stop=("c3",),
    )  # fmt: skip
    rig.pace.to(1300)
    assert rig.rung == [Doorbell("c1", "OUTPUT_THREAD_DUMP")]
    assert [(one.container, one.exit_status) for one in rig.last.ended] == [("c2", 143), ("c3", EXIT_ABORTED)]
    assert rig.last.running == ("c1",)


def test_leaving_is_silence_and_the_end_of_every_container() -> None:
    rig = Rig()
    rig.node.start(task("c1"))
    rig.pace.to(300)
    rig.node.leave()
    assert rig.started[0].ends == 1
    rig.pace.to(5000)
    assert rig.beats == [250]
