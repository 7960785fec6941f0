"""Views: tables of answers, the records deciding wants, and the claim."""

from __future__ import annotations

import json

import msgspec
import pytest

from yarnctl.deciding.model import ContainerRequest
from yarnctl.hadoop.wire import views, yarn
from yarnctl.units import Resources

TOTAL = Resources(10_000, 100)


def queue(name: str, **fields) -> dict:
    return {"queueName": name, "type": "capacitySchedulerLeafQueueInfo", **fields}


def root(*children: dict) -> yarn.QueueInfo:
    body = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": list(children)}}
    return yarn.SCHEDULER.read(json.dumps({"scheduler": {"schedulerInfo": body}}).encode())


def vector(memory: int, cores: int) -> dict:
    return {"memory": memory, "vCores": cores}


def test_resources_that_a_vector_does_not_name_have_the_percentage() -> None:
    """Older answers tell a partition's memory and vcores alone."""
    shown = yarn.Vector(1000, 10)
    assert views._vector(shown, None, 50.0, Resources(10_000, 100, 8, 4), ("fpga", "gpu")) == (1000, 10, 4, 2)


@pytest.mark.parametrize(
    ("fields", "guaranteed", "maximum", "user_limit", "claim"),
    [
        ({"absoluteCapacity": 95.0}, (9500, 95), TOTAL, (9500, 95),
         "shares of the cluster where no vector is told"),
        ({"minEffectiveCapacity": vector(500, 5), "absoluteCapacity": 95}, (500, 5), TOTAL, (500, 5),
         "the vector wins"),
        ({"absoluteCapacity": 5, "userLimitFactor": 4}, (500, 5), TOTAL, (2000, 20), "guarantee x factor"),
        ({"absoluteCapacity": 5, "userLimitFactor": 40}, (500, 5), TOTAL, None,
         "a limit above the maximum is none"),
        ({"absoluteCapacity": 5, "userLimitFactor": -1}, (500, 5), TOTAL, None,
         "-1 switches it off (YARN-10531)"),
        ({"absoluteCapacity": 0}, (0, 0), TOTAL, None, "no factor of a guarantee that there is not"),
        ({"absoluteCapacity": 5, "absoluteMaxCapacity": 50}, (500, 5), (5000, 50), (500, 5), "a maximum"),
        ({"minEffectiveCapacity": vector(0, 0), "absoluteCapacity": 5}, (500, 5), TOTAL, (500, 5),
         "0: not yet computed"),
        ({"absoluteCapacity": "5.0", "userLimitFactor": "1.0"}, (500, 5), TOTAL, (500, 5),
         "numbers as strings"),
    ],
)  # fmt: skip
def test_a_queue_becomes_vectors(fields, guaranteed, maximum, user_limit, claim):
    (view,) = views.queue_views(root(queue("a", **fields)), TOTAL)
    assert (view.queue, view.guaranteed, view.maximum, view.user_limit) == (
        "root.a",
        guaranteed,
        maximum,
        user_limit,
    ), claim


def test_the_am_s_share_and_use_and_the_priority():
    fields = {
        "AMResourceLimit": vector(3, 1),
        "usedAMResource": vector(1, 1),
        "queuePriority": 10,
        "resourcesUsed": vector(7, 2),
    }
    (view,) = views.queue_views(root(queue("a", **fields)), TOTAL)
    assert (view.am_limit, view.am_used, view.priority, view.used) == ((3, 1), (1, 1), 10, (7, 2))
    (bare,) = views.queue_views(root(queue("a")), TOTAL)
    assert (bare.am_limit, bare.am_used) == (None, (0, 0))


def test_paths_are_built_by_walking_and_a_parent_without_children_is_no_leaf():
    tree = root(
        {"queueName": "x", "queues": {"queue": [queue("a"), queue("b")]}},
        {"queueName": "y", "queues": {"queue": queue("a")}},
        {"queueName": "z", "type": "capacitySchedulerInfo"},
        {"queueName": "users", "queueType": "parent", "autoCreationEligibility": "flexible"},
        {"queueName": "managed", "autoCreateChildQueueEnabled": True},
        {"queueName": "untyped", "queueType": "leaf"},
    )
    leaves = ["root.x.a", "root.x.b", "root.y.a", "root.untyped"]
    assert [leaf.path for leaf in views.leaves(tree)] == leaves
    known = views.queue_tree(tree)
    assert list(known.leaves) == leaves
    assert set(known.parents) == {"root"} | {f"root.{name}" for name in ("x", "y", "z", "users", "managed")}


def request(place: str, count: int, priority: int = 20, memory: int = 1024) -> yarn.ResourceRequest:
    return yarn.ResourceRequest(place, count, priority, yarn.Vector(memory, 1))


@pytest.mark.parametrize(
    ("rows", "expected", "claim"),
    [
        ([], (), "nothing is asked"),
        ([request("*", 3), request("/rack", 3), request("node1", 2), request("node2", 3)],
         (ContainerRequest(20, Resources(1024, 1), 3),),
         "rows of nodes and racks repeat the same containers"),
        ([request("*", 0), request("*", 0, 10)], (), "rows of 0 are left over"),
        ([request("*", 2, 10, 2048), request("*", 3), request("*", 1, 20)],
         (ContainerRequest(10, Resources(2048, 1), 2), ContainerRequest(20, Resources(1024, 1), 4)),
         "summed by priority and size, the urgent first"),
        ([request("*", 1), request("*", 1, 20, 512)],
         (ContainerRequest(20, Resources(512, 1), 1), ContainerRequest(20, Resources(1024, 1), 1)),
         "sizes stay apart"),
    ],
)  # fmt: skip
def test_the_demand_is_the_rows_for_anywhere(rows, expected, claim):
    assert views.asks(rows) == ({"": expected} if expected else {}), claim


def test_pending_is_the_aggregate_where_it_is_told_and_the_asks_otherwise():
    told = yarn.AppInfo(
        "a",
        uses=yarn.Uses(
            (
                yarn.PartitionUse(pending=yarn.Vector(5, 1)),
                yarn.PartitionUse("x", pending=yarn.Vector(2, 1)),
            )
        ),
    )
    assert views.pending(told) == (5, 1, (("x", (2, 1)),))
    assert views.pending_elsewhere(told) is None
    assert views.pending(yarn.AppInfo("a", requests=(request("*", 2), request("n", 2)))) == (2048, 2, ())
    assert views.pending(yarn.AppInfo("a")) == (0, 0, ())


@pytest.mark.parametrize(
    ("state", "diagnostics", "expected"),
    [
        ("ACCEPTED", "[Mon] Application is added to the scheduler and is not yet activated. Queue's AM limit",
         False),
        ("ACCEPTED", "[Mon] Application is Activated, waiting for resources to be assigned for AM.", True),
        ("RUNNING", "it was not yet activated", True),
    ],
)  # fmt: skip
def test_activation_is_told_by_the_diagnostics(state, diagnostics, expected):
    assert views.activated(yarn.AppInfo("a", state=state, diagnostics=diagnostics)) is expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [("deadline:1767225600", 1_767_225_600_000), ("x,deadline:1767225600000", 1_767_225_600_000),
     (" DEADLINE:5 ", 5000), ("deadline:soon", None), ("", None)],
)  # fmt: skip
def test_a_deadline_is_a_tag(tags, expected):
    assert views.deadline_at_ms(yarn.AppInfo("a", tags=tags)) == expected


@pytest.mark.parametrize(
    ("priority", "kind"), [(0, "am"), (5, "map"), (10, "reduce"), (19, "map"), (20, "map"), (3, None)]
)
def test_a_priority_tells_the_kind_of_container(priority, kind):
    assert views.kind_of(yarn.ContainerRow("c", priority=priority)) == kind


def test_room_of_a_cluster():
    nodes = [
        yarn.NodeRow("b", "RUNNING", used_mib=1, available_mib=3, used_vcores=1, available_vcores=1),
        yarn.NodeRow("a", "RUNNING", available_mib=-5, capacity=yarn.Vector(6, 2)),
        yarn.NodeRow("c", "DECOMMISSIONING", available_mib=4, available_vcores=4),
    ]
    assert views.cluster_room(views.by_partition(nodes)[""]) == ((14, 8), (6, 2), {"b": (3, 1)})


def test_a_node_without_free_memory_counts_with_its_free_gpus():
    """Once memory is freed there, a request that wants both fits."""
    amounts = msgspec.Raw(b'{"resourceInformation":[{"name":"gpu","value":2}]}')
    nodes = [yarn.NodeRow("a", "RUNNING", available=yarn.Vector(0, 0, amounts))]
    assert views.cluster_room(nodes, ("gpu",))[2] == {"a": Resources(0, 0, 2)}
    assert views.cluster_room(nodes)[2] == {}


def test_an_application_just_accepted_by_3_5_has_no_containers():
    row = yarn.AppInfo("a", containers=-1, allocated_mib=-1, allocated_vcores=-1, progress_percent=250.0)
    view = views.application_view(row, queue="q", rank=0, am_size=Resources(1, 1), task_size=Resources(1, 1))
    assert (view.containers, view.used, view.progress_ratio) == (0, (0, 0), 1.0)
