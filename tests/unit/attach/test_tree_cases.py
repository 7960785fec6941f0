"""A tree of queues as the ResourceManager shows it: its parents, reservations and users' limits."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application
from tests.unit.attach.recorded_case import AS_RUN, CLUSTER, RecordedCase, Wanted
from yarnctl.deciding.model import ObservationRequest, ParentView
from yarnctl.deciding.settings import Settings
from yarnctl.hadoop.resource_manager import ResourceManager
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import NOTHING, Resources, times

C08, C09 = "c08-parent-at-its-maximum", "c09-user-at-his-limit"
TOTAL = Resources(327680, 80)


def named(preempting: tuple[str, ...], preemptable: tuple[str, ...]) -> Settings:
    return msgspec.structs.replace(AS_RUN, preempting_queues=preempting, preemptable_queues=preemptable)


NESTED = named(("root.prod.etl", "root.prod.bi"), ("root.research",))


def scheduler(case: RecordedCase) -> yarn.QueueInfo:
    return yarn.SCHEDULER.read(json.dumps(case.answers[f"{CLUSTER}/scheduler"]).encode())


def children(case: RecordedCase) -> dict[str, Any]:
    info = case.answers[f"{CLUSTER}/scheduler"]["scheduler"]["schedulerInfo"]
    return {row["queueName"]: row for row in info["queues"]["queue"]}


def test_the_parents_of_a_nested_tree_are_read():
    """root.prod's own row shows 0 used, and root's shows none: leaves and nodes do."""
    root = scheduler(RecordedCase(C08))
    nodes = [yarn.NodeRow("n1:1", "RUNNING", available_mib=1024, available_vcores=3)]
    assert views.parent_views(root, TOTAL, nodes) == (
        ParentView(queue="root", guaranteed=TOTAL, maximum=TOTAL, used=Resources(326656, 77)),
        ParentView(
            queue="root.prod",
            guaranteed=Resources(163840, 40),
            maximum=Resources(163840, 40),
            used=Resources(163840, 40),
        ),
    )


def test_reservations_and_priorities_are_read():
    case = RecordedCase(C08)
    info = case.answers[f"{CLUSTER}/scheduler"]["scheduler"]["schedulerInfo"]
    info["orderingPolicyInfo"] = "priority-utilization"
    rows = children(case)
    rows["research"]["queuePriority"] = 5
    rows["idle"]["orderingPolicyInfo"] = "fair"
    rows["research"]["resources"]["resourceUsagesByPartition"] = [
        {"partitionName": "gpu", "reserved": {"memory": 7, "vCores": 7}},
        {"partitionName": "", "reserved": {"memory": 2048, "vCores": 2}},
    ]
    top, prod = views.parent_views(scheduler(case), TOTAL, [])
    assert (top.order, top.priorities) == ("priority-utilization", {"root.research": 5})
    assert top.fair == ("root.idle",)
    assert (top.reserved, top.used) == ((2048, 2), (TOTAL.memory_mib + 2048, TOTAL.vcores + 2))
    assert (prod.order, prod.reserved) == ("utilization", NOTHING)


@pytest.mark.parametrize(
    ("change", "parents"),
    [
        ({}, []),  # leaves below root, utilization, nothing reserved
        ({"orderingPolicyInfo": "priority-utilization"}, ["root"]),
        ({"reserved": 1}, ["root"]),
        ({"fair": 1}, ["root"]),
        ({"empty parent": 1}, []),  # queues on demand, none of them yet
    ],
)
def test_a_flat_tree_has_no_parents(change, parents):
    case = RecordedCase(C09)
    info = case.answers[f"{CLUSTER}/scheduler"]["scheduler"]["schedulerInfo"]
    if "reserved" in change:
        usage = children(case)["research"]["resources"]["resourceUsagesByPartition"]
        usage[0]["reserved"] = {"memory": 1, "vCores": 0}
    if "fair" in change:
        children(case)["research"]["orderingPolicyInfo"] = "fair"
    if "empty parent" in change:
        info["queues"]["queue"].append({"queueName": "users", "queueType": "parent"})
    info.update({name: value for name, value in change.items() if name == "orderingPolicyInfo"})
    assert [view.queue for view in views.parent_views(scheduler(case), TOTAL, [])] == parents


def test_the_shown_user_limits_are_read_where_they_may_bind():
    case = RecordedCase(C09)
    [bob, eve] = children(case)["production"]["users"]["user"]
    queues = views.queue_views(scheduler(case), TOTAL)
    limit = Resources(131072, 32)
    assert views.user_limits(scheduler(case), queues) == {"root.production": {"bob": limit, "eve": limit}}
    bob["userResourceLimit"] = {"memory": 0, "vCores": 0}  # nothing was requested yet
    eve["userResourceLimit"] = {"memory": 327680, "vCores": 80}  # the queue's maximum
    assert views.user_limits(scheduler(case), queues) == {}
    eve["userResourceLimit"] = {"memory": 262144, "vCores": 64}  # guarantee x factor
    assert views.user_limits(scheduler(case), queues) == {}


@pytest.mark.parametrize(
    ("shown", "used", "kept"),
    [
        ((8192, 2), (4096, 1), False),  # it rises with what the user is given
        ((8192, 2), (8192, 2), False),
        ((8192, 2), (12288, 3), True),  # the user is over it
        ((262656, 64), (8192, 2), True),  # guarantee x factor, rounded up
    ],
)
def test_the_limit_of_the_only_active_user_rises_with_its_use(shown, used, kept):
    case = RecordedCase(C09)
    [bob, eve] = children(case)["production"]["users"]["user"]
    bob["isActive"], bob["userResourceLimit"] = False, {"memory": 0, "vCores": 0}
    eve["userResourceLimit"] = {"memory": shown[0], "vCores": shown[1]}
    eve["resourcesUsed"] = {"memory": used[0], "vCores": used[1]}
    found = views.user_limits(scheduler(case), views.queue_views(scheduler(case), TOTAL))
    assert found == ({"root.production": {"eve": shown}} if kept else {})


@pytest.mark.parametrize(
    ("percent", "weight", "shown", "kept"),
    [
        (25, 1, (139264, 34), True),
        (100, 1, (139264, 34), False),  # it rises with what all users are given
        (100, 1, (262656, 64), True),  # guarantee x factor, rounded up
        (100, 0.9, (139264, 34), True),
    ],
)
def test_the_limit_of_a_user_among_others_rises_with_all_use_at_a_percentage_of_100(
    percent, weight, shown, kept
):
    case = RecordedCase(C09)
    row = children(case)["production"]
    row["userLimit"], [bob, eve] = percent, row["users"]["user"]
    eve["userResourceLimit"] = {"memory": 0, "vCores": 0}
    bob["userResourceLimit"], bob["userWeight"] = {"memory": shown[0], "vCores": shown[1]}, weight
    found = views.user_limits(scheduler(case), views.queue_views(scheduler(case), TOTAL))
    assert found == ({"root.production": {"bob": shown}} if kept else {})


def test_a_parent_at_its_maximum_is_given_nothing_and_the_reason_names_it():
    """The field case: root.prod is at its 50 %, etl waits for ten containers."""
    with RecordedCase(C08).served() as case:
        [wanted] = case.wanted(rules=NESTED)
    assert wanted == Wanted(
        0, "parent queue root.prod is at its maximum; only containers freed below it help"
    )


def test_a_user_over_the_limit_that_yarn_shows_is_given_nothing():
    with RecordedCase(C09).served() as case:
        [wanted] = case.wanted()
    assert wanted == Wanted(0, "the application's user is at the user limit")


def test_below_its_maximum_the_same_tree_is_served():
    case = RecordedCase(C08)
    prod = children(case)["prod"]
    for row in (prod, *prod["capacities"]["queueCapacitiesByPartition"]):
        row["absoluteMaxCapacity"] = 100.0
    prod["maxEffectiveCapacity"] = {"memory": TOTAL.memory_mib, "vCores": TOTAL.vcores}
    with case.served():
        assert [wanted.need for wanted in case.wanted(rules=NESTED)] == [4], "a tenth of 40 at a time"


# --- a node that is full in one resource holds no reservation --------------------------------------


@pytest.mark.parametrize(
    ("vcores", "suspects"),
    [
        (0, set()),  # memory is left, and no vcore
        (1, {"r0:1"}),
    ],
)
def test_a_node_that_is_full_in_one_resource_holds_no_reservation(cluster: FakeCluster, vcores, suspects):
    cluster.nodes["r0:1"] = Resources(3072, 2 + vcores)
    cluster.research(20, ["r0:1", "r0:1"])
    cluster.add(App(9, "research", asks=[(10, times(SLOT, 2), 1)], reserved_mib=2048, state="ACCEPTED"))
    shot = cluster.port().observe(ObservationRequest(probe_queues=("root.production",))).snapshot
    assert shot is not None
    assert set(shot.reserved_by_node) == suspects
    assert shot.reserved == {application(9): (2048, 0)}


# --- requests of several sizes in one leaf of a flat tree -------------------------------------------


@pytest.mark.parametrize(("second", "parents"), [(1, []), (2, ["root"])])
def test_a_flat_tree_counts_as_one_with_parents_where_a_first_request_may_stop_a_smaller_one(
    cluster: FakeCluster, second, parents
):
    cluster.add(App(3, "production", asks=[(10, times(SLOT, second), 1), (20, SLOT, 1)]))
    shot = cluster.port().observe(ObservationRequest(probe_queues=("root.production",))).snapshot
    assert shot is not None
    assert [view.queue for view in shot.parents] == parents


# --- applications beyond max-parallel-apps ---------------------------------------------------------


@pytest.mark.parametrize(
    ("active", "pending", "held"),
    [
        (2, 0, (12, 13)),  # four applications, two of them active: two are held back, the last ones
        (2, 1, (13,)),
        (4, 0, ()),
        (5, 0, ()),  # the counts are of another instant
    ],
)
def test_applications_beyond_the_parallel_ones_are_not_activated(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, active, pending, held
):
    """Their masters look like requests, and no container that is freed starts them."""
    for number, state in ((11, "RUNNING"), (12, "ACCEPTED"), (13, "ACCEPTED")):
        at_ms = cluster.now_ms + number
        cluster.add(App(number, "production", asks=[(0, SLOT, 1)], state=state, submitted_at_ms=at_ms))
    read = ResourceManager.root_queue
    monkeypatch.setattr(
        ResourceManager, "root_queue", lambda manager: _with_counts(read(manager), 4, active, pending)
    )
    port = cluster.port()
    shot = port.observe(ObservationRequest(probe_queues=("root.production",))).snapshot
    assert shot is not None
    names = tuple(application(number) for number in held)
    assert shot.held_back == names
    assert tuple(view.application for view in shot.applications if not view.activated) == names


def _with_counts(root: yarn.QueueInfo, *counts: int) -> yarn.QueueInfo:
    fields = dict(zip(("applications", "applications_active", "applications_pending"), counts, strict=True))
    rows = tuple(
        msgspec.structs.replace(row, **fields) if row.name == "production" else row for row in root.children
    )
    return msgspec.structs.replace(root, below=yarn.QueueList(rows))
