"""Requests are counted by server, address and result."""

from __future__ import annotations

import pytest

from tests.unit.hadoop.replaying import Replay, Reply, closed_port
from tests.unit.hadoop.test_transport import METRICS, metrics
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.http import transport
from yarnctl.hadoop.http.request_counts import RequestCounts


def test_each_request_counts_once_with_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = RequestCounts()  # of this test alone: the port of another test's server comes again
    monkeypatch.setattr(transport, "REQUESTS", counts)
    served: list[int] = []

    def reply(_: object) -> Reply:
        served.append([200, 404, 503][min(len(served), 2)])  # a 503 is asked again, and counts again
        return Reply(METRICS if served[-1] == 200 else "{}", status=served[-1])

    with Replay(reply) as rm:
        metrics(rm.url)
        for _ in range(2):
            with pytest.raises(YarnctlError):
                metrics(rm.url)
    down = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(YarnctlError):
        metrics(down)
    rows = counts.rows()
    address, dead = (url.removeprefix("http://") for url in (rm.url, down))
    assert rows["ResourceManager", address, "answered"].number == 1
    assert rows["ResourceManager", address, "rejected"].number == 1
    assert rows["ResourceManager", address, "failed"].number == 1
    assert rows["ResourceManager", dead, "failed"].number == 1
    assert rows["ResourceManager", address, "answered"].seconds > 0
