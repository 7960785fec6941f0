"""The whole story over HTTP: production waits, a reduce is asked, saved, released, and the room granted."""

from __future__ import annotations

import json

import pytest

from tests.frozen.attached_stories import PATHS
from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster, application, attempt, container
from yarnctl.deciding.controller import Controller
from yarnctl.journal.chain import MemoryJournal
from yarnctl.loop import tick
from yarnctl.units import Resources


@pytest.fixture(params=[False, True], ids=["natural", "mapped"])
def cluster(request):
    with FakeCluster(mapped=request.param) as fake:
        fake.nodes = {
            "n1:1": Resources(2048, 2),
            "n2:1": Resources(2048, 2),
        }
        fake.research(1, ["n1:1", "n1:1", "n2:1", "n2:1"])
        yield fake


def production(fake: FakeCluster, count: int = 1) -> App:
    return fake.add(
        App(2, "production", state="ACCEPTED", user="bob", asks=[(0, SLOT, count)],
            submitted_at_ms=fake.now_ms)
    )  # fmt: skip


def run(fake, controller, port, journal, until, ticks: int = 40) -> None:
    for _ in range(ticks):
        fake.now_ms = max(fake.now_ms, tick(controller, port, journal))
        if until():
            return
    raise AssertionError(f"it never came to that: {port.notes} {port.why_not} {port.last_problem}")


def states(controller: Controller) -> list[str]:
    orders = {**controller.ledger.settled, **controller.ledger.open}
    return [order.state for order in orders.values()]


def test_suspend_release_grant(cluster):
    journal = MemoryJournal()
    port, controller = cluster.port(), Controller(PATHS, validate=True)
    run(cluster, controller, port, journal, lambda: True)
    assert not cluster.changes  # nobody hurried waits
    requester = production(cluster)
    run(cluster, controller, port, journal, lambda: cluster.changes)
    assert states(controller) == ["suspending"]
    (order,) = controller.ledger.open.values()
    assert cluster.changes == [f"OUTPUT_THREAD_DUMP {order.container}"]
    place = int(order.attempt.split("_")[4])
    path = f"/yarnctl/requests/job_{order.attempt[8:26]}/{order.attempt}/{order.order}.request.json"
    assert json.loads(cluster.hdfs.files[path]) == {
        "schema": 1, "order": order.order, "attempt": order.attempt, "generation": 1
    }  # fmt: skip
    assert cluster.hdfs.owners[path[: -len(".request.json")].rpartition("/")[0]] == ("yarnctl", "755")

    cluster.save(1, place, order.order)
    run(cluster, controller, port, journal, lambda: states(controller) == ["freed"])
    assert cluster.changes[1:] == [f"KILL {order.attempt}"]
    requester.containers[container(2, 1)] = (order.node, 0)
    requester.asks, requester.state = [], "RUNNING"
    run(cluster, controller, port, journal, lambda: "granted" in states(controller))
    assert cluster.changes[1:] == [f"KILL {order.attempt}"]
    assert order.victim == application(1)
    assert order.attempt == attempt(1, place)
