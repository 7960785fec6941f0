"""``hadoop-conf/`` on a live cluster: every key is in effect as it stands, and ``check`` is content."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests import http_client
from tests.hadoop.configuration import VERSION, Shape, ready
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop

SHOWN = {"deadline": {"yarn.scheduler.configuration.store.class": "memory"}}
"""That folder needs no store. With one the ResourceManager shows the keys of capacity-scheduler.xml."""

WORDS = {
    "dual-queue": (
        "--preempting",
        "production",
        "--preemptable",
        "research",
        "--yarn-preemption",
        "switch",
    ),
    "deadline": ("--mode", "deadlines", "--preempting", "default", "--allow-priority"),
}


@pytest.fixture(scope="module", params=list(WORDS))
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_hadoop(VERSION)
    site = {**ready(request.param, "yarn-site"), **SHOWN.get(request.param, {})}
    shape = Shape(VERSION, request.param, nodes=1, overrides={"yarn-site": site})
    with Cluster(shape, tmp_path_factory.mktemp(request.param)) as running:
        yield running


def told(url: str, rows: str, key: str) -> dict[str, str]:
    answer = http_client.get(url, headers={"Accept": "application/json"}, timeout=60)
    answer.raise_for_status()
    return {str(row[key]): str(row["value"]) for row in answer.json()[rows]}


def test_every_key_is_in_effect(cluster: Cluster) -> None:
    daemon = told(f"{cluster.rm_url}/conf", "properties", "key")
    scheduler = told(f"{cluster.rm_url}/ws/v1/cluster/scheduler-conf?user.name=root", "property", "name")
    for name, found in (("yarn-site", daemon), ("capacity-scheduler", scheduler)):
        keys = ready(cluster.shape.set_up, name)
        assert {key: found.get(key) for key in keys} == keys


def check(cluster: Cluster) -> dict[str, str]:
    """Return what ``yarnctl check`` finds: severity by rule."""
    words = [YARNCTL, "check", "--rm", cluster.rm_url, "--name-node", cluster.hdfs_url, "--json"]
    done = subprocess.run([*words, *WORDS[cluster.shape.set_up]], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return {one["id"]: one["severity"] for one in json.loads(done.stdout)["findings"]}


def test_check_finds_the_folders_wanting_and_then_nothing(cluster: Cluster) -> None:
    before = check(cluster)
    assert [name for name, severity in before.items() if severity == "fail"] == ["lock"]
    hdfs = Hdfs(cluster.hdfs_url, "root")
    hdfs.make("/yarnctl", "755", "yarnctl")
    hdfs.make("/yarnctl/requests", "755", "yarnctl")
    hdfs.make("/yarnctl/checkpoints", "1777", "yarnctl", "yarnctl")
    # Speculation is a job's affair, names are not proven without Kerberos, and the proxy is seen by a job.
    found = {name: severity for name, severity in check(cluster).items() if severity != "ok"}
    assert found == {"speculation": "warn", "isolation": "warn", "proxy": "unknown"}
