"""Priorities are restored by the order of grants: what waits for its master, and which starts first.

One node, of which a holder leaves too little for another application. Three applications of one queue wait,
in this order of submission: ``old`` (priority 0), ``high`` (3) and ``new`` (0). YARN would start ``high``
first. yarnctl raises ``new`` to 5 and lowers ``high`` to 0. An operator then sets ``new`` to 0: ``/apps``
shows it, and the scheduler still grants by 5. yarnctl restores both. The holder ends, and one can start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests import http_client
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import AttachedPort, attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.model import Accepted, ObservationRequest, SetPriority
from yarnctl.deciding.reasons.orders import DemandOver

NODE_MIB, HOLDER_MIB, WAITING_MIB = 1024, 768, 768
QUEUE = "research"
RESTORED_WITHIN_S = 60.0
PATIENCE_S = 120.0


class GrantOrder:
    """The applications on a cluster of one node of ``NODE_MIB``. ``launch``: their am-container-spec."""

    def __init__(self, url: str, launch: Mapping[str, Any]) -> None:
        self.url = f"{url}/ws/v1/cluster"
        self._launch = launch
        self.holder = self._submit("holder", HOLDER_MIB, 0)
        until(lambda: self.row(self.holder)["allocatedMB"] == HOLDER_MIB, "the holder holds its node")
        self.old, self.high, self.new = (
            self._submit(name, WAITING_MIB, priority)
            for name, priority in (("old", 0), ("high", 3), ("new", 0))
        )
        self.names = {self.old: "old", self.high: "high", self.new: "new"}
        until(lambda: {self.row(one)["state"] for one in self.names} == {"ACCEPTED"}, "three wait")

    def _submit(self, name: str, mib: int, priority: int) -> str:
        answer = http_client.post(f"{self.url}/apps/new-application?user.name=alice", json={}, timeout=60)
        application = str(answer.json()["application-id"])
        context = {
            "application-id": application,
            "application-name": name,
            "queue": QUEUE,
            "priority": priority,
            "resource": {"memory": mib, "vCores": 1},
            "am-container-spec": self._launch,
        }
        http_client.post(f"{self.url}/apps?user.name=alice", json=context, timeout=60).raise_for_status()
        return application

    def row(self, application: str) -> Mapping[str, Any]:
        """Return an application as ``/apps`` shows it."""
        found: Mapping[str, Any] = self._get(f"apps/{application}")["app"]
        return found

    def set_by_hand(self, application: str, priority: int) -> None:
        """Set a priority with one request, as an operator would."""
        path = f"{self.url}/apps/{application}/priority?user.name=alice"
        http_client.put(path, json={"priority": priority}, timeout=60).raise_for_status()

    def granted_by(self) -> dict[str, int]:
        """Return name -> the scheduler's priority, of the waiting applications that a heartbeat looked at."""
        (node,) = self._get("nodes")["nodes"]["node"]
        path = f"scheduler/activities?nodeId={node['id']}"
        before = self._get(path)["activities"].get("timestamp")
        told: dict[str, Any] = {}

        def is_new() -> bool:
            told.update(self._get(path)["activities"])
            return bool(told.get("allocations")) and told.get("timestamp") != before

        until(is_new, "a heartbeat is recorded")
        elements = [each for one in told["allocations"] for each in _walk(one["root"])]
        return {self.names[one["name"]]: one["appPriority"] for one in elements if one["name"] in self.names}

    def started_first(self) -> str:
        """End the holder; return the name of the application that gets the free room."""
        path = f"{self.url}/apps/{self.holder}/state?user.name=alice"
        http_client.put(path, json={"state": "KILLED"}, timeout=60).raise_for_status()
        started: list[str] = []

        def has_started() -> bool:
            started[:] = [name for one, name in self.names.items() if self.row(one)["allocatedMB"] > 0]
            return bool(started)

        until(has_started, "one starts")
        assert len(started) == 1, started
        return started[0]

    def _get(self, path: str) -> dict[str, Any]:
        answer = http_client.get(f"{self.url}/{path}", headers={"Accept": "application/json"}, timeout=60)
        found: dict[str, Any] = answer.json()
        return found


def _walk(element: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield element
    for child in element.get("children", ()):
        yield from _walk(child)


def until(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Wait for a condition; AssertionError if it does not come."""
    end_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end_s, f"not within {within_s:.0f} s: {what}"
        time.sleep(0.2)


def attached(rm_url: str, hdfs_url: str) -> AttachedPort:
    """Return a port that may set priorities, and has seen the cluster."""
    address = ClusterAddress(resource_managers=(rm_url,), name_nodes=(hdfs_url,), user="yarnctl")
    settings = Attachment(
        enforce=True, allow_priority=True, preempting_queues=("production",), preemptable_queues=(QUEUE,)
    )
    port = attach(address, settings, lambda: time.time_ns() // 1_000_000)
    until(lambda: port.observe(ObservationRequest()).cluster != "unreachable", "the cluster is observed")
    return port


def play(rig: GrantOrder, rm_url: str, hdfs_url: str) -> None:
    """Change, let the fault happen, restore, and look what the scheduler grants by and what starts first."""
    assert rig.granted_by().get("high") == 3
    port = attached(rm_url, hdfs_url)
    try:
        for application, priority in ((rig.new, 5), (rig.high, 0)):
            assert port.perform(SetPriority(application, priority)) == Accepted()
        assert rig.granted_by().get("new") == 5
        rig.set_by_hand(rig.new, 0)
        assert rig.row(rig.new)["priority"] == 0
        assert rig.granted_by().get("new") == 5, "the fault of the scheduler that this test is about"
        port.restorer.make_due(DemandOver())

        def is_restored() -> bool:
            port.restore_due()
            return not port.restorer.open

        until(is_restored, "both are restored", RESTORED_WITHIN_S)
        assert {name: rig.row(one)["priority"] for one, name in rig.names.items()} == {
            "old": 0, "high": 3, "new": 0,
        }  # fmt: skip
        assert rig.granted_by().get("high") == 2, "one level off"
        assert rig.started_first() == "high"
    finally:
        port.close()
