"""The daemon's loop and its guards, over a tiny cluster: it observes, acts, pauses, stands aside, stops."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from tests.unit.deciding.tiny import TinyCluster
from yarnctl.daemon.guards import Gate, GuardedPort, Misdirection
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.naming import NamedPort
from yarnctl.daemon.state_dir import InUse, StateDir
from yarnctl.daemon.view import Publisher
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Order
from yarnctl.deciding.model import (
    ManifestSeen,
    Observation,
    Refused,
    Release,
    Scope,
    SetPriority,
    Suspend,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.records import Performed, Stance, Transition
from yarnctl.deciding.settings import DEFAULT
from yarnctl.errors import BadInput, Unreachable
from yarnctl.journal.memory import MemoryJournal


class Lock:
    """A lock that tests give and take."""

    def __init__(self, held: bool = True) -> None:
        self.held = held
        self.released = False

    def acquire(self) -> bool:
        return self.held

    def renew(self) -> bool:
        return self.held

    def release(self) -> None:
        self.released = True


class Attached(TinyCluster):
    """A tiny cluster that grants by itself as time goes on, and may stand aside or be away."""

    aside = ""
    away = False

    def standing_aside(self) -> str:
        return self.aside

    def adopt(self, orders: Iterable[Order], epoch: str = "") -> None:
        self.adopted = [order.order for order in orders]

    def observe(self, scope: Scope) -> Observation:
        if self.away:
            raise Unreachable("http://rm: nobody answers")
        self.advance(self.now_ms + 250)
        self.schedule()
        return super().observe(scope)


def busy() -> Attached:
    cluster = Attached(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 10)
    cluster.submit("production-1", "production", 0, 3)
    return cluster


def daemon(
    cluster: Attached, *, enforce: bool = True, lock: Lock | None = None
) -> tuple[Loop, MemoryJournal]:
    journal, misdirection = MemoryJournal(), Misdirection()
    gate = Gate(lock, cluster.standing_aside, misdirection)
    settings = msgspec.structs.replace(DEFAULT, observe_only=not enforce)
    ahead = count(1 << 50, 1 << 20)  # a clock that leaps over every wake-up: the loop never waits
    loop = Loop(
        Controller(settings, validate=True),
        GuardedPort(NamedPort(cluster, "here"), gate, enforce=enforce),
        journal,
        Publisher(),
        clock_ms=lambda: next(ahead),
        lock=lock,
    )
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
    assert {action.order for action in cluster.actions if not isinstance(action, SetPriority)} == {
        f"here-o-00000{number}" for number in (1, 2, 3)
    }


@pytest.mark.parametrize("closed", ["lock", "aside", "paused"])
def test_a_closed_gate_decides_nothing(closed: str) -> None:
    cluster, lock = busy(), Lock()
    loop, _ = daemon(cluster, lock=lock)
    lock.held = closed != "lock"
    cluster.aside = "YARN preempts research itself" if closed == "aside" else ""
    if closed == "paused":
        loop.pause("maintenance")
    loop.run(30)
    assert cluster.actions == []
    state = {"lock": "waiting", "aside": "standing-aside", "paused": "paused"}[closed]
    assert loop.status().state == state
    assert loop.status().why


def test_a_gate_that_closes_in_between_still_takes_back() -> None:
    """Orders under way are withdrawn or released by facts; nothing new begins."""
    cluster, lock = busy(), Lock()
    port = GuardedPort(cluster, Gate(lock, cluster.standing_aside, Misdirection()), enforce=True)
    lock.held = False
    names = ("o-000001", "research-1", "a", "c-research-1-002")
    assert isinstance(port.perform(Suspend(*names, 1, 0)), Refused)
    assert isinstance(port.perform(Release(*names, 1)), Refused)
    assert not isinstance(port.perform(Withdraw(*names)), Refused)


def test_stopping_takes_back_and_gives_the_lock_up() -> None:
    cluster, lock = busy(), Lock()
    cluster.drain_ms = 1 << 40
    loop, journal = daemon(cluster, lock=lock)
    loop.run(6)
    assert kinds(cluster) == ["Suspend"] * 3 + ["Withdraw"] * 3
    assert lock.released
    assert loop.publisher.view.loop.state == "stopped"
    whys = [record.why for record in journal.records if isinstance(record, Transition) and record.why]
    assert whys == ["yarnctl stops"] * 3


def test_a_cluster_that_is_away_is_waited_for() -> None:
    cluster = busy()
    cluster.away = True
    loop, _ = daemon(cluster, lock=Lock())
    loop.run(5)
    assert loop.status().state == "waiting"
    assert "nobody answers" in loop.status().why


def taken(number: int, target: Literal["granted", "taken"]) -> Transition:
    return Transition(
        order=f"o-{number:06d}", source="freed", event=target, target=target, at_ms=number, application="x"
    )


def test_three_misdirected_releases_in_ten_are_too_many() -> None:
    watch = Misdirection()
    watch.take(taken(number, "taken" if number in (1, 5) else "granted") for number in range(1, 9))
    assert watch.why == ""
    watch.take([taken(9, "taken")])
    assert "o-000001" in watch.why
    assert "3 of the last 9" in watch.why
    watch.take([Stance(10, "continued", "by a person")])
    assert watch.why == ""


def test_two_misdirected_releases_far_apart_are_forgiven() -> None:
    watch = Misdirection()
    watch.take(taken(number, "taken" if number % 6 == 0 else "granted") for number in range(1, 60))
    assert watch.why == ""


def test_misdirection_stops_the_loop_until_somebody_continues_it() -> None:
    cluster = busy()
    loop, journal = daemon(cluster, lock=Lock())
    loop.gate.misdirection.why = "the room of 3 of the last 5 releases went to somebody else"
    loop.run(10)
    assert cluster.actions == []
    assert loop.status().state == "standing-aside"
    loop.go_on()
    loop._stopping = False
    loop.run(40)
    assert "Suspend" in kinds(cluster)
    assert "continued" in [record.stance for record in journal.records if isinstance(record, Stance)]


def test_names_on_the_cluster_are_ours_alone() -> None:
    cluster = busy()
    port = NamedPort(cluster, "here")
    cluster.facts.append(ManifestSeen("here-o-000001", "a", 1, 7, 0))
    cluster.facts.append(ManifestSeen("there-o-000001", "a", 1, 7, 0))
    seen = port.observe(Scope(orders=("o-000001",)))
    assert [fact.order for fact in seen.facts if isinstance(fact, ManifestSeen)] == [
        "o-000001",
        "there-o-000001",
    ]
    assert cluster.scopes[-1].orders == ("here-o-000001",)


def test_one_daemon_per_state_directory(tmp_path: Path) -> None:
    with StateDir(tmp_path / "state", lambda: "abcd1234") as first:
        assert first.instance == "abcd1234"
        with pytest.raises(InUse, match="another yarnctl"):
            StateDir(tmp_path / "state", lambda: "other")
    with StateDir(tmp_path / "state", lambda: "other") as again:
        assert again.instance == "abcd1234"
    (tmp_path / "state" / "instance").write_text("../../x")
    with pytest.raises(BadInput, match="no name of an instance"):
        StateDir(tmp_path / "state", lambda: "other")
