"""Executors of a real Spark leave for production, with their work, and come back: one job, both routes.

Law: the result is what this machine computes without Spark; how often user code ran is counted by itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.drivers import answers, claims, read
from tests.hadoop.attached import QUEUES, Attached
from tests.hadoop.jobs import Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, expected_digest
from tests.hadoop.spark_records import asked, grows
from yarnctl.frameworks.spark.again import was_drained
from yarnctl.frameworks.spark.rest import left_well

MIX = (*QUEUES, "--eviction", "mix", "--room-within", "30s", "--may-lose", "20%", "--in-flight", "1")
PRODUCTION = Plan("quick", "production", (10,), key_s=0.2, maps=1, user="bob")
EXECUTORS, KEYS_OF_TASK = 5, 3


@pytest.mark.parametrize("route", ["signal", "plugin"])
def test_executors_leave_for_production_and_the_result_is_the_same(
    spark_cluster: Cluster, tmp_path: Path, route: str, plugin: str
) -> None:
    """Two of five leave in the middle of the grouping; at most a task for each core left is done twice."""
    wrap = ("--plugin", plugin) if route == "plugin" else ()
    with (
        Attached(spark_cluster, tmp_path / "state", MIX) as daemon,
        SparkJob(
            spark_cluster, tmp_path / "spark", wrap=wrap, executors=EXECUTORS, work=Work(key_s=2.5)
        ) as spark,
    ):
        spark.until_marked("key", 17)  # the first tasks have finished, and tell how long others take
        held = claims(read(answers(spark.driver)))
        quick = Job(spark_cluster, PRODUCTION, tmp_path, f"{route}-1")
        daemon.until(lambda: daemon.reached("granted"), "granted an executor's room")
        told = spark.driver("allexecutors")
        assert quick.wait().state == "SUCCEEDED"
        assert spark.until_over() == expected_digest()
        drains = asked(daemon)
    assert all(held.values()), {name for name, holds in held.items() if not holds}
    left = {each["id"]: each["removeReason"] for each in told if not each["isActive"]}
    assert len(drains) >= 1, daemon.said()
    assert left, told
    assert all(map(left_well, left.values())), left
    assert all(map(was_drained, left.values())), "what ran again after these corrects the next charges"
    assert spark.failures() == [], "what counts towards a job's end"
    marks = spark.counted()
    assert marks.maps_twice == 0, left
    assert marks.keys_twice <= len({each.decision for each in drains}) * EXECUTORS * KEYS_OF_TASK
    assert {number for each in grows(daemon) for number in each.decisions} <= {
        each.decision for each in drains
    }
