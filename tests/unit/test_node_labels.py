"""Node labels in the emulator's scheduler: what a ResourceManager 3.4.2 granted on nodes with labels.

One node without a label, one of the exclusive partition gpu and one of the shared partition ne; each has 8
slots. Tables: docs/facts/hadoop.md, section 5.
"""

from __future__ import annotations

import random

import pytest

from emulator.cluster.entities import Application, Ask, Node, ParentConfig, TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.resource_manager import ResourceManager
from emulator.live.rest.changes import move_application
from tests.unit.deciding.queue_trees import SLOT, slots
from tests.unit.scheduler_files import pair
from tests.unit.test_tree_scheduler import Cluster

NE, GPU = {"ne": (1.0, 1.0)}, {"gpu": (1.0, 1.0)}


class Labelled(Cluster):
    """The cluster of the tables; ``root`` and ``mkt``: their shares by label."""

    def __init__(
        self,
        root: dict[str, tuple[float, float]],
        mkt: dict[str, tuple[float, float]],
        factor: float | None = None,
    ) -> None:
        leaves = (
            TreeLeafConfig(name="mkt", capacity_ratio=0.5, labels=mkt, user_limit_factor=factor),
            TreeLeafConfig(name="res", capacity_ratio=0.5, accessible=("ne",)),
        )
        self.rm = ResourceManager(leaves, self, (ParentConfig(labels=root),))
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler = scheduler
        scheduler.set_labels({"gpu": True, "ne": False})
        self.names: dict[int, str] = {}
        self.order: list[str] = []
        self.now_ms = 0
        for index, label in enumerate(("", "gpu", "ne")):
            node = Node(index, *pair(slots(8)), phase_ms=index)
            node.label = label
            self.rm.register_node(node)

    def ask(self, leaf: str, count: int, label: str = "", size: int = 1, priority: int = 1) -> Application:
        app = self._new(leaf, leaf, "u")
        app.label = label
        self.rm.allocate(app, [(Ask(priority, *pair(slots(size)), off_switch=True), count)])
        self.serve()
        return app

    def held(self, leaf: str) -> list[int]:
        """Return how many slots a leaf holds on each node."""
        found = [0, 0, 0]
        for each in self.scheduler.live.values():
            if each.app.queue.name == leaf:
                found[each.node.index] += each.memory_mib // SLOT[0]
        return found

    def frees(self, index: int, times: int = 1) -> str:  # type: ignore[override]
        self.order.clear()
        for _ in range(times):
            held = next(each for each in self.scheduler.live.values() if each.node.index == index)
            self.scheduler.free(held, self.now_ms)
            self.serve()
        return " ".join(self.order)

    def check_sums(self) -> None:
        """In each partition a queue uses what is held and reserved on its nodes."""
        for label, tree in self.scheduler.trees.items():
            held = sum(each.memory_mib for each in self.scheduler.live.values() if each.node.label == label)
            for node in self.rm.nodes:
                if node.reserved is not None and node.label == label:
                    held += node.reserved.ask.memory_mib  # type: ignore[attr-defined]
            assert tree[""].used_mib == held == sum(child.used_mib for child in tree[""].below)


def test_guarantees_are_parts_of_the_nodes_without_a_label():
    found = Labelled(NE, NE)
    assert found.rm.total == slots(8)
    assert found.scheduler.nodes["mkt"].guaranteed == slots(4)
    assert found.scheduler.trees["ne"]["mkt"].guaranteed == slots(8)
    assert found.scheduler.trees["gpu"]["mkt"].guaranteed == (0, 0)
    found.rm.lose_node(found.rm.nodes[2], 0)
    assert (found.rm.total, found.scheduler.trees["ne"]["mkt"].guaranteed) == (slots(8), (0, 0))


@pytest.mark.parametrize(
    ("root", "mkt", "held"),
    [
        ({}, {}, [8, 0, 0]),
        (NE, {}, [8, 0, 0]),
        (NE, NE, [8, 0, 4]),
        (NE | GPU, NE | GPU, [8, 0, 4]),  # the exclusive node stays empty
    ],
)
def test_requests_without_a_label_get_a_shared_node_once_root_and_a_child_have_a_capacity(root, mkt, held):
    found = Labelled(root, mkt)
    found.ask("res", 12)
    assert found.held("res") == held
    found.check_sums()


def test_masters_without_a_label_stay_on_nodes_without_one():
    found = Labelled(NE, NE)
    found.ask("res", 12, priority=0)
    assert found.held("res") == [8, 0, 0]


def test_a_shared_node_serves_requests_for_its_label_first():
    found = Labelled(NE, NE)
    found.ask("res", 24)
    found.ask("mkt", 3, "ne")
    assert found.held("res") == [8, 0, 8]
    assert found.frees(2, 2) == "mkt mkt"
    assert found.frees(0) == "res"  # a request for ne takes nothing of another node
    assert found.frees(2, 2) == "mkt res"
    found.check_sums()


def test_a_request_for_a_label_gets_that_partition_alone():
    found = Labelled(NE | GPU, NE | GPU)
    found.ask("mkt", 12, "gpu")
    assert found.held("mkt") == [0, 8, 0]
    found.ask("res", 8)
    assert found.held("res") == [8, 0, 0]
    found.check_sums()


def test_a_queue_without_a_share_of_a_partition_gets_nothing_for_its_label():
    found = Labelled(GPU, {})
    found.ask("mkt", 2, "gpu")
    assert found.held("mkt") == [0, 0, 0]


def test_the_maximum_of_a_partition_holds():
    found = Labelled(NE, {"ne": (0.25, 0.5)})
    found.ask("mkt", 8, "ne")
    assert found.held("mkt") == [0, 0, 4]


def test_users_are_limited_in_each_partition():
    """Half of the default node is guaranteed, and a quarter of ne: one container beyond each."""
    found = Labelled(NE, {"ne": (0.25, 1.0)}, factor=1)
    found.ask("mkt", 8, "gpu")
    found.ask("mkt", 8, "ne")
    assert found.held("mkt") == [0, 0, 3]
    found.ask("mkt", 8, "ne")
    assert found.held("mkt") == [0, 0, 3]
    found.rm.finish(found.ask("mkt", 8, "ne"), 0)


def test_a_large_request_reserves_in_its_own_partition():
    found = Labelled(NE, NE)
    found.ask("mkt", 6, "ne")
    found.ask("mkt", 1, "ne", size=2)
    assert found.held("mkt") == [0, 0, 8]
    found = Labelled(NE, NE)
    found.rm.register_node(extra := Node(3, *pair(slots(8)), phase_ms=3))
    extra.label = ""
    found.ask("mkt", 7, "ne")
    app = found.ask("mkt", 1, "ne", size=2)
    found.check_sums()
    assert not found.scheduler.kept  # 7 + 2 slots are beyond the partition
    found.rm.finish(app, 0)
    found.check_sums()


def test_labels_of_queues():
    found = Labelled(NE, NE)
    res, mkt = found.scheduler.nodes["res"], found.scheduler.nodes["mkt"]
    assert [res.may_request(label) for label in ("", "ne", "gpu")] == [True, True, False]
    assert mkt.may_request("gpu")


def test_sums_hold_over_random_histories():
    for seed in range(30):
        chance = random.Random(seed)
        found = Labelled(NE | GPU, {"ne": (0.5, 1.0), "gpu": (1.0, 1.0)}, factor=chance.choice((None, 2)))
        for _ in range(25):
            step = chance.random()
            apps = list(found.rm.applications.values())
            if step < 0.4 or not found.scheduler.live:
                leaf, label = chance.choice(
                    (("mkt", ""), ("mkt", "ne"), ("mkt", "gpu"), ("res", ""), ("res", "ne"))
                )
                found.ask(leaf, chance.randint(1, 6), label, chance.randint(1, 3))
            elif step < 0.8:
                found.scheduler.free(chance.choice(list(found.scheduler.live.values())), 0)
                found.serve()
            else:
                leaves = list(found.scheduler.queues.values())
                move_application(found.rm, chance.choice(apps), chance.choice(leaves))
                found.serve()
            found.check_sums()


def test_one_application_may_request_several_labels():
    """YARN looks, on a node, for the application's first request with the node's label."""
    found = Labelled({**GPU, **NE}, {**GPU, **NE})
    app = found.ask("mkt", 3, priority=20)
    app.label = ""
    found.rm.allocate(app, [(Ask(10, *pair(slots(2)), off_switch=True, label="gpu"), 2)])
    found.serve()
    assert found.held("mkt") == [3, 4, 0]
    found.rm.allocate(app, [(Ask(10, *pair(slots(2)), off_switch=True, label="gpu"), 3)])
    found.rm.allocate(app, [(Ask(30, *pair(slots(1)), off_switch=True, label="ne"), 9)])
    found.serve()
    assert found.held("mkt") == [3, 8, 8], "what waits for one label keeps nothing of another"
    assert [(ask.priority, ask.label, ask.count) for ask in app.asks] == [(10, "gpu", 1), (30, "ne", 1)]
    roots = {label: tree[""].demanding for label, tree in found.scheduler.trees.items()}
    assert {label: [queue.name for queue in queues] for label, queues in roots.items()} == {
        "": [], "gpu": ["mkt"], "ne": ["mkt"],
    }  # fmt: skip
    found.rm.allocate(app, [(Ask(10, *pair(slots(2)), off_switch=True), -1)])
    assert found.scheduler.trees["gpu"][""].demanding == []
    found.check_sums()
