"""Requests with a placement constraint and for opportunistic containers: left alone, with their reason."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.attach.fake_cluster import SLOT, FakeCluster, application
from tests.unit.attach.test_labels import ordered_on, published, refusals, shot
from yarnctl.deciding.model import ContainerRequest
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.hadoop.wire import views, yarn
from yarnctl.journal.file import read
from yarnctl.journal.rendering import text
from yarnctl.journal.replay import replay
from yarnctl.service.answers.explanations import everything_about
from yarnctl.service.answers.from_view import applications

TAGGED = {"resourceName": None, "allocationTags": ["hbase"]}
CONSTRAINED = TAGGED | {"placementConstraint": "notin,node,hbase"}
OPPORTUNISTIC = {"executionTypeRequest": {"executionType": "OPPORTUNISTIC", "enforceExecutionType": True}}
PLAIN = {"executionTypeRequest": {"executionType": "GUARANTEED", "enforceExecutionType": False}}
KINDS = [
    pytest.param(CONSTRAINED, NotModelled(constrained=True), id="constrained"),
    pytest.param(TAGGED, NotModelled(constrained=True), id="tagged"),
    pytest.param(OPPORTUNISTIC, NotModelled(opportunistic=True), id="opportunistic"),
]
"""The fields of a request's row (ResourceRequestInfo) that 3.1 and later show, and the reason."""


@pytest.mark.parametrize(("fields", "why"), KINDS)
def test_a_request_is_left_alone_with_its_reason(
    cluster: FakeCluster, fields: dict[str, Any], why: NotModelled, caplog: Any
) -> None:
    cluster.apps[application(2)].ask_fields = [fields]
    snapshot, found = shot(cluster)
    assert found[application(2)].requests == ()
    assert snapshot.left_out == {application(2): why}
    [refusal] = refusals(cluster)
    assert (refusal.trigger.application, refusal.trigger.shortfall, refusal.why) == (application(2), 0, why)
    assert not cluster.changes
    assert "yarnctl ignores these requests" in caplog.text


@pytest.mark.parametrize(("fields", "why"), KINDS)
def test_explain_and_apps_show_the_reason(
    cluster: FakeCluster, fields: dict[str, Any], why: NotModelled
) -> None:
    cluster.apps[application(2)].ask_fields = [fields]
    view = published(cluster)
    [shown] = [each for each in applications(view) if each.application == application(2)]
    assert shown.left_out is not None
    assert (shown.pending, shown.left_out.code, shown.left_out.text) == (0, "not-modelled", text(why))
    [now] = [line for line in everything_about(view, application(2)).rendered if line.startswith("now")]
    assert text(why) in now


@pytest.mark.parametrize(("fields", "why"), KINDS)
def test_the_other_requests_of_the_application_are_served(
    cluster: FakeCluster, fields: dict[str, Any], why: NotModelled, tmp_path: Any
) -> None:
    waiting = cluster.apps[application(2)]
    waiting.asks, waiting.ask_fields = [(5, SLOT, 3), (10, SLOT, 1)], [fields, PLAIN]
    snapshot, found = shot(cluster)
    assert found[application(2)].requests == (ContainerRequest(10, SLOT, 1),)
    assert snapshot.left_out == {application(2): why}
    _, controller, journal = ordered_on(cluster)
    assert [order.requester for order in controller.ledger.open.values()] == [application(2)]
    path = tmp_path / "journal"
    path.write_bytes(journal.encoded())
    replay(read(path, closed=True), str(path))


def test_a_scheduling_request_does_not_make_its_application_unreadable() -> None:
    """It has no resourceName, or null; a list of one is its element in some versions."""
    for name in ("", '"resourceName": null,'):
        body = (
            '{"app": {"id": "application_1_1", "resourceRequests": {NAME "priority": 1, "numContainers": "2",'
            ' "capability": {"memory": 5, "vCores": 1}, "allocationTags": "a"}}}'
        ).replace("NAME", name)
        row = yarn.APPLICATION.read(body.encode())
        assert views.requested(row) == views.Requested({}, NotModelled(constrained=True))
        assert not views.names_hosts(row)


def test_all_reasons_of_an_application_are_one() -> None:
    first = views.not_modelled(("gpu",), (), constrained=True)
    both = views.merged(first, views.not_modelled((), ("fpga",), opportunistic=True))
    assert both == NotModelled(("gpu",), ("fpga",), constrained=True, opportunistic=True)
    assert text(both) == (
        "no container is freed for some requests; the queue has no capacity of node labels: gpu; yarnctl does"
        " not model resource types: fpga; yarnctl does not model placement constraints; yarnctl does not"
        " model opportunistic containers"
    )
