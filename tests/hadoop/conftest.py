"""One real Hadoop for all scenarios: started when the first asks for it, with yarnctl's folders made.

Law: what a failure means to a cluster is set short (a node that is silent is lost after 20 s), nothing else
is other than ``make hadoop-up`` has it. ``YARNCTL_HADOOP`` names another version of Hadoop. Where Hadoop
cannot be had the tests are skipped with the reason, or fail where it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hadoop import spark_draining
from tests.hadoop.attached import prepare
from tests.hadoop.configuration import VERSION, Shape
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop

SHAPE = Shape(
    VERSION,
    nodes=3,
    node_memory_mib=1024,
    overrides={
        "yarn-site": {"yarn.nm.liveness-monitor.expiry-interval-ms": "20000"},
        "hdfs-site": {"dfs.namenode.safemode.extension": "0"},
        "core-site": {"ipc.client.connect.max.retries": "60"},
    },
)
"""Twelve containers. Clients wait a minute for a NameNode that is away, as who restarts it would have it."""


@pytest.fixture(scope="session")
def loop_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster of twelve containers with queues production and research."""
    need_hadoop(VERSION)
    with Cluster(SHAPE, tmp_path_factory.mktemp("hadoop")) as cluster:
        prepare(cluster)
        yield cluster


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a cluster of six containers on three hosts, for applications of Spark."""
    need_hadoop(spark_draining.SHAPE.version)
    with Cluster(spark_draining.SHAPE, tmp_path_factory.mktemp("hadoop")) as cluster:
        prepare(cluster)
        yield cluster


@pytest.fixture(scope="session")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the plugin's jar, compiled as a user compiles it."""
    return spark_draining.plugin_in(tmp_path_factory.mktemp("plugin"))
