"""What breaks under executors of a real Spark that leave: a node, the driver, a disk, the ResourceManager.

Law: the application is right or fails by itself, is never left small, and no order goes where none was due.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SHAPE, SparkJob, Work, expected_digest
from tests.hadoop.spark_processes import executors_of, of_driver
from tests.hadoop.spark_records import asked, grows

MIX = (*QUEUES, "--eviction", "mix", "--room-within", "30s", "--may-lose", "20%", "--in-flight", "1")
PRODUCTION = Plan("quick", "production", (10,), key_s=0.2, maps=1, user="bob")
EXECUTORS, WORK = 5, Work(maps=48, keys=144, key_s=6.0)
EXPIRY_MS = 15_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that notices a lost node soon, and whose ResourceManager remembers its applications."""
    folder = tmp_path_factory.mktemp("hadoop")
    remembers = {
        "yarn.nm.liveness-monitor.expiry-interval-ms": str(EXPIRY_MS),
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": (
            "org.apache.hadoop.yarn.server.resourcemanager.recovery.FileSystemRMStateStore"
        ),
        "yarn.resourcemanager.fs.state-store.uri": f"file://{folder}/rm-state",
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
    }
    with Cluster(replace(SHAPE, overrides={"yarn-site": remembers}), folder / "cluster") as found:
        prepare(found)
        yield found


@contextmanager
def leaving(
    cluster: Cluster, folder: Path, plugin: str, *, cluster_mode: bool = False
) -> Iterator[tuple[Attached, SparkJob, Job]]:
    """Yield a daemon, an application that fills the cluster, and production: executors are just asked."""
    with (
        Attached(cluster, folder / "state", MIX) as daemon,
        SparkJob(
            cluster,
            folder / "spark",
            wrap=("--plugin", plugin),
            executors=EXECUTORS,
            work=WORK,
            cluster_mode=cluster_mode,
        ) as spark,
    ):
        spark.until_marked("key", 8)
        quick = Job(cluster, PRODUCTION, folder, folder.name[-12:])
        daemon.until(lambda: asked(daemon), "asked")
        yield daemon, spark, quick


def ends_right(daemon: Attached, spark: SparkJob) -> None:
    """Claim what holds whatever broke: the result, and no order where none was due."""
    application = spark.application
    assert spark.until_over() == expected_digest(WORK.program, WORK.maps, WORK.keys)
    orders = asked(daemon)
    number = application.removeprefix("application_")
    assert all(each.application == application for each in orders)
    assert all(f"_{number}_" in each.container for each in orders)
    assert len({each.container for each in orders}) == len(orders), "no executor was asked twice"


def whole(daemon: Attached, spark: SparkJob) -> None:
    """Wait until the application was told to grow, and has as many executors as before."""
    daemon.until(lambda: grows(daemon), "told to grow")
    daemon.until(lambda: len(working(spark)) == EXECUTORS, "as many executors as before")


def working(spark: SparkJob) -> list[str]:
    """Return the executors that work now; none while the driver does not answer."""
    try:
        rows = spark.driver("allexecutors")
    except http_client.RequestException:
        return []
    return [each["id"] for each in rows if each["isActive"] and each["id"] != "driver"]


def test_a_lost_node_costs_work_and_not_the_result(cluster: Cluster, tmp_path: Path, plugin: str) -> None:
    """A NodeManager and all that runs on its host are gone at once; later the node is back."""
    with leaving(cluster, tmp_path, plugin) as (daemon, spark, quick):
        masters = {f"{each.rpartition('_')[0]}_000001" for each in executors_of(spark)}
        host = spare_host(spark, masters)
        cluster.kill(f"nodemanager-{host - 2}")
        for each, process in executors_of(spark).items():
            if host_of(spark, each) == host:
                os.kill(process, signal.SIGKILL)
        cluster.wait_for_nodes(2)
        cluster.start(f"nodemanager-{host - 2}")
        cluster.wait_for_nodes(3)
        assert quick.wait().state == "SUCCEEDED"
        whole(daemon, spark)
        ends_right(daemon, spark)


def host_of(spark: SparkJob, container: str) -> int:
    """Return the last part of the address of the host that a container is on."""
    for row in spark.driver("allexecutors"):
        if container in row["executorLogs"].get("stderr", ""):
            return int(row["hostPort"].partition(":")[0].rpartition(".")[2])
    raise AssertionError(f"{container} is no executor's")


def spare_host(spark: SparkJob, masters: set[str]) -> int:
    """Return a host that holds executors and neither the application's nor production's master."""
    held = [host_of(spark, each) for each in executors_of(spark) if each not in masters]
    pairs = [host for host in sorted(set(held)) if held.count(host) == 2]
    assert pairs, held
    return pairs[-1]


def test_another_driver_begins_anew_and_obeys_no_order_of_the_first(
    cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    """``kill -9`` of a driver in its container: YARN starts another, whose executors all work."""
    with leaving(cluster, tmp_path, plugin, cluster_mode=True) as (daemon, spark, quick):
        before = {each.container for each in asked(daemon)}
        os.kill(of_driver(spark), signal.SIGKILL)
        assert quick.wait().state == "SUCCEEDED"
        daemon.until(lambda: len(working(spark)) == EXECUTORS, "as many executors as before")
        assert all("_02_" in each for each in executors_of(spark)), "of the second attempt"
        assert not before & executors_of(spark).keys()
        ends_right(daemon, spark)


def test_a_receiver_whose_disk_is_full_costs_time_and_not_the_result(
    cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    """One that stays can write no file any more: blocks go elsewhere, or those who leave stay longer.

    Production may need a second executor, and be given just this one: then it leaves, and only then.
    """
    with leaving(cluster, tmp_path, plugin) as (daemon, spark, quick):
        named = {each.container for each in asked(daemon)}
        full, process = next((name, held) for name, held in executors_of(spark).items() if name not in named)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        assert quick.wait().state == "SUCCEEDED"
        try:
            resource.prlimit(process, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except ProcessLookupError:
            assert full in {each.container for each in asked(daemon)}, "it ended and nobody had asked it"
        whole(daemon, spark)
        ends_right(daemon, spark)


def test_a_resource_manager_that_comes_back_finds_everything_as_it_was(
    cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    """It restarts while executors leave; it remembers applications, yarnctl its orders."""
    with leaving(cluster, tmp_path, plugin) as (daemon, spark, quick):
        spark.application  # noqa: B018  # asked for while the list is there
        cluster.restart("resourcemanager")
        cluster.wait_for_nodes(cluster.shape.nodes)
        assert quick.wait().state == "SUCCEEDED"
        whole(daemon, spark)
        ends_right(daemon, spark)


def test_production_that_withdraws_leaves_no_application_small(
    cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    """Production is killed as soon as executors were asked: they leave all the same, and come back."""
    with leaving(cluster, tmp_path, plugin) as (daemon, spark, quick):
        url = f"{cluster.rm_url}/ws/v1/cluster/apps/{quick.application}/state?user.name=bob"
        http_client.put(url, json={"state": "KILLED"}, timeout=20)
        quick.stop()
        whole(daemon, spark)
        ends_right(daemon, spark)
