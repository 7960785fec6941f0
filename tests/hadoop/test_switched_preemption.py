"""``--yarn-preemption switch`` on a real ResourceManager: the key is set while yarnctl acts, absent after."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached, prepare
from tests.hadoop.configuration import VERSION, Shape
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop

KEY = "yarn.scheduler.capacity.root.research.disable_preemption"
SITE = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.scheduler.configuration.store.class": "memory",
}


def own_key(cluster: Cluster) -> str | None:
    """Return research's own key as the scheduler holds it; None: absent."""
    url = f"{cluster.rm_url}/ws/v1/cluster/scheduler-conf?user.name=yarnctl"
    rows = http_client.get(url, headers={"Accept": "application/json"}, timeout=60).json()["property"]
    return next((str(row["value"]) for row in rows if row["name"] == KEY), None)


def shown(cluster: Cluster) -> bool:
    """Return whether YARN shows research as excused from its preemption."""
    url = f"{cluster.rm_url}/ws/v1/cluster/scheduler"
    answer = http_client.get(url, headers={"Accept": "application/json"}, timeout=60).json()
    rows = answer["scheduler"]["schedulerInfo"]["queues"]["queue"]
    return next(bool(row["preemptionDisabled"]) for row in rows if row["queueName"] == "research")


def test_key_of_the_queue_is_set_while_yarnctl_acts_and_absent_after_restore(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    with Cluster(Shape(VERSION, nodes=1, overrides={"yarn-site": SITE}), tmp_path / "cluster") as cluster:
        prepare(cluster)
        assert (own_key(cluster), shown(cluster)) == (None, False)
        state = tmp_path / "state"
        with Attached(cluster, state, (*QUEUES, "--yarn-preemption", "switch")) as daemon:
            daemon.until(lambda: own_key(cluster) == "true", "the key is set")
            assert shown(cluster)
            daemon.kill()
        assert own_key(cluster) == "true"
        words = [YARNCTL, "restore", "--all", "--rm", cluster.rm_url, "--name-node", cluster.hdfs_url]
        words += ["--state-dir", str(state)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert (own_key(cluster), shown(cluster)) == (None, False)
