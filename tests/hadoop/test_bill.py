"""``yarnctl bill`` beside a real YARN that preempts: the ResourceManager's sums, and those of its history."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.hadoop.attached import prepare
from tests.hadoop.configuration import VERSION, Shape
from tests.hadoop.history import asked
from tests.hadoop.jobs import YARNCTL, Job, Plan
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop

MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."
PREEMPTS = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    f"{MONITOR}monitoring_interval": "1000",
    f"{MONITOR}max_wait_before_kill": "1000",
    f"{MONITOR}total_preemption_per_round": "1.0",
    f"{MONITOR}natural_termination_factor": "1.0",
}
QUEUE = "yarn.scheduler.capacity.root."
SHARES = {
    f"{QUEUE}production.capacity": "95",
    f"{QUEUE}research.capacity": "5",
    f"{QUEUE}production.user-limit-factor": "4",
    f"{QUEUE}research.user-limit-factor": "40",
}
RESEARCH = Plan("nightly", "research", (600,) * 11, key_s=0.1)
PRODUCTION = Plan("urgent", "production", (80,) * 3, key_s=0.1, user="bob")


def billed(cluster: Cluster) -> dict[str, Any]:
    """Run the program as an administrator does; return its rows by name."""
    words = [YARNCTL, "bill", "--rm", cluster.rm_url, "--history", cluster.history_url]
    done = subprocess.run(
        [*words, "--by", "name", "-o", "json"], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == [], found
    return {row["keys"][0]: row for row in found["rows"]}


def test_a_bill_is_within_two_percent_of_the_sums_also_after_a_restart(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    overrides = {"yarn-site": PREEMPTS, "capacity-scheduler": SHARES}
    with Cluster(Shape(VERSION, overrides=overrides), tmp_path) as cluster:
        prepare(cluster)
        research = Job(cluster, RESEARCH, tmp_path, "nightly")
        deadline_s = time.monotonic() + 180
        while research.at_work() < len(RESEARCH.groups):
            assert time.monotonic() < deadline_s, research.said()
            time.sleep(0.25)
        production = Job(cluster, PRODUCTION, tmp_path, "urgent")
        assert production.wait().state == "SUCCEEDED"
        assert research.wait().state == "SUCCEEDED"
        row = research.row()
        told_mib_s, containers = int(row["preemptedMemorySeconds"]), int(row["numNonAMContainerPreempted"])
        assert containers > 0, "YARN preempted nothing: the test shows nothing"
        asked(cluster, str(row["id"]).replace("application_", "job_", 1), "")
        listed = billed(cluster)
        cluster.restart_manager({})
        forgotten = billed(cluster)
    name = str(row["name"])
    assert list(listed) == [name]
    first, again = listed[name], forgotten[name]
    assert (first["lost_mib_s"], first["containers"], first["unattributed"]) == (told_mib_s, containers, 0)
    assert (again["containers"], again["unattributed"]) == (containers, 0)
    assert abs(again["lost_mib_s"] - told_mib_s) <= 0.02 * told_mib_s, (again, told_mib_s)
    assert 0 <= first["kept_least_mib_s"] <= first["kept_most_mib_s"] <= first["lost_mib_s"]
