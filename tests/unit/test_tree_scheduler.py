"""The emulator's scheduler in a tree of queues: what a ResourceManager 3.4.2 granted, state by state.

The tables are those of ``tests/unit/deciding/queue_trees.py``; the cluster has 3 nodes of 8 slots unless a
test says more. What is used is held by one application a leaf, granted over heartbeats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import pytest

from emulator.cluster.entities import Application, Ask, Container, Node, ParentConfig, TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import SharedLeaf
from emulator.cluster.resource_manager import ResourceManager
from tests.unit.deciding.queue_trees import (
    HEAD_OF_LINE,
    PARENT_FULL,
    PRIORITIES,
    SCATTERED,
    SIBLINGS,
    SLOT,
    USER_LIMITS,
    slots,
    waits,
)
from tests.unit.scheduler_files import pair
from yarnctl.deciding.model import ApplicationView, ContainerRequest
from yarnctl.units import Resources, times

ONE = Resources(512, 1)
SHARES = {"eng.prod": 0.24, "eng.lab": 0.16, "mkt": 0.3, "res": 0.3}


class Cluster:
    """A ResourceManager without masters; ``order`` names who was served."""

    def __init__(
        self,
        used: Mapping[str, int],
        *rows: ApplicationView,
        free: Mapping[str, int] | None = None,
        eng_maximum: int = 24,
        order: str = "utilization",
        priorities: Mapping[str, int] | None = None,
        fair: Sequence[str] = (),
    ) -> None:
        leaves = tuple(
            TreeLeafConfig(
                name=name, capacity_ratio=share, priority=(priorities or {}).get(name, 0), fair=name in fair
            )
            for name, share in SHARES.items()
        )
        parents = (
            ParentConfig(order=order),  # type: ignore[arg-type]
            ParentConfig(
                name="eng",
                capacity_ratio=0.4,
                maximum_ratio=eng_maximum / 24,
                order=order,  # type: ignore[arg-type]
            ),
        )
        self.rm = ResourceManager(leaves, self, parents)
        scheduler = self.rm.scheduler
        assert isinstance(scheduler, TreeScheduler)
        self.scheduler: TreeScheduler = scheduler
        self.names: dict[int, str] = {}
        self.order: list[str] = []
        self.now_ms = 0
        free = {} if free is None else free
        whole = max(8, *free.values()) if free else 8
        for index in range(24 // whole):
            self.rm.register_node(Node(index, *pair(slots(whole)), phase_ms=index))
        self._fill(used, sorted(free.items()))
        for view in sorted(rows, key=lambda view: view.rank):
            self.submit(view)
        self.serve()

    def wake(self, app: Application) -> None:
        """The tests read what was granted at once."""

    def launch_master(self, container: Container) -> None:
        """A master is a container like any other."""

    def _fill(self, used: Mapping[str, int], free: Sequence[tuple[str, int]]) -> None:
        """Let each leaf hold its slots, and leave on each node what is to be free there."""
        left = [count for _, count in free] + [0] * (len(self.rm.nodes) - len(free))
        for leaf, count in used.items():
            app = self._new(leaf, f"{leaf}-holds", "u")
            self.rm.allocate(app, [(Ask(1, *pair(SLOT), off_switch=True), count)])
            for node, keep in zip(self.rm.nodes, left, strict=True):
                while app.pending and node.free_mib > slots(keep)[0]:
                    assert self.beat(node)
            assert not app.pending
        for node, keep in zip(self.rm.nodes, left, strict=True):
            node.free_mib, node.free_vcores = slots(keep)
        self.order.clear()

    def _new(self, leaf: str, name: str, user: str) -> Application:
        number = len(self.names) + 1
        self.names[number] = name
        app = Application(number, self.scheduler.queues[leaf], user, self.now_ms, 0)
        self.rm.applications[number] = app
        self.scheduler.add_application(app)
        return app

    def submit(self, view: ApplicationView) -> Application:
        app = self._new(view.queue.removeprefix("root."), view.application, view.user)
        asks = [(Ask(one.priority + 1, *pair(one.size), off_switch=True), one.count) for one in view.requests]
        self.rm.allocate(app, asks)
        return app

    def beat(self, node: Node) -> list[Container]:
        self.now_ms += 1000
        granted = self.rm.node_heartbeat(node, [], self.now_ms)
        self.order += [self.names[each.app.number] for each in granted]
        return granted

    def serve(self) -> None:
        """Let all nodes have heartbeats until nothing changes any more."""
        version = -1
        while version != self.scheduler.version:
            version = self.scheduler.version
            for node in self.rm.nodes:
                self.beat(node)

    def free(self, leaf: str) -> None:
        """Free one slot that a leaf held from the start, and serve."""
        held = next(
            each for each in self.scheduler.live.values()
            if self.names[each.app.number] == f"{leaf}-holds"
        )  # fmt: skip
        before = len(self.order)
        self.scheduler.free(held, self.now_ms)
        self.serve()
        if len(self.order) == before:
            self.order.append("-")

    def frees(self, leaf: str, times: int = 1) -> str:
        for _ in range(times if leaf else 0):
            self.free(leaf)
        return " ".join(self.order)

    def used(self, name: str) -> tuple[float, float]:
        """Return what a queue uses, reserved included, in slots."""
        node = self.scheduler.nodes[name]
        return node.used_mib / SLOT[0], node.used_vcores / SLOT[1]


@pytest.mark.parametrize(("used", "asking", "frees", "order"), SIBLINGS)
def test_siblings_are_compared_at_each_parent(used, asking, frees, order):
    rows = [waits(leaf, leaf, (1, count)) for leaf, count in asking.items()]
    assert Cluster(used, *rows).frees(frees, len(order.split())) == order


@pytest.mark.parametrize(("mkt", "res", "order"), PRIORITIES)
def test_priority_counts_between_queues_on_the_same_side_of_their_guarantee(mkt, res, order):
    used = {"mkt": mkt, "res": res, "eng.lab": 24 - mkt - res}
    rows = [waits("mkt", "mkt", (1, 9)), waits("res", "res", (1, 9))]
    count = len(order.split())
    found = Cluster(used, *rows, order="priority-utilization", priorities={"res": 5})
    assert found.frees("eng.lab", count) == order
    assert Cluster(used, *rows).frees("eng.lab", count) == " ".join(["mkt"] * count)


@pytest.mark.parametrize(("frees", "order"), PARENT_FULL)
def test_a_parent_at_its_maximum_is_given_what_is_freed_below_it(frees, order):
    used = {"eng.lab": 10, "eng.prod": 2, "res": 6}
    found = Cluster(used, waits("eng.prod", "eng.prod", (1, 3)), free={"n1": 6}, eng_maximum=12)
    assert found.frees(frees) == order


def test_a_request_larger_than_what_a_parent_has_left_is_refused():
    asks = waits("eng.prod", "p", (2, 1))
    assert Cluster({"eng.lab": 11}, asks, free={"n1": 8}, eng_maximum=12).order == []
    assert Cluster({"eng.lab": 10}, asks, free={"n1": 8}, eng_maximum=12).order == ["p"]


@pytest.mark.parametrize(("rows", "free", "order"), HEAD_OF_LINE)
def test_the_first_request_of_a_leaf_stops_it_at_the_headroom_and_reserves_below_it(rows, free, order):
    found = Cluster({"eng.lab": 24 - sum(free.values())}, *rows, free=free)
    assert " ".join(found.order) == order


def test_a_fair_leaf_serves_the_application_that_uses_the_least():
    """res-holds has four slots and asks for more, as the older application of the table."""
    for fair, order in ((("res",), "new new new new res-holds new res-holds"), ((), "res-holds " * 3)):
        found = Cluster({"res": 4, "eng.lab": 20}, fair=fair)
        old = next(app for app in found.rm.applications.values() if app.queue.name == "res")
        found.rm.allocate(old, [(Ask(1, *pair(SLOT), off_switch=True), 9)])
        found.submit(waits("res", "new", (1, 9)))
        assert found.frees("eng.lab", len(order.split())) == order.strip()


def test_each_resource_stops_a_leaf():
    """Root has one vcore left, and memory for twelve containers."""
    wide, narrow = (
        msgspec.structs.replace(waits(leaf, leaf), requests=(ContainerRequest(0, size, 1),))
        for leaf, size in (("mkt", Resources(51200, 200)), ("eng.lab", Resources(25600, 100)))
    )
    found = Cluster({"res": 23}, free={"n1": 1})
    for view in (wide, narrow):
        found.submit(view)
    found.rm.nodes[0].free_mib = SLOT[0] * 8
    found.serve()
    assert found.order == ["eng.lab"]
    assert not found.scheduler.kept


# --- reservations -----------------------------------------------------------------------------

RESERVING = waits("mkt", "mkt", (2, 1))


@pytest.mark.parametrize("leaf", ["mkt", "res"])
def test_a_request_within_the_headroom_that_fits_on_no_node_reserves_one(leaf):
    found = Cluster({"res": 22}, waits(leaf, "large", (2, 1)), free=SCATTERED)
    assert found.order == []
    assert [node.reserved is not None for node in found.rm.nodes] == [True, False, False]
    assert (found.used(""), found.used("mkt")) == ((24, 24), (2, 2) if leaf == "mkt" else (0, 0))


@pytest.mark.parametrize(("frees", "order"), [("", ""), ("res", "eng.prod")])
def test_what_is_reserved_counts_as_used_in_root(frees, order):
    """22 + 2 + 1 > 24: the free slots are not given; one that is freed elsewhere is, one for one."""
    found = Cluster({"res": 22}, RESERVING, free=SCATTERED)
    found.submit(waits("eng.prod", "eng.prod", (1, 1)))
    found.serve()
    if frees:  # on a node without the reservation
        held = next(each for each in found.scheduler.live.values() if each.node.index == 2)
        found.scheduler.free(held, 0)
        found.serve()
    assert " ".join(found.order) == order


def test_a_reservation_is_filled_on_its_own_node_whatever_the_shares():
    found = Cluster({"res": 22}, waits("res", "res", (2, 1)), free=SCATTERED)
    found.submit(waits("mkt", "mkt", (1, 9)))
    leaf = found.scheduler.queues["res"]
    leaf.config = msgspec.structs.replace(leaf.config, maximum_ratio=0.3)
    found.scheduler.resize(*found.rm.total)
    held = next(each for each in found.scheduler.live.values() if each.node.index == 0)
    found.scheduler.free(held, 0)
    found.serve()
    assert found.order == ["res", "mkt"]
    assert not found.scheduler.kept


def test_a_request_that_is_placed_elsewhere_gives_its_reservation_back():
    found = Cluster({"res": 22}, RESERVING, free=SCATTERED)
    held = next(each for each in found.scheduler.live.values() if each.node.index == 1)
    found.scheduler.free(held, 0)
    found.serve()
    assert (found.order, found.used("")) == (["mkt"], (23, 23))
    assert all(node.reserved is None for node in found.rm.nodes)


def test_a_withdrawn_request_gives_its_reservation_back_at_once():
    for withdrawn in ("ask", "all", "node"):
        found = Cluster({"res": 22}, RESERVING, free=SCATTERED)
        mkt = next(app for app in found.rm.applications.values() if app.queue.name == "mkt")
        if withdrawn == "ask":
            found.rm.allocate(mkt, [(Ask(1, *pair(slots(2)), off_switch=True), -1)])
        elif withdrawn == "all":
            found.rm.finish(mkt, 0)
        else:
            found.rm.lose_node(found.rm.nodes[0], 0)
        assert not found.scheduler.kept
        assert found.used("mkt") == (0, 0)


@pytest.mark.parametrize(("limit", "held", "until"), USER_LIMITS)
def test_a_user_is_given_one_container_beyond_the_limit_and_then_passed_over(limit, held, until):
    mine = waits("res", "mine", (1, 20), user="u1")
    other = waits("res", "other", (1, 1), rank=1, user="u2")
    found = Cluster({}, free={f"n{n}": 8 for n in range(3)})
    leaf = found.scheduler.queues["res"]
    assert isinstance(leaf, SharedLeaf)
    leaf.shared.hold("u1", slots(held))
    leaf.user_mib = slots(limit)[0]
    for view in (mine, other):
        found.submit(view)
    found.serve()
    assert found.order == ["mine"] * (until - held) + ["other"]


@pytest.mark.parametrize(
    ("factor", "percent", "used", "active", "limit_mib"),
    [
        (1, 100, 0, "u1", 3686),
        (2, 100, 15, "u1", 7372),
        (2, 50, 24, "u1 u2", 6145),  # half of what is used, with the next container
        (2, 25, 24, "u1 u2", 6145),
        (2, 25, 24, "u2", 4609),  # what the active users use: u2 has 9
        (2, 25, 24, "", 3073),
        (None, 25, 24, "u2", 4609),
        (2, 25, 3, "u1 u2", 922),  # below the guarantee a part of it
    ],
)
def test_users_share_a_leaf_as_minimum_user_limit_percent_says(factor, percent, used, active, limit_mib):
    """The table of user limits on 12288 MiB in slots of 512 MiB, with a smallest container of 1 MiB."""
    config = TreeLeafConfig(name="res", capacity_ratio=0.3, user_limit_factor=factor, user_percent=percent)
    leaf = SharedLeaf(config)
    leaf.resize(12288, 24)
    leaf.shared.resize(Resources(12288, 24))
    leaf.shared.hold("u1", times(ONE, used * 15 // 24))
    leaf.shared.hold("u2", times(ONE, used - used * 15 // 24))
    leaf.demand = [Application(n, leaf, user, 0, 0) for n, user in enumerate(active.split())]
    assert leaf.user_mib == limit_mib


def test_two_users_of_a_leaf_get_half_each():
    found = Cluster({}, free={f"n{n}": 8 for n in range(3)})
    leaf = found.scheduler.queues["res"]
    leaf.config = msgspec.structs.replace(leaf.config, user_percent=50)
    for user in ("u1", "u2"):
        found.submit(waits("res", user, (1, 20), user=user))
    found.serve()
    assert Counter(found.order) == {"u1": 12, "u2": 12}


# --- absolute resources ---------------------------------------------------------------------


def test_absolute_resources_hold_whatever_the_cluster_and_shrink_with_it():
    """A cluster of half the resources gives each queue half; a maximum stays where the parent allows it."""
    leaves = (
        TreeLeafConfig(name="a", capacity_ratio=0, absolute=Resources(3000, 2)),
        TreeLeafConfig(
            name="b", capacity_ratio=0, am_ratio=0.5, user_limit_factor=2, absolute=Resources(1000, 6),
            absolute_maximum=Resources(3500, 6),
        ),
    )  # fmt: skip
    scheduler = TreeScheduler(leaves, (ParentConfig(),))
    for total, guaranteed, maximum in (
        ((8000, 16), [(3000, 2), (1000, 6)], [(8000, 16), (3500, 6)]),
        ((2000, 4), [(1500, 1), (500, 3)], [(2000, 4), (2000, 4)]),
    ):
        scheduler.resize(*total)
        assert [scheduler.nodes[name].guaranteed for name in "ab"] == guaranteed
        assert [scheduler.nodes[name].maximum for name in "ab"] == maximum
        b = scheduler.queues["b"]
        assert (b.am_mib, b.user_mib, b.guaranteed) == (
            maximum[1][0] // 2,
            guaranteed[1][0] * 2,
            guaranteed[1],
        )


# --- ratios -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "name", "percent"),
    [
        ({"mkt": 1}, "mkt", 14),
        ({"res": 11}, "res", 153),
        ({"eng.lab": 12}, "eng", 125),
        ({"eng.prod": 7}, "eng.prod", 122),  # of 2949 MiB and 5 vcores: not 7 / 5
        ({"eng.lab": 1}, "eng.lab", 26),
        ({"res": 9}, "res", 125),
        ({"mkt": 6}, "mkt", 83),
    ],
)
def test_a_ratio_is_the_dominant_share_used_over_the_one_guaranteed(used, name, percent):
    """As ``usedCapacity`` was shown with slots of 512 MiB and 1 vcore, whose guarantees are cut off."""
    found = Cluster({}, free={})
    scheduler = found.scheduler
    scheduler.resize(12288, 24)
    for leaf, slots_used in used.items():
        scheduler.nodes[leaf].count(512 * slots_used, slots_used)
    assert round(100 * scheduler.nodes[name].ratio()) == percent
