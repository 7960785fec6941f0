"""Going on after a life that is over: what was only observed stays without effect, what was changed is
put back, who answered is remembered, and no newer program is kept from starting.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import msgspec
import pytest

from tests.golden.tables import app
from tests.golden.tables import cluster as cluster_of
from tests.unit.daemon.test_loop import Attached, Lock, busy, daemon, kinds
from tests.unit.restoring.world import FOLDER, Folder, Values
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.eligibility.permission import MONITOR
from yarnctl.config import ClusterAddress
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.running import Plan, _list_changes, clock_ms, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import (
    Action,
    Change,
    EpochChanged,
    Observation,
    ObservationRequest,
    Outcome,
    Release,
    Restore,
    SetPriority,
    Suspend,
    Withdraw,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import YarnPreempts
from yarnctl.deciding.reasons.orders import DeadlineOrder, ReadBack
from yarnctl.deciding.records import (
    FORMAT,
    Contact,
    Header,
    Lowering,
    Performed,
    Ranked,
    Ranking,
    Requests,
    Restored,
    Resumed,
)
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import Rebuilt, rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.loop import ClusterIdentity
from yarnctl.restoring.change_file import ChangeFiles
from yarnctl.restoring.restorer import Restorer

AHEAD = count(1 << 50, 1 << 20)
"""A clock that leaps over every wake-up, in each life on from the one before: no loop ever waits."""


def life(
    cluster: Attached, path: Path, ticks: int, *, enforce: bool, peace: bool = True, lock: Lock | None = None
) -> Rebuilt | None:
    """Run one life of a daemon on a journal; without ``peace`` it is killed at its end."""
    repair(path)
    rebuilt = rebuild(path)
    misdirection = Misdirection()
    if rebuilt is not None:
        misdirection = rebuilt.misdirection
    gate = WriteGuard(lock or Lock(), cluster.permission.why_nothing, misdirection)
    going_on = rebuilt.remembered.ledger.open if rebuilt else ()
    port = GuardedPort(cluster, gate, enforce=enforce, open_orders=going_on)
    loop = Loop(
        Controller(msgspec.structs.replace(DEFAULT, observe_only=not enforce), validate=True,
            remembered=rebuilt and rebuilt.remembered),
        port,
        journal := JournalFile(path, durable=False, segment_bytes=2_000, fold=rebuilt and rebuilt.fold),
        Publisher(),
        clock_ms=lambda: next(AHEAD),
        epoch=rebuilt.epoch if rebuilt else "",
    )  # fmt: skip
    if not peace:
        loop._end = lambda: None  # type: ignore[method-assign]  # who is killed ends nothing
    loop.run(ticks)
    journal.close() if peace else journal.file.close()
    return rebuilt


def ordered(cluster: Attached) -> set[str]:
    return {action.order for action in cluster.actions if isinstance(action, Suspend | Withdraw | Release)}


# --- what was only observed -------------------------------------------------------------------


@pytest.mark.parametrize("peace", [True, False])
def test_what_was_only_observed_never_leads_to_anything(tmp_path: Path, peace: bool) -> None:
    cluster, path = busy(), tmp_path / "journal.jsonl"
    life(cluster, path, 20, enforce=False, peace=peace)
    assert cluster.actions == []
    observed = rebuild(path)
    assert observed is not None
    before = observed.remembered.ledger.issued
    assert before == 3
    life(cluster, path, 120, enforce=True)
    assert not {f"o-{number:06d}" for number in range(1, before + 1)} & ordered(cluster)
    assert "Withdraw" not in kinds(cluster)
    assert kinds(cluster).count("Release") == 3, "new orders are made in their place"
    replay(read(path, closed=True), str(path))


def test_what_was_observed_and_not_yet_withheld_is_not_sent_either(tmp_path: Path) -> None:
    """Killed between the decision's line and the answer "withheld": its Suspend is due, and stays undone."""
    cluster, path = busy(), tmp_path / "journal.jsonl"
    life(cluster, path, 10, enforce=False, peace=False)
    cut = tmp_path / "cut.jsonl"
    with JournalFile(cut, durable=False) as file:
        file.append([line.record for line in read(path) if not isinstance(line.record, Performed)])
    life(cluster, cut, 120, enforce=True)
    told = [line.record for line in read(cut)]
    (resumed,) = [record for record in told if isinstance(record, Resumed)]
    asked = [one for one in told if isinstance(one, Requests) and one.at_ms == resumed.at_ms]
    assert not [action for one in asked for action in one.actions if isinstance(action, Suspend)]
    assert not {"o-000001", "o-000002", "o-000003"} & ordered(cluster)
    replay(read(cut, closed=True), str(cut))


def test_observing_goes_on_with_what_was_observed(tmp_path: Path) -> None:
    cluster, path = busy(), tmp_path / "journal.jsonl"
    life(cluster, path, 20, enforce=False, peace=False)
    life(cluster, path, 20, enforce=False)
    left = rebuild(path)
    assert left is not None
    assert left.remembered.ledger.decisions == 1, "it does not decide the same again"
    assert cluster.actions == []


def test_what_was_sent_by_a_life_that_enforced_is_taken_back(tmp_path: Path) -> None:
    cluster, path = busy(), tmp_path / "journal.jsonl"
    cluster.drain_ms = 1 << 40
    life(cluster, path, 6, enforce=True, peace=False)
    assert kinds(cluster) == ["Suspend"] * 3
    life(cluster, path, 60, enforce=True, peace=False)
    assert {f"o-{number:06d}" for number in (1, 2, 3)} <= {
        action.order for action in cluster.actions if isinstance(action, Withdraw)
    }


class Knowing(Attached):
    """A cluster whose ResourceManager has a name of its own ("": none answers)."""

    epoch = "1"

    def identify(self) -> ClusterIdentity:
        return ClusterIdentity(self.epoch, len(self.nodes))


def test_who_answered_is_remembered_over_a_restart(tmp_path: Path) -> None:
    cluster = Knowing(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    path = tmp_path / "journal.jsonl"
    life(cluster, path, 4, enforce=True)
    left = rebuild(path)
    assert left is not None
    assert left.epoch == "1"
    life(cluster, path, 4, enforce=True)
    cluster.epoch = ""  # nobody answers
    life(cluster, path, 4, enforce=True)
    contacts = [line.record.epoch for line in read(path) if isinstance(line.record, Contact)]
    assert contacts == ["1"], "the same one is not told twice, and nobody is nobody"
    replay(read(path, closed=True), str(path))


def test_who_takes_over_is_shown(tmp_path: Path) -> None:

    class Failing(Knowing):
        def observe(self, request: ObservationRequest) -> Observation:
            if self.now_ms == 500:
                self.epoch = "2"
                self.facts.append(EpochChanged("2", 500))
            return super().observe(request)

    loop, _ = daemon(Failing(5, 4, {"production": 19, "research": 1}), lock=Lock())
    loop.run(2)
    assert (loop.status().cluster or ClusterIdentity("", 0)).epoch == "1"
    loop.run(5)
    assert (loop.status().cluster or ClusterIdentity("", 0)).epoch == "2"


# --- priorities -------------------------------------------------------------------------------


NAME, OTHER = "application_1_0001", "application_1_0002"
HEAD = Header(FORMAT, msgspec.structs.replace(DEFAULT, mode="deadlines"), ())
CHANGE = Ranking(5, (Ranked(NAME, 0, 0, 10, 3), Ranked(OTHER, 1, 0, 9, 9)))


class Prioritised(Attached):
    """A cluster whose applications in one queue have deadlines, with YARN's priorities."""

    def __init__(self, hdfs: Folder, values: Values) -> None:
        super().__init__(5, 4, {"production": 19, "research": 1})
        self.values = values
        self.waits = True
        self.restorer = Restorer(
            ChangeFiles(hdfs, FOLDER, "one"),  # type: ignore[arg-type]
            {"priority": values},
            self.perform,
            lambda: self.now_ms,
        )

    def observe(self, scope: ObservationRequest) -> Observation:
        seen = super().observe(scope)
        priorities = {name: int(self.values.values[name] or 0) for name in (NAME, OTHER)}
        rows = (
            app(NAME, "default", 1, deadline=1000, priority=priorities[NAME], ask=1),
            app(OTHER, "default", 1, deadline=2000, priority=priorities[OTHER], ask=1),
        )
        look = cluster_of(*rows, guaranteed={"default": 100})
        return msgspec.structs.replace(seen, snapshot=look if self.waits else None, cluster="seen")

    def perform(self, action: Action) -> Outcome:
        if isinstance(action, SetPriority):
            self.actions.append(action)
            assert self.restorer.covers("priority", action.application, str(action.priority)), "no record"
            return self.values.set(action.application, str(action.priority))
        if isinstance(action, Restore):
            self.actions.append(action)
            return self.values.write(action.change)
        return super().perform(action)


def ranking_loop(cluster: Prioritised, journal: MemoryJournal, *, ranks: bool) -> Loop:
    guard = WriteGuard(Lock(), cluster.permission.why_nothing, Misdirection())
    settings = msgspec.structs.replace(DEFAULT, mode="deadlines") if ranks else DEFAULT
    return Loop(
        Controller(settings, validate=True), GuardedPort(cluster, guard, enforce=True), journal, Publisher(),
        clock_ms=lambda: next(AHEAD), restorer=cluster.restorer, ranks=ranks,
    )  # fmt: skip


def prioritised() -> tuple[Folder, Values]:
    hdfs = Folder()
    values = Values(hdfs)
    values.values = {NAME: "3", OTHER: "9"}
    return hdfs, values


def test_priorities_of_a_ranking_are_recorded_in_one_write_and_restored_at_the_stop() -> None:
    hdfs, values = prioritised()
    cluster, journal = Prioritised(hdfs, values), MemoryJournal()
    loop = ranking_loop(cluster, journal, ranks=True)
    while values.values[NAME] == "3":
        loop._once()
    assert values.values == {NAME: "10", OTHER: "9"}
    assert len(hdfs.files) == 1
    lowering = next(record for record in journal.records if isinstance(record, Lowering))
    assert lowering.why == DeadlineOrder()
    assert lowering.changes == (Change("priority", NAME, "3", "10"),)
    loop.stop()
    loop.run()
    assert (values.values, hdfs.files) == ({NAME: "3", OTHER: "9"}, {})


@pytest.mark.parametrize("closed", [True, False])
def test_a_daemon_without_deadlines_restores_priorities_of_an_earlier_run(closed: bool) -> None:
    """Not by --allow-priority, not by a request, not by an open guard: what was changed is restored."""
    hdfs, values = prioritised()
    loop = ranking_loop(Prioritised(hdfs, values), MemoryJournal(), ranks=True)
    while values.values[NAME] == "3":
        loop._once()
    after = Prioritised(hdfs, values)
    after.waits = False
    if closed:
        after.permission.why = YarnPreempts("root.research", MONITOR)
    journal = MemoryJournal()
    again = ranking_loop(after, journal, ranks=False)
    for _ in range(12):
        again._once()
    assert (values.values, hdfs.files) == ({NAME: "3", OTHER: "9"}, {})
    assert [type(action) for action in after.actions] == [Restore]
    ended = [record for record in journal.records if isinstance(record, Restored)]
    assert [(one.target, one.why) for one in ended] == [(NAME, ReadBack())]


class Thieves(Attached):
    """Whatever room comes free goes to an application that nobody watches."""

    def schedule(self) -> None:
        for node in self.nodes:
            self.nodes[node] = 0


@pytest.mark.parametrize("waits", [True, False])
def test_room_that_a_stranger_takes_counts_as_misdirected(tmp_path: Path, waits: bool) -> None:
    cluster = Thieves(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 10)
    production = cluster.submit("production-1", "production", 0, 3)
    path = tmp_path / "journal.jsonl"
    life(cluster, path, 20, enforce=True, peace=False)
    assert kinds(cluster).count("Release") == 3
    if not waits:
        production.pending = 0
    life(cluster, path, 120, enforce=True, peace=False)
    misdirection = Misdirection()
    misdirection.apply(line.record for line in read(path))
    assert list(misdirection.standing(0)) == (["production"] if waits else [])
    again = rebuild(path)
    assert again is not None
    assert again.misdirection.queues == misdirection.queues


class Adopting(Attached):
    """Notes under which ResourceManager's name orders are taken over."""

    adopted_epoch: str | None = None

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        super().adopt(orders, epoch)
        self.adopted_epoch = epoch


def test_a_daemon_is_put_together_with_what_the_journal_knows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with StateDir(tmp_path / "state", lambda: "abcd1234") as state:
        with JournalFile(state.journal, durable=False) as file:
            late = msgspec.structs.replace(CHANGE, at_ms=clock_ms() + 3_600_000)
            seen = Observed(at_ms=late.at_ms, cluster="not-requested")
            change = Change("priority", NAME, "3", "10")
            file.append([HEAD, seen, Contact(1, "7"), late, Lowering(late.at_ms, (change,), DeadlineOrder())])
        plan = Plan(
            cluster=ClusterAddress(resource_managers=("http://127.0.0.1:1",)),
            attachment=Attachment(),
            settings=msgspec.structs.replace(DEFAULT, observe_only=True),
            state_dir=state.path,
        )
        cluster = Adopting(1, 1, {"production": 1, "research": 0})
        rebuilt = rebuild(state.journal)
        assert rebuilt is not None
        _, journal = make_loop(plan, state, cluster, rebuilt)
        journal.file.close()
        _list_changes(plan, rebuilt.changes)
        assert cluster.adopted_epoch == "7"
        told = " ".join(line.getMessage() for line in caplog.records)
        assert f"yarnctl lowered the priority of {NAME} from 3 to 10 and has not restored it" in told
        assert "yarnctl restore --all, or: yarn application -appId" in told
        assert "the clock was set back by" in told
