"""An application of which executors left is never left small: it grows when production waits no more."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.mix_tables import NOW_MS
from tests.golden.tables import app, cluster, seen
from tests.unit.deciding.test_drain import LIMIT_MS, Play, executor
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.model import (
    Accepted,
    ApplicationEnded,
    ContainerEnded,
    Drain,
    Grow,
    Outcome,
    Refused,
    Unknown,
    Withheld,
)
from yarnctl.deciding.reasons.outcomes import ExecutorBusy, Observing
from yarnctl.deciding.regrowing import (
    GROW_AFTER_MS,
    GROW_AGAIN_MS,
    GROW_UNSERVED_AFTER_MS,
    DrainOrder,
    Regrowing,
    Shrunk,
)
from yarnctl.journal.fold import Fold, ledger_of, state_of

OVER_MS = NOW_MS + 3000


class Grown(Play):
    """Two executors were asked for production's two, and have left 3 s later; ``grows`` finds requests."""

    def __init__(self, *, left: bool = True) -> None:
        super().__init__(executor("e1"), executor("e2"), executor("e3"))
        self.records: list = []
        self.drains = self.asked()
        if left:
            gone = [ContainerEnded(each.container, "r", "n1", "suspended", OVER_MS) for each in self.drains]
            self.step(OVER_MS, *gone)
        self.tasks = (executor("e3"),)

    def step(self, now_ms, *facts, asks=None):
        step = super().step(now_ms, *facts, asks=asks)
        self.records += step.records
        return step

    def grows(self, now_ms: int, asks: int = 0, outcome: Outcome | None = None) -> list[Grow]:
        step = self.step(now_ms, asks=asks)
        found = [action for action in step.actions if isinstance(action, Grow)]
        if outcome is not None:
            for action in found:
                self.records += self.controller.settle(action, outcome)
        return found


def settled(play: Grown) -> int:
    """Let the freed orders be settled; return when that was."""
    at_ms = OVER_MS
    while play.controller.ledger.open:
        at_ms += 1000
        assert play.grows(at_ms) == []
    return at_ms


def test_it_grows_by_as_many_as_left_some_time_after_production_has_what_it_asked_for():
    play = Grown()
    at_ms = settled(play)
    assert play.grows(at_ms + GROW_AFTER_MS - 1) == []
    assert play.grows(at_ms + GROW_AFTER_MS, outcome=Accepted()) == [Grow("r", (1,))]
    assert play.grows(at_ms + 2 * GROW_AFTER_MS) == [], "once"


def test_while_production_waits_it_stays_small():
    play = Grown()
    at_ms = settled(play)
    play.tasks = (executor("e3", may=False),)
    assert play.grows(at_ms + GROW_UNSERVED_AFTER_MS - 1, asks=1) == []
    assert play.grows(at_ms + GROW_UNSERVED_AFTER_MS, asks=1) == [Grow("r", (1,))], "no order came of it"


def test_while_executors_are_under_order_it_stays_small():
    play = Grown(left=False)
    assert play.grows(NOW_MS + GROW_AFTER_MS + 1) == []


def test_an_order_that_was_given_up_counts_it_may_leave_yet():
    play = Grown(left=False)
    given_up_ms = NOW_MS + LIMIT_MS + 3000
    play.step(given_up_ms, asks=0)
    assert play.controller.ledger.open == {}
    assert play.grows(given_up_ms + GROW_AFTER_MS) == [Grow("r", (1,))]


@pytest.mark.parametrize("outcome", [Unknown(), Withheld(Observing())])
def test_what_may_not_have_arrived_is_sent_again(outcome):
    play = Grown()
    at_ms = settled(play) + GROW_AFTER_MS
    assert len(play.grows(at_ms, outcome=outcome)) == 1
    assert play.grows(at_ms + GROW_AGAIN_MS - 1) == []
    assert play.grows(at_ms + GROW_AGAIN_MS) == [Grow("r", (1,))]


@pytest.mark.parametrize("outcome", [Refused(ExecutorBusy("gone")), Withheld(Observing())])
def test_drains_that_were_not_sent_shrink_nothing(outcome):
    play = Play(executor("e1"), executor("e2"))
    step = play.step(NOW_MS)
    one, other = [action for action in step.actions if isinstance(action, Drain)]
    play.controller.settle(one, outcome)
    assert play.controller.ledger.regrowing.shrunk["r"].orders == (DrainOrder(other.order, 1),)
    play.controller.settle(other, outcome)
    assert play.controller.ledger.regrowing.shrunk == {}


def test_an_application_that_has_ended_is_forgotten():
    play = Grown()
    play.step(OVER_MS + 1000, ApplicationEnded("r", OVER_MS + 1000), asks=0)
    assert play.controller.ledger.regrowing.shrunk == {}


def test_a_controller_that_stops_lets_all_grow():
    step = Grown(left=False).controller.stop(NOW_MS + 1000)
    assert [action for action in step.actions if isinstance(action, Grow)] == [Grow("r", (1,))]


def test_a_restart_finds_what_is_small_and_lets_it_grow():
    play = Grown()
    fold = Fold()
    for record in play.records:
        fold.apply(record)
    assert state_of(fold.ledger).shrunk == state_of(play.controller.ledger).shrunk != ()
    again = Controller(
        play.controller.settings,
        validate=True,
        remembered=Remembered(ledger_of(state_of(fold.ledger), play.controller.settings), OVER_MS),
    )
    found: list[Grow] = []
    at_ms = OVER_MS
    while not found:
        at_ms += 1000
        assert at_ms < OVER_MS + 120_000
        look = seen(cluster(app("r", "research", 2)), {}, now_ms=at_ms)
        step = again.step(msgspec.structs.replace(look, snapshot=None, cluster="quiet"))
        found = [action for action in step.actions if isinstance(action, Grow)]
    assert found == [Grow("r", (1,))]


def test_due_waits_for_the_open_orders_of_the_application():
    small = Regrowing([Shrunk("r", (DrainOrder("o-1", 1),), NOW_MS)])
    assert small.due(NOW_MS + GROW_AFTER_MS, under_order=["r"]) == []
    assert small.due(NOW_MS + GROW_AFTER_MS, under_order=["other"]) == [Grow("r", (1,))]


@pytest.mark.parametrize("outcome", [Accepted(), Refused(ExecutorBusy("gone"))])
def test_performed_with_a_final_outcome_ends_the_requests(outcome):
    small = Regrowing([Shrunk("r", (DrainOrder("o-1", 1),), NOW_MS)])
    (request,) = small.due(NOW_MS + GROW_AFTER_MS, under_order=())
    small.requested(request, NOW_MS + GROW_AFTER_MS)
    small.performed(request, outcome)
    assert small.due(NOW_MS + GROW_AFTER_MS + GROW_AGAIN_MS, under_order=()) == []
