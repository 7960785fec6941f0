"""Spark under Kerberos: executors leave for production by an order that the driver reads as its own user.

Law: daemon and application have a principal each, executors have to authenticate, and the driver shows itself
to the daemon's account alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import http_client
from tests.hadoop.attached import QUEUES, Attached
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.needing import need_spark
from tests.hadoop.secured_jobs import production, run_client, secured, start
from tests.hadoop.security import SecureCluster
from tests.hadoop.spark_draining import PATIENCE_S, SHAPE, SparkJob, Work, expected_digest
from tests.hadoop.spark_records import asked, grows
from yarnctl.frameworks.spark.again import was_drained
from yarnctl.frameworks.spark.rest import left_well

MIX = (*QUEUES, "--eviction", "mix", "--room-within", "60s", "--may-lose", "20%", "--in-flight", "1")
EXECUTORS, WORK = 5, Work(maps=48, keys=144, key_s=4.0)
GUARDED = ("spark.authenticate=true", "spark.acls.enable=true", "spark.ui.view.acls=yarnctl")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    need_spark()
    lines = (f"{number:06d}\n" for number in range(1000))
    with secured(SHAPE, tmp_path_factory.mktemp("secure"), lines) as running:
        yield running


class SecuredSpark(SparkJob):
    """One whose addresses are asked with the ticket of this process."""

    def request(self, method: str, url: str, **named: Any) -> http_client.Response:
        assert isinstance(self.cluster, SecureCluster)
        with self.cluster.session() as session:
            if "/proxy/" in url:
                session.cookies.set(f"checked_{self.application}", "true")
                url += "?proxyapproved=true"
            told = session.request(method, url, headers={"Accept": "application/json"}, **named)
        told.raise_for_status()
        return told

    def working(self) -> int:
        return sum(each["isActive"] and each["id"] != "driver" for each in self.driver("allexecutors"))

    def driver_log(self) -> str:
        """Return what its driver said; in cluster mode that is its first container."""
        (log,) = self.cluster.folder.glob(f"nm-*/logs/{self.application}/container_*_01_000001/stderr")
        return log.read_text(errors="replace")


@pytest.mark.parametrize("login", ["ticket", "keytab"])
def test_executors_leave_for_production_and_come_back(
    cluster: SecureCluster, tmp_path: Path, plugin: str, monkeypatch: pytest.MonkeyPatch, login: str
) -> None:
    """With a ticket the driver has tokens alone; with a keytab it logs in by itself."""
    job = cluster.kdc.login(cluster.user, cluster.folder / "tickets-job")
    client = {**cluster.environment, **job}
    for name, value in cluster.kdc.login("yarnctl", cluster.folder / "tickets-yarnctl").items():
        monkeypatch.setenv(name, value)
    ours = {**cluster.environment, "YARNCTL_CA_FILE": str(cluster.ca_file)}
    by_keytab = (f"spark.kerberos.keytab={cluster.kdc.keytab}", f"spark.kerberos.principal={cluster.user}")
    daemon = Attached(cluster, tmp_path / "state", MIX)
    daemon.environment = ours
    spark = SecuredSpark(
        cluster, tmp_path / "spark", wrap=("--plugin", plugin), cluster_mode=True, executors=EXECUTORS,
        work=WORK, settings=GUARDED if login == "ticket" else (*GUARDED, *by_keytab),
        given=job if login == "ticket" else {"KRB5CCNAME": str(tmp_path / "none")},
    )  # fmt: skip

    def lowered() -> list[str]:
        told = json.loads(run_client(ours, YARNCTL, "restore", "-o", "json"))
        return [each["kind"] for each in told["settings"]]

    with daemon, spark:
        spark.until_marked("key", 17)  # the first tasks have finished, and tell how long others take
        quick = start(client, tmp_path / "quick", *production(cluster, f"production-{login}"))
        daemon.until(lambda: daemon.reached("granted"), "granted an executor's room")
        assert lowered() == ["executors"]
        assert quick.wait(PATIENCE_S) == 0, (tmp_path / "quick").read_text()[-3000:]
        daemon.until(lambda: grows(daemon), "told to grow")
        daemon.until(lambda: spark.working() == EXECUTORS, "as many executors as before")
        daemon.until(lambda: not lowered(), "nothing is lowered")
        rows = spark.driver("allexecutors")
        (spark.marks / "hurry").touch()
        assert spark.until_over() == expected_digest(WORK.program, WORK.maps, WORK.keys)
    left = {each["id"]: each["removeReason"] for each in rows if not each["isActive"]}
    assert left, rows
    assert all(map(left_well, left.values())), left
    assert all(map(was_drained, left.values())), "what ran again after these corrects the next charges"
    ended = re.findall(r"Completed container (\S+) .*exit status: (-?\d+)", spark.driver_log())
    assert {each.container for each in asked(daemon)} <= {container for container, _ in ended}, ended
    assert {status for _, status in ended} == {"0"}, "Spark counts any other as a failure"
    lost = [line for line in spark.driver_log().splitlines() if "Lost task" in line]
    assert all("FetchFailed" in line for line in lost), "those look for moved blocks, and do not count"
    assert spark.counted().maps_twice == 0
    assert "Traceback" not in daemon.said()
