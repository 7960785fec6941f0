"""Resource types beside memory and vcores in the emulator's scheduler: GPUs and FPGAs.

Two nodes of 8 slots; the first has 4 GPUs, the second 4 GPUs and 2 FPGAs. Under the dominant
resource calculator all types count alike (docs/facts/hadoop.md, section 5).
"""

from __future__ import annotations

import random

import pytest

from emulator.cluster.entities import Application, Ask, Node, ParentConfig, TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.rest.changes import move_application
from tests.unit.deciding.queue_trees import slots
from tests.unit.scheduler_files import pair
from tests.unit.test_tree_scheduler import Cluster
from yarnctl.units import NOTHING, Resources, fits, minus, plus


def other(gpus: int, fpgas: int = 0) -> Resources:
    return Resources(0, 0, gpus, fpgas)


class Typed(Cluster):
    """Leaves a, b of .5 each; ``most``: the maximum of a."""

    def __init__(self, most: float = 1.0, share: float = 0.5) -> None:
        leaves = (
            TreeLeafConfig(name="a", capacity_ratio=share, maximum_ratio=most),
            TreeLeafConfig(name="b", capacity_ratio=1 - share),
        )
        self.rm = ResourceManager(leaves, self, (ParentConfig(),))
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler = scheduler
        scheduler.types = ("yarn.io/gpu", "fpga")
        self.names: dict[int, str] = {}
        self.order: list[str] = []
        self.now_ms = 0
        for index, others in enumerate((other(4), other(4, 2))):
            node = Node(index, *pair(slots(8)), phase_ms=index)
            node.others = node.free_others = others
            self.rm.register_node(node)

    def ask(self, leaf: str, count: int, others: Resources = NOTHING, size: int = 1) -> Application:
        app = self._new(leaf, leaf, "u")
        self.more(app, count, others, size)
        return app

    def more(self, app: Application, count: int, others: Resources = NOTHING, size: int = 1) -> None:
        ask = Ask(1, *pair(slots(size)), off_switch=True)
        ask.others = others
        self.rm.allocate(app, [(ask, count)])
        self.serve()

    def held(self, leaf: str) -> list[int]:
        """Return how many containers a leaf holds on each node."""
        found = [0, 0]
        for each in self.scheduler.live.values():
            if each.app.queue.name == leaf:
                found[each.node.index] += 1
        return found

    def frees(self, leaf: str, index: int) -> str:  # type: ignore[override]
        self.order.clear()
        held = next(
            each
            for each in self.scheduler.live.values()
            if (each.node.index, each.app.queue.name) == (index, leaf)
        )
        self.scheduler.free(held, self.now_ms)
        self.serve()
        return " ".join(self.order)

    def check_sums(self) -> None:
        """Nodes and queues count what is held and reserved, and no node has given more than it has."""
        held = NOTHING
        for node in self.rm.nodes:
            on_node = NOTHING
            for each in node.containers.values():
                on_node = plus(on_node, each.others)
            assert minus(node.others, on_node) == node.free_others
            assert fits(on_node, node.others)
            held = plus(held, on_node)
            if node.reserved is not None:
                held = plus(held, node.reserved.ask.others)  # type: ignore[attr-defined]
        used = NOTHING
        for child in self.scheduler.root.below:
            assert fits(child.used_others, child.maximum_others)
            used = plus(used, child.used_others)
        assert self.scheduler.root.used_others == held == used


def test_guarantees_and_maxima_are_parts_of_every_type() -> None:
    found = Typed(most=0.75)
    a = found.scheduler.nodes["a"]
    assert (a.guaranteed_others, a.maximum_others) == (other(4, 1), other(6, 1))
    found.rm.lose_node(found.rm.nodes[1], 0)
    assert (a.guaranteed_others, a.maximum_others) == (other(2), other(3))


def test_a_container_goes_where_its_types_are_free() -> None:
    found = Typed()
    found.ask("a", 3, other(0, 1))
    assert found.held("a") == [0, 2]  # of the third the node has too few
    found.ask("b", 9, other(1))
    assert sum(found.held("b")) == 8
    found.check_sums()


def test_a_queue_stops_at_its_maximum_of_a_type() -> None:
    found = Typed(most=0.5)
    found.ask("a", 9, other(1))
    assert sum(found.held("a")) == 4
    found.ask("b", 9, other(1))
    assert sum(found.held("b")) == 4
    found.check_sums()


def test_the_dominant_share_orders_the_queues() -> None:
    """Leaf a has 3 slots with 6 of 8 GPUs, b 4 slots of 16 without one: b is served first."""
    found = Typed()
    found.ask("a", 3, other(2))
    found.ask("b", 4)
    first = found._new("a", "a2", "u")
    second = found._new("b", "b2", "u")
    for app in (first, second):
        found.rm.allocate(app, [(Ask(1, *pair(slots(1)), off_switch=True), 1)])
    found.order.clear()
    found.serve()
    assert found.order[0] == "b2"


def test_a_request_reserves_a_node_for_its_type() -> None:
    """One GPU is free on each node: a's request for two reserves one, which counts in all of root's."""
    found = Typed()
    found.ask("b", 2, other(3))
    waiting = found.ask("a", 1, other(2))
    [node] = [node for node in found.rm.nodes if node.reserved is not None]
    assert found.scheduler.kept_for(waiting) == Resources(*pair(slots(1)), 2)
    found.ask("b", 1, other(1))
    assert sum(found.held("b")) == 2
    found.check_sums()
    assert found.frees("b", node.index).split() == ["a", "b"]
    assert found.scheduler.kept == {}
    found.check_sums()


def test_a_moved_application_takes_its_types_along() -> None:
    found = Typed()
    app = found.ask("a", 3, other(1))
    move_application(found.rm, app, found.scheduler.queues["b"])
    assert found.scheduler.nodes["a"].used_others == NOTHING
    assert found.scheduler.nodes["b"].used_others == other(3)
    found.more(app, 2, other(1))
    found.check_sums()


def test_a_request_that_is_moved_keeps_its_types() -> None:
    found = Typed()
    found.ask("b", 8, other(1))
    app = found.ask("a", 2, other(1))
    move_application(found.rm, app, found.scheduler.queues["b"])
    assert [ask.others for ask in app.asks] == [other(1)]


@pytest.mark.parametrize("seed", range(20))
def test_sums_hold_under_random_requests_and_ends(seed: int) -> None:
    chance, found = random.Random(seed), Typed(most=0.75)
    for _ in range(60):
        if chance.random() < 0.5:
            size, others = chance.randint(1, 3), other(chance.randint(0, 3), chance.randint(0, 1))
            found.ask(chance.choice("ab"), chance.randint(1, 4), others, size)
        elif found.scheduler.live:
            held = chance.choice(list(found.scheduler.live.values()))
            found.scheduler.free(held, found.now_ms)
            found.serve()
        found.check_sums()
