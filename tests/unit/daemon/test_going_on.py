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
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.eligibility.permission import MONITOR
from yarnctl.config import ClusterAddress
from yarnctl.daemon.guards import GuardedPort, WriteGuard
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.priority_restoring import RETRY_MS, PriorityRestoring
from yarnctl.daemon.running import Plan, clock_ms, make_loop
from yarnctl.daemon.state_dir import StateDir
from yarnctl.daemon.view.published import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import (
    Accepted,
    Action,
    EpochChanged,
    Observation,
    ObservationRequest,
    Outcome,
    Refused,
    Release,
    SetPriority,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.order import Order
from yarnctl.deciding.prioritising import ChangedPriorities
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import YarnPreempts
from yarnctl.deciding.reasons.orders import LeftByEarlierRun
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import (
    FORMAT,
    Contact,
    Header,
    Performed,
    Ranked,
    Ranking,
    Record,
    Requests,
    Restoring,
    Resumed,
    performed,
)
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import Rebuilt, rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.loop import ClusterIdentity

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
        priorities=PriorityRestoring(port.perform, rebuilt.priorities) if rebuilt and enforce else None,
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
    life(cluster, path, 20, enforce=False, peace=False)
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


def changed(*records: Record) -> dict[str, int]:
    priorities = ChangedPriorities()
    for record in (HEAD, *records):
        priorities.apply(record)
    return priorities.changed


@pytest.mark.parametrize(
    ("outcome", "left"),
    [
        (None, {NAME: 3}),  # killed before the answer was written down
        (Accepted(), {NAME: 3}),
        (Unknown(ClientFault("no answer")), {NAME: 3}),
        (Refused(ClientFault("HTTP 403")), {}),
        (Withheld(ClientFault("observing")), {}),
    ],
)
def test_a_change_counts_as_made_until_it_is_known_not_to_be(
    outcome: Outcome | None, left: dict[str, int]
) -> None:
    done = () if outcome is None else (performed(5, SetPriority(NAME, 10), outcome),)
    assert changed(CHANGE, *done) == left


def test_a_refusal_does_not_undo_an_earlier_change() -> None:
    first = performed(5, SetPriority(NAME, 10), Accepted())
    again = Ranking(6, (Ranked(NAME, 0, 0, 9, 10),))
    refused = performed(6, SetPriority(NAME, 9), Refused(ClientFault("HTTP 403")))
    assert changed(CHANGE, first, again, refused) == {NAME: 3}
    back = SetPriority(NAME, 3, back=True)
    told = Restoring(7, NAME, 3, LeftByEarlierRun())
    assert changed(CHANGE, first, told, performed(7, back, Unknown(ClientFault("?")))) == {NAME: 3}
    assert changed(CHANGE, first, told, performed(7, back, Accepted())) == {}


def test_what_is_only_observed_changes_no_priority() -> None:
    priorities = ChangedPriorities()
    priorities.apply(Header(FORMAT, msgspec.structs.replace(HEAD.settings, observe_only=True), ()))
    priorities.apply(CHANGE)
    assert priorities.changed == {}


def test_priorities_are_put_back_written_first_and_until_accepted() -> None:
    told: list[Record] = []
    done: list[Action] = []
    answers: list[Outcome] = [Unknown(ClientFault("no answer")), Refused(ClientFault("HTTP 503"))]

    def perform(action: Action) -> Outcome:
        assert isinstance(told[-1], Restoring), "written down first, done then"
        done.append(action)
        return answers.pop(0) if answers else Accepted()

    restorer = PriorityRestoring(perform, {NAME: 3})
    tries = []
    for at_ms in range(0, 60_000, 250):
        before = len(done)
        restorer.reconcile(told.append, at_ms)
        tries += [at_ms] * (len(done) - before)
    assert tries == [0, RETRY_MS, 3 * RETRY_MS]
    assert done == [SetPriority(NAME, 3, back=True)] * 3
    assert restorer.changed == {}
    assert changed(CHANGE, performed(5, SetPriority(NAME, 10), Accepted()), *told) == {}


class Prioritised(Attached):
    """A cluster that nobody has asked for anything, with YARN's priorities."""

    priorities: dict[str, int]

    def perform(self, action: Action) -> Outcome:
        if isinstance(action, SetPriority):
            self.actions.append(action)
            self.priorities[action.application] = action.priority
            return Accepted()
        return super().perform(action)


def ranked() -> tuple[Record, ...]:
    """Return what a controller writes that gives :data:`CHANGE`, and dies before it is done."""
    rows = (
        app(NAME, "default", 1, deadline=1000, priority=3),
        app(OTHER, "default", 1, deadline=2000, priority=9),
    )
    look = cluster_of(*rows, guaranteed={"default": 100})
    records = Controller(HEAD.settings).step(Observation(now_ms=5, as_of_ms=5, snapshot=look)).records
    ranking = next(record for record in records if isinstance(record, Ranking))
    assert [(row.application, row.priority, row.before) for row in ranking.order] == [
        (row.application, row.priority, row.before) for row in CHANGE.order
    ]
    return records


def test_a_restart_puts_priorities_back_though_nobody_waits_and_the_gate_is_closed(tmp_path: Path) -> None:
    """Not by --allow-priority, not by a snapshot, not even by a gate: what was changed is put back."""
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as file:
        file.append(ranked())
    cluster = Prioritised(5, 4, {"production": 19, "research": 1})
    cluster.priorities = {NAME: 10}
    cluster.permission.why = YarnPreempts("root.research", MONITOR)
    rebuilt = life(cluster, path, 3, enforce=True)
    assert rebuilt is not None
    assert rebuilt.priorities == {NAME: 3}
    assert cluster.priorities == {NAME: 3}
    assert cluster.actions == [SetPriority(NAME, 3, back=True)]
    left = rebuild(path)
    assert left is not None
    assert left.priorities == {}
    replay(read(path, closed=True), str(path))


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
    assert bool(misdirection.why) is waits


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
            file.append([HEAD, seen, Contact(1, "7"), late])
        plan = Plan(
            cluster=ClusterAddress(resource_managers=("http://127.0.0.1:1",)),
            attachment=Attachment(),
            settings=msgspec.structs.replace(DEFAULT, observe_only=True),
            state_dir=state.path,
        )
        cluster = Adopting(1, 1, {"production": 1, "research": 0})
        _, journal = make_loop(plan, state, cluster, rebuild(state.journal))
        journal.file.close()
        assert cluster.adopted_epoch == "7"
        told = " ".join(line.getMessage() for line in caplog.records)
        assert f"changed the priority of {NAME} (from 3); run with --enforce" in told
        assert "the clock was set back by" in told
