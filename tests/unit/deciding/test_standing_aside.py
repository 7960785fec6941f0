"""A queue is paused when other applications receive the containers that are freed for it."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster
from tests.unit.deciding.freed_containers import decided, freed, misdirect, order, taken
from tests.unit.deciding.queue_trees import parents_of
from tests.unit.deciding.tiny import TinyCluster
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import (
    ApplicationView,
    ContainerRequest,
    Observation,
    ObservationRequest,
    QueueView,
    Release,
    Snapshot,
    Suspend,
)
from yarnctl.deciding.queue_hold import Misdirection, binding_limit, pause_ms
from yarnctl.deciding.reasons.demand import StandingAside
from yarnctl.deciding.reasons.modes import Continued
from yarnctl.deciding.reasons.orders import GivenRoomOf
from yarnctl.deciding.records import (
    QueueResumed,
    Refusal,
    Resumed,
    Stance,
    Step,
    StoodAside,
    Transfer,
    encode,
)
from yarnctl.deciding.settings import PAPER, Settings
from yarnctl.journal.fold import Fold
from yarnctl.units import Resources

MIN_MS = 60_000


def pause(misdirection: Misdirection, queue: str, now_ms: int) -> StandingAside:
    record = misdirection.pause(queue, now_ms, None)
    assert misdirection.problem(record) == ""
    misdirection.apply([record])
    return record.why


def test_three_of_the_last_ten_freed_containers_pause_their_queue_alone() -> None:
    watch = Misdirection()
    for number in range(1, 9):
        watch.apply(freed("etl", number, "misdirected" if number in (1, 5) else "granted", number))
        watch.apply(freed("serving", 100 + number, "granted", number))
    assert watch.due() == []
    watch.apply(freed("etl", 9, "misdirected", 9))
    assert watch.due() == ["etl"]
    assert pause(watch, "etl", 10) == StandingAside(
        "etl", 10 + 5 * MIN_MS, tuple((order(number), "x") for number in (1, 5, 9)), 9
    )
    assert watch.due() == []
    assert list(watch.standing(10 + 5 * MIN_MS - 1)) == ["etl"]
    assert watch.standing(10 + 5 * MIN_MS) == {}


def test_misdirected_containers_far_apart_pause_nothing() -> None:
    watch = Misdirection()
    for number in range(1, 60):
        watch.apply(freed("etl", number, "misdirected" if number % 6 == 0 else "granted", number))
        assert watch.due() == []


def test_misdirected_containers_of_two_queues_are_not_added_up() -> None:
    watch = Misdirection()
    for number in range(1, 5):
        watch.apply(freed("etl" if number % 2 else "serving", number, "misdirected", number))
    assert watch.due() == []


def test_each_pause_is_twice_as_long_up_to_an_hour() -> None:
    watch, now_ms, spans = Misdirection(), 0, []
    for _ in range(6):
        for number in range(3):
            watch.apply(freed("etl", number, "misdirected", now_ms))
        until_ms = pause(watch, "etl", now_ms).until_ms
        spans.append((until_ms - now_ms) // MIN_MS)
        now_ms = until_ms
    assert spans == [5, 10, 20, 40, 60, 60]
    assert pause_ms(1_000_000) == 60 * MIN_MS


def test_what_ends_during_a_pause_is_not_counted() -> None:
    watch = Misdirection()
    misdirect(watch, "etl")
    until_ms = pause(watch, "etl", 0).until_ms
    for number in range(1, 4):
        watch.apply(freed("etl", number, "misdirected", until_ms - 1))
    assert watch.due() == []
    for number in range(4, 7):
        assert watch.due() == []
        watch.apply(freed("etl", number, "misdirected", until_ms))
    assert watch.due() == ["etl"]


@pytest.mark.parametrize(("granted", "next_min"), [(9, 10), (10, 5)])
def test_ten_granted_containers_in_a_row_make_the_next_pause_a_first_one(granted: int, next_min: int) -> None:
    watch = Misdirection()
    misdirect(watch, "etl")
    now_ms, numbers = pause(watch, "etl", 0).until_ms, count(1)
    for _ in range(granted):
        watch.apply(freed("etl", next(numbers), "granted", now_ms))
    for _ in range(3):
        watch.apply(freed("etl", next(numbers), "misdirected", now_ms))
    assert pause(watch, "etl", now_ms).until_ms == now_ms + next_min * MIN_MS


@pytest.mark.parametrize("end", [QueueResumed(1, "etl"), Stance(1, "continued", Continued())])
def test_an_operator_ends_a_pause_and_the_next_one_is_longer(end: QueueResumed | Stance) -> None:
    watch = Misdirection()
    misdirect(watch, "etl")
    pause(watch, "etl", 0)
    watch.apply([end])
    assert watch.standing(1) == {}
    misdirect(watch, "etl")
    assert pause(watch, "etl", 2).until_ms == 2 + 10 * MIN_MS


def test_an_operator_resumes_one_queue_and_the_others_stay_paused() -> None:
    watch = Misdirection()
    for queue in ("etl", "serving"):
        misdirect(watch, queue)
        pause(watch, queue, 0)
    watch.apply([QueueResumed(1, "etl")])
    assert list(watch.standing(1)) == ["serving"]


def test_a_transferred_order_counts_for_the_queue_of_its_new_requester() -> None:
    watch = Misdirection()
    watch.apply([decided("etl", [1, 2]), decided("serving", [3], "p-2")])
    for number, target in ((1, "p-2"), (2, "p-3")):
        why = GivenRoomOf("p-1", order(3))
        watch.apply([Transfer(order=order(number), source="p-1", target=target, at_ms=1, why=why)])
    watch.apply([taken(1, "misdirected"), taken(2, "misdirected")])  # of the second no queue is known
    assert {queue: len(each.last) for queue, each in watch.queues.items()} == {"serving": 1}
    assert list(watch.requesters) == [order(3)]


def test_a_clock_that_was_set_back_makes_no_pause_longer() -> None:
    watch = Misdirection()
    misdirect(watch, "etl")
    pause(watch, "etl", 10_000_000)
    watch.apply([Resumed(1_000)])
    assert watch.standing(1_000)["etl"].until_ms == 1_000 + 5 * MIN_MS
    watch.apply([Resumed(2_000)])
    assert watch.standing(2_000)["etl"].until_ms == 1_000 + 5 * MIN_MS


def test_pause_level_and_open_orders_survive_a_state_record() -> None:
    fold = Fold()
    misdirect(fold.misdirection, "etl")
    pause(fold.misdirection, "etl", 0)
    fold.misdirection.apply([decided("etl", [1]), *freed("serving", 2, "granted", 2)])
    copy = fold.copy()
    assert encode(copy.state()) == encode(fold.state())
    assert copy.misdirection.standing(1) == fold.misdirection.standing(1) != {}
    for each in (fold, copy):
        each.misdirection.apply([taken(1, "misdirected", 5 * MIN_MS)])
    assert encode(copy.state()) == encode(fold.state())


def test_replay_rejects_a_pause_that_is_not_due_or_of_another_length() -> None:
    fold = Fold()
    early = StoodAside(0, StandingAside("etl", 5 * MIN_MS, (), 0))
    assert "too few" in fold.problem(early)
    misdirect(fold.misdirection, "etl")
    due = fold.misdirection.pause("etl", 0, None)
    assert fold.problem(due) == ""
    longer = msgspec.structs.replace(due.why, until_ms=due.why.until_ms + 1)
    assert "but due is" in fold.problem(StoodAside(0, longer))


def snapshot(
    *queues: QueueView, user_used: int = 0, activated: bool = True, prod_maximum: int = 100
) -> Snapshot:
    total = Resources(100, 100)
    parents = parents_of(queues, total, {"root.prod": Resources(prod_maximum, prod_maximum)})
    waiting = ApplicationView(
        application="etl-1", queue="root.prod.etl", user="ada", submitted_at_ms=0, rank=0, containers=1,
        used=Resources(user_used, 0), am_size=Resources(1, 1), task_size=Resources(1, 1),
        requests=(ContainerRequest(0, Resources(1, 1), 3),), activated=activated,
    )  # fmt: skip
    return Snapshot(
        total=total, largest_node=Resources(10, 10), queues=queues, applications=(waiting,),
        free_by_node={}, parents=parents,
    )  # fmt: skip


def leaf(name: str, used: int, maximum: int = 100, user_limit: int | None = None) -> QueueView:
    limit = None if user_limit is None else Resources(user_limit, user_limit)
    return QueueView(
        queue=name, guaranteed=Resources(10, 10), maximum=Resources(maximum, maximum),
        used=Resources(used, used), user_limit=limit,
    )  # fmt: skip


ETL = leaf("root.prod.etl", 5)


@pytest.mark.parametrize(
    ("seen", "limit"),
    [
        (snapshot(leaf("root.prod.etl", 20, 20)), ("queue", "")),
        (snapshot(leaf("root.prod.etl", 20, 100, 10), user_used=11), ("user", "ada")),
        (snapshot(leaf("root.prod.etl", 0, 50), leaf("root.prod.serving", 50, 50), prod_maximum=50),
         ("parent", "root.prod")),
        (snapshot(leaf("root.prod.etl", 0, 50), leaf("root.prod.serving", 50, 50)), ("unknown", "")),
        (snapshot(ETL, leaf("root.research", 95)), ("unknown", "")),
        (snapshot(ETL, activated=False), ("masters", "")),
        (snapshot(leaf("root.research", 95)), ("unknown", "")),
    ],
)  # fmt: skip
def test_the_limit_that_binds_is_read_from_the_snapshot(seen: Snapshot, limit: tuple[str, str]) -> None:
    assert binding_limit(seen, "root.prod.etl") == limit
    watch = Misdirection()
    misdirect(watch, "root.prod.etl")
    why = watch.pause("root.prod.etl", 0, seen).why
    assert (why.limit, why.holder) == limit


@pytest.mark.parametrize("mode", ["queues", "deadlines"])
@pytest.mark.parametrize("settings", [GUARD_FREE, PAPER])
def test_no_rule_frees_containers_for_a_paused_queue(settings: Settings, mode: str) -> None:
    deadlines = mode == "deadlines"
    if deadlines:
        settings = msgspec.structs.replace(settings, mode="deadlines", job_policy="MDF")
    why = StandingAside("production", 9_000, ((order(1), "x"),), 1)
    requester = app("p1", "production", 1, 3, deadline=10_000 if deadlines else None)
    victim = app("r1", "production" if deadlines else "research", 9, rank=1)
    seen = cluster(requester, victim, free={})

    def step(seen: Snapshot) -> Step:
        return Controller(settings).step(Observation(now_ms=0, as_of_ms=0, snapshot=seen))

    assert step(seen).to_observe.victims == ("r1",)  # else the claim would be empty
    paused = step(msgspec.structs.replace(seen, aside={"production": why}))
    assert paused.to_observe.victims == ()
    assert [one.why for one in paused.records if isinstance(one, Refusal)] == [why]


def test_open_orders_of_a_paused_queue_are_neither_withdrawn_nor_added_to() -> None:
    world = TinyCluster(5, 4, {"production": 19, "research": 1})
    world.submit("research-1", "research", 20)
    world.submit("production-1", "production", 0, 2)
    controller, scope = Controller(GUARD_FREE, validate=True), ObservationRequest()
    why = StandingAside("production", 9_000_000, ((order(1), "x"),), 1)
    for now_ms in range(0, 5_000, 250):
        world.advance(now_ms)
        seen = world.observe(scope)
        if seen.snapshot is not None and world.actions:
            world.jobs["production-1"].pending = 4  # two more: a reason for further orders
            aside = {"production": why}
            seen = msgspec.structs.replace(seen, snapshot=msgspec.structs.replace(seen.snapshot, aside=aside))
        step = controller.step(seen)
        scope = step.to_observe
        for action in step.actions:
            controller.settle(action, world.perform(action))
    assert [type(action) for action in world.actions] == [Suspend, Suspend, Release, Release]
