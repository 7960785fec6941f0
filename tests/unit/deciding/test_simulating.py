"""Simulated orders of an observing controller: when they begin, what decisions read, when they end."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, with_
from yarnctl.deciding.controller import Controller, Remembered
from yarnctl.deciding.model import (
    ApplicationEnded,
    ContainerEnded,
    ContainerRequest,
    Drain,
    Fact,
    Snapshot,
    Withheld,
)
from yarnctl.deciding.order import LEAVE_MS, SUSPEND_MS
from yarnctl.deciding.reasons.orders import OnlyObserved, RequestGone, ServedOtherwise
from yarnctl.deciding.reasons.outcomes import Observing
from yarnctl.deciding.records import Decision, Record, Transition
from yarnctl.deciding.settings import DEFAULT, LeverSettings, Settings
from yarnctl.deciding.simulating import simulate
from yarnctl.units import Resources

OBSERVING = with_(GUARD_FREE, observe_only=True)
TASKS = {"r1": row("r1", 59)}
FREE_AT_MS = SUSPEND_MS


def full(pending: int, given: int = 1, research: int = 60) -> Snapshot:
    """Return a full cluster: production holds ``given`` containers and requests ``pending``."""
    return cluster(app("r1", "research", research), app("p1", "production", given, pending))


class Observer:
    """An observing controller, whose orders are withheld. ``records``: all that it has made."""

    def __init__(self, settings: Settings = OBSERVING) -> None:
        self.controller = Controller(settings, validate=True)
        self.records: list[Record] = []

    def at(self, now_ms: int, snapshot: Snapshot | None = None, *facts: Fact) -> None:
        """Make the steps of one instant; ``snapshot`` None: a step between two snapshots."""
        controller = self.controller
        controller.to_observe = msgspec.structs.replace(controller.to_observe, cluster=snapshot is not None)
        while True:
            step = controller.step(seen(snapshot, TASKS, now_ms=now_ms, facts=facts))
            self.records += step.records
            for action in step.actions:
                assert not isinstance(action, Drain)
                self.records += controller.settle(action, Withheld(Observing()))
            if step.wake_at_ms > now_ms:
                return
            snapshot, facts = None, ()

    def picked(self) -> list[int]:
        return [len(each.picks) for each in self.records if isinstance(each, Decision)]

    def moves(self) -> list[Transition]:
        return [each for each in self.records if isinstance(each, Transition)]

    def states(self) -> list[str]:
        return [order.state for order in self.controller.ledger.open.values()]


def simulated(pending: int, settings: Settings = OBSERVING) -> Observer:
    """Return an observer all of whose first orders are simulated."""
    observer = Observer(settings)
    observer.at(0, full(pending))
    observer.at(FREE_AT_MS, full(pending))
    assert observer.states() == ["simulated"] * pending
    return observer


def test_an_order_is_simulated_after_its_predicted_time() -> None:
    observer = Observer()
    observer.at(0, full(2))
    observer.at(FREE_AT_MS - 1)
    assert observer.states() == ["ordered", "ordered"]
    observer.at(FREE_AT_MS)
    assert observer.states() == ["simulated", "simulated"]
    assert {move.at_ms for move in observer.moves()} == {FREE_AT_MS}


@pytest.mark.parametrize(
    ("levers", "kill", "predicted_ms"),
    [
        (None, False, SUSPEND_MS), (None, True, LEAVE_MS),
        (LeverSettings(room_within_ms=9000, suspend_ms=7000, leave_ms=800), False, 7000),
    ],
)  # fmt: skip
def test_the_predicted_time_is_that_of_the_mix_or_of_the_settings(
    levers: LeverSettings | None, kill: bool, predicted_ms: int
) -> None:
    observer = Observer(with_(OBSERVING, levers=levers, eviction="kill" if kill else "suspend"))
    observer.at(0, full(1))
    (order,) = observer.controller.ledger.open.values()
    assert order.predicted_ms(observer.controller.settings) == predicted_ms


def test_decisions_read_the_victim_without_and_the_requester_with_the_container() -> None:
    observer = simulated(3)
    real = full(5)
    found = simulate(real, observer.controller.ledger, FREE_AT_MS)
    r1, p1 = found.snapshot.applications
    size = p1.task_size
    assert (r1.containers, p1.containers) == (57, 4)
    assert (real.applications[0].used[0] - r1.used[0], p1.used[0] - real.applications[1].used[0]) == (
        3 * size[0],
        3 * size[0],
    )
    assert sum(request.count for request in p1.requests) == 2
    before, after = ({queue.queue: queue.used for queue in each.queues} for each in (real, found.snapshot))
    assert before["production"][0] + 3 * size[0] == after["production"][0]
    assert before["research"][0] - 3 * size[0] == after["research"][0]
    assert found.real == {view.application: view for view in real.applications}
    assert simulate(real, observer.controller.ledger, FREE_AT_MS - 1)[:2] == (real, {}), "an older snapshot"


def test_the_next_shortfall_opens_the_next_orders_and_names_the_real_requests() -> None:
    observer = simulated(3)
    observer.at(5000, full(7))
    assert observer.picked() == [3, 4]
    newest = [each for each in observer.records if isinstance(each, Decision)][-1].trigger
    assert (newest.pending, newest.promised, newest.shortfall) == (7, 3, 4)
    containers = {order.container for order in observer.controller.ledger.open.values()}
    assert len(containers) == 7


def test_a_limit_in_flight_opens_orders_one_after_the_other() -> None:
    observer = Observer(with_(OBSERVING, in_flight_ratio_max=0.01, in_flight_least=2))
    for now_ms in range(0, 20_000, 1000):
        observer.at(now_ms, full(6))
    assert observer.picked() == [2, 2, 2]
    assert observer.states() == ["simulated"] * 6


def test_a_served_request_is_not_ordered_for_again() -> None:
    observer = simulated(3)
    for now_ms in range(5000, 600_000, 1000):
        observer.at(now_ms, full(3))
    assert observer.picked() == [3]
    assert len(observer.moves()) == 3


def test_a_real_container_ends_the_oldest_simulated_order_even_if_new_requests_arrive() -> None:
    observer = simulated(3)
    observer.at(5000, full(3, given=2))  # one was served, one more is requested
    first = next(move for move in observer.moves() if move.target == "withdrawn")
    assert (first.order, first.why) == ("o-000001", ServedOtherwise("p1"))
    assert observer.states() == ["simulated"] * 2
    for now_ms in range(6000, 20_000, 1000):  # at first the third request may be stale
        observer.at(now_ms, full(3, given=2))
    assert observer.picked() == [3, 1], "one container counts once"


def test_a_master_that_starts_ends_the_order_for_its_container() -> None:
    """Its tasks' requests come at once: none of them counts as served."""
    observer = Observer()
    observer.at(0, full(1, given=0))
    observer.at(FREE_AT_MS, full(1, given=0))
    observer.at(5000, full(6, given=1))
    assert [move.target for move in observer.moves()] == ["simulated", "withdrawn"]
    for now_ms in range(6000, 12_000, 1000):
        observer.at(now_ms, full(6, given=1))
    assert sum(observer.picked()) == 7


def test_fewer_requests_than_are_simulated_end_the_oldest() -> None:
    observer = simulated(3)
    observer.at(5000, full(1))
    gone = [move for move in observer.moves() if move.target == "withdrawn"]
    assert [(move.order, move.why) for move in gone] == [
        ("o-000001", RequestGone()),
        ("o-000002", RequestGone()),
    ]
    assert observer.states() == ["simulated"]


def test_without_pending_requests_every_simulated_order_ends() -> None:
    observer = simulated(3)
    observer.controller.to_observe = msgspec.structs.replace(observer.controller.to_observe, cluster=True)
    observer.records += observer.controller.step(seen(None, now_ms=6000)).records  # the probe: quiet
    assert observer.states() == []
    assert observer.controller.ledger.excluded == {}


def test_an_ended_requester_ends_its_simulated_orders() -> None:
    observer = simulated(2)
    observer.at(5000, None, ApplicationEnded("p1", 4900))
    assert [move.event for move in observer.moves()] == ["simulated"] * 2 + ["requester-ended"] * 2


@pytest.mark.parametrize("ending", ["completed", "killed"])
def test_a_task_that_ends_before_the_predicted_time_ends_its_order(ending: str) -> None:
    """It ended by itself, or YARN preempted it: the request is ordered for again."""
    observer = Observer()
    observer.at(0, full(1))
    (order,) = observer.controller.ledger.open.values()
    ended = ContainerEnded(order.container, "r1", order.node, ending, 900)  # type: ignore[arg-type]
    observer.at(1000, None, ended)
    assert [move.target for move in observer.moves()] == ["completed" if ending == "completed" else "lost"]


def test_a_killed_container_is_no_success_of_a_kill_that_was_not_sent() -> None:
    observer = Observer(with_(OBSERVING, eviction="kill"))
    observer.at(0, full(1))
    (order,) = observer.controller.ledger.open.values()
    observer.at(1000, None, ContainerEnded(order.container, "r1", order.node, "killed", 900))
    assert [move.target for move in observer.moves()] == ["lost"]


@pytest.mark.parametrize(("research", "left"), [(3, 1), (1, 1), (0, None)])
def test_a_victim_never_lacks_more_than_it_really_holds(research: int, left: int | None) -> None:
    """Its tasks ended by themselves, YARN preempted them, or it ended: its master stays."""
    observer = simulated(3)
    views = [app("p1", "production", 1, 3)]
    real = cluster(*([app("r1", "research", research)] if research else []), *views)
    found = simulate(real, observer.controller.ledger, FREE_AT_MS).snapshot
    shown = {view.application: view.containers for view in found.applications}
    assert shown.get("r1") == left


def test_requests_of_the_orders_size_are_served_first() -> None:
    observer = simulated(2)
    small, large = app("p1", "production", 1, 2).task_size, Resources(4096, 4)
    both = (ContainerRequest(5, large, 1), ContainerRequest(10, small, 3))
    views = full(2).applications
    real = msgspec.structs.replace(
        full(2), applications=(views[0], msgspec.structs.replace(views[1], requests=both))
    )
    found = simulate(real, observer.controller.ledger, FREE_AT_MS).snapshot.applications[1]
    assert found.requests == (ContainerRequest(5, large, 1), ContainerRequest(10, small, 1))


def test_an_enforcing_controller_drops_what_was_simulated() -> None:
    observer = simulated(2)
    remembered = Remembered(observer.controller.ledger, observer.controller.now_ms)
    enforcing = Controller(with_(GUARD_FREE), validate=True, remembered=remembered)
    step = enforcing.step(seen(None, now_ms=FREE_AT_MS + 10))
    ends = [each for each in step.records if isinstance(each, Transition)]
    assert [(end.target, end.why) for end in ends] == [("withdrawn", OnlyObserved())] * 2
    assert step.actions == ()
    assert DEFAULT.observe_only is False
