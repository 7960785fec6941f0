"""``--mode guarantees``: who asks, who gives, and how much, on flat and nested trees."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.golden.tables import GUARD_FREE
from tests.golden.tables import seen as observed
from tests.unit.deciding.queue_trees import NODE, TOTAL, slots, tree, waits
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.guarantees import guarantee_shares, share_tree
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import ApplicationView, ContainerRequest, QueueView, Snapshot, Suspend, TaskView
from yarnctl.deciding.preemptor import ClusterDemand, DemandInput, demand
from yarnctl.deciding.settings import PAPER, Settings, validate
from yarnctl.errors import BadInput
from yarnctl.journal.rendering import text
from yarnctl.units import VCORES_A_MIB, Resources

RULES = msgspec.structs.replace(GUARD_FREE, mode="guarantees", preempting_queues=(), preemptable_queues=())


def runs(queue: str, name: str, containers: int, **more: Any) -> ApplicationView:
    return waits(queue, name, containers=containers + 1, used=slots(containers), **more)


def found(snapshot: Snapshot, rules: Settings = RULES) -> ClusterDemand:
    return demand(DemandInput(snapshot, 0, 0), Ledger(), rules)


def needs(snapshot: Snapshot, rules: Settings = RULES) -> dict[str, int]:
    return {
        wish.application.application: sum(need.containers for need in wish.shortfalls)
        for wish in found(snapshot, rules).applications
    }


def reasons(snapshot: Snapshot, rules: Settings = RULES) -> dict[str, str]:
    return {trigger.application: text(why) for trigger, why in found(snapshot, rules).refused}


def victims(snapshot: Snapshot, rules: Settings = RULES) -> tuple[str, ...]:
    return guarantee_shares(snapshot, (), rules).victims()


def flat(used: dict[str, int], *applications: ApplicationView) -> Snapshot:
    """Four leaves below root with a quarter each (6 slots)."""
    return Snapshot(
        total=TOTAL,
        largest_node=NODE,
        queues=tuple(
            QueueView(queue=f"root.{leaf}", guaranteed=slots(6), maximum=TOTAL, used=slots(used.get(leaf, 0)))
            for leaf in "abcd"
        ),
        applications=applications,
        free_by_node={},
    )


# --- a flat tree ----------------------------------------------------------------------------------


def test_a_leaf_below_its_guarantee_takes_up_to_it_from_those_above_theirs() -> None:
    snapshot = flat(
        {"a": 2, "b": 14, "c": 8}, runs("a", "ask", 2), runs("b", "big", 14), runs("c", "over", 8)
    )
    asking = msgspec.structs.replace(snapshot.applications[0], requests=waits("a", "x", (1, 9)).requests)
    snapshot = msgspec.structs.replace(snapshot, applications=(asking, *snapshot.applications[1:]))
    assert needs(snapshot) == {"ask": 4}, "4 slots are missing to its 6"
    assert set(victims(snapshot)) <= {"root.b", "root.c"}
    assert "root.b" in victims(snapshot)


def test_a_leaf_at_its_guarantee_gets_nothing_more() -> None:
    snapshot = flat({"a": 6, "b": 18}, waits("a", "ask", (1, 5)), runs("b", "big", 18))
    assert needs(snapshot) == {}
    assert reasons(snapshot) == {"ask": "the application's queue already has its guarantee"}


def test_nothing_is_taken_if_no_queue_is_over_its_guarantee() -> None:
    snapshot = flat({"a": 5, "b": 6, "c": 6, "d": 6}, waits("a", "ask", (2, 1)))
    assert needs(snapshot) == {}
    assert reasons(snapshot) == {"ask": "no queue that may be preempted holds more than its ideal share"}


def test_preemptable_and_preempting_restrict_both_sides() -> None:
    rows = [waits("a", "ask", (1, 9)), runs("b", "big", 12), runs("c", "other", 12)]
    snapshot = flat({"b": 12, "c": 12}, *rows)
    assert set(victims(snapshot)) == {"root.b", "root.c"}
    only = msgspec.structs.replace(RULES, preemptable_queues=("root.c",))
    assert victims(snapshot, only) == ("root.c",)
    assert needs(snapshot, only) == {"ask": 6}
    mute = msgspec.structs.replace(RULES, preempting_queues=("root.d",))
    assert (needs(snapshot, mute), reasons(snapshot, mute)) == ({}, {})


def gpus(size: Resources, count: int) -> Resources:
    return Resources(size[0], size[1], count)


@pytest.mark.parametrize(
    ("guaranteed", "count"), [({}, 4), ({"root.a": 2}, 4), (dict.fromkeys(("root.a", "root.b"), 4), 6)]
)
def test_a_cluster_with_gpus_is_decided_whichever_queues_have_some(
    guaranteed: dict[str, int], count: int
) -> None:
    """Vectors of one snapshot differ in length: one ends with its last component that is not 0.

    What queues do not use is shared by their dominant guarantees, those of GPUs among them.
    """
    rows = [waits("a", "ask", (1, 9), containers=3, used=slots(2)), runs("b", "big", 14), runs("c", "c", 8)]
    plain = flat({"a": 2, "b": 14, "c": 8}, *rows)
    queues = tuple(
        msgspec.structs.replace(
            view,
            guaranteed=gpus(view.guaranteed, guaranteed.get(view.queue, 0)),
            used=gpus(view.used, 2 * (view.queue == "root.b")),
            maximum=gpus(view.maximum, 8),
        )
        for view in plain.queues
    )
    snapshot = msgspec.structs.replace(
        plain,
        total=gpus(TOTAL, 8),
        largest_node=gpus(NODE, 2),
        queues=queues,
        resource_names=("yarn.io/gpu",),
    )
    assert (needs(snapshot), needs(plain)) == ({"ask": count}, {"ask": 4})
    gone = msgspec.structs.replace(snapshot, total=TOTAL, largest_node=NODE)  # the nodes with GPUs are lost
    assert needs(gone) == {"ask": 4}, "no guarantee of them counts any more"


def test_requests_for_gpus_are_served_from_a_leaf_that_has_some_and_is_above_its_share() -> None:
    request = ContainerRequest(1, gpus(slots(1), 1), 4)
    asking = msgspec.structs.replace(waits("a", "ask", (1, 4)), requests=(request,))
    rows = [asking, msgspec.structs.replace(runs("b", "big", 24), used=gpus(slots(24), 8))]
    plain = flat({"a": 0, "b": 24}, *rows)
    queues = tuple(
        msgspec.structs.replace(
            view,
            guaranteed=gpus(view.guaranteed, 4 * (view.queue in ("root.a", "root.b"))),
            used=gpus(view.used, 8 * (view.queue == "root.b")),
            maximum=gpus(view.maximum, 8),
        )
        for view in plain.queues
    )
    snapshot = msgspec.structs.replace(
        plain,
        total=gpus(TOTAL, 8),
        largest_node=gpus(NODE, 2),
        queues=queues,
        resource_names=("yarn.io/gpu",),
    )
    assert victims(snapshot) == ("root.b",)
    assert 1 <= needs(snapshot)["ask"] <= 4


# --- a nested tree: root {eng 9.6 {prod 5.76, lab 3.84}, mkt 7.2, res 7.2} --------------------------


def test_within_a_parent_below_its_guarantee_only_a_sibling_of_the_requester_gives() -> None:
    rows = [waits("eng.prod", "ask", (1, 9)), runs("eng.lab", "lab", 8), runs("mkt", "m", 7)]
    snapshot = tree({"eng.lab": 9, "mkt": 7, "res": 7}, *rows, runs("res", "r", 7))
    assert victims(snapshot) == ("root.eng.lab",)
    [wish] = found(snapshot).applications
    assert wish.application.application == "ask"
    assert sum(need.containers for need in wish.shortfalls) <= 6


def test_a_leaf_over_its_guarantee_in_a_parent_below_its_own_gives_nothing_to_others() -> None:
    """Leaf lab holds 8 of a guarantee of 3.84, but eng holds 8 of 9.6."""
    rows = [runs("eng.lab", "lab", 8), waits("mkt", "ask", (1, 9)), runs("res", "r", 16)]
    snapshot = tree({"eng.lab": 8, "res": 16}, *rows)
    assert victims(snapshot) == ("root.res",)
    assert needs(snapshot) == {"ask": 8}


def test_a_leaf_takes_what_its_parent_is_due_where_yarn_serves_it_first() -> None:
    """Parent eng holds 4 of 9.6: YARN gives lab, at its guarantee, what is freed until mkt's is lower."""
    rows = [waits("eng.lab", "lab", (1, 9)), waits("mkt", "m", (1, 9)), runs("res", "r", 18)]
    snapshot = tree({"eng.lab": 4, "mkt": 2, "res": 18}, *rows)
    assert victims(snapshot) == ("root.res",)
    assert needs(snapshot) == {"lab": 5, "m": 5}, "both towards eng's 9.6 and mkt's 7.2; res keeps its 7.2"
    busy = tree({"eng.lab": 4, "eng.prod": 6, "mkt": 2, "res": 12}, *rows)
    assert list(needs(busy)) == ["m"]
    assert reasons(busy) == {"lab": "the application's queue already has its guarantee"}


def test_the_tree_has_the_pending_requests_within_the_user_limits() -> None:
    rows = [
        waits("res", "one", (2, 3), user="u1", used=slots(3), rank=0),
        waits("res", "two", (1, 9), user="u1", rank=1),
        waits("res", "three", (1, 2), user="u2", rank=2),
        waits("res", "idle", (1, 2), user="u3", rank=3, activated=False),
    ]
    snapshot = tree({"res": 5}, *rows, user_limits={"u1": 10}, reserved={"three": 2})
    root = share_tree(snapshot, lambda queue: queue != "root.mkt")
    assert [child.queue for child in root.children] == ["root.eng", "root.mkt", "root.res"]
    assert [child.queue for child in root.children[0].children] == ["root.eng.lab", "root.eng.prod"]
    res = root.children[2]
    assert res.pending == slots(6 + 1 + 2), "u1 may have 7 more"
    assert res.unreserved == slots(6 + 1)
    assert [child.untouchable for child in root.children] == [False, True, False]
    assert root.used == slots(5)
    active = {"root.res": {"u1": slots(4), "u2": slots(9)}}
    limited = share_tree(msgspec.structs.replace(snapshot, active_limits=active), lambda queue: True)
    assert limited.children[2].pending == slots(1 + 2), "YARN's own limit of u1 leaves 1 more"


# --- what is chosen -------------------------------------------------------------------------------


def test_no_leaf_gives_more_than_it_has_to_whatever_the_job_policy_prefers() -> None:
    """Leaf b is 8 slots over its guarantee with small jobs, c 4 with a large one, which MR prefers."""
    small = [runs("b", f"small{n}", 2) for n in range(7)]
    rows = [waits("a", "ask", (1, 9)), *small, runs("c", "large", 10)]
    snapshot = flat({"b": 14, "c": 10}, *rows)
    tasks = {
        view.application: [
            TaskView(f"{view.application}.{n}", f"{view.application}.c{n}", f"n{n % 3}", slots(1),
                     "reduce", 60_000 + n, 0, 0, 1, True, False)
            for n in range(view.containers - 1)
        ]
        for view in rows[1:]
    }  # fmt: skip
    controller = Controller(RULES)
    step = controller.step(observed(snapshot, tasks))
    for _ in range(4):
        if any(isinstance(action, Suspend) for action in step.actions):
            break
        step = controller.step(observed(snapshot, tasks, now_ms=1))
    taken = [action.application for action in step.actions if isinstance(action, Suspend)]
    assert len(taken) == 6, "a's guarantee"
    gives = {path: share.gives for path, share in guarantee_shares(snapshot, (), RULES).shares.items()}
    assert taken.count("large") <= -(-gives["root.c"].vcores // slots(1).vcores)
    assert taken.count("large") <= 4, "c keeps its guarantee"


def test_the_papers_profile_has_no_guarantees() -> None:
    with pytest.raises(BadInput, match="guarantees needs the model of the scheduler"):
        validate(msgspec.structs.replace(PAPER, mode="guarantees"))


def test_a_queue_that_gives_keeps_its_guarantee_with_large_tasks() -> None:
    """Leaf b is half a task over its guarantee."""
    view = runs("b", "big", 3, task_size=slots(2))
    snapshot = flat({"b": 7, "c": 6, "d": 6, "a": 5}, waits("a", "ask", (1, 1)), view)
    limits = guarantee_shares(snapshot, (), RULES).limits
    assert limits.may_take("root.b", slots(1))
    assert not limits.may_take("root.b", slots(2))
    assert not limits.may_take("root.c", Resources(1, 1)), "it has nothing to give"
    limits.take("root.b", slots(1))
    assert not limits.may_take("root.b"), "it has given its share"


def test_guarantees_count_memory_alone_where_the_scheduler_does() -> None:
    """Leaf b has its memory and more vcores, c has more memory; YARN's policy takes from c alone."""
    snapshot = flat(
        {"b": 6, "c": 12, "d": 6}, waits("a", "ask", (1, 6)), runs("b", "cores", 6), runs("c", "big", 12)
    )
    total = Resources(TOTAL.memory_mib, TOTAL.memory_mib * VCORES_A_MIB)
    queues = []
    for view in snapshot.queues:
        guaranteed = Resources(view.guaranteed.memory_mib, view.guaranteed.memory_mib * VCORES_A_MIB)
        used = Resources(view.used.memory_mib, 20) if view.queue == "root.b" else view.used
        queues.append(msgspec.structs.replace(view, guaranteed=guaranteed, maximum=total, used=used))
    snapshot = msgspec.structs.replace(snapshot, total=total, queues=tuple(queues))
    shares = guarantee_shares(snapshot, (), RULES)
    assert shares.victims() == ("root.c",)
    assert shares.shares["root.c"].gives == Resources(slots(6).memory_mib, 0)
    assert shares.shares["root.a"].ideal == Resources(slots(6).memory_mib, 0)
