"""A queue is held and put back through the emulator's REST, as in Hadoop; and answers carry a Date."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from emulator.live.programs.all_in_one import ClusterPlan
from tests import http_client
from tests.live.test_all_in_one import cluster
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import attach
from yarnctl.config import ClusterAddress
from yarnctl.daemon.queue_caps import QueueCaps
from yarnctl.deciding.model import Accepted, Change, ObservationRequest, Refused, Restore, SetQueueMaximum
from yarnctl.deciding.queue_hold import QueueLimits
from yarnctl.deciding.reasons.orders import Stopping
from yarnctl.deciding.records import Record
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import MANAGER_INFO, Transport

QUICK = CallLimits(connect_ms=4000, read_timeout_ms=10_000, answer_ms=20_000, retries=0)


def maximum_of(url: str) -> str:
    rows = http_client.get(f"{url}/ws/v1/cluster/scheduler-conf", timeout=30).json()["property"]
    name = "yarn.scheduler.capacity.root.research.maximum-capacity"
    return next(row["value"] for row in rows if row["name"] == name)


@pytest.mark.parametrize("mutable", [True, False])
def test_a_queue_is_held_at_its_guarantee_and_put_back(tmp_path: Path, mutable: bool) -> None:
    with cluster(tmp_path, ClusterPlan(nodes=1, processes=False)) as (client, whole):
        told = ClusterAddress(resource_managers=(client.url,), name_nodes=(client.url,), user="yarnctl")
        port = attach(
            told, Attachment(enforce=True, allow_queue_cap=True), lambda: time.time_ns() // 1_000_000
        )
        try:
            deadline_s = time.monotonic() + 60
            while (
                port.observe(ObservationRequest()).cluster == "unreachable" and time.monotonic() < deadline_s
            ):
                pass  # the first looks see whether its nodes stand still
            before = maximum_of(client.url)
            whole.site.scheduler_conf.mutable = mutable
            restorer = port.restorer
            caps = QueueCaps(port.queue_settings.limits, port.perform, ("root.research",), restorer)
            records = list[Record]()
            restorer.write = records.append
            caps.reconcile(records.append, 0, 1, True, None)
            if not mutable:
                assert "MutableConfScheduler" in str(port.queue_settings.limits("root.research"))
                assert (records, restorer.open) == ([], {})
                return
            assert port.queue_settings.limits("root.research") == ("root.research", QueueLimits(0.05, 0.05))
            assert maximum_of(client.url) == "5"
            restorer.stop(Stopping())
            assert maximum_of(client.url) == before
            assert restorer.open == {}, "read back"
            assert isinstance(port.perform(SetQueueMaximum("root.research", 0.0)), Refused)
            assert isinstance(port.perform(SetQueueMaximum("root.production", 1.0)), Refused)
            owned = Change("queue", "root.research", "0.535", "0.05")
            assert isinstance(port.perform(Restore(owned)), Accepted)
            assert maximum_of(client.url) == "53.5"
        finally:
            port.close()


def test_answers_carry_a_date_that_goes_on(tmp_path: Path) -> None:
    with cluster(tmp_path, ClusterPlan(nodes=1, processes=False)) as (client, _):
        for path in (MANAGER_INFO, "/conf", "/webhdfs/v1/?op=GETFILESTATUS&user.name=yarnctl", "/nowhere"):
            headers = http_client.get(client.url + path, timeout=30).headers
            assert abs(parsedate_to_datetime(headers["Date"]).timestamp() - time.time()) < 600, path
        seen = {http_client.get(client.url + MANAGER_INFO, timeout=30).headers["Date"]}
        deadline_s = time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < deadline_s:
            seen.add(http_client.get(client.url + MANAGER_INFO, timeout=30).headers["Date"])
        assert len(seen) == 2, "the Date stands still"
        with Transport([client.url], Identity(user="x"), QUICK) as manager:
            ahead = manager.ahead_ms(MANAGER_INFO, lambda: time.time_ns() // 1_000_000)
        assert ahead is not None
        assert abs(ahead) < 600_000
