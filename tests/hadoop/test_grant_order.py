"""Priorities on a real ResourceManager: what is restored is the order of grants, not only the field."""

from __future__ import annotations

from pathlib import Path

from tests import grant_order
from tests.grant_order import GrantOrder
from tests.hadoop.attached import prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop

VERSION = "3.4.2"
SHAPE = Shape(
    VERSION,
    nodes=1,
    node_memory_mib=grant_order.NODE_MIB,
    overrides={
        "yarn-site": {"yarn.cluster.max-application-priority": "10"},
        # All may be activated: one that is not has no record.
        "capacity-scheduler": {"yarn.scheduler.capacity.maximum-am-resource-percent": "10"},
    },
)


def test_restored_priorities_are_what_the_scheduler_grants_by(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    with Cluster(SHAPE, tmp_path) as cluster:
        prepare(cluster)
        rig = GrantOrder(cluster.rm_url, {"commands": {"command": "sleep 600"}})
        grant_order.play(rig, cluster.rm_url, cluster.hdfs_url)
