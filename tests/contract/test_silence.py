"""Silence: a node that is not heard of any more (facts 1.1). It fell silent when its host began."""

from __future__ import annotations

from tests.contract.asking import Cluster, rows
from tests.contract.host import need, until


def test_a_silent_node_is_lost_and_stays_listed(cluster: Cluster) -> None:
    host = cluster.host
    need(host, "silent-node")
    until(host, lambda: cluster.get("metrics")["clusterMetrics"]["lostNodes"] == 1, "a lost node")
    nodes = {one["id"]: one for one in rows(cluster.get("nodes"), "nodes", "node")}
    lost = nodes.pop(host.silent_node)
    assert lost["state"] == "LOST"
    assert (lost["numContainers"], lost["usedMemoryMB"], lost["availMemoryMB"]) == (0, 0, 0)
    assert {one["state"] for one in nodes.values()} == {"RUNNING"}
    for states, ids in (("RUNNING", set(nodes)), ("LOST", {host.silent_node}), ("RUNNING,LOST", None)):
        told = {one["id"] for one in rows(cluster.get("nodes", states=states), "nodes", "node")}
        assert told == (ids if ids is not None else {*nodes, host.silent_node})
    metrics = cluster.get("metrics")["clusterMetrics"]
    assert metrics["activeNodes"] == len(nodes)
    assert metrics["totalMB"] == sum(one["totalResource"]["memory"] for one in nodes.values())
