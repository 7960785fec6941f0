"""The modelled scheduler against a plain one that grants one container at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.tables import app, cluster
from yarnctl.deciding.forecast import (
    FreeCapacity,
    QueueModel,
    SchedulerSimulation,
    model_queues,
    place_pending,
)
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import QueueView
from yarnctl.deciding.preemptor import DemandInput, demand
from yarnctl.deciding.queue_node import QueueNode
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import NOTHING, Resources, at_least, minus, plus


@st.composite
def snapshots(draw):
    queues = {"production": draw(st.integers(0, 40)), "etl": draw(st.integers(0, 40)), "research": 5}
    applications = [
        app(f"{queue[0]}{n}", queue, draw(st.integers(0, 12)), draw(st.integers(0, 9)), rank=n,
            ask=draw(st.integers(1, 2)), user=draw(st.sampled_from(["ann", "bob"])),
            activated=draw(st.integers(0, 5)) > 0)
        for queue in queues
        for n in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    limits = {queue: draw(st.integers(5, 60)) for queue in queues if draw(st.booleans())}
    users = {queue: draw(st.integers(3, 30)) for queue in queues if draw(st.integers(0, 3)) == 0}
    free = {f"n{n}": draw(st.integers(0, 3)) for n in range(draw(st.integers(0, 3)))}
    return cluster(*applications, guaranteed=queues, maximum=limits, user_limit=users, free=free)


def plainly(snapshot, allowance):
    """Place one container after the other, then admit one after the other."""
    queues = model_queues(snapshot, ())
    free = dict(snapshot.free_by_node)
    waiting: dict[str, list[Any]] = {
        name: [[wanted, wanted.containers] for wanted in queue.waiting()] for name, queue in queues.items()
    }
    stuck: dict[str, list[Any]] = {name: [] for name in queues}
    while any(waiting.values()):
        name = min((n for n in waiting if waiting[n]), key=lambda n: queues[n].key())
        wanted, count = waiting[name][0]
        node = next((n for n in sorted(free) if wanted.size <= free[n]), None)
        if node is None or queues[name].forbids(wanted):
            stuck[name].append(waiting[name].pop(0))
            continue
        free[node] = minus(free[node], wanted.size)
        _book(queues[name], wanted)
        waiting[name][0][1] = count - 1
        if count == 1:
            waiting[name].pop(0)
    admitted: dict[str, int] = {}
    left = dict(allowance)
    giver = queues["research"]
    while True:
        for name in stuck:
            while stuck[name] and _unservable(queues[name], stuck[name][0][0], snapshot, left):
                stuck[name].pop(0)
        names = [name for name in stuck if stuck[name]]
        if not names:
            return admitted
        name = min(names, key=lambda n: queues[n].key())
        wanted = stuck[name][0][0]
        left_to_giver = minus(giver.used, at_least(wanted.size, giver.largest_task))
        if name != "production" or _ratio(giver, left_to_giver) < 1:
            return admitted
        if giver.key(minus(left_to_giver, giver.used)) < queues[name].key():
            return admitted
        _book(queues[name], wanted)
        giver.used = left_to_giver
        who = wanted.application.application
        admitted[who] = admitted.get(who, 0) + 1
        left[who] -= 1
        stuck[name][0][1] -= 1
        if not stuck[name][0][1]:
            stuck[name].pop(0)


def _ratio(queue, used):
    guaranteed = queue.view.guaranteed
    return max(used[0] / guaranteed[0], used[1] / guaranteed[1])


def _book(queue, wanted):
    queue.used = plus(queue.used, wanted.size)
    user = wanted.application.user
    queue.user_used[user] = plus(queue.user_used.get(user, (0, 0)), wanted.size)


def _unservable(queue, wanted, snapshot, left):
    who = wanted.application.application
    return (
        not (wanted.size <= snapshot.largest_node)
        or queue.forbids(wanted)
        or (wanted.application.queue == "production" and left[who] <= 0)
    )


@given(snapshots(), st.integers(0, 3))
def test_runs_found_by_bisection_are_the_runs_of_single_grants(snapshot, promised):
    allowance = {
        view.application: sum(ask.count for ask in view.requests) - promised for view in snapshot.applications
    }
    queues = model_queues(snapshot, ())
    place_pending(queues, FreeCapacity(snapshot.free_by_node))
    takers = SchedulerSimulation(
        queues, ("research",), lambda view: view.queue == "production", allowance, snapshot.largest_node
    )
    found = {name: sum(admission.shortfalls.values()) for name, admission in takers.admitted.items()}
    assert found == plainly(snapshot, allowance)


@given(snapshots())
def test_whoever_waits_is_either_helped_or_told_why(snapshot):
    found = demand(DemandInput(snapshot, 0, 0), Ledger(), DEFAULT)
    helped = {wish.application.application for wish in found.applications}
    told = {trigger.application for trigger, _ in found.refused}
    assert not helped & told
    placed = {
        view.application for view in snapshot.applications if view.requests and view.queue == "production"
    }
    queues = model_queues(snapshot, ())
    counts = place_pending(queues, FreeCapacity(snapshot.free_by_node))
    waiting = {
        name
        for name in placed
        for view in snapshot.applications
        if view.application == name and sum(ask.count for ask in view.requests) > counts.get(name, 0)
    }
    assert waiting == helped | told


def test_simulation_serves_a_large_request_in_few_steps(monkeypatch):
    """500 of 1,000 containers are admitted; each test of a count asks the queue's limits once."""
    asked = []
    forbids = QueueModel.forbids

    def counted(*given, **named):
        asked.append(given)
        return forbids(*given, **named)

    monkeypatch.setattr(QueueModel, "forbids", counted)
    guaranteed = {"production": 500, "research": 500}
    snapshot = cluster(
        app("r1", "research", 1000), app("p1", "production", pending=1000), guaranteed=guaranteed
    )
    found = SchedulerSimulation(
        model_queues(snapshot, ()),
        ("research",),
        lambda view: view.queue == "production",
        {"p1": 1000},
        snapshot.largest_node,
    )
    assert sum(found.admitted["p1"].shortfalls.values()) == 500
    assert len(asked) < 20


@pytest.mark.parametrize(
    ("size", "own", "binds"),
    [
        (Resources(10, 5), NOTHING, False),
        (Resources(11, 1), NOTHING, True),
        (Resources(1, 6), NOTHING, True),
        (Resources(11, 1), Resources(1, 0), False),
    ],
)
def test_memory_and_vcores_of_a_queues_maximum_bind(size: Resources, own: Resources, binds: bool) -> None:
    view = QueueView(queue="root.a", guaranteed=NOTHING, maximum=Resources(100, 10), used=Resources(90, 5))
    node = QueueNode(view, None, None)
    assert (node.binding(size, own) is node) is binds
