"""The virtual host itself: no clock is read, so the same questions have the same answers to the byte."""

from __future__ import annotations

from pathlib import Path

from tests.contract.asking import Cluster, attempt_path
from tests.contract.host import JobPlan, until
from tests.contract.virtual_host import EPOCH_MS, VirtualHost


def story(folder: Path) -> list[bytes]:
    """Return every answer of a small story: a job, one kill, and its end."""
    host = VirtualHost(folder, "3.4")
    cluster, told = Cluster(host), []
    try:
        application = host.submit(JobPlan("story", "research", maps=2, reduces=3, holds=True))
        cluster.wait_for(application, "RUNNING")
        until(host, lambda: len(cluster.running_reduces(application)) == 3, "all reduces")
        attempt = min(one["id"] for one in cluster.running_reduces(application).values())
        cluster.end_attempt(application, attempt)
        for _ in range(20):
            host.wait(0.05)
            for path in ("info", "metrics", "scheduler", "nodes", "apps", f"apps/{application}/appattempts"):
                told.append(cluster.ask("GET", path).body)
            told.append(cluster.master(application, attempt_path(attempt)).body)
        cluster.end(application)
        told.append(cluster.ask("GET", "apps").body)
    finally:
        host.close()
    return told


def test_the_same_story_twice_is_the_same_to_the_byte(tmp_path: Path) -> None:
    first, second = story(tmp_path / "first"), story(tmp_path / "second")
    assert first == second
    assert len(set(first)) > 20  # time did pass in it


def test_time_begins_at_a_given_instant_and_passes_only_while_somebody_waits(tmp_path: Path) -> None:
    host = VirtualHost(tmp_path, "3.5")
    try:
        cluster = Cluster(host)
        info = cluster.get("info")["clusterInfo"]
        assert (info["startedOn"], info["id"]) == (EPOCH_MS, EPOCH_MS)
        application = host.submit(JobPlan("still", "production"))
        assert [cluster.state(application) for _ in range(5)] == ["ACCEPTED"] * 5
        assert cluster.app(application)["elapsedTime"] == 0
        host.wait(60)
        assert cluster.app(application)["state"] == "FINISHED"
        assert cluster.app(application)["finishedTime"] < EPOCH_MS + 10_000
    finally:
        host.close()
