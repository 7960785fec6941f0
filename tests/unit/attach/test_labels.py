"""Node labels, each a cluster of its own, and resources beside memory and vcores, which are left out."""

from __future__ import annotations

import json
import logging

import msgspec
import pytest

from tests.frozen.attached_stories import PATHS
from tests.golden import tables
from tests.unit.attach.fake_cluster import EPOCH, SLOT, App, FakeCluster, application, attempt, container
from tests.unit.attach.recorded_case import CLUSTER, RecordedCase, checked
from yarnctl.attach import port as attached_port
from yarnctl.attach.observing.cluster_state import Held, LiveContainers
from yarnctl.attach.observing.victims import Unmodelled
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.view.published import LoopStatus, Publisher, View
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.model import ContainerRequest, ObservationRequest, TaskView
from yarnctl.deciding.reasons.demand import FirstRequestTooLarge, NoQueueHolds, NotModelled
from yarnctl.deciding.records import Decision, Refusal
from yarnctl.deciding.settings import Settings
from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.wire import views, yarn
from yarnctl.journal.chain import MemoryJournal
from yarnctl.journal.file import read
from yarnctl.journal.rendering import said, text
from yarnctl.journal.replay import replay
from yarnctl.loop import tick
from yarnctl.service.answers.explanations import everything_about
from yarnctl.service.answers.from_view import applications
from yarnctl.units import Resources, times

GPU = {"yarn.io/gpu": 1}
C04, C05, C06 = "c04-idle-nodes-of-an-exclusive-label", "c05-ask-for-a-label", "c06-every-node-labelled"
C07 = "c07-gpu-asks"
NOTHING = Resources(0, 0)


def shot(cluster: FakeCluster, **settings):
    """Return the snapshot of one observation, and its applications by id."""
    seen = cluster.port(**settings).observe(ObservationRequest())
    assert seen.snapshot is not None
    return seen.snapshot, {view.application: view for view in seen.snapshot.applications}


def refusals(cluster: FakeCluster, ticks: int = 3) -> list[Refusal]:
    """Run the loop; return what it refused."""
    journal, port, controller = MemoryJournal(), cluster.port(), Controller(PATHS, validate=True)
    for _ in range(ticks):
        cluster.now_ms = max(cluster.now_ms, tick(controller, port, journal))
    return [record for record in journal.records if isinstance(record, Refusal)]


def published(cluster: FakeCluster) -> View:
    port, controller, publisher = cluster.port(), Controller(PATHS), Publisher()
    seen = port.observe(controller.to_observe)
    controller.step(seen)
    publisher.left_alone = port.left_alone()
    publisher.tick(controller, seen, LoopStatus(state="running", reachable=True, ticks=1))
    return publisher.view


# --- the recorded cases -------------------------------------------------------------------------------


def test_idle_nodes_with_a_label_are_no_free_capacity(capfd):
    with RecordedCase(C04).served() as case:
        assert [each.need for each in case.wanted()] == [7]
        found = checked(case.url, capfd)["labels"]
        assert (found["severity"], found["seen"]) == (
            "ok",
            "nodes with a label: gpu (2); queues with capacity of label gpu: none of these queues",
        )
    case.nodes[:] = [node for node in case.nodes if not node["nodeLabels"]]
    with case.served():
        assert [each.need for each in case.wanted()] == [7]
        assert checked(case.url, capfd)["labels"]["severity"] == "ok"


def test_a_request_for_a_label_frees_nothing_and_the_reason_names_the_label():
    with RecordedCase(C05).served() as case:
        [wanted] = case.wanted()
        assert (wanted.need, "labels: gpu" in wanted.why) == (0, True)
        assert case.snapshot().total == Resources(4 * 81920, 80)


def test_nothing_is_guaranteed_where_every_node_has_a_label(capfd):
    with RecordedCase(C06).served() as case:
        found = checked(case.url, capfd)
        assert (found["labels"]["severity"], "all 2 nodes" in found["labels"]["seen"]) == ("fail", True)
        assert "80 %" not in found["queues"]["seen"] + found["production-share"]["seen"]
        shown = case.snapshot()
        assert (shown.total, shown.largest_node, shown.free_by_node) == (NOTHING, NOTHING, {})
        assert {queue.guaranteed for queue in shown.queues} == {NOTHING}
        assert {queue.maximum for queue in shown.queues} == {NOTHING}


def test_a_request_for_a_gpu_frees_nothing_and_the_reason_names_it(capfd):
    with RecordedCase(C07).served() as case:
        [wanted] = case.wanted()
        assert wanted == (
            0,
            "no node has enough free, and no preemptable queue holds enough, of yarn.io/gpu",
        )
        found = checked(case.url, capfd)["resources"]
        assert (found["severity"], found["seen"]) == ("ok", "memory, vcores and yarn.io/gpu")


@pytest.mark.parametrize("places", [("request",), ("application",), ("master",), ("queue",)])
def test_a_label_is_found_wherever_it_is_set(places):
    case = RecordedCase(C05)
    [row] = [row for row in case.applications if row["queue"] == "production"]
    [request] = row["resourceRequests"]
    request.pop("nodeLabelExpression")
    row.pop("resourceInfo")  # older versions show no use by partition
    if "request" in places:
        request["nodeLabelExpression"] = "gpu"
    if "application" in places:
        row["appNodeLabelExpression"] = "gpu"
    if "master" in places:
        row |= {"state": "ACCEPTED", "runningContainers": 0, "amNodeLabelExpression": "gpu"}
    if "queue" in places:
        tree = case.answers[CLUSTER + "/scheduler"]["scheduler"]["schedulerInfo"]["queues"]["queue"]
        [leaf] = [leaf for leaf in tree if leaf["queueName"] == "production"]
        leaf["defaultNodeLabelExpression"] = "gpu"
    with case.served():
        [wanted] = case.wanted()
        assert (wanted.need, "labels: gpu" in wanted.why) == (0, True)


def test_an_idle_node_with_a_label_hides_no_demand_and_without_it_serves_it(cluster):
    """The trial: three nodes, one of them idle with an exclusive label; production waits for a container."""
    cluster.nodes["n3:1"] = times(SLOT, 4)
    cluster.labels["n3:1"] = "gpu"
    cluster.apps[application(2)].asks = [(0, SLOT, 5)]
    port, controller, journal = cluster.port(), Controller(PATHS, validate=True), MemoryJournal()
    for _ in range(4):
        cluster.now_ms = max(cluster.now_ms, tick(controller, port, journal))
    assert {order.victim for order in controller.ledger.open.values()} == {application(1)}
    assert {order.node for order in controller.ledger.open.values()} <= {"n1:1", "n2:1"}
    assert any(change.startswith("OUTPUT_THREAD_DUMP") for change in cluster.changes)


def test_a_label_that_is_taken_off_its_node_makes_the_loop_decide(cluster):
    """Research fills both nodes. Only tasks of the one without a label are asked, until neither has one."""
    cluster.labels["n1:1"] = "gpu"
    cluster.apps[application(2)].asks = [(0, SLOT, 3)]
    port, controller, journal = cluster.port(), Controller(PATHS, validate=True), MemoryJournal()
    for _ in range(4):
        cluster.now_ms = max(cluster.now_ms, tick(controller, port, journal))
    assert {order.node for order in controller.ledger.open.values()} == {"n2:1"}
    cluster.labels.clear()
    for _ in range(6):
        cluster.now_ms = max(cluster.now_ms, tick(controller, port, journal))
    assert {order.node for order in controller.ledger.open.values()} == {"n1:1", "n2:1"}


# --- what is seen of the cluster ----------------------------------------------------------------------


def test_totals_and_free_capacity_are_those_of_the_default_partition(cluster):
    cluster.nodes["n3:1"] = times(SLOT, 4)
    cluster.labels["n3:1"] = "gpu"
    seen, _ = shot(cluster)
    assert (seen.total, seen.largest_node, seen.free_by_node) == (times(SLOT, 4), times(SLOT, 2), {})


def test_use_of_an_application_is_that_of_the_default_partition(cluster):
    cluster.labels["n2:1"] = "gpu"
    _, found = shot(cluster)
    assert found[application(1)].used == times(SLOT, 2)


@pytest.mark.parametrize("has_uses", [True, False])
@pytest.mark.parametrize("others", [{}, GPU])
def test_what_is_left_out_is_no_demand_of_other_queues_either(cluster, has_uses, others):
    research = cluster.apps[application(1)]
    research.asks, research.ask_others, research.has_uses = [(10, SLOT, 3)], others, has_uses
    research.ask_label = None if others else "gpu"
    _, found = shot(cluster)
    assert found[application(1)].requests == ()
    assert found[application(2)].requests == (ContainerRequest(0, SLOT, 1),)


def test_requests_beyond_the_bounds_are_supposed_from_the_default_partition_alone(cluster):
    for number, more in ((3, {"ask_label": "gpu"}), (4, {"ask_others": GPU}), (5, {})):
        job = App(number, "research", asks=[(10, SLOT, 5)], submitted_at_ms=EPOCH + number, **more)
        cluster.add(job)
    _, found = shot(cluster, others_max=0)
    assert [len(found[application(number)].requests) for number in (3, 4, 5)] == [0, 0, 1]


def test_an_application_that_requests_both_waits_for_what_is_modelled(cluster):
    cluster.apps[application(1)].containers.popitem()
    rows = yarn.APPLICATION.read(
        b'{"app": {"id": "application_1_1", "resourceRequests": ['
        b'{"resourceName": "*", "priority": 10, "numContainers": 2, "capability": {"memory": 5, "vCores": 1},'
        b' "nodeLabelExpression": ""},'
        b'{"resourceName": "*", "priority": 11, "numContainers": 1, "capability": {"memory": 5, "vCores": 1},'
        b' "nodeLabelExpression": "a\\u001b[2Jb"},'
        b'{"resourceName": "*", "priority": 12, "numContainers": 1, "capability": {"memory": 5, "vCores": 1,'
        b' "resourceInformations": {"resourceInformation": [{"name": "fpga", "value": "3"}]}}}]}}'
    )
    requested = views.requested(rows, "")
    assert requested.asks == {
        "": (ContainerRequest(10, Resources(5, 1), 2),),
        "a\x1b[2Jb": (ContainerRequest(11, Resources(5, 1), 1),),
    }
    left_out = views.not_modelled(requested.asks, ("fpga",))
    assert (requested.left_out, left_out) == (NotModelled((), ("fpga",)), NotModelled(("a?[2Jb",), ("fpga",)))
    assert said(left_out).isprintable()


# --- resource types -----------------------------------------------------------------------------------


@pytest.mark.parametrize("nested", [False, True])
def test_a_request_for_a_gpu_is_served_by_the_task_that_holds_one(cluster, nested):
    """Research has three tasks; the second, on a node with one GPU, holds it."""
    cluster.node_others = {"n1:1": {"fpga": 3}, "n2:1": {"yarn.io/gpu": 1}}
    cluster.apps[application(1)].held_others = {container(1, 3): GPU}
    if nested:
        cluster.queues = {"production": 95.0, "root.lab.research": 5.0}
        cluster.apps[application(1)].queue = "root.lab.research"
    production = cluster.apps[application(2)]
    production.asks, production.ask_others = [(0, SLOT, 2)], GPU
    rules = msgspec.structs.replace(PATHS, preemptable_queues=("root.lab.research",)) if nested else PATHS
    _, controller, journal = ordered_on(cluster, rules=rules)
    [order] = controller.ledger.open.values()
    assert (order.container, order.size, order.request_size) == (
        container(1, 3),
        Resources(1024, 1, 0, 1),
        Resources(1024, 1, 0, 1),
    )
    [decision] = [record for record in journal.records if isinstance(record, Decision)]
    assert (decision.trigger.shortfall, decision.total) == (1, Resources(4096, 4, 3, 1))


def test_a_request_for_a_gpu_beyond_the_headroom_stops_its_leaf(cluster):
    """The only GPU is held by its own queue: YARN serves no younger request of the leaf."""
    cluster.node_others = {"n1:1": GPU, "n2:1": {}}
    cluster.apps[application(1)].containers[container(1, 1)] = ("n1:1", 0)
    cluster.add(App(3, "production", held_others={container(3, 1): GPU}, submitted_at_ms=EPOCH))
    cluster.apps[application(3)].containers[container(3, 1)] = ("n1:1", 10)
    cluster.apps[application(3)].asks = [(0, SLOT, 1)]
    cluster.apps[application(3)].ask_others = GPU
    _, controller, journal = ordered_on(cluster)
    assert not controller.ledger.open
    refused = {each.trigger.application: each.why for each in journal.records if isinstance(each, Refusal)}
    assert refused == {
        application(3): NoQueueHolds(("yarn.io/gpu",)),
        application(2): FirstRequestTooLarge(application(3), "root.production"),
    }


def test_a_request_for_a_gpu_that_no_preemptable_queue_holds_stops_no_other_request(cluster):
    cluster.node_others = {"n1:1": {"yarn.io/gpu": 2}, "n2:1": {}}
    reduces = {container(1, place): ("n2:1", 10) for place in (2, 3)}
    cluster.apps[application(1)].containers = {container(1, 1): ("n1:1", 0), **reduces}
    cluster.add(App(3, "production", held_others={container(3, 1): GPU}, submitted_at_ms=EPOCH))
    cluster.apps[application(3)].containers[container(3, 1)] = ("n1:1", 10)
    cluster.apps[application(3)].asks = [(0, SLOT, 1)]
    cluster.apps[application(3)].ask_others = GPU
    _, controller, journal = ordered_on(cluster)
    assert {order.requester for order in controller.ledger.open.values()} == {application(2)}
    refused = {each.trigger.application: each.why for each in journal.records if isinstance(each, Refusal)}
    assert refused == {application(3): NoQueueHolds(("yarn.io/gpu",))}


def test_free_memory_beside_a_used_gpu_serves_no_request_for_one(cluster):
    cluster.nodes["n1:1"] = times(SLOT, 8)
    cluster.node_others = {"n1:1": GPU}
    cluster.apps[application(1)].held_others = {container(1, 2): GPU}
    cluster.apps[application(2)].ask_others = GPU
    seen, found = shot(cluster)
    assert (seen.total, seen.resource_names) == (Resources(10240, 10, 1), ("yarn.io/gpu",))
    assert (found[application(1)].used, seen.queues[1].used) == (Resources(4096, 4, 1),) * 2
    assert found[application(2)].requests == (ContainerRequest(0, Resources(1024, 1, 1), 1),)
    _, controller, _ = ordered_on(cluster)
    assert [order.container for order in controller.ledger.open.values()] == [container(1, 2)]


# --- decoding -----------------------------------------------------------------------------------------


NODE = b'{"id": "n:1", "state": "RUNNING", "availMemoryMB": 5, %s}'


@pytest.mark.parametrize(
    ("told", "partition"),
    [(b'"nodeLabels": ["gpu"]', "gpu"), (b'"nodeLabels": "gpu"', "gpu"), (b'"nodeLabels": []', ""),
     (b'"nodeLabels": ""', ""), (b'"nodeLabels": [""]', ""), (b'"nodeLabels": ["<DEFAULT_PARTITION>"]', ""),
     (b'"nodeLabels": null', ""), (b'"rack": "/r"', "")],
)  # fmt: skip
def test_the_label_of_a_node_in_every_form(told, partition):
    [node] = yarn.NODES.read(b'{"nodes": {"node": [' + NODE % told + b"]}}")
    assert node.partition == partition
    [node] = yarn.NODES.read(b'{"node": ' + NODE % told + b"}")  # mapped: a list of one is its element
    assert node.partition == partition


@pytest.mark.parametrize(
    "told",
    [
        b'[{"name": "memory-mb", "value": 5}, {"name": "yarn.io/gpu", "value": 4}, {"name": "f", "value":0}]',
        b'[{"name": "memory-mb", "value": "5"}, {"name": "yarn.io/gpu", "value": "4"}]',
        b'{"name": "yarn.io/gpu", "value": "4"}',
    ],
)
def test_other_resources_of_a_node_in_every_form(told):
    size = b'"totalResource": {"memory": 5, "resourceInformations": {"resourceInformation": ' + told + b"}}"
    [node] = yarn.NODES.read(b'{"nodes": {"node": [' + NODE % size + b"]}}")
    assert node.capacity is not None
    assert node.capacity.others == ("yarn.io/gpu",)


@pytest.mark.parametrize(
    ("told", "others"),
    [(b'{"entry": [{"key": "memory-mb", "value": "256"}, {"key": "yarn.io/gpu", "value": "1"}]}', True),
     (b'{"entry": {"key": "yarn.io/gpu", "value": 1}}', True),
     (b'{"entry": [{"key": "memory-mb", "value": 256}, {"key": "yarn.io/gpu", "value": 0}]}', False),
     (b'""', False), (b"null", False)],
)  # fmt: skip
def test_other_resources_of_a_container_in_every_form(told, others):
    row = b'{"containerId": "container_1_1_01_000001", "allocatedResources": ' + told + b"}"
    for body in (b'{"container": [' + row + b"]}", b'{"container": ' + row + b"}"):
        [container_row] = yarn.CONTAINERS.read(body)
        assert container_row.others == (("yarn.io/gpu",) if others else ())


def test_an_older_version_without_any_of_these_fields_is_read_as_before(cluster):
    cluster.nodes["n3:1"] = times(SLOT, 2)
    for app in cluster.apps.values():
        app.has_uses = False
    seen, found = shot(cluster)
    assert (seen.total, seen.free_by_node) == (times(SLOT, 6), {"n3:1": times(SLOT, 2)})
    assert found[application(1)].used == times(SLOT, 4)
    assert found[application(2)].requests == (ContainerRequest(0, SLOT, 1),)


def test_a_queue_is_what_it_is_in_the_default_partition():
    rows = [
        {"partitionName": "gpu", "effectiveMinResource": {"memory": 900, "vCores": 9}},
        {"partitionName": "", "effectiveMinResource": {"memory": 0, "vCores": 0},
         "effectiveMaxResource": {"memory": 700, "vCores": 7}},
    ]  # fmt: skip
    tree = {
        "queueName": "root",
        "queues": {
            "queue": {"type": "capacitySchedulerLeafQueueInfo", "queueName": "a", "absoluteCapacity": 80.0,
                "capacities": {"queueCapacitiesByPartition": rows}}
        },
    }  # fmt: skip
    root = yarn.SCHEDULER.read(json.dumps({"scheduler": {"schedulerInfo": tree}}).encode())
    [view] = views.queue_views(root, Resources(1000, 10))
    assert (view.guaranteed, view.maximum) == (NOTHING, Resources(700, 7))


# --- victims ------------------------------------------------------------------------------------------


def ordered_on(
    cluster: FakeCluster, ticks: int = 4, rules: Settings = PATHS
) -> tuple[set[str], Controller, MemoryJournal]:
    """Run the loop; return the nodes of the tasks that are under order."""
    port = cluster.port(
        preempting_queues=rules.preempting_queues, preemptable_queues=rules.preemptable_queues
    )
    controller, journal = Controller(rules, validate=True), MemoryJournal()
    for _ in range(ticks):
        cluster.now_ms = max(cluster.now_ms, tick(controller, port, journal))
    return {order.node for order in controller.ledger.open.values()}, controller, journal


@pytest.mark.parametrize("label", ["gpu", ""])
def test_a_victim_runs_on_a_node_of_the_requested_label(cluster, label, tmp_path):
    """Research fills a node with the label and one without; it is over its guarantee on both."""
    cluster.labels["n2:1"] = "gpu"
    cluster.label_shares["gpu"] = {"production": 90.0, "research": 10.0}
    cluster.apps[application(2)].asks = [(0, SLOT, 3)]
    cluster.apps[application(2)].ask_label = label
    nodes, controller, journal = ordered_on(cluster)
    assert nodes == {"n2:1" if label else "n1:1"}
    assert {order.serves for order in controller.ledger.open.values()} == {1}
    [decision] = [record for record in journal.records if isinstance(record, Decision)]
    assert (decision.trigger.label, decision.total) == (label, times(SLOT, 2))
    path = tmp_path / "journal"
    path.write_bytes(journal.encoded())
    replay(read(path, closed=True), str(path))


def test_an_application_gets_both_of_what_it_requests_of_two_labels(cluster):
    cluster.labels["n2:1"] = "gpu"
    cluster.label_shares["gpu"] = {"production": 90.0, "research": 10.0}
    both = cluster.apps[application(2)]
    both.asks, both.ask_labels = [(0, SLOT, 1), (0, SLOT, 1)], [None, "gpu"]
    nodes, controller, _ = ordered_on(cluster, ticks=6)
    assert (nodes, len(controller.ledger.open)) == ({"n1:1", "n2:1"}, 2)


@pytest.mark.parametrize(
    ("shares", "why"),
    [
        ({"production": 1.0, "research": 100.0}, "no preemptable queue is over its guarantee"),
        ({"research": 100.0}, "the queue has no capacity of node labels: gpu"),
        ({}, "the queue has no capacity of node labels: gpu"),
    ],
)
def test_a_label_is_judged_by_its_own_guarantees(cluster, shares, why):
    """Without the label research is far over its guarantee."""
    cluster.labels["n2:1"] = "gpu"
    cluster.label_shares["gpu"] = shares
    cluster.apps[application(2)].ask_label = "gpu"
    nodes, _, journal = ordered_on(cluster)
    assert nodes == set()
    refused = [record for record in journal.records if isinstance(record, Refusal)]
    assert [why in text(record.why) for record in refused] == [True]
    [shown] = [each for each in applications(published(cluster)) if each.application == application(2)]
    assert shown.waiting is not None
    assert "gpu" in shown.waiting.text


@pytest.mark.parametrize(
    ("shared", "shares", "needs"),
    [(True, {"production": 90.0}, 1), (False, {"production": 90.0}, 3), (True, {}, 3)],
)
def test_requests_without_a_label_count_what_is_idle_on_shared_nodes_alone(cluster, shared, shares, needs):
    """Two idle slots have a label: YARN gives them if it is not exclusive and a queue has capacity there."""
    cluster.nodes["n3:1"] = times(SLOT, 2)
    cluster.labels["n3:1"] = "ne"
    cluster.label_shares["ne"] = shares
    cluster.shared = {"ne"} if shared else set()
    cluster.apps[application(2)].asks = [(0, SLOT, 3)]
    nodes, _, journal = ordered_on(cluster)
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    assert (sum(each.trigger.shortfall for each in decisions), "n3:1" in nodes) == (needs, False)


def test_idle_shared_nodes_are_first_given_to_requests_for_their_label(cluster):
    cluster.nodes["n3:1"] = times(SLOT, 2)
    cluster.labels["n3:1"] = "ne"
    cluster.label_shares["ne"] = {"production": 50.0, "research": 50.0}
    cluster.shared = {"ne"}
    cluster.add(App(3, "research", asks=[(0, SLOT, 2)], ask_label="ne", submitted_at_ms=EPOCH))
    cluster.apps[application(2)].asks = [(0, SLOT, 3)]
    _, _, journal = ordered_on(cluster)
    decisions = [record for record in journal.records if isinstance(record, Decision)]
    assert sum(each.trigger.shortfall for each in decisions) == 3


def test_whether_labels_are_shared_is_read_once(cluster):
    cluster.labels["n2:1"] = "gpu"
    port = cluster.port()
    for _ in range(3):
        port.observe(ObservationRequest())
    assert [heard.path for heard in cluster.rm.heard].count("/ws/v1/cluster/get-node-labels") == 1
    cluster.labels["n1:1"] = "other"
    port.observe(ObservationRequest())
    assert [heard.path for heard in cluster.rm.heard].count("/ws/v1/cluster/get-node-labels") == 2


def test_label_that_was_removed_and_added_anew_is_read_again(cluster):
    """An exclusive label cannot be made shared, but one of the same name can."""
    cluster.labels["n2:1"] = "gpu"
    cluster.label_shares["gpu"] = {"production": 50.0}
    port = cluster.port()
    assert not port.observe(ObservationRequest()).snapshot.labelled["gpu"].is_shared
    del cluster.labels["n2:1"]
    assert port.observe(ObservationRequest()).snapshot.labelled == {}
    cluster.labels["n2:1"], cluster.shared = "gpu", {"gpu"}
    assert port.observe(ObservationRequest()).snapshot.labelled["gpu"].is_shared


@pytest.mark.parametrize(
    "told",
    [
        b'{"nodeLabelInfo":{"name":"ne","exclusivity":"false","partitionInfo":{"resourceAvailable":{}}}}',
        b'{"nodeLabelsInfo":{"nodeLabelInfo":[{"name":"ne","exclusivity":false}]}}',
        b'{"nodeLabelInfo":[{"name":"ne","exclusivity":"false"}]}',
    ],
)
def test_the_labels_of_a_cluster_in_every_form(told):
    assert yarn.NODE_LABELS.read(told) == [yarn.LabelRow("ne", is_exclusive=False)]


@pytest.mark.parametrize("mapped", [False, True])
def test_a_container_that_holds_a_gpu_is_left_alone_with_the_reason(cluster, mapped):
    cluster.mapped = mapped
    cluster.apps[application(1)].held_others = {container(1, 2): GPU, container(1, 3): {"yarn.io/gpu": 0}}
    port = cluster.port()
    port.observe(ObservationRequest())
    found = port.observe(ObservationRequest(victims=(application(1),)))
    assert attempt(1, 1) not in {task.attempt for task in found.tasks[application(1)]}
    assert len(found.tasks[application(1)]) == 2
    assert {name: said(why) for name, why in port.left_alone().items()} == {
        attempt(1, 1): "the task's container holds yarn.io/gpu, which yarnctl does not model"
    }


@pytest.mark.parametrize("kind", ["worker", "executor"])
def test_an_application_that_chooses_its_workers_is_left_alone_as_a_whole(cluster, kind):
    unmodelled = Unmodelled(LiveContainers(cluster.port()._connection))
    nodes = [yarn.NodeRow("n1:1", labels=("gpu",)), yarn.NodeRow("n2:1")]
    unmodelled.note(nodes, {})
    tasks = tuple(TaskView(f"t{n}", f"c{n}", f"n{n}:1", SLOT, kind, -1, 0, 0, 0, True, False) for n in (1, 2))
    shown = unmodelled.modelled("a", tasks)
    assert [task.attempt for task in shown] == ([] if kind == "worker" else ["t1", "t2"])
    assert set(unmodelled.why.get("a", ())) == ({"t1", "t2"} if kind == "worker" else set())
    assert unmodelled.modelled("a", tasks[:1]) == tasks[:1]
    unmodelled.note(nodes[1:], {})
    assert (unmodelled.why, unmodelled.modelled("a", tasks)) == ({}, tasks)


def test_the_refusal_is_recorded_once(cluster):
    cluster.apps[application(2)].ask_others = GPU
    found = refusals(cluster, ticks=6)
    assert [(text(each.why), each.trigger.shortfall) for each in found] == [
        ("no container is freed for some requests; yarnctl does not model resource types: yarn.io/gpu", 0)
    ]


def test_a_waiting_application_shows_why_nothing_is_freed_for_it(cluster):
    cluster.apps[application(2)].ask_label = "gpu"
    view = published(cluster)
    [shown] = [each for each in applications(view) if each.application == application(2)]
    assert shown.left_out is not None
    assert shown.left_out.code == "not-modelled"
    assert shown.left_out.text.endswith("requests; the queue has no capacity of node labels: gpu")
    [now] = [line for line in everything_about(view, application(2)).rendered if line.startswith("now")]
    assert shown.left_out.text in now
    assert "containers are freed for it" not in now


def test_what_is_left_out_is_logged_once(cluster, caplog):
    cluster.apps[application(2)].ask_others = {"evil\n\x1b[2J": 1}
    port = cluster.port()
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            port.observe(ObservationRequest())
    lines = [each.getMessage() for each in caplog.records if "ignor" in each.getMessage()]
    assert len([line for line in lines if "evil" in line]) == 1
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("where", ["application", "queue"])
def test_no_demand_is_predicted_for_a_job_of_a_label(cluster, where):
    wave = (ContainerRequest(20, SLOT, 2),)
    starting = cluster.apps[application(2)]
    if where == "application":
        starting.label = "gpu"
    else:
        cluster.queue_labels["production"] = "gpu"
    seen = cluster.port(lambda _: wave, predicted_max=10).observe(ObservationRequest())
    [view] = [view for view in seen.snapshot.applications if view.application == application(2)]
    assert (view.requests, view.predicted) == ((), 0)


@pytest.mark.parametrize("name", [C04, C06])
def test_a_queue_whose_requests_have_a_label_by_default_needs_capacity_there(capfd, name):
    case = RecordedCase(name)
    tree = case.answers[CLUSTER + "/scheduler"]["scheduler"]["schedulerInfo"]["queues"]["queue"]
    for leaf in tree:
        leaf["defaultNodeLabelExpression"] = "gpu"
    with case.served():
        found = checked(case.url, capfd)["labels"]
    closed = "root.research" if name == C06 else "root.production"  # In c06 production has 80 % of them
    assert (found["severity"], closed in found["seen"]) == ("fail", True)
    assert f"{closed}.accessible-node-labels.gpu.capacity" in found["fix"]


def test_check_exits_as_before_where_nothing_is_labelled(capfd):
    case = RecordedCase(C04)
    case.nodes[:] = [node for node in case.nodes if not node["nodeLabels"]]
    with case.served():
        assert exit_status_of(PROGRAM, ["check", "--rm", case.url, "--name-node", case.url, "--json"]) == 1


# --- what runs on a node, for a question --------------------------------------------------------------


def test_node_with_a_label_is_named_as_unknown_to_what_if(cluster: FakeCluster) -> None:
    cluster.labels["n2:1"] = "gpu"
    cluster.research(1, ["n1:1"])
    snapshot, _ = shot(cluster)
    assert list(cluster.port().node_load("n1:1", snapshot, lambda: None).held) == [application(1)]
    with pytest.raises(BadInput, match="has the label gpu; what-if knows nodes without a label only"):
        cluster.port().node_load("n2:1", snapshot, lambda: None)


def test_containers_of_a_node_are_read_until_the_time_is_over(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attached_port, "READ_TOGETHER", 1)
    checks = list[int]()

    def require_time() -> None:
        checks.append(len(checks))
        if len(checks) == 2:
            raise Unreachable("too long")

    port, heard = cluster.port(), list[str]()
    snapshot = tables.cluster(*(tables.app(application(number), "research", 1) for number in (1, 2)))

    def observe(names: list[str]) -> dict[str, Held]:
        heard.extend(names)
        return {}

    monkeypatch.setattr(port._live, "observe", observe)
    with pytest.raises(Unreachable, match="too long"):
        port.node_load("n1:1", snapshot, require_time)
    assert heard == [application(1)]
