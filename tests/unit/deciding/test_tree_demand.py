"""Need in a tree of queues: no container is freed that YARN would give to another, and none is missed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE, app, cluster, row, seen, size
from tests.golden.test_borders import an_order
from tests.unit.deciding.queue_trees import NODE, parents_of, slots, tree, waits
from yarnctl.deciding.carried_out import shortages
from yarnctl.deciding.case import Choice, Need, Pick
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import ApplicationView, QueueView, Snapshot, Suspend, TaskView
from yarnctl.deciding.planning import excess_orders
from yarnctl.deciding.preemptor import ClusterDemand, DemandInput, demand
from yarnctl.deciding.records import Refusal
from yarnctl.deciding.settings import Settings
from yarnctl.journal.rendering import text
from yarnctl.units import NOTHING, Resources


def settings(preempting: str, preemptable: str, **changes: Any) -> Settings:
    return msgspec.structs.replace(
        GUARD_FREE,
        preempting_queues=tuple(f"root.{name}" for name in preempting.split()),
        preemptable_queues=tuple(f"root.{name}" for name in preemptable.split()),
        **changes,
    )


def runs(queue: str, name: str, containers: int, **more: Any) -> ApplicationView:
    return waits(queue, name, containers=containers, used=slots(containers), **more)


def found(snapshot: Snapshot, rules: Settings) -> ClusterDemand:
    return demand(DemandInput(snapshot, 0, 0), Ledger(), rules)


def needs(snapshot: Snapshot, rules: Settings) -> dict[str, int]:
    return {
        wish.application.application: sum(need.containers for need in wish.shortfalls)
        for wish in found(snapshot, rules).applications
    }


def reasons(snapshot: Snapshot, rules: Settings) -> dict[str, str]:
    return {trigger.application: text(why) for trigger, why in found(snapshot, rules).refused}


def two_partitions(used: Mapping[str, int], free: Mapping[str, int], first: str, second: str) -> Snapshot:
    """Two applications of a fair leaf, each with four containers on the nodes of label x."""
    line = [waits("res", name, (1, 9), rank=rank) for rank, name in enumerate((first, second))]
    labelled = tree({"res": 8}, *(msgspec.structs.replace(view, used=slots(4), requests=()) for view in line))
    return msgspec.structs.replace(
        tree(used, *line, runs("eng.lab", "lab", used.get("eng.lab", 0)), free=free, fair=("root.res",)),
        labelled={"x": msgspec.structs.replace(labelled, nodes=("x1",))},
    )


def ordered(**nodes: str) -> Ledger:
    """Orders for p1, by victim."""
    ledger = Ledger()
    for number, (victim, node) in enumerate(nodes.items(), 1):
        order = an_order(number, node=node)
        ledger.add(msgspec.structs.replace(order, victim=victim, size=slots(1)))
    return ledger


@pytest.mark.parametrize(("nodes", "first"), [({}, "p1"), ({"r1": "x1"}, "r1")])
def test_a_fair_leaf_does_not_count_what_is_ordered_in_another_partition(nodes, first):
    inputs = DemandInput(two_partitions({}, {"n1": 1}, "p1", "r1"), 0, 0)
    assert demand(inputs, ordered(**nodes), settings("res", "eng.lab")).granted == {first: 1}


@pytest.mark.parametrize(("more", "moved"), [({}, []), ({"r1": "x1"}, [("o-000001", "r1")])])
def test_an_order_moves_to_the_first_of_a_fair_leaf_when_its_containers_end_elsewhere(more, moved):
    """The leaf gives containers of one partition and requests those of another."""
    inputs = DemandInput(two_partitions({"eng.lab": 24}, {}, "p1", "r1"), 0, 0)
    found = excess_orders(inputs, ordered(lab="n1", **more), settings("", "", mode="guarantees"))
    assert [(order.order, to) for order, to in found.moves] == moved


def test_a_request_that_is_not_granted_waits_behind_those_that_use_less_of_all_partitions():
    snapshot = two_partitions({"eng.lab": 5, "mkt": 19}, {}, "r1", "p1")
    inputs = DemandInput(snapshot, 0, 0, not_granted={"p1": False})
    (wish,) = demand(inputs, Ledger(), settings("res", "eng.lab")).applications
    assert (wish.application.application, wish.shortfalls) == ("r1", (Need(slots(1), 1),))


@pytest.mark.parametrize(("nodes", "lacks"), [({}, {"p1": 1}), ({"p1": "x1"}, {})])
def test_a_plan_is_carried_out_in_the_order_of_what_is_left_of_all_partitions(nodes, lacks):
    inputs = DemandInput(two_partitions({"eng.lab": 5, "mkt": 19}, {}, "r1", "p1"), 0, 0).of_label("")
    pick = Pick("lab", tasks("lab", 1)[0]._replace(node="n1"), (), (), slots(1), 1)
    choice = Choice((pick,), (), 0, (), (), ("lab",))
    assert shortages([("p1", choice)], inputs, ordered(**nodes), {}) == lacks


@pytest.mark.parametrize(
    ("orders", "why"),
    [({}, "YARN serves other applications first"), ({"r": "n3"}, "open orders already cover the shortfall")],
)
def test_open_orders_are_a_reason_for_applications_that_have_some(orders, why):
    """The queue's share is three slots for a, and two for p1, which are free behind the request of a."""
    rows = [waits("res", "a", (3, 1)), waits("res", "p1", (1, 9), rank=1), runs("eng.lab", "lab", 19)]
    inputs = DemandInput(tree({"res": 3, "eng.lab": 19}, *rows, free={"n1": 1, "n2": 1}), 0, 0)
    made = demand(inputs, ordered(**orders), settings("", "", mode="guarantees"))
    assert {trigger.application: text(each) for trigger, each in made.refused} == {"p1": why}


# --- a real nested tree: root.prod {etl, serving} 70 %, root.research {ds, adhoc} 30 %, 100 slots ----

BOTH = settings("prod.etl prod.serving", "research.ds research.adhoc")
SHARES = {"prod.etl": 42, "prod.serving": 28, "research.ds": 21, "research.adhoc": 9}


def site(used: Mapping[str, int], *applications: ApplicationView, prod_maximum: int = 100) -> Snapshot:
    total = slots(100)
    queues = [
        QueueView(queue=f"root.{name}", guaranteed=slots(part), maximum=total, used=slots(used.get(name, 0)))
        for name, part in SHARES.items()
    ]
    return Snapshot(
        total=total,
        largest_node=NODE,
        queues=tuple(queues),
        applications=applications,
        free_by_node={},
        parents=parents_of(
            queues,
            total,
            {"root.prod": slots(prod_maximum)},
            {"root.prod": slots(70), "root.research": slots(30)},
        ),
    )


SERVING = waits("prod.serving", "serving", (1, 3))


def test_production_below_its_share_is_served():
    rows = [runs("research.ds", "d", 60), runs("research.adhoc", "a", 40), SERVING]
    assert needs(site({"research.ds": 60, "research.adhoc": 40}, *rows), BOTH) == {"serving": 3}


def test_nothing_is_taken_that_the_parent_of_the_victims_would_be_given_again():
    """Serving has nothing; its parent is at 107 %, the victims' at 83 %: a container would go back."""
    seen_ = site({"prod.etl": 75, "research.ds": 25}, runs("research.ds", "d", 25), SERVING)
    assert needs(seen_, BOTH) == {}
    assert reasons(seen_, BOTH) == {
        "serving": "YARN would serve queue root.research.ds first and give it the freed container again"
    }


def test_nothing_is_taken_for_a_queue_below_a_parent_at_its_maximum():
    seen_ = site({"prod.etl": 50, "research.ds": 50}, runs("research.ds", "d", 50), SERVING, prod_maximum=50)
    assert needs(seen_, BOTH) == {}
    assert reasons(seen_, BOTH) == {
        "serving": "parent queue root.prod is at its maximum; only containers freed below it help"
    }


def test_what_a_sibling_of_the_requester_gives_goes_to_a_queue_whose_parent_is_lower():
    """Eng is at 115 %, res at 70 %: taking from lab for prod is in vain while res waits."""
    used = {"eng.lab": 11, "res": 5, "mkt": 8}
    rows = [runs("eng.lab", "l", 11), waits("eng.prod", "p", (1, 2)), waits("res", "r", (1, 2))]
    rules = settings("eng.prod", "eng.lab")
    assert reasons(tree(used, *rows), rules) == {
        "p": "YARN would give the freed container to r in queue root.res"
    }
    assert needs(tree(used, *rows[:2]), rules) == {"p": 2}


# --- which queues help ----------------------------------------------------------------------------

CAPPED = {"eng.lab": 10, "eng.prod": 2, "res": 12}
GIVING = [runs("eng.lab", "l", 10), runs("res", "r", 12)]
EITHER = settings("eng.prod", "res eng.lab")


def tasks(name: str, count: int) -> tuple[TaskView, ...]:
    return tuple(
        task._replace(size=slots(1), container=f"{name}-{n}", attempt=f"{name}-{n}")
        for n, task in enumerate(row(name, count))
    )


def test_below_a_parent_at_its_maximum_only_its_own_leaves_give():
    """Res is the furthest over its guarantee, and its containers would not help."""
    snapshot = tree(CAPPED, *GIVING, waits("eng.prod", "p", (1, 3)), eng_maximum=12)
    [wish] = found(snapshot, EITHER).applications
    assert (wish.queues, sum(need.containers for need in wish.shortfalls)) == (("root.eng.lab",), 3)
    step = Controller(EITHER).step(seen(snapshot, {"l": tasks("l", 9), "r": tasks("r", 11)}))
    asked = [action.application for action in step.actions if isinstance(action, Suspend)]
    assert asked == ["l", "l", "l"]


def reserving(**more: Any) -> Snapshot:
    """The user of p is over the limit; p has reserved two slots on n1, where one is free."""
    mine = waits("res", "p", (2, 3), used=slots(1), user="u1")
    held = tree(
        {"res": 3, "eng.lab": 20}, mine, runs("eng.lab", "l", 20), reserved={"p": 2}, user_limits={"u1": 0.5}
    )
    known: dict[str, Any] = {
        "reserved_by_node": {"n1": "p"},
        "reserved_priority": {"n1": 0},
        "reserved_free": {"n1": slots(1)},
    }
    return msgspec.structs.replace(held, **known | more)


LAB_GIVES = settings("res", "eng.lab")


def test_what_is_freed_on_a_reserved_node_fills_the_reservation_of_its_requester():
    [wish] = found(reserving(), LAB_GIVES).applications
    assert (wish.nodes, wish.shortfalls) == (frozenset({"n1"}), (Need(slots(2), 1),))
    rows = [task._replace(node="n2") for task in tasks("l", 20)]
    rows[7] = rows[7]._replace(node="n1")
    step = Controller(LAB_GIVES, validate=True).step(seen(reserving(), {"l": tuple(rows)}))
    assert [action.container for action in step.actions if isinstance(action, Suspend)] == ["l-7"]


def test_each_known_node_that_a_requester_reserves_may_serve_it():
    """No task runs on n1: one of n2, which p has reserved too, stops; without one the limit is the reason."""
    both = msgspec.structs.replace(
        reserving(),
        reserved_by_node={"n1": "p", "n2": "p"},
        reserved_priority={"n1": 0, "n2": 0},
        reserved_free={"n1": slots(1), "n2": slots(1)},
    )
    [wish] = found(both, LAB_GIVES).applications
    assert (wish.nodes, wish.shortfalls) == (frozenset({"n1", "n2"}), (Need(slots(2), 1),))
    rows = [task._replace(node="n3") for task in tasks("l", 20)]
    rows[7] = rows[7]._replace(node="n2")
    step = Controller(LAB_GIVES, validate=True).step(seen(both, {"l": tuple(rows)}))
    assert [action.container for action in step.actions if isinstance(action, Suspend)] == ["l-7"]


def test_without_a_task_on_the_reserved_nodes_the_earlier_reason_is_given():
    rows = tuple(task._replace(node="n3") for task in tasks("l", 20))
    step = Controller(LAB_GIVES).step(seen(reserving(), {"l": rows}))
    assert not [action for action in step.actions if isinstance(action, Suspend)]
    refused = [text(each.why) for each in step.records if isinstance(each, Refusal)]
    assert refused == ["the application's user is at the user limit"]


@pytest.mark.parametrize(
    "unknown",
    [
        {"reserved_by_node": {}},
        {"reserved_by_node": {"n1": "another"}},
        {"reserved_priority": {"n1": 5}},
        {"reserved_free": {"n1": slots(2)}},
    ],
    ids=["node", "application", "request", "enough is free"],
)
def test_a_reservation_that_is_not_known_to_take_what_is_freed_gives_no_order(unknown):
    assert reasons(reserving(**unknown), LAB_GIVES) == {"p": "the application's user is at the user limit"}


def test_what_is_free_on_a_reserved_node_counts_for_its_requester():
    """One slot is missing there, and two on every other node."""
    snapshot = tree(
        {"res": 3, "eng.lab": 20}, waits("res", "p", (2, 3)), runs("eng.lab", "l", 20), reserved={"p": 2}
    )
    snapshot = msgspec.structs.replace(
        snapshot, reserved_by_node={"n1": "p"}, reserved_priority={"n1": 0}, reserved_free={"n1": slots(1)}
    )
    assert found(snapshot, LAB_GIVES).free["n1"] == slots(1)


def test_without_a_maximum_every_queue_helps():
    snapshot = tree(CAPPED, *GIVING, waits("eng.prod", "p", (1, 3)), eng_maximum=24)
    [wish] = found(snapshot, EITHER).applications
    assert wish.queues == ()


def test_a_sibling_gives_until_it_would_be_served_first():
    """After five, prod is at 7 of 5.76; lab, with 4 of 3.84 after the next one, would be given it again."""
    snapshot = tree(CAPPED, *GIVING, waits("eng.prod", "p", (1, 9)), eng_maximum=12)
    assert needs(snapshot, EITHER) == {"p": 5}


# --- the first request of a leaf ------------------------------------------------------------------


def test_behind_a_request_that_no_limit_allows_nothing_is_served():
    """The older application asks 4 slots, and root.eng may have 3 more."""
    rows = [waits("eng.prod", "old", (4, 1)), waits("eng.prod", "young", (1, 1), rank=1)]
    snapshot = tree({"eng.prod": 9, "res": 15}, runs("res", "r", 15), *rows, eng_maximum=12)
    rules = settings("eng.prod", "res")
    assert needs(snapshot, rules) == {}
    assert reasons(snapshot, rules) == {
        "old": "parent queue root.eng is at its maximum; only containers freed below it help",
        "young": "the request of old, the first in the queue, exceeds what queue root.eng has left;"
        " YARN serves no request behind it",
    }


def test_what_is_free_serves_a_request_once_the_one_before_it_is_served():
    """Two slots are free: the older one's 4 exceed that; once it has its 4, the younger takes a free one."""
    rows = [waits("eng.prod", "old", (4, 1)), waits("eng.prod", "young", (1, 1), rank=1)]
    snapshot = tree({"res": 22}, runs("res", "r", 22), *rows, free={"n1": 1, "n2": 1})
    rules = settings("eng.prod", "res")
    [wish] = found(snapshot, rules).applications
    assert (wish.application.application, wish.shortfalls) == ("old", ((slots(4), 1),))
    assert wish.beside == slots(2), "of what is free, no more than the headroom"
    assert reasons(snapshot, rules) == {"young": "YARN serves other applications first"}


def test_a_user_over_the_limit_is_passed_over():
    rows = [
        waits("res", "mine", (1, 2), user="u1", used=slots(3)),
        waits("res", "other", (1, 2), rank=1, user="u2"),
    ]
    snapshot = tree({"res": 3, "mkt": 21}, runs("mkt", "m", 21), *rows, user_limits={"u1": 2})
    rules = settings("res", "mkt")
    assert needs(snapshot, rules) == {"other": 2}
    assert reasons(snapshot, rules) == {"mine": "the application's user is at the user limit"}


# --- reservations ---------------------------------------------------------------------------------


def test_beside_a_reservation_a_whole_container_is_freed():
    """22 used and 2 reserved: the two free slots are not granted, and count for nothing."""
    rows = [runs("res", "r", 22), waits("mkt", "m", (2, 1)), waits("eng.prod", "p", (1, 1))]
    snapshot = tree({"res": 22, "mkt": 2}, *rows, free={"n1": 1, "n2": 1}, reserved={"m": 2})
    rules = settings("eng.prod", "res")
    [wish] = found(snapshot, rules).applications
    assert (wish.shortfalls, wish.usable(snapshot.free_by_node)) == (((slots(1), 1),), {})
    without = tree({"res": 22}, *rows[::2], free={"n1": 1, "n2": 1})
    assert needs(without, rules) == {}


@pytest.mark.parametrize(
    ("beside", "usable"),
    [
        (None, {"n1": slots(1), "n2": slots(3)}),
        (slots(2), {"n1": slots(1)}),  # n2 holds a whole request: YARN does not grant it
        (NOTHING, {"n1": NOTHING}),
    ],
)
def test_how_much_of_a_node_counts_beside_freed_containers(beside, usable):
    snapshot = tree({"res": 24}, runs("res", "r", 24), waits("eng.prod", "p", (2, 1)))
    [wish] = found(snapshot, settings("eng.prod", "res")).applications
    assert wish._replace(beside=beside).usable({"n1": slots(1), "n2": slots(3)}) == usable


def test_a_requester_keeps_the_node_that_it_reserves():
    """Its two slots are scattered over two nodes: it reserves the first, and that one counts for it alone."""
    rules = settings("eng.prod", "res")
    rows = [runs("res", "r", 22), waits("eng.prod", "p", (2, 1))]
    snapshot = tree({"res": 22}, *rows, free={"n1": 1, "n2": 1})
    assert found(snapshot, rules).free == {"n1": slots(1), "n2": slots(1)}
    held = tree(
        {"res": 20, "eng.lab": 2}, runs("res", "r", 20), runs("eng.lab", "l", 2), waits("mkt", "m", (2, 1)),
        waits("eng.prod", "p", (1, 1)), free={"n1": 1, "n2": 1},
    )  # fmt: skip
    assert found(held, rules).free == {"n1": NOTHING, "n2": slots(1)}


def test_a_leaf_that_is_left_keeps_its_headroom_from_the_next_ones():
    """Production asks for more than root has left: research, which comes later, does not reserve with it."""
    rows = [waits("res", "r", (2, 1), containers=22, used=slots(22)), waits("eng.prod", "p", (3, 1))]
    held = tree({"res": 22}, *rows, free={"n1": 1, "n2": 1})
    assert found(held, settings("eng.prod", "res")).free == {"n1": slots(1), "n2": slots(1)}


# --- orders that are not needed any more, and deadlines ---------------------------------------------


@pytest.mark.parametrize(("eng_maximum", "excess"), [(24, []), (2, ["o-000001"])])
def test_an_order_is_withdrawn_when_a_parent_keeps_its_container_from_the_requester(eng_maximum, excess):
    ledger = Ledger()
    ledger.add(msgspec.structs.replace(an_order(requester="p"), size=slots(1), request_size=slots(1)))
    rows = [runs("res", "r1", 22), waits("eng.prod", "p", (1, 1))]
    snapshot = tree({"res": 22, "eng.prod": 2}, *rows, eng_maximum=eng_maximum)
    unneeded = excess_orders(DemandInput(snapshot, 0, 0), ledger, settings("eng.prod", "res"))
    assert [order.order for order in unneeded.excess] == excess


def test_with_deadlines_a_leaf_gives_to_itself():
    rules = settings("eng.prod", "res", mode="deadlines", job_policy="MDF")
    rows = [
        waits("res", "soon", (1, 2), deadline_at_ms=1000),
        runs("res", "late", 10, rank=1, deadline_at_ms=9000),
        runs("mkt", "elsewhere", 13, rank=2, deadline_at_ms=9000),
    ]
    snapshot = tree({"res": 11, "mkt": 13}, *rows)
    [wish] = demand(DemandInput(snapshot, 0, 0, urgent_first=rows), Ledger(), rules).applications
    assert (wish.application.application, wish.queues) == ("soon", ("root.res",))
    full = tree({"res": 11, "mkt": 13}, *rows, waits("eng.lab", "other", (1, 1), deadline_at_ms=5000))
    assert (
        reasons_of(full, rules, rows)["soon"]
        == "YARN would give the freed container to other in queue root.eng.lab"
    )


def reasons_of(snapshot: Snapshot, rules: Settings, urgent: list[ApplicationView]) -> dict[str, str]:
    refused = demand(DemandInput(snapshot, 0, 0, urgent_first=urgent), Ledger(), rules).refused
    return {trigger.application: text(why) for trigger, why in refused}


def test_all_resources_of_a_limit_count():
    """Memory is left below root.eng's maximum, and no vcore."""
    snapshot = tree({"eng.prod": 2, "res": 22}, runs("res", "r", 22), waits("eng.prod", "p", (1, 1)))
    narrow = msgspec.structs.replace(snapshot.parents[1], maximum=Resources(slots(24).memory_mib, 250))
    snapshot = msgspec.structs.replace(snapshot, parents=(snapshot.parents[0], narrow))
    assert needs(snapshot, settings("eng.prod", "res")) == {}


def test_an_application_beyond_the_parallel_ones_is_named_so():
    rows = [runs("res", "r", 24), waits("eng.prod", "p", (1, 1), activated=False)]
    snapshot = msgspec.structs.replace(tree({"res": 24}, *rows), held_back=("p",))
    assert needs(snapshot, settings("eng.prod", "res")) == {}
    assert reasons(snapshot, settings("eng.prod", "res")) == {
        "p": "the limit on parallel applications keeps the application pending;"
        " raise max-parallel-apps of its queue"
    }


# --- what a queue may give ------------------------------------------------------------------------


def nested(guaranteed: Mapping[str, Resources], *applications: ApplicationView) -> Snapshot:
    """Return a full cluster of 16 slots of 1 GiB and one core with these leaves below root."""
    found = cluster(*applications, guaranteed=dict.fromkeys(guaranteed, 0), total=16)
    queues = [msgspec.structs.replace(view, guaranteed=guaranteed[view.queue]) for view in found.queues]
    return msgspec.structs.replace(found, queues=tuple(queues), parents=parents_of(queues, found.total))


@pytest.mark.parametrize(
    ("guarantee", "held", "largest", "wanted", "expected"),
    [
        (Resources(1077, 1), 2, 1, 1, {"p": 1}),  # 1.05 slots are one core: it keeps one
        (Resources(2101, 2), 2, 1, 1, {}),
        (size(5), 7, 3, 2, {"p": 1}),  # less its largest task it would be below, less two slots not
        (size(6), 7, 3, 2, {}),
    ],
)
def test_a_queue_gives_down_to_its_guarantee_in_whole_resources(
    guarantee: Resources, held: int, largest: int, wanted: int, expected: dict[str, int]
) -> None:
    large = app("r1", "root.res", 2, slots=largest) if largest > 1 else app("r1", "root.res", held)
    small = app("r2", "root.res", held - large.used.vcores, rank=1)
    others = app("o", "root.other", 16 - held, rank=2)
    waiting = app("p", "root.prod", 0, 1, ask=wanted)
    leaves = {"root.res": guarantee, "root.prod": size(8), "root.other": size(1)}
    snapshot = nested(leaves, large, small, others, waiting)
    assert needs(snapshot, settings("prod", "res")) == expected
