"""Bounds on what the controller does: a cap on what is in flight, observing only, stopping in peace."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.deciding.tiny import TinyCluster
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Suspend, Withdraw, Withheld
from yarnctl.deciding.order import SUSPEND_MS
from yarnctl.deciding.reasons.outcomes import ClientFault
from yarnctl.deciding.records import Decision, Transition
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick


def busy(pending: int = 6) -> TinyCluster:
    """Research fills 5 nodes of 4 slots with two jobs; production waits for containers."""
    cluster = TinyCluster(5, 4, {"production": 19, "research": 1})
    cluster.submit("research-1", "research", 10)
    cluster.submit("research-2", "research", 10)
    cluster.submit("production-1", "production", 0, pending)
    return cluster


def in_flight(controller: Controller) -> int:
    return sum(order.state in ("ordered", "suspending") for order in controller.ledger.open.values())


@pytest.mark.parametrize(("ratio", "least", "most"), [(0.1, 1, 2), (0.1, 3, 3), (0.2, 1, 4), (1.0, 1, 99)])
def test_no_more_than_the_cap_is_in_flight(ratio: float, least: int, most: int) -> None:
    """20 containers of research: 10 % are 2, unless the least says more; 100 % is no cap."""
    cluster = busy()
    settings = msgspec.structs.replace(DEFAULT, in_flight_ratio_max=ratio, in_flight_least=least)
    controller = Controller(settings, validate=True)
    highest = 0
    for now_ms in range(0, 20_000, 250):
        cluster.advance(now_ms)
        wake = tick(controller, cluster, MemoryJournal())
        while wake == now_ms:
            wake = tick(controller, cluster, MemoryJournal())
        highest = max(highest, in_flight(controller))
        cluster.schedule()
    assert highest == min(most, 6)
    assert cluster.jobs["production-1"].pending == 0, "all get room in the end, cap or not"


def test_who_observes_decides_once_and_simulates() -> None:
    """Nothing is performed; the same request is not decided on again while it is simulated as served."""
    cluster = busy(pending=2)
    cluster.perform = lambda action: Withheld(ClientFault("observing"))  # type: ignore[method-assign]
    controller = Controller(msgspec.structs.replace(DEFAULT, observe_only=True), validate=True)
    journal = MemoryJournal()
    for now_ms in range(0, 60_000, 250):
        cluster.advance(now_ms)
        while tick(controller, cluster, journal) == now_ms:
            pass
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    assert [len(decision.picks) for decision in decisions] == [2]
    moves = [record for record in journal.records if isinstance(record, Transition)]
    assert [(move.target, move.at_ms) for move in moves] == [("simulated", SUSPEND_MS)] * 2
    cluster.jobs["production-1"].pending = 0
    for now_ms in range(60_000, 64_000, 250):
        cluster.advance(now_ms)
        tick(controller, cluster, journal)
    ends = [record.event for record in journal.records if isinstance(record, Transition)]
    assert ends == ["simulated"] * 2 + ["not-needed"] * 2


def test_stopping_takes_back_what_is_under_way() -> None:
    cluster = busy(pending=3)
    controller = Controller(DEFAULT, validate=True)
    while tick(controller, cluster, MemoryJournal()) == cluster.now_ms:
        pass
    asked = [action.order for action in cluster.actions if isinstance(action, Suspend)]
    assert len(asked) == 3
    step = controller.stop(1000)
    assert [action.order for action in step.actions if isinstance(action, Withdraw)] == sorted(asked)
    assert not controller.ledger.open
