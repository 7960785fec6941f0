"""A job of Flink goes on with fewer workers for production, and with all of them afterwards, exactly.

Law: what it wrote is looked at by itself: each number once, each key's counts without a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.flink_rescaling import SHAPE, WORKERS, FlinkJob, InstalledFlink, faults_of, install
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop
from tests.hadoop.spark_records import asked, grows

MIX = (*QUEUES, "--eviction", "mix", "--room-within", "12s", "--may-lose", "20%", "--in-flight", "1")
PRODUCTION = Plan("quick", "production", (10,), key_s=0.2, maps=1, user="bob")
NUMBERS = 200_000


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, InstalledFlink]]:
    need_hadoop(SHAPE.version)
    with Cluster(SHAPE, tmp_path_factory.mktemp("hadoop")) as cluster:
        prepare(cluster)
        yield cluster, install(cluster, tmp_path_factory.mktemp("flink"))


@pytest.mark.parametrize("dies", ["never", "asked", "freed"])
def test_workers_leave_for_production_and_come_back(
    flink: tuple[Cluster, InstalledFlink], tmp_path: Path, dies: str
) -> None:
    """Also where yarnctl is killed when the bounds are lowered, or when the first worker is gone."""
    cluster, there = flink
    with (
        Attached(cluster, tmp_path / "state", MIX) as daemon,
        FlinkJob(cluster, there, f"count-{dies}", numbers=NUMBERS) as job,
    ):
        job.until_working()
        quick = Job(cluster, PRODUCTION, tmp_path, f"flink-{dies}")
        daemon.until(lambda: asked(daemon) if dies == "asked" else daemon.reached("freed"), dies)
        if dies != "never":
            daemon.kill()
            daemon.start()
        assert quick.wait().state == "SUCCEEDED"
        daemon.until(lambda: grows(daemon), "told to grow")
        daemon.until(lambda: job.uppers() == {WORKERS}, "bounds put back")
        job.until_working()
        assert job.until_over() == "SUCCEEDED"
    assert faults_of(job.written(), NUMBERS) == []
    assert daemon.reached("granted"), daemon.said()
