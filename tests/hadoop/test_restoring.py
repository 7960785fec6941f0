"""A daemon is killed while executors of a real Spark have left: ``yarnctl restore`` gives them back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.hadoop.attached import Attached
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL, Job
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import SparkJob, Work, expected_digest
from tests.hadoop.test_spark_drain import EXECUTORS, MIX, PRODUCTION

KEYS = 144  # tasks must still wait when production has ended


def records(cluster: Cluster) -> list[str]:
    names = Hdfs(cluster.hdfs_url, "yarnctl").names("/yarnctl/lock")
    return [name for name in names if name.startswith("changes-")]


def restore(cluster: Cluster, *words: str) -> tuple[int, list[dict[str, str]]]:
    """Run ``yarnctl restore``; return its status and the settings that it prints."""
    command = [YARNCTL, "restore", "--rm", cluster.rm_url, "--name-node", cluster.hdfs_url, "-o", "json"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["settings"]


def active(spark: SparkJob) -> int:
    return sum(each["isActive"] and each["id"] != "driver" for each in spark.driver("allexecutors"))


def waiting(spark: SparkJob) -> int:
    """Return how many tasks have not started: without one, executors need not be back."""
    stages = [each for each in spark.driver("stages") if each["status"] in ("ACTIVE", "PENDING")]
    return sum(each["numTasks"] - each["numCompleteTasks"] - each["numActiveTasks"] for each in stages)


def test_restore_returns_executors_after_a_daemon_was_killed(
    spark_cluster: Cluster, tmp_path: Path, plugin: str
) -> None:
    with (
        Attached(spark_cluster, tmp_path / "state", MIX) as daemon,
        SparkJob(
            spark_cluster,
            tmp_path / "spark",
            wrap=("--plugin", plugin),
            executors=EXECUTORS,
            work=Work(keys=KEYS, key_s=6.0),
        ) as spark,
    ):
        spark.until_marked("key", 17)
        quick = Job(spark_cluster, PRODUCTION, tmp_path, "restoring-1")
        daemon.until(lambda: daemon.reached("granted"), "granted an executor's room")
        daemon.kill()
        left = active(spark)
        assert left < EXECUTORS
        (name,) = records(spark_cluster)
        stored = json.loads(Hdfs(spark_cluster.hdfs_url, "yarnctl").read(f"/yarnctl/lock/{name}"))
        assert [change["before"] for change in stored["changes"]] == [str(EXECUTORS)], stored
        (row,) = restore(spark_cluster)[1]
        assert (row["kind"], row["target"], row["state"]) == ("executors", spark.application, "lowered"), name
        status, (row,) = restore(spark_cluster, "--all", "--wait", "120")
        assert (status, row["state"]) == (0, "the value before the change was read back")
        assert active(spark) == EXECUTORS or not waiting(spark), spark.driver("stages")
        assert records(spark_cluster) == []
        assert quick.wait().state == "SUCCEEDED"
        assert spark.until_over() == expected_digest(keys=KEYS)
