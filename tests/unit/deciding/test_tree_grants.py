"""Who is served in a tree of queues: what a ResourceManager 3.4.2 granted, one row for each state tried."""

from __future__ import annotations

import msgspec
import pytest

from tests.unit.deciding.queue_trees import (
    HEAD_OF_LINE,
    PARENT_FULL,
    PRIORITIES,
    SCATTERED,
    SIBLINGS,
    USER_LIMITS,
    served,
    slots,
    tree,
    waits,
)
from yarnctl.deciding.forecast import EndingContainer, FreeCapacity, model_queues
from yarnctl.deciding.model import ContainerRequest, ParentView, QueueView, Snapshot
from yarnctl.deciding.tree_model import QueueTreeModel
from yarnctl.units import NOTHING, Resources


@pytest.mark.parametrize(("used", "asking", "frees", "order"), SIBLINGS)
def test_siblings_are_compared_at_each_parent(used, asking, frees, order):
    rows = [waits(leaf, leaf, (1, count)) for leaf, count in asking.items()]
    assert served(tree(used, *rows), frees, len(order.split())) == order


@pytest.mark.parametrize(("mkt", "res", "order"), PRIORITIES)
def test_priority_counts_between_queues_on_the_same_side_of_their_guarantee(mkt, res, order):
    used = {"mkt": mkt, "res": res, "eng.lab": 24 - mkt - res}
    rows = [waits("mkt", "mkt", (1, 9)), waits("res", "res", (1, 9))]
    seen = tree(used, *rows, order="priority-utilization", priorities={"res": 5})
    count = len(order.split())
    assert served(seen, "eng.lab", count) == order
    plain = served(tree(used, *rows), "eng.lab", count)
    assert plain == " ".join(["mkt"] * count), "without priorities the lower ratio is first"


@pytest.mark.parametrize(("frees", "order"), PARENT_FULL)
def test_a_parent_at_its_maximum_is_given_what_is_freed_below_it(frees, order):
    seen = tree(
        {"eng.lab": 10, "eng.prod": 2, "res": 6},
        waits("eng.prod", "eng.prod", (1, 3)),
        free={"n1": 6},
        eng_maximum=12,
    )
    assert served(seen, frees) == order


def test_a_request_larger_than_what_a_parent_has_left_is_refused():
    asks = waits("eng.prod", "p", (2, 1))
    assert served(tree({"eng.lab": 11}, asks, free={"n1": 8}, eng_maximum=12)) == ""
    assert served(tree({"eng.lab": 10}, asks, free={"n1": 8}, eng_maximum=12)) == "p"


@pytest.mark.parametrize(("rows", "free", "order"), HEAD_OF_LINE)
def test_the_first_request_of_a_leaf_stops_it_at_the_headroom_and_reserves_below_it(rows, free, order):
    assert served(tree({"eng.lab": 24 - sum(free.values())}, *rows, free=free)) == order


def test_a_fair_leaf_serves_the_application_that_uses_the_least():
    rows = [waits("res", "old", (1, 9), used=slots(4)), waits("res", "new", (1, 9), rank=1)]
    used = {"res": 4, "eng.lab": 20}
    assert served(tree(used, *rows, fair=("root.res",)), "eng.lab", 7) == "new new new new old new old"
    assert served(tree(used, *rows), "eng.lab", 3) == "old old old"


@pytest.mark.parametrize(("ends", "first"), [((), "old"), (("old",), "old"), (("new",), "new")])
def test_a_fair_leaf_does_not_count_what_ends_in_another_partition(ends, first):
    rows = [waits("res", "old", (1, 9)), waits("res", "new", (1, 9), rank=1)]
    seen = msgspec.structs.replace(
        tree({}, *rows, free={"n1": 1}, fair=("root.res",)), elsewhere_mib=dict.fromkeys(("old", "new"), 512)
    )
    model = QueueTreeModel(
        seen, model_queues(seen, (), [EndingContainer(name, "x1", slots(0.01)) for name in ends])
    )
    assert model.place(FreeCapacity(seen.free_by_node)) == {first: 1}


@pytest.mark.parametrize(("slots_free", "granted"), [(2, {"old": 2}), (3, {"old": 2, "new": 1})])
def test_a_fair_leaf_counts_a_filled_reservation_from_the_next_grant_on(slots_free, granted):
    """The older one fills its reservation and still counts as 2 slots; its next container makes it 4."""
    rows = [waits("res", "old", (1, 9), used=slots(2)), waits("res", "new", (1, 9), rank=1, used=slots(3.5))]
    seen = msgspec.structs.replace(
        tree({"res": 6.5}, *rows, free={"n1": slots_free}, fair=("root.res",), reserved={"old": 1}),
        reserved_by_node={"n1": "old"},
        reserved_priority={"n1": 0},
    )
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.place(FreeCapacity(seen.free_by_node)) == granted


def test_an_idle_application_of_a_fair_leaf_is_behind_those_that_use_less_of_all_partitions():
    rows = [waits("res", "idle"), waits("res", "new", (1, 9), rank=1, used=slots(1))]
    seen = msgspec.structs.replace(
        tree({}, *rows, free={"n1": 1}, fair=("root.res",)), elsewhere_mib={"idle": slots(2).memory_mib}
    )
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.only_reserving_before(model.leaves["root.res"], "new")


def test_each_resource_stops_a_leaf():
    """Root has one vcore left, and memory for twelve containers."""
    wide = msgspec.structs.replace(
        waits("mkt", "mkt"), requests=(ContainerRequest(0, Resources(51200, 200), 1),)
    )
    narrow = msgspec.structs.replace(
        waits("eng.lab", "lab"), requests=(ContainerRequest(0, Resources(25600, 100), 1),)
    )
    seen = tree({"res": 23}, wide, narrow)
    seen = msgspec.structs.replace(seen, free_by_node={"n1": Resources(51200 * 12, 100)})
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.place(FreeCapacity(seen.free_by_node)) == {"lab": 1}
    assert model.held == {}


RESERVING = waits("mkt", "mkt", (2, 1))


def test_a_request_within_the_headroom_that_fits_on_no_node_reserves_one():
    """A leaf far over its guarantee reserves as well, and never a node without some of each resource."""
    for leaf in ("mkt", "res"):
        seen = tree({"res": 22}, waits(leaf, "large", (2, 1)), free={"n0": 0, "n1": 1, "n2": 1})
        model = QueueTreeModel(seen, model_queues(seen, ()))
        free = FreeCapacity(seen.free_by_node)
        assert model.place(free) == {}
        assert (model.held, free.held, model.reserved) == (
            {"n1": "large"}, {"n1": slots(1)}, {"large": slots(2)}
        )  # fmt: skip
        assert model.root.used == slots(24)


@pytest.mark.parametrize(("frees", "order"), [("", ""), ("res", "eng.prod")])
def test_what_is_reserved_counts_as_used_in_root(frees, order):
    """22 + 2 + 1 > 24: the free slots are not given; one that is freed is, one for one."""
    seen = tree(
        {"res": 22, "mkt": 2},
        RESERVING,
        waits("eng.prod", "eng.prod", (1, 1)),
        free=SCATTERED,
        reserved={"mkt": 2},
    )
    assert served(seen, frees) == order


def test_an_applications_own_reservation_is_not_held_against_it():
    """21 used and 2 reserved: its request is placed on another node, and the reservation is gone."""
    seen = tree({"res": 21, "mkt": 2}, RESERVING, free={"n1": 1, "n2": 2}, reserved={"mkt": 2})
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.place(FreeCapacity(seen.free_by_node)) == {"mkt": 1}
    assert (model.root.used, model.reserved) == (slots(23), {"mkt": slots(0)})


@pytest.mark.parametrize(("priority", "granted"), [(0, {"mkt": 1}), (1, {})])
def test_a_reservation_is_given_up_for_its_own_request_only(priority, granted):
    """One slot of headroom is left; the first request wants two, and gets those reserved if they are its."""
    asks = waits("mkt", "mkt", (2, 1), (2, 1))
    seen = msgspec.structs.replace(
        tree({"res": 21, "mkt": 2}, asks, free={"n2": 2}, reserved={"mkt": 2}),
        reserved_by_node={"n1": "mkt"},
        reserved_free={"n1": slots(1)},
        reserved_priority={"n1": priority},
    )
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.place(FreeCapacity(seen.free_by_node)) == granted


@pytest.mark.parametrize(("limit", "held", "until"), USER_LIMITS)
def test_a_user_is_given_one_container_beyond_the_limit_and_then_passed_over(limit, held, until):
    mine = waits("res", "mine", (1, 20), user="u1", used=slots(held))
    other = waits("res", "other", (1, 1), rank=1, user="u2")
    seen = tree({"res": held}, mine, other, free={f"n{n}": 8 for n in range(3)}, user_limits={"u1": limit})
    assert served(seen).split() == ["mine"] * (until - held) + ["other"]


def test_a_user_without_a_shown_limit_has_none():
    seen = tree({}, waits("res", "mine", (1, 20), user="u1"), free={"n1": 24}, user_limits={"u2": 1})
    assert served(seen) == " ".join(["mine"] * 20)


def test_a_limit_below_zero_is_rounded_towards_zero():
    """512 MiB are left: the leaf a keeps 1336, so b has -824, rounded to -512, which it keeps, and c nothing.

    With -1024 c could give its reservation up for a container on the free node.
    """
    whole, slot = Resources(2048, 16), Resources(512, 1)
    rows = [
        ("a", Resources(1024, 8), Resources(1336, 2), NOTHING, Resources(512, 3)),
        ("b", Resources(512, 4), whole, NOTHING, slot),
        ("c", Resources(512, 4), whole, slot, slot),
    ]
    seen = Snapshot(
        total=whole,
        largest_node=whole,
        smallest=slot,
        parents=(ParentView(queue="root", guaranteed=whole, maximum=whole, used=Resources(1536, 4)),),
        queues=tuple(
            QueueView(queue=f"root.{leaf}", guaranteed=least, maximum=most, used=used)
            for leaf, least, most, used, _ in rows
        ),
        applications=tuple(
            msgspec.structs.replace(waits(leaf, leaf), requests=(ContainerRequest(0, size, 1),))
            for leaf, *_, size in rows
        ),
        free_by_node={"n2": Resources(512, 12)},
        reserved={"c": slot},
        reserved_by_node={"n1": "c"},
        reserved_free={"n1": Resources(0, 0)},
    )
    model = QueueTreeModel(seen, model_queues(seen, ()))
    assert model.place(FreeCapacity(seen.free_by_node)) == {}
