"""``--cap-queue`` in a tree on a real ResourceManager: absolute maxima become absolute guarantees."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests import http_client
from tests.hadoop.attached import prepare
from tests.hadoop.configuration import VERSION, Shape
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import attach
from yarnctl.config import ClusterAddress
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.deciding.model import ObservationRequest
from yarnctl.deciding.queue_names import NamedQueues
from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.records import Record

QUEUE = "yarn.scheduler.capacity.root."
TREE = {
    f"{QUEUE}production.capacity": "70",
    f"{QUEUE}research.capacity": "30",
    f"{QUEUE}research.maximum-capacity": "100",
    f"{QUEUE}research.queues": "ds,lab",
    f"{QUEUE}research.ds.capacity": "70",
    f"{QUEUE}research.lab.capacity": "30",
    f"{QUEUE}research.lab.queues": "a,b",
    f"{QUEUE}research.lab.a.capacity": "50",
    f"{QUEUE}research.lab.b.capacity": "50",
}
LEAVES = ("root.research.ds", "root.research.lab.a", "root.research.lab.b")
GUARANTEES = {"ds": 21.0, "a": 4.5, "b": 4.5}


def leaves(queue: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    below = (queue.get("queues") or {}).get("queue", [])
    for one in below:
        yield from leaves(one)
    if not below:
        yield queue


def absolute_maxima(url: str) -> dict[str, float]:
    """Return each research leaf's absolute maximum, in percent of the cluster."""
    path = f"{url}/ws/v1/cluster/scheduler"
    answer = http_client.get(path, headers={"Accept": "application/json"}, timeout=60).json()
    rows = {row["queueName"]: row for row in leaves(answer["scheduler"]["schedulerInfo"])}
    return {name: round(rows[name]["absoluteMaxCapacity"], 3) for name in GUARANTEES}


def test_reconcile_lowers_absolute_maxima_to_absolute_guarantees(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    site = {"yarn.scheduler.configuration.store.class": "memory"}
    shape = Shape(VERSION, nodes=1, overrides={"yarn-site": site, "capacity-scheduler": TREE})
    with Cluster(shape, tmp_path) as cluster:
        prepare(cluster)
        names = QueueNames(NamedQueues(("root.production",), LEAVES))
        attachment = Attachment(enforce=True, allow_queue_cap=True, preemptable_queues=LEAVES)
        address = ClusterAddress(
            resource_managers=(cluster.rm_url,), name_nodes=(cluster.hdfs_url,), user="yarnctl"
        )
        port = attach(address, attachment, lambda: time.time_ns() // 1_000_000, queues=names)
        try:
            deadline_s = time.monotonic() + 120
            while port.observe(ObservationRequest()).cluster == "unreachable":
                assert time.monotonic() < deadline_s, port.permission.why_nothing()
            before = absolute_maxima(cluster.rm_url)
            assert before == dict.fromkeys(GUARANTEES, 100.0)
            caps = QueueCaps(
                port.queue_settings.limits,
                port.perform,
                LEAVES,
                port.restorer,
                tree=lambda: names.tree,
            )
            records = list[Record]()
            caps.reconcile(records.append, 0, 1, True, None)
            assert absolute_maxima(cluster.rm_url) == GUARANTEES, records
            port.restorer.stop(Stopping())
            assert absolute_maxima(cluster.rm_url) == before
            assert port.restorer.open == {}, "read back"
        finally:
            port.close()
