"""Golden tables of the borders of the modelled scheduler, of foresight, echoes, demand and the cap."""

from __future__ import annotations

import msgspec
import pytest

from tests.golden.tables import (
    GUARD_FREE,
    app,
    candidate,
    case,
    cluster,
    picked,
    row,
    seen,
    size,
    task,
    with_,
)
from tests.golden.test_borders import an_order, suspended
from tests.unit.deciding.test_foresight import SLOT, view
from yarnctl.deciding import preemptor
from yarnctl.deciding.case import Candidate
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.forecast import QueueModel, SchedulerSimulation, SimulatedRequest, model_queues, slots
from yarnctl.deciding.foresight import at_most, first_wave
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.looks import StaleAsks
from yarnctl.deciding.model import ContainerRequest, QueueView
from yarnctl.deciding.planning import excess_orders
from yarnctl.deciding.policies import FOREVER_MS, JobUsage
from yarnctl.deciding.preemptor import DemandInput, candidates, demand, preemptable
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, PAPER
from yarnctl.deciding.settlement import Settlement
from yarnctl.units import NOTHING, Resources, dominant


@pytest.mark.parametrize(
    ("room", "asked", "count"),
    [
        (size(7), size(2), 3),
        (Resources(9 * 1024, 2), size(1), 2),  # cores decide
        (Resources(1024, 9), size(1), 1),  # memory decides
        (Resources(5 * 1024, 0), Resources(1024, 0), 5),  # what is not asked for does not decide
        (Resources(-1024, 3), size(1), 0),  # more is held than there is
        (size(3), NOTHING, 0),  # nothing is asked for
    ],
)
def test_how_many_containers_some_room_would_hold(room, asked, count):
    assert slots(room, asked) == count


def test_a_queue_in_which_nothing_runs_has_no_largest_task():
    empty = QueueModel(QueueView(queue="q", guaranteed=size(1), maximum=size(9), used=NOTHING))
    assert empty.largest_task == NOTHING


def test_an_ask_for_no_container_does_not_wait():
    asks = (ContainerRequest(10, size(1), 0), ContainerRequest(20, size(1), 2))
    waits = msgspec.structs.replace(app("p1", "production", 1), requests=asks)
    queue = model_queues(cluster(waits), ())["production"]
    assert queue.waiting() == [SimulatedRequest(waits, size(1), 2, 20)]


def test_inside_one_queue_nothing_moves():
    """With deadlines the queue gives to itself: what it loses it is given again, however large tasks are."""
    rows = [app("a", "default", 1, 3), app("b", "default", 9, slots=4, rank=1)]
    queues = model_queues(cluster(*rows, guaranteed={"default": 40}), ())
    before = queues["default"].used
    takers = SchedulerSimulation(
        queues, (), lambda requester: requester.application == "a", {"a": 3}, size(8), {"u": None}
    )
    assert takers.admitted["a"].shortfalls == {size(1): 3}
    assert queues["default"].used == before


def test_a_victim_in_a_queue_that_is_not_shown_gives_nothing_back():
    """Its queue was removed, or may not be seen: its orders are known, and no queue is less for them."""
    snapshot = cluster(app("p1", "production", 1, 1))
    hidden = app("r1", "research", 5)
    snapshot = msgspec.structs.replace(
        snapshot,
        queues=snapshot.queues[:1],
        applications=(*snapshot.applications, msgspec.structs.replace(hidden, queue="hidden")),
    )
    queues = model_queues(snapshot, [an_order()])
    assert {name: queue.used for name, queue in queues.items()} == {"production": size(1)}


@pytest.mark.parametrize(
    ("counts", "most", "kept"),
    [
        ((1, 3, 3), 3, (1, 2)),  # what an earlier ask takes is not there for a later one
        ((1, 1, 3), 4, (1, 1, 2)),
        ((2, 2), 2, (2,)),
        ((2, 2), 9, (2, 2)),
        ((0, 2), 1, (1,)),
    ],
)
def test_no_more_is_foreseen_than_allowed_over_all_asks_together(counts, most, kept):
    asks = [ContainerRequest(number, SLOT, count) for number, count in enumerate(counts)]
    assert tuple(ask.count for ask in at_most(asks, most)) == kept


def test_an_ask_that_was_read_later_than_its_containers_may_be_gone_altogether():
    """Two of one kind are gone before two containers are seen: those met them, not the ask that is left."""
    echoes = StaleAsks()
    both = (ContainerRequest(10, SLOT, 2), ContainerRequest(20, SLOT, 1))
    looks = [(0, both, 1), (500, both[1:], 1), (1000, both[1:], 3)]
    found = [
        echoes.update([view(requests=asks, containers=containers)], at_ms).get("a", 0)
        for at_ms, asks, containers in looks
    ]
    assert found == [0, 0, 0]


def test_who_holds_a_master_only_has_nothing_to_give():
    rows = [
        app("r1", "research", 1),
        app("r3", "research", 3),
        app("r2", "research", 2),
        app("p1", "production", 9),
    ]
    look = DemandInput(cluster(*rows), 0, 0)
    assert [each.application for each in preemptable(look, DEFAULT, ("research",))] == ["r2", "r3"]
    everywhere = with_(DEFAULT, mode="deadlines", job_policy="MDF")
    assert [each.application for each in preemptable(look, everywhere, ())] == ["p1", "r2", "r3"]


def test_with_deadlines_the_cap_is_a_part_of_all_containers():
    """No queue gives, so every container counts: a tenth of 51 are five."""
    settings = with_(
        GUARD_FREE, mode="deadlines", job_policy="MDF", in_flight_ratio_max=0.1, in_flight_least=1
    )
    rows = [app("a", "default", 1, 9, deadline=1000), app("b", "default", 50, rank=1, deadline=2000)]
    steps = Controller(settings, validate=True)
    step = steps.step(seen(cluster(*rows, guaranteed={"default": 51}), {"b": row("b", 49)}))
    assert suspended(step) == 5


def test_a_killed_task_is_no_order_against_the_jobs_budget():
    """It is settled: its container is subtracted from what the job holds, and bars nobody else."""
    work = Settlement(Ledger(), with_(DEFAULT, on_timeout="kill"), releases_itself=False)
    work.ledger.add(an_order())
    look = DemandInput(cluster(app("r1", "research", 10)), 0, 0)
    views = look.snapshot.applications
    (asked,) = candidates(look, work.ledger, DEFAULT, views)
    work.time_out(20_000)
    (killed,) = candidates(look, work.ledger, DEFAULT, views)
    assert (asked.budget, asked.usage.containers) == (4, 9)
    assert (killed.budget, killed.usage.containers) == (5, 9)


def test_under_the_papers_rule_everybody_is_told_that_no_queue_gives():
    rows = [app("r1", "research", 5), app("p1", "production", 1, 1), app("p2", "production", 1, 1, rank=1)]
    snapshot = cluster(*rows, guaranteed={"production": 2, "research": 20})
    found = demand(DemandInput(snapshot, 0, 0), Ledger(), PAPER)
    assert [trigger.application for trigger, _ in found.refused] == ["p1", "p2"]


def test_equal_containers_are_subtracted_in_both_components():
    """Cores decide, and each container is as large as the ask: 40 and 39 cores, one less after each pick."""
    jobs = []
    for name, cores in (("a", 40), ("b", 39)):
        used = Resources(10 * 1024, cores)
        usage = JobUsage(name, dominant(used, size(100)), 9, 8, 0, None, FOREVER_MS, 0)
        jobs.append(Candidate(usage, used, 8, size(1)))
    found = choose(case(jobs, 4), with_(GUARD_FREE, job_policy="MR"))
    assert " ".join(pick.application for pick in found.picks) == "a a b a"


@pytest.mark.parametrize(
    ("asked_mib", "picks", "back"),
    [
        (1024, ["b"], ["a"]),  # the second is enough by itself
        (1025, ["a", "b"], []),  # without the first one MiB would be missing
    ],
)
def test_room_that_lacks_one_mib_is_no_room(asked_mib, picks, back):
    sizes = (("a", 500), ("b", 1024))
    tasks = [task(name, number)._replace(size=Resources(mib, 2)) for number, (name, mib) in enumerate(sizes)]
    wanted = case([candidate("r1", 3)], 1, {"r1": tasks})
    need = wanted.needs[0]._replace(size=Resources(asked_mib, 1))
    found = choose(msgspec.structs.replace(wanted, needs=(need,)), GUARD_FREE)
    assert picked(found) == picks
    assert [pick.task.attempt for pick in found.handed_back] == back


def test_asks_wait_in_the_order_of_their_priority():
    asks = (ContainerRequest(20, size(1), 1), ContainerRequest(10, size(2), 1))
    waits = msgspec.structs.replace(app("p1", "production", 1), requests=asks)
    queue = model_queues(cluster(waits), ())["production"]
    assert [wanted.size for wanted in queue.waiting()] == [size(2), size(1)]


@pytest.mark.parametrize(
    ("looks", "doubted"),
    [
        # (ms, asks at priority 10 and 20, containers)
        ([(0, (1, 1), 1), (500, (1, 1), 2), (1000, (0, 1), 2)], [0, 1, 0]),  # the first was given, not both
        ([(0, (1, 1), 1), (500, (0, 1), 2), (1000, (0, 1), 2)], [0, 0, 0]),  # the first is gone, and no more
        ([(0, (2, 0), 3), (500, (0, 0), 5), (1000, (1, 0), 5)], [0, 0, 1]),  # one is there again, not two
    ],
)
def test_what_is_given_meets_the_first_asks_alone(looks, doubted):
    echoes = StaleAsks()
    found = []
    for at_ms, counts, containers in looks:
        asks = [ContainerRequest(10 * (n + 1), SLOT, count) for n, count in enumerate(counts) if count]
        found.append(echoes.update([view(requests=tuple(asks), containers=containers)], at_ms).get("a", 0))
    assert found == doubted


def test_a_first_wave_may_be_a_single_map():
    assert first_wave(1, SLOT, 1, SLOT) == (ContainerRequest(20, SLOT, 1),)


def test_with_deadlines_only_users_of_tasks_may_have_to_give():
    rows = [
        app("a", "default", 1, 1, deadline=1000),
        app("b", "default", 1, rank=1, deadline=2000, user="master only"),
        app("c", "default", 2, rank=2, deadline=3000, user="gives"),
    ]
    look = DemandInput(cluster(*rows, guaranteed={"default": 10}), 0, 0)
    settings = with_(DEFAULT, mode="deadlines", job_policy="MDF")
    assert list(preemptor._users_with_preemptable(look, rows[0], settings)) == ["gives"]


def ordered_for(requester: str) -> Ledger:
    ledger = Ledger()
    ledger.add(an_order(requester=requester))
    return ledger


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([app("p1", "production", 1, 1, activated=False)], "the scheduler gives it nothing"),
        ([app("r2", "research", 1, 1)], "room is made for production only"),
    ],
)
def test_room_that_nobody_entitled_would_be_given_is_handed_back(rows, why):
    snapshot = cluster(app("r1", "research", 50), *rows, guaranteed={"production": 95, "research": 5})
    found = excess_orders(DemandInput(snapshot, 0, 0), ordered_for("p1"), DEFAULT)
    assert [order.order for order in found.excess] == ["o-000001"], why
    assert found.moves == ()
