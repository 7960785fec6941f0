"""The launcher: what is up can be used, what dies is named at once, and nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import http_client
from tests.hadoop import daemons, needing
from tests.hadoop.artifacts import NotToBeHad
from tests.hadoop.configuration import VERSION, Shape
from tests.hadoop.daemons import Daemon, DaemonDied
from tests.hadoop.launcher import STATE, Cluster
from tests.hadoop.needing import need_hadoop
from yarnctl.hadoop.site_xml import load

SMALLEST = Shape(VERSION, nodes=1, node_memory_mib=512)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    need_hadoop(VERSION)
    with Cluster(SMALLEST, tmp_path_factory.mktemp("cluster")) as running:
        yield running


def get(url: str) -> dict[str, object]:
    answer = http_client.get(url, headers={"Accept": "application/json"}, timeout=60)
    answer.raise_for_status()
    told: dict[str, object] = answer.json()
    return told


def test_every_address_answers_and_is_told_to_a_person(cluster: Cluster) -> None:
    assert get(f"{cluster.rm_url}/ws/v1/cluster/info")["clusterInfo"]
    assert get(f"{cluster.hdfs_url}/webhdfs/v1/?op=LISTSTATUS")["FileStatuses"]
    assert get(f"{cluster.history_url}/ws/v1/history/info")["historyInfo"]
    told = json.loads((cluster.folder / STATE).read_text(encoding="utf-8"))
    assert told["version"] == VERSION
    assert (told["rm"], told["hdfs"], told["history"]) == (
        cluster.rm_url,
        cluster.hdfs_url,
        cluster.history_url,
    )
    assert Path(told["hadoop-conf-dir"]) == cluster.conf


def test_the_configuration_folder_leads_a_client_to_it(cluster: Cluster) -> None:
    assert cluster.environment["HADOOP_CONF_DIR"] == str(cluster.conf)
    site = load(cluster.conf)
    assert cluster.rm_url == f"http://{site.text('yarn.resourcemanager.webapp.address')}"
    queues = load(cluster.conf, names=["capacity-scheduler.xml"])
    assert queues.text("yarn.scheduler.capacity.root.queues") == "production,research"
    assert "user" in cluster.run("hadoop", "fs", "-ls", "/").stdout


def test_a_node_that_is_killed_is_away_and_comes_back(cluster: Cluster) -> None:
    cluster.kill("nodemanager-0")
    assert "nodemanager-0" not in cluster.daemons
    cluster.start("nodemanager-0")
    cluster.wait_for_nodes(1)


def test_down_leaves_no_process_and_no_container(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    with Cluster(SMALLEST, tmp_path) as cluster:
        pids = {one.process.pid for one in cluster.daemons.values()}
        assert pids <= set(daemons.of_cluster(cluster.folder))
        application = starts_a_container(cluster)
        daemons.wait(
            cluster.daemons.values(),
            lambda: any(application in words_of(pid) for pid in daemons.of_cluster(cluster.folder)),
            "a container's process",
        )
    assert list(daemons.of_cluster(cluster.folder)) == []
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def starts_a_container(cluster: Cluster) -> str:
    """Have an AM started that does nothing; return its application."""
    root = f"{cluster.rm_url}/ws/v1/cluster/apps"
    application = str(
        http_client.post(f"{root}/new-application?user.name=alice", timeout=60).json()["application-id"]
    )
    context: dict[str, Any] = {
        "application-id": application,
        "application-name": "idle",
        "queue": "production",
        "resource": {"memory": 256, "vCores": 1},
        "am-container-spec": {"commands": {"command": "sleep 3600"}},
    }
    http_client.post(f"{root}?user.name=alice", json=context, timeout=60).raise_for_status()
    return application


def words_of(pid: int) -> str:
    """Return a process's command line, "" if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def test_a_daemon_that_dies_is_named_with_its_last_words_and_nothing_is_left(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    bad = {"yarn-site": {"yarn.resourcemanager.scheduler.class": "no.such.Scheduler"}}
    with pytest.raises(DaemonDied, match=r"resourcemanager left with [0-9]+: .*no\.such\.Scheduler"):
        Cluster(Shape(VERSION, nodes=1, overrides=bad), tmp_path).up()
    assert list(daemons.of_cluster(tmp_path.resolve())) == []


def test_who_waits_hears_of_a_death_and_not_of_time(tmp_path: Path) -> None:
    log = tmp_path / "nodemanager-0.log"
    log.write_text("INFO began\nERROR a.b.C: java.net.BindException: in use\nINFO shutting down\n")
    dead = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    dead.wait()
    with pytest.raises(DaemonDied) as told:
        daemons.wait([Daemon("nodemanager-0", dead, log)], lambda: False, "anything")
    assert str(told.value) == (
        f"nodemanager-0 left with 3: ERROR a.b.C: java.net.BindException: in use ({log})"
    )


@pytest.mark.parametrize(("variable", "raised"), [("", pytest.skip.Exception), ("1", pytest.fail.Exception)])
def test_what_is_missing_is_a_skip_with_its_reason_or_a_failure_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, variable: str, raised: type[BaseException]
) -> None:
    def jars(version: str) -> Path:
        raise NotToBeHad(f"Maven could not fetch Hadoop {version}")

    monkeypatch.setattr(needing, "jars", jars)
    monkeypatch.setenv("CI", "")
    monkeypatch.setenv("YARNCTL_REQUIRE_HADOOP", variable)
    with pytest.raises(raised, match=r"java is not on the path|could not fetch Hadoop"):
        need_hadoop(VERSION)
