"""Faults while executors of a real Spark leave: yarnctl is killed, a receiver of blocks is killed.

Law: the application is right or fails by itself, and is never left small: what was asked is in the journal,
and the next daemon tells it to grow.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hadoop.attached import QUEUES, Attached
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, expected_digest
from tests.hadoop.spark_processes import executors_of
from tests.hadoop.spark_records import asked, grows

MIX = (*QUEUES, "--eviction", "mix", "--room-within", "30s", "--may-lose", "20%", "--in-flight", "1")
PRODUCTION = Plan("quick", "production", (10,), key_s=0.2, maps=1, user="bob")
EXECUTORS, WORK = 5, Work(maps=48, keys=144, key_s=6.0)
STEPS: dict[str, Callable[[Attached], Sequence[object]]] = {
    "asked": asked,
    "freed": lambda daemon: daemon.reached("freed"),
    "granted": lambda daemon: daemon.reached("granted"),
    "told": grows,
}
"""The steps of one decision, each by what the journal has of it."""


@contextmanager
def grouping(cluster: Cluster, folder: Path, plugin: str) -> Iterator[tuple[Attached, SparkJob]]:
    """Yield a daemon and an application that fills the cluster, in the middle of its grouping."""
    with (
        Attached(cluster, folder / "state", MIX) as daemon,
        SparkJob(
            cluster, folder / "spark", wrap=("--plugin", plugin), executors=EXECUTORS, work=WORK
        ) as spark,
    ):
        spark.until_marked("key", 8)
        yield daemon, spark


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_daemon_leaves_no_application_small(
    spark_cluster: Cluster, tmp_path: Path, plugin: str, step: str
) -> None:
    """``kill -9`` once executors are asked, gone, replaced or wanted again: the next daemon has them back."""
    with grouping(spark_cluster, tmp_path, plugin) as (daemon, spark):
        quick = Job(spark_cluster, PRODUCTION, tmp_path, f"killed-{step}")
        daemon.until(lambda: STEPS[step](daemon), step)
        daemon.kill()
        daemon.start()
        assert quick.wait().state == "SUCCEEDED"
        daemon.until(lambda: grows(daemon), "told to grow")
        daemon.until(lambda: working(spark) == EXECUTORS, "as many executors as before")
        assert spark.until_over() == expected_digest(WORK.program, WORK.maps, WORK.keys)
    assert {number for each in grows(daemon) for number in each.decisions} == {
        each.decision for each in asked(daemon)
    }
    assert spark.failures() == []


def test_a_killed_receiver_of_blocks_costs_work_and_not_the_result(
    spark_cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    """``kill -9`` of an executor that stays, right after others were asked to move their blocks to it."""
    with grouping(spark_cluster, tmp_path, plugin) as (daemon, spark):
        quick = Job(spark_cluster, PRODUCTION, tmp_path, "receiver")
        daemon.until(lambda: asked(daemon), "asked")
        leaving = {each.container for each in asked(daemon)}
        staying = (process for name, process in executors_of(spark).items() if name not in leaving)
        os.kill(next(staying), signal.SIGKILL)
        assert quick.wait().state == "SUCCEEDED"
        assert spark.until_over() == expected_digest(WORK.program, WORK.maps, WORK.keys)


def working(spark: SparkJob) -> int:
    """Return how many executors work now."""
    return sum(each["isActive"] and each["id"] != "driver" for each in spark.driver("allexecutors"))
