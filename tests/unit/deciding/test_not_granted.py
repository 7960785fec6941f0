"""Requests that fit and that YARN does not grant: when that is concluded, and what is ordered then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, with_
from tests.unit.deciding.controller_world import read
from tests.unit.deciding.queue_trees import parents_of
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import Accepted, ApplicationView, ContainerEnded, ContainerGranted, Snapshot
from yarnctl.deciding.not_granted import heartbeats_for_hosts, heartbeats_until_granted
from yarnctl.deciding.reasons.demand import NotGranted
from yarnctl.deciding.reasons.rooting import code
from yarnctl.deciding.records import Record, Refusal


@pytest.mark.parametrize(
    ("fitting", "nodes", "located", "expected"),
    [
        (24, 3, 0, 10),  # measured on 3.4.2: the last one after 9 s
        (1, 3, 0, 3),
        (7, 3, 0, 5),
        (1, 0, 0, 3),
        (24, 3, heartbeats_for_hosts(24, 3), 10 + 1 + 8),  # at most a round for the rack, then off it
        (1, 1, heartbeats_for_hosts(5, 100), 3 + 1 + 1),
    ],
)
def test_heartbeats_until_granted(fitting: int, nodes: int, located: int, expected: int) -> None:
    assert heartbeats_until_granted(fitting, nodes, located) == expected


GUARANTEED = {"root.prod": 60, "root.res": 10, "root.own": 5}


class Cluster:
    """One research job, and what waits, under a controller that looks each second.

    What is free on n9 is granted to no application. Each journal replays to the same bytes.
    """

    def __init__(self, *waiting: ApplicationView, nested: bool = False) -> None:
        names = {"preempting_queues": ("root.prod",), "preemptable_queues": ("root.res",)}
        self.controller = Controller(with_(GUARD_FREE, eviction="kill", **names), validate=True)
        self.nested = nested
        self.waiting = {view.application: view for view in waiting}
        self.free = {"n9": 1}
        self.now_ms = 0
        self.records: list[Record] = []
        self.facts: list[Any] = []

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now; all containers of research are on n1."""
        views = [app("r1", "root.res", 60, rank=90), *self.waiting.values()]
        found = cluster(*views, guaranteed=GUARANTEED, free=self.free, largest_node=2)
        if self.nested:
            found = msgspec.structs.replace(found, parents=parents_of(found.queues, found.total))
        return msgspec.structs.replace(found, heartbeat_ms=1000)

    def look(self) -> str:
        """Let a second pass; return the requesters of the orders that are made."""
        self.now_ms += 1000
        before = set(self.controller.ledger.open)
        facts, self.facts = tuple(self.facts), []
        step = self.controller.step(
            seen(self.snapshot(), {"r1": row("r1", 59)}, now_ms=self.now_ms, facts=facts)
        )
        self.records += step.records
        for action in step.actions:
            self.records += self.controller.settle(action, Accepted())
        made = [order for name, order in self.controller.ledger.open.items() if name not in before]
        return " ".join(order.requester for order in made)

    def looks(self, count: int) -> list[str]:
        return [self.look() for _ in range(count)]

    def end_order(self) -> None:
        """Let the container of the open order end; research does not request it again."""
        [order] = self.controller.ledger.open.values()
        self.free[order.node] = self.free.get(order.node, 0) + 1
        self.facts.append(ContainerEnded(order.container, "r1", order.node, "killed", self.now_ms))

    def grant(self, name: str) -> None:
        """Grant what is free on n1 to an application that waits."""
        del self.free["n1"]
        [request] = self.waiting[name].requests
        self.waiting[name] = msgspec.structs.replace(
            self.waiting[name],
            containers=self.waiting[name].containers + 1,
            requests=(request._replace(count=request.count - 1),),
        )
        self.facts.append(ContainerGranted(f"{name}c", name, "n1", request.size, self.now_ms))

    def refusals(self, name: str) -> list[str]:
        """Return the codes of the reasons why nothing was ordered for an application."""
        rows = [each for each in self.records if isinstance(each, Refusal)]
        return [code(each.why) for each in rows if each.trigger.application == name]


TREES = pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
P1 = app("p1", "root.prod", 1, 1, rank=1)


@pytest.fixture(autouse=True)
def replayed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each cluster's records replay to the same bytes."""
    made: list[Cluster] = []
    begin = Cluster.__init__

    def begun(self: Cluster, *waiting: ApplicationView, **more: Any) -> None:
        begin(self, *waiting, **more)
        made.append(self)

    monkeypatch.setattr(Cluster, "__init__", begun)
    yield
    for each in made:
        read(each.records).finish()


@TREES
def test_one_container_is_ordered_for_a_request_that_fits_and_is_not_granted(nested: bool) -> None:
    """Three heartbeats for one container on one node, counted from the first look."""
    world = Cluster(P1, nested=nested)
    assert world.looks(9) == ["", "", "", "p1", "", "", "", "", ""]


@TREES
def test_after_an_order_in_vain_it_waits_for_evidence(nested: bool) -> None:
    world = Cluster(P1, nested=nested)
    assert world.looks(4)[-1] == "p1"
    world.end_order()
    assert not any(world.looks(60))
    assert world.refusals("p1")[-1] == code(NotGranted())


@TREES
@pytest.mark.parametrize("evidence", ["grant", "request"])
def test_evidence_begins_the_wait_anew(nested: bool, evidence: str) -> None:
    world = Cluster(app("p1", "root.prod", 1, 2, rank=1), nested=nested)
    world.free = {"n9": 2}
    assert world.looks(5)[-1] == "p1"  # ceil(2 containers / 1 node) + 2 heartbeats
    world.end_order()
    assert not any(world.looks(60))
    if evidence == "grant":
        world.grant("p1")
    else:
        world.waiting["p1"] = app("p1", "root.prod", 1, 2, rank=1, request=5)
    orders = world.looks(8)
    assert (orders[0], " ".join(orders).split()) == ("", ["p1"])


@TREES
def test_of_several_containers_one_is_ordered_at_a_time(nested: bool) -> None:
    world = Cluster(app("p1", "root.prod", 1, 2, rank=1), nested=nested)
    world.free = {"n9": 2}
    assert " ".join(world.looks(12)).split() == ["p1"]


@TREES
def test_others_need_what_it_does_not_take(nested: bool) -> None:
    """p2 waits behind p1, and one slot is free: it is p2's once p1 is known not to take it."""
    world = Cluster(P1, app("p2", "root.prod", 1, 1, rank=2), nested=nested)
    assert world.look() == "p2"  # p1 would take the slot
    [order] = world.controller.ledger.open.values()
    assert order.requester == "p2"


@TREES
def test_research_that_does_not_take_it_leaves_it_to_production(nested: bool) -> None:
    """Research below its guarantee is served first: what it does not take makes no order for production."""
    idle = app("r2", "root.own", 0, 1, rank=1)
    world = Cluster(P1, idle, nested=nested)
    assert world.look() == "p1"  # r2 would take the slot
    [order] = world.controller.ledger.open.values()
    world.looks(4)
    assert order.order not in world.controller.ledger.open  # withdrawn: the slot is for p1


@TREES
def test_free_capacity_that_it_does_not_take_serves_who_comes_later(nested: bool) -> None:
    world = Cluster(P1, nested=nested)
    assert world.looks(4)[-1] == "p1"
    world.end_order()
    assert not any(world.looks(10))
    del world.free["n1"]  # another application took that container
    world.waiting["p2"] = app("p2", "root.prod", 1, 1, rank=2)
    assert not any(world.looks(2)), "what is free on n9 is for p2"
