"""The cluster itself: who answers, its counters, nodes, queues and configuration (facts 1.1, 1.3, 1.4)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.contract.asking import JSON, Cluster, assert_not_taken, no_number, refusal, rows
from tests.contract.host import need, until
from yarnctl.hadoop.wire.node_activities import ACTIVITIES, NodeActivities

PREFIX = "yarn.scheduler.capacity.root"


def vector(told: dict[str, Any]) -> tuple[int, int]:
    """Return MiB and vcores of a resource, which name them twice."""
    named = {one["name"]: one["value"] for one in told["resourceInformations"]["resourceInformation"]}
    assert named == {"memory-mb": told["memory"], "vcores": told["vCores"]}
    return told["memory"], told["vCores"]


def queues(cluster: Cluster) -> dict[str, dict[str, Any]]:
    root = cluster.get("scheduler")["scheduler"]["schedulerInfo"]
    return {one["queueName"]: one for one in root["queues"]["queue"]}


# --- who answers ------------------------------------------------------------------------------


def test_info_names_the_version_and_who_is_active(cluster: Cluster) -> None:
    info = cluster.get("info")["clusterInfo"]
    assert info["haState"] == "ACTIVE"
    assert info["state"] == "STARTED"
    assert info["resourceManagerVersion"].startswith(cluster.host.version)
    assert info["hadoopVersion"].startswith(cluster.host.version)
    assert isinstance(info["id"], int)
    assert info["startedOn"] > 0
    assert cluster.get("")["clusterInfo"] == info


def test_who_asks_is_user_name_and_nobody_is_dr_who(cluster: Cluster) -> None:
    assert caller(cluster.get("userinfo")) == "alice"
    nobody = cluster.host.ask("GET", f"{cluster.host.rm}/ws/v1/cluster/userinfo", headers=JSON)
    conf = {one["key"]: one["value"] for one in cluster.get("/conf")["properties"]}
    assert caller(nobody.json()) == conf["hadoop.http.staticuser.user"]  # dr.who, where nobody says otherwise


def caller(told: dict[str, Any]) -> str:
    """Return who asks; 3.4 leaves the root out."""
    return str(told.get("clusterUserInfo", told)["requestedUser"])


def test_the_active_one_says_so_without_a_body(cluster: Cluster) -> None:
    assert cluster.ask("GET", "/isActive").status == 200


def test_a_standby_sends_its_askers_on(cluster: Cluster) -> None:
    need(cluster.host, "standby")
    asked = cluster.host.ask("GET", f"{cluster.host.standby}/ws/v1/cluster/metrics", headers=JSON)
    assert asked.status == 307
    assert asked.headers["location"].startswith(cluster.host.rm)
    info = cluster.host.ask("GET", f"{cluster.host.standby}/ws/v1/cluster/info", headers=JSON)
    assert info.json()["clusterInfo"]["haState"] == "STANDBY"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "nothing", 404), ("DELETE", "metrics", None), ("POST", "/proxy/application_1_0001/", 405)],
)
def test_what_is_not_offered(cluster: Cluster, method: str, path: str, status: int | None) -> None:
    assert cluster.ask(method, path).status == (status or no_number(cluster))


def test_metrics_add_up(cluster: Cluster) -> None:
    told = cluster.get("metrics")["clusterMetrics"]
    assert told["allocatedMB"] + told["availableMB"] + told["reservedMB"] == told["totalMB"] > 0
    used = told["allocatedVirtualCores"] + told["availableVirtualCores"] + told["reservedVirtualCores"]
    assert used == told["totalVirtualCores"] > 0
    assert told["activeNodes"] >= 2
    for name in ("pendingMB", "pendingVirtualCores", "containersPending", "containersAllocated"):
        assert told[name] >= 0
    assert vector(told["totalClusterResourcesAcrossPartition"])[0] == told["totalMB"]
    counted = told["appsPending"] + told["appsRunning"] + told["appsCompleted"]
    assert told["appsSubmitted"] >= counted + told["appsFailed"] + told["appsKilled"]


def test_nodes_say_what_they_hold_and_what_is_left(cluster: Cluster) -> None:
    told = rows(cluster.get("nodes", states="RUNNING"), "nodes", "node")
    assert len(told) >= 2
    for node in told:
        assert node["state"] == "RUNNING"
        assert node["id"].rpartition(":")[0] == node["nodeHostName"]
        assert node["version"].startswith(cluster.host.version)
        total = vector(node["totalResource"])
        assert (node["usedMemoryMB"] + node["availMemoryMB"], total[0] > 0) == (total[0], True)
        assert node["usedVirtualCores"] + node["availableVirtualCores"] == total[1]
        assert vector(node["usedResource"]) == (node["usedMemoryMB"], node["usedVirtualCores"])
        assert vector(node["availableResource"]) == (node["availMemoryMB"], node["availableVirtualCores"])
        assert "containersCPUUsage" in node["resourceUtilization"]
        assert cluster.get(f"nodes/{node['id']}")["node"]["id"] == node["id"]


def test_a_node_that_is_not_there_and_a_state_that_is_none(cluster: Cluster) -> None:
    answer = cluster.ask("GET", "nodes/nowhere:1")
    assert (answer.status, refusal(answer)) == (404, "NotFoundException")
    assert cluster.ask("GET", "nodes", states="SLEEPING").status == 400


def test_a_record_of_a_nodes_heartbeat_begins_at_root(cluster: Cluster) -> None:
    """A request has the next heartbeat recorded; the fields have these names since 3.3.0."""
    told = rows(cluster.get("nodes", states="RUNNING"), "nodes", "node")
    node = min(one["id"] for one in told if one["id"] != cluster.host.silent_node)

    def look() -> NodeActivities | None:
        answer = cluster.ask("GET", "scheduler/activities", nodeId=node)
        assert answer.status == 200, answer
        found = ACTIVITIES.read(answer.body)
        return found if found.at_ms and found.allocations else None

    found = until(cluster.host, look, "a heartbeat recorded")
    assert found is not None
    assert found.node == node
    root = found.allocations[0].root
    assert (root.name, root.state) in [("root", state) for state in ("ACCEPTED", "SKIPPED", "REJECTED")]
    assert found.allocations[0].state


def test_the_tree_of_queues(cluster: Cluster) -> None:
    root = cluster.get("scheduler")["scheduler"]["schedulerInfo"]
    assert (root["type"], root["queueName"], root["capacity"]) == ("capacityScheduler", "root", 100)
    leaves = {one["queueName"]: one for one in root["queues"]["queue"]}
    shares = {name: (one["capacity"], one["maxCapacity"]) for name, one in leaves.items()}
    assert shares == {"production": (95, 100), "research": (5, 100)}
    for one in leaves.values():
        assert one["type"] == "capacitySchedulerLeafQueueInfo"
        assert one["state"] == "RUNNING"
        assert one["absoluteCapacity"] == one["capacity"]
        partition = one["resources"]["resourceUsagesByPartition"][0]
        assert {"used", "reserved", "pending", "amUsed"} <= set(partition)
        assert vector(partition["used"]) == vector(one["resourcesUsed"])
        assert one["capacities"]["queueCapacitiesByPartition"][0]["capacity"] == one["capacity"]
        for name in ("allocatedContainers", "reservedContainers", "pendingContainers", "numContainers"):
            assert isinstance(one[name], int)
        for name in ("numActiveApplications", "numPendingApplications", "maxApplications"):
            assert isinstance(one[name], int)
        assert {"AMResourceLimit", "usedAMResource", "userLimitFactor", "preemptionDisabled"} <= set(one)
        assert vector(one["maxEffectiveCapacity"]) >= vector(one["minEffectiveCapacity"])


# --- configuration ----------------------------------------------------------------------------


def test_the_daemon_says_its_configuration_as_json_and_as_xml(cluster: Cluster) -> None:
    told = {one["key"]: one["value"] for one in cluster.get("/conf")["properties"]}
    assert told["yarn.resourcemanager.scheduler.class"].endswith(".CapacityScheduler")
    page = cluster.ask("GET", "/conf", None, {"Accept": "application/xml"})
    assert page.kind in ("text/xml", "application/xml")
    found = {
        one.findtext("name"): one.findtext("value")
        for one in ElementTree.fromstring(page.body).iter("property")
    }
    assert found["yarn.resourcemanager.scheduler.class"] == told["yarn.resourcemanager.scheduler.class"]


def change(form: str, value: str) -> tuple[bytes, str]:
    """Return the body of a change of research's maximum, and its content type."""
    queue = "root.research"
    if form == "xml":
        return (
            f"<sched-conf><update-queue><queue-name>{queue}</queue-name><params><entry>"
            f"<key>maximum-capacity</key><value>{value}</value></entry></params></update-queue></sched-conf>"
        ).encode(), "application/xml"
    entry = f'{{"key":"maximum-capacity","value":"{value}"}}'
    return (
        f'{{"update-queue":[{{"queue-name":"{queue}","params":{{"entry":[{entry}]}}}}]}}'.encode(),
        "application/json",
    )


@pytest.mark.parametrize("form", ["xml", "json"])
def test_the_schedulers_configuration_is_changed_at_once(cluster: Cluster, form: str) -> None:
    need(cluster.host, "scheduler-conf")
    key = f"{PREFIX}.research.maximum-capacity"

    def put(value: str) -> int:
        body, kind = change(form, value)
        headers = {"Accept": "application/json", "Content-Type": kind}
        return cluster.ask("PUT", "scheduler-conf", body, headers).status

    def told() -> float:
        return float(
            {one["name"]: one["value"] for one in rows(cluster.get("scheduler-conf"), "conf", "property")}[
                key
            ]
        )

    assert told() == 100
    assert put("50") == 200
    try:
        assert told() == 50
        assert queues(cluster)["research"]["maxCapacity"] == 50
        assert put("much") == 400
        assert told() == 50
    finally:
        assert put("100") == 200
    assert queues(cluster)["research"]["maxCapacity"] == 100


def test_a_change_must_come_as_a_kind_that_can_be_read(cluster: Cluster) -> None:
    need(cluster.host, "scheduler-conf")
    plain = {"Accept": "application/json", "Content-Type": "text/plain"}
    assert_not_taken(cluster, cluster.ask("PUT", "scheduler-conf", b"x", plain))
