"""A priority is restored when the scheduler's records of heartbeats say so, not only ``/apps``."""

from __future__ import annotations

import pytest

from tests.unit.attach.fake_cluster import SLOT, App, FakeCluster
from tests.unit.hadoop.replaying import Reply
from tests.unit.hadoop.test_activities import FULL, answer, element
from yarnctl.attach.orders.reversible import SEEN_WITHIN_MS
from yarnctl.attach.port import AttachedPort
from yarnctl.deciding.model import Accepted, ObservationRequest, SetPriority
from yarnctl.deciding.reasons.orders import Stopping


def raised(cluster: FakeCluster, *, is_named: bool = True) -> tuple[AttachedPort, App]:
    """An application that waits was raised to 5 and is shown with 0 since, by a request of others.

    ``is_named``: heartbeats look at it.
    """
    app = cluster.add(App(9, "research", asks=[(10, SLOT, 1)], state="ACCEPTED"))

    def answered(query: dict[str, str]) -> dict:
        mine = element(app.id, "SKIPPED") | {"appPriority": app.served_priority}
        told = answer(
            "SKIPPED", element("root", "SKIPPED", "", element("root.research", "SKIPPED", "", mine))
        )
        told = told if is_named else FULL
        told["activities"] |= {"nodeId": query["nodeId"], "timestamp": cluster.now_ms}
        return told

    cluster.activities = answered
    cluster.nodes["free:1"] = SLOT
    port = cluster.port(allow_priority=True)
    assert port.observe(ObservationRequest()).cluster == "seen"
    assert port.perform(SetPriority(app.id, 5)) == Accepted()
    app.priority = 0
    assert app.served_priority == 5
    port.restorer.make_due(Stopping())
    return port, app


def passed(cluster: FakeCluster, port: AttachedPort, until_ms: int) -> int:
    """Restore each second until nothing is open; return the time that it took, at most ``until_ms``."""
    began_ms = cluster.now_ms
    while port.restorer.open and cluster.now_ms - began_ms < until_ms:
        port.restore_due()
        cluster.now_ms += 1_000
    return cluster.now_ms - began_ms


def test_restore_due_repeats_the_requests_until_the_scheduler_grants_by_the_value(cluster: FakeCluster):
    port, app = raised(cluster)
    assert passed(cluster, port, 60_000) <= 20_000
    assert (app.priority, app.served_priority, port.restorer.open) == (0, 1, {})


def test_restore_due_confirms_a_value_that_was_set_by_its_neighbour_with_one_restore(cluster: FakeCluster):
    port, app = raised(cluster)
    app.priority = 5
    passed(cluster, port, 60_000)
    assert cluster.changes == [f'PRIORITY {app.id} {{"priority":{priority}}}' for priority in (5, 1, 0)]
    assert port.restorer.open == {}


def test_restore_due_of_an_application_that_no_record_names_ends_by_what_apps_shows(cluster: FakeCluster):
    port, app = raised(cluster, is_named=False)
    assert SEEN_WITHIN_MS <= passed(cluster, port, 60_000) <= 3 * SEEN_WITHIN_MS
    assert (app.served_priority, port.restorer.open) == (5, {})


@pytest.mark.parametrize("lack", ["request", "node", "records"])
def test_restore_due_without_a_possible_record_ends_at_once_by_what_apps_shows(
    cluster: FakeCluster, lack: str
):
    port, app = raised(cluster)
    if lack == "request":
        app.asks.clear()
    elif lack == "node":
        for node in list(cluster.nodes):
            cluster.nodes[node] = SLOT
            cluster.research(20 + len(cluster.apps), [node])
    else:
        cluster.break_("GET .*/scheduler/activities", Reply("", 404))
    assert passed(cluster, port, 60_000) == 1_000
    assert cluster.changes == [f'PRIORITY {app.id} {{"priority":5}}']


def test_stop_ends_by_what_apps_shows_if_no_record_is_there_yet(cluster: FakeCluster):
    port, app = raised(cluster)
    app.priority = 5
    port.restorer.stop(Stopping())
    assert (app.priority, app.served_priority, port.restorer.open) == (0, 1, {})
