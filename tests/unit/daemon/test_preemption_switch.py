"""YARN's own preemption is off while yarnctl acts, and on again whatever ends it."""

from __future__ import annotations

import logging
import random

import pytest

from tests.unit.daemon.test_loop import Attached, Lock, busy, daemon
from tests.unit.restoring.world import FOLDER, Folder, Host, Trap, Values
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.preemption_switch import HOLD_MS, LOOK_MS, RETRY_MS, PreemptionSwitch
from yarnctl.deciding.model import Change, DisablePreemption, Outcome, Refused, Unknown, Withheld
from yarnctl.deciding.reasons.modes import (
    FoldersUnreachable,
    HdfsUnwritable,
    LockHeldElsewhere,
    LockRanOut,
    ManagerSettling,
    ModeReason,
    Paused,
    PreemptionOn,
    PreemptionUnknown,
)
from yarnctl.deciding.reasons.orders import ReadBack
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Lowering, Performed, Restored, performed
from yarnctl.journal.fold import OpenChanges
from yarnctl.restoring.change_file import ChangeFiles, command_for, stored_records
from yarnctl.restoring.restorer import AT_ONCE_MAX

RESEARCH, LAB = "root.research", "root.lab"
PAUSED = Paused("by a person")


class Net:
    """A ResourceManager whose policy runs: the keys of leaves, and one process that switches them."""

    def __init__(self, keys: dict[str, str] | None = None) -> None:
        self.hdfs = Folder()
        self.values = Values(self.hdfs)
        self.values.values = dict(keys or {RESEARCH: ""})
        self.preemptable = set(self.values.values)
        self.host, self.switch = self.process("one")
        self.epoch = "1"
        self.requests: list[str] = []

    def process(self, holder: str, term: int = 1) -> tuple[Host, PreemptionSwitch]:
        """Return a process that would switch, and its restorer."""
        host = Host(self.hdfs, self.values, holder, term)
        switch = PreemptionSwitch(
            self.preempted, self.key, self.perform, lambda queue: queue in self.preemptable, host.restorer
        )
        return host, switch

    def preempted(self) -> list[str]:
        return [queue for queue in self.preemptable if self.key(queue) != "true"]

    def key(self, queue: str) -> str:
        return str(self.values.values[queue])

    def perform(self, action: DisablePreemption) -> Outcome:
        self.requests.append(action.queue)
        recorded = [one.record for one in stored_records(self.hdfs, FOLDER)]  # type: ignore[arg-type]
        assert any(
            change.target == action.queue for record in recorded if record for change in record.changes
        ), "switched, and no record in HDFS says so"
        return self.values.set(action.queue, "true")

    def tick(self, at_ms: int, closed: ModeReason | None = None, *, waits: bool = False) -> None:
        """Do as the loop after a tick."""
        tick(self.host, self.switch, self.epoch, at_ms, closed, waits=waits)


def tick(
    host: Host, switch: PreemptionSwitch, epoch: str, at_ms: int, closed: ModeReason | None, *, waits: bool
) -> None:
    host.now_ms = 1_000_000 + at_ms
    switch.reconcile(host.records.append, host.now_ms, closed, epoch, may_wait=waits)
    host.restorer.reconcile()


@pytest.mark.parametrize("before", ["", "false"])
def test_switch_lasts_while_yarnctl_acts_and_restores_each_value_before(before: str) -> None:
    net = Net({RESEARCH: before, LAB: "true"})
    for at_ms in range(0, 600_000, 500):
        net.tick(at_ms, PreemptionOn(RESEARCH) if at_ms == 0 else None, waits=at_ms % 7_000 < 3_000)
    assert (net.requests, net.values.values) == ([RESEARCH], {RESEARCH: "true", LAB: "true"})
    net.tick(600_000, PAUSED)
    net.tick(602_000, PAUSED)
    assert (net.values.values, net.hdfs.files) == ({RESEARCH: before, LAB: "true"}, {})
    assert [type(record) for record in net.host.records[:2]] == [Lowering, Performed]
    net.tick(603_000)
    assert net.values.values[RESEARCH] == "true"


def test_pause_waits_for_the_end_of_demand_and_at_most_a_stated_time() -> None:
    net = Net()
    net.tick(0)
    net.tick(1_000, PAUSED, waits=True)
    net.tick(HOLD_MS, PAUSED, waits=True)
    assert net.values.values[RESEARCH] == "true"
    net.tick(HOLD_MS + 1_000, PAUSED, waits=True)
    assert net.values.values[RESEARCH] == ""
    net.tick(HOLD_MS + 3_000)
    net.tick(HOLD_MS + 4_000)
    assert net.values.values[RESEARCH] == "true", "it acts again, and begins with a new hold"
    net.tick(HOLD_MS + 5_000, PAUSED, waits=True)
    assert net.values.values[RESEARCH] == "true"
    net.tick(HOLD_MS + 6_000, PAUSED)
    assert net.values.values[RESEARCH] == ""


@pytest.mark.parametrize(
    "missing", [FoldersUnreachable("timed out"), HdfsUnwritable("x"), PreemptionUnknown()]
)
def test_an_answer_that_is_missing_for_a_while_switches_nothing(missing: ModeReason) -> None:
    net = Net()
    net.tick(0)
    for at_ms in range(1_000, 1_000 + LOOK_MS, 1_000):
        net.tick(at_ms, missing)
        assert net.values.values[RESEARCH] == "true"
    net.tick(1_000 + LOOK_MS)
    assert net.requests == [RESEARCH], "it is not set again"
    net.tick(20_000, missing)
    net.tick(20_000 + LOOK_MS, missing)
    assert net.values.values[RESEARCH] == ""


@pytest.mark.parametrize("why", [PAUSED, LockRanOut(), LockHeldElsewhere(), HdfsUnwritable("x")])
def test_a_pause_and_a_lost_lock_during_a_missing_answer_end_the_wait_at_once(why: ModeReason) -> None:
    net = Net()
    net.tick(0)
    net.tick(1_000, FoldersUnreachable("timed out"))
    net.host.leads = not isinstance(why, HdfsUnwritable)
    net.tick(2_000, why)
    assert all(one.why is not None for one in net.host.restorer.open.values())
    assert net.values.values[RESEARCH] == ""


def test_standby_keeps_what_a_killed_leader_switched() -> None:
    net = Net()
    net.tick(0)
    net.host, net.switch = net.process("two", term=2)
    net.host.restorer.lost()
    for at_ms in range(8_000, 30_000, 500):
        net.tick(at_ms, ManagerSettling() if at_ms < 12_000 else None, waits=True)
        assert net.values.values[RESEARCH] == "true"
    assert net.requests == [RESEARCH]
    net.tick(31_000, PAUSED)
    net.tick(33_000, PAUSED)
    assert (net.values.values[RESEARCH], net.hdfs.files) == ("", {}), "the value before the first switch"


def test_standby_with_other_queues_restores_what_it_does_not_use() -> None:
    net = Net({RESEARCH: "", LAB: "false"})
    net.tick(0)
    assert sorted(net.requests) == [LAB, RESEARCH]
    host, switch = net.process("two", term=2)
    host.restorer.lost()
    net.preemptable = {RESEARCH}
    tick(host, switch, "1", 20_000, None, waits=True)
    assert net.values.values == {RESEARCH: "true", LAB: "false"}


def test_restarted_manager_that_forgot_the_key_is_set_again_at_the_first_look() -> None:
    net = Net()
    net.tick(0)
    net.values.values[RESEARCH], net.epoch = "", "2"  # a memory store
    net.tick(500, ManagerSettling(), waits=True)
    assert net.values.values[RESEARCH] == "true"
    assert [type(record) for record in net.host.records] == [Lowering, Performed, Performed]
    fold = OpenChanges()
    for record in net.host.records:
        assert fold.problem(record) == ""
        fold.apply(record)


def test_forgotten_key_counts_as_restored() -> None:
    net = Net()
    net.tick(0)
    net.values.values[RESEARCH] = ""
    requests = len(net.values.requests)
    net.tick(500, PAUSED)
    assert len(net.values.requests) == requests
    (end,) = [record for record in net.host.records if isinstance(record, Restored)]
    assert (end.why, net.hdfs.files) == (ReadBack(), {})


def test_owner_that_sets_false_meanwhile_gets_false_back() -> None:
    net = Net()
    net.tick(0)
    net.values.values[RESEARCH] = "false"
    net.tick(500)
    assert net.values.values[RESEARCH] == "true"
    net.tick(1_000, PAUSED)
    net.tick(3_000, PAUSED)
    assert net.values.values[RESEARCH] == "false"


@pytest.mark.parametrize("answer", [Refused(ClientFault("HTTP 403")), Withheld(ClientFault("later"))])
def test_rejected_switch_leaves_no_record_and_is_retried(
    answer: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    net = Net()
    net.values.answers = [answer, answer]
    for at_ms in range(0, 2 * RETRY_MS, 500):
        net.tick(at_ms, PreemptionOn(RESEARCH))
        assert (net.values.values[RESEARCH], net.hdfs.files) == ("", {})
    assert len(net.requests) == 2
    assert len([line for line in caplog.records if line.levelno >= logging.WARNING]) == 1
    net.tick(2 * RETRY_MS, PreemptionOn(RESEARCH))
    assert net.values.values[RESEARCH] == "true"


def test_request_without_an_answer_counts_as_made() -> None:
    net = Net()
    net.values.answers = [Unknown(ClientFault("no answer"))]
    net.tick(0, PreemptionOn(RESEARCH))
    assert len(net.hdfs.files) == 1
    net.tick(500, PAUSED)
    net.tick(2_500, PAUSED)
    assert (net.values.values[RESEARCH], net.hdfs.files) == ("", {})


def test_without_the_lock_nothing_is_switched() -> None:
    net = Net()
    net.host.leads = False
    net.host.restorer.lost()
    net.tick(0, PreemptionOn(RESEARCH))
    assert (net.requests, net.hdfs.files) == ([], {})


def test_lock_that_runs_out_during_a_switch_sends_nothing_more() -> None:
    """The next leader takes the record over and restores: a key set after that stays without a record."""
    net = Net({f"root.lab{number}": "" for number in range(4)})
    set_key = net.values.set

    def slow(target: str, value: str) -> Outcome:
        net.host.leads = len(net.requests) < 2
        return set_key(target, value)

    net.values.set = slow  # type: ignore[method-assign]
    net.tick(0, PreemptionOn("root.lab0"))
    assert len(net.requests) == 2


@pytest.mark.parametrize("is_read", [False, True])
def test_queue_that_cannot_be_switched_gives_the_others_back(is_read: bool) -> None:
    """As long as YARN preempts in one of them yarnctl acts in none."""
    net = Net({RESEARCH: "", LAB: "", "root.b": ""})
    net.tick(0)
    assert set(net.values.values.values()) == {"true"}
    set_key = net.values.set

    def refuse(target: str, value: str) -> Outcome:
        return Refused(ClientFault("HTTP 403")) if target == LAB else set_key(target, value)

    net.values.set = refuse  # type: ignore[method-assign]
    net.values.values[LAB] = "" if is_read else "no"
    for at_ms in range(500, HOLD_MS, 500):
        net.tick(at_ms, PreemptionOn(LAB))
        assert net.values.values[RESEARCH] == "true"
    for at_ms in range(HOLD_MS, 3 * HOLD_MS, 500):
        net.tick(at_ms, PreemptionOn(LAB))
        if at_ms > HOLD_MS + 3_000:
            assert net.values.values == {RESEARCH: "", LAB: "" if is_read else "no", "root.b": ""}
    net.values.set = set_key  # type: ignore[method-assign]
    net.values.values[LAB] = ""
    for at_ms in range(3 * HOLD_MS, 4 * HOLD_MS, 500):
        net.tick(at_ms, PreemptionOn(LAB) if net.values.values[LAB] != "true" else None)
    assert set(net.values.values.values()) == {"true"}


def test_thousands_of_queues_are_switched_a_few_at_a_time() -> None:
    """A look that takes as long as all of them would lose the lock, and the open orders with it."""
    net = Net({f"root.lab{number:04d}": "" for number in range(30)})
    net.tick(0, PreemptionOn("root.lab0000"))
    assert 1 <= len(net.requests) <= AT_ONCE_MAX
    for at_ms in range(500, 5_000, 500):
        net.tick(at_ms, PreemptionOn("root.lab0000"))
    assert set(net.values.values.values()) == {"true"}
    net.epoch = "2"
    net.values.values = dict.fromkeys(net.values.values, "")
    for at_ms in range(5_000, 20_000, 500):
        before = len(net.requests)
        net.tick(at_ms)
        assert len(net.requests) - before <= AT_ONCE_MAX
    assert set(net.values.values.values()) == {"true"}
    for at_ms in range(20_000, 60_000, 500):
        net.tick(at_ms, PAUSED)
    assert (set(net.values.values.values()), net.hdfs.files) == ({""}, {})


@pytest.mark.parametrize("odd", ["yes", "0", "${preempt}", "tru\x00e", "\x1b[2J"])
def test_key_that_no_record_can_have_is_not_switched(odd: str, caplog: pytest.LogCaptureFixture) -> None:
    """YARN reads it as the default: it preempts there, but the next leader would not restore the value."""
    net = Net({RESEARCH: odd, LAB: ""})
    for at_ms in range(0, 2 * RETRY_MS, 500):
        net.tick(at_ms, PreemptionOn(RESEARCH))
    assert all(one.record is not None for one in stored_records(net.hdfs, FOLDER))  # type: ignore[arg-type]
    assert net.values.values == {RESEARCH: odd, LAB: ""}
    (line,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "root.research" in line
    assert line.isprintable()


def test_commands_by_hand_and_the_fold() -> None:
    absent, false = (Change("preemption", RESEARCH, before, "true") for before in ("", "false"))
    assert command_for(absent) == "yarn schedulerconf -update root.research:disable_preemption="
    assert command_for(false) == "yarn schedulerconf -update root.research:disable_preemption=false"
    fold, made = OpenChanges(), performed(1, DisablePreemption(RESEARCH), Withheld(ClientFault("x")))
    assert "no record says so" in fold.problem(made)
    fold = OpenChanges([Change("queue", RESEARCH, "0.9", "0.05")])
    assert "disable_preemption of root.research" in fold.problem(made)


# --- in the loop --------------------------------------------------------------------------------


def switching_loop(cluster: Attached, net: Net) -> Loop:
    loop, _ = daemon(cluster, lock=Lock())
    loop._restorer, net.host.restorer._clock = net.host.restorer, lambda: cluster.now_ms
    net.host.restorer.write = loop._write
    loop._preemption_switch = net.switch
    loop._kinds = [kind for kind in loop._kinds if kind != "preemption"]
    return loop


def test_stop_leaves_the_record_and_names_it(caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    switching_loop(busy(), net).run(20)
    assert net.values.values[RESEARCH] == "true"
    assert len(net.hdfs.files) == 1
    assert "run yarnctl restore --all: disable_preemption of root.research from absent" in caplog.text


def test_pause_in_the_loop_gives_it_back_when_no_production_waits() -> None:
    net, cluster = Net(), Attached(5, 4, {"production": 19, "research": 1})
    loop = switching_loop(cluster, net)
    loop.run(3)
    assert net.values.values[RESEARCH] == "true"
    loop.pause("by a person")
    loop.run(15)
    assert net.values.values[RESEARCH] == ""


# --- random histories ---------------------------------------------------------------------------


class Died(BaseException):
    """kill -9."""


def _die() -> None:
    raise Died


class Histories:
    """Leaders that are killed, replaced and cut off from YARN, while owners set keys and YARN restarts."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        queues = [f"root.q{number}" for number in range(self.chance.choice((1, 2, AT_ONCE_MAX + 4)))]
        self.owners = {queue: self.chance.choice(("", "false")) for queue in queues}
        self.net = Net(dict(self.owners))
        self.processes = {1: self.net.process("p1")}
        self.term, self.at_ms = 1, 0

    def lead(self) -> None:
        """Let a new process lead; the one before may live on."""
        if self.term in self.processes:
            self.processes[self.term][0].leads = False
        self.term += 1
        self.processes[self.term] = self.net.process(f"p{self.term}", self.term)
        self.processes[self.term][0].restorer.lost()

    def disturb(self) -> None:
        """Let things happen between two looks."""
        net, chance = self.net, self.chance
        if chance.random() < 0.05:
            queue = chance.choice(list(self.owners))
            net.values.values[queue] = self.owners[queue] = chance.choice(("", "false", "yes"))
        if chance.random() < 0.05:
            net.values.unread = "" if net.values.unread else "no answer"
        if chance.random() < 0.1:
            faults = (Refused, Withheld, Unknown)
            net.values.answers = [chance.choice(faults)(ClientFault("x")) for _ in range(2)]
        if chance.random() < 0.03:  # restarted, with a memory store
            net.epoch, net.values.values = f"{net.epoch}0", dict(self.owners)
        if chance.random() < 0.04:
            if chance.random() < 0.5:
                self.processes.pop(self.term, None)
            self.lead()
        net.preemptable = set(self.owners) if chance.random() < 0.95 else {chance.choice(list(self.owners))}
        net.hdfs.trap = Trap(chance.randint(1, 6), _die) if chance.random() < 0.06 else Trap()

    def look(self, closed: ModeReason | None, *, waits: bool = False) -> None:
        """Let every process look; only the newest holds the lock."""
        for term in list(self.processes):
            host, switch = self.processes[term]
            why = closed if term == self.term else LockRanOut()
            try:
                tick(host, switch, self.net.epoch, self.at_ms, why, waits=waits)
            except Died:
                del self.processes[term]
                self.net.hdfs.trap = Trap()
                if term == self.term:
                    self.lead()

    def play(self) -> None:
        """Play; in the end nothing is away, and the last leader is paused."""
        chance, net = self.chance, self.net
        for _ in range(120):
            self.at_ms += chance.choice((250, 500, 1_000, 8_000))
            self.disturb()
            closed = chance.choice((None, None, None, PAUSED, ManagerSettling()))
            self.look(
                PreemptionOn("") if closed is None and net.preempted() else closed,
                waits=chance.random() < 0.5,
            )
        net.values.unread, net.values.answers, net.hdfs.trap = "", [], Trap()
        self.lead()
        for _ in range(400):
            self.at_ms += 500
            self.look(PAUSED)


@pytest.mark.parametrize("seed", range(25))
def test_random_histories_end_with_the_owners_values(seed: int) -> None:
    history = Histories(seed)
    history.play()
    assert history.net.values.values == history.owners
    assert history.net.hdfs.files == {}
    for host, _ in history.processes.values():
        fold = OpenChanges()
        for record in host.records:
            assert fold.problem(record) == ""
            fold.apply(record)


def test_random_histories_without_taking_records_over_turn_red(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeFiles, "others", lambda self: ())
    ended = []
    for seed in range(10):
        history = Histories(seed)
        history.play()
        ended.append(history.net.values.values == history.owners)
    assert not all(ended)
