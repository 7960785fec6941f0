"""Spark and Flink through plain ``yarnctl admit`` on the live emulator, by the programs that users type."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from research.tests.live.test_admission_live import until
from tests import http_client
from yarn_research.campaigns.admission_bench import rows
from yarn_research.campaigns.admission_hosts import gate
from yarn_research.campaigns.spark_admission import play, run_alone, shown
from yarn_research.campaigns.spark_hosts import MOST, live_spark
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager


@pytest.mark.xdist_group("admission-live")
@pytest.mark.parametrize("mechanism", ["justice", pytest.param("mrm", marks=pytest.mark.thorough)])
def test_two_applications_of_spark_are_seen_limited_freed_and_teach(tmp_path: Path, mechanism: str) -> None:
    with live_spark(tmp_path) as host:
        run_alone(host, "daily-0")
        found = shown(play(host, mechanism, tmp_path / "gate"))
    told = {name: value for name, value in found.items() if name != "rows"}
    assert told == {
        "applications": 2,
        "by_tag": 2,
        "in_queue": 2,
        "executors_as_given": 2,
        "freed": 2,
        "taught": 2,
        "estimated": 2,
    }, found["rows"]


@pytest.mark.xdist_group("admission-live")
def test_an_application_of_flink_is_freed_at_its_end_although_its_client_has_left(tmp_path: Path) -> None:
    with live_spark(tmp_path) as host, gate(host, tmp_path / "gate", "justice") as through:
        words = ["yarnctl", "admit", "--deadline", "60s", "--containers", str(MOST), "--"]
        flink = ["yarn-emulator", "flink", "run-application", "-t", "yarn-application"]
        named = ["-Dyarn.application.name=daily-0", "-Dyarn.application.queue=production", "modelled:1+6"]
        env = {**host.environment, **through.environment}
        done = subprocess.run([*words, *flink, *named], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        (admission,) = through.asked()["items"]
        until(lambda: through.asked()["items"][0]["state"] == "ended", "freed")
        until(lambda: through.asked()["gate"]["learned"] == 1, "learned")
        row = rows(host.rm, 0)["daily-0"]
        with Transport([host.rm]) as to:
            ended = ResourceManager(to).ended_application(row["id"])
        jobs = http_client.get(f"{host.rm}/ws/v1/history/mapreduce/jobs", timeout=30).json()
    assert (row["applicationType"], admission["request"]["kind"]) == ("Apache Flink", "flink")
    assert f"yarnctl-admission-{admission['id']}" in row["applicationTags"]
    assert ended.mib_seconds > 0
    assert not (jobs["jobs"] or {}).get("job"), "the history server knows MapReduce only"
