"""One shape on the wire: what the service encodes is what the command line's structs decode, all of it.

The claim: each answer, decoded into its struct and encoded again, is the same bytes. A field that the struct
does not have, another order, another name or a number below its bound is a difference or an error.
"""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec
import pytest
from fastapi.responses import PlainTextResponse
from fastapi.routing import APIRoute

from tests.unit.daemon.at_the_desk import AtTheDesk
from tests.unit.service.conftest import TOKEN, Served
from tests.unit.service.played import busy, last
from yarnctl.api.admission_answers import AdmissionOut, AdmissionPage
from yarnctl.api.cluster_answers import (
    Application,
    Commanded,
    Health,
    Loop,
    OccupancySample,
    Queue,
    Readiness,
    SnapshotOut,
)
from yarnctl.api.decision_answers import DecisionDetail, Explained, RefusalOut
from yarnctl.api.order_answers import CheckpointOut, DecisionSummary, ReclaimList
from yarnctl.api.paged import Count, ErrorBody, Page, Size
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.deciding.admission.records import Estimate
from yarnctl.service.answers.describing import AnswerRoute, described, may_lack
from yarnctl.service.answers.instants import instant_name
from yarnctl.service.routes.admissions import admission_routes
from yarnctl.service.routes.health import state_routes, writing_routes
from yarnctl.service.routes.lists import reading_routes
from yarnctl.service.security.tokens import Tokens
from yarnctl.units import decode_vector

PRODUCTION = "application_1_000002"
READ: list[tuple[str, Any]] = [
    ("/healthz", Health), ("/readyz", Readiness), ("/v1/snapshot", SnapshotOut),
    ("/v1/applications", Page[Application]), ("/v1/reclaims?retired=true", Page[ReclaimList]),
    (f"/v1/reclaims/{PRODUCTION}", ReclaimList), ("/v1/decisions", Page[DecisionSummary]),
    ("/v1/decisions/2", DecisionDetail), ("/v1/refusals", Page[RefusalOut]),
    ("/v1/checkpoints", Page[CheckpointOut]), ("/v1/occupancy", Page[OccupancySample]),
    (f"/v1/explanations/{PRODUCTION}", Explained), ("/v1/admissions", AdmissionPage),
]  # fmt: skip
MISSING = ("/v1/reclaims/application_9", "/v1/decisions/4711", "/v1/explanations/nobody", "/v1/nothing")


def same_bytes(content: bytes, kind: Any) -> bool:
    """Say whether a struct holds all that an answer says, in its order."""
    return msgspec.json.encode(msgspec.json.decode(content, type=kind, dec_hook=decode_vector)) == content


@pytest.mark.parametrize(("address", "kind"), READ)
@pytest.mark.parametrize("view", ["busy", "last"])
def test_what_is_read_is_its_struct(served: Served, address: str, kind: Any, view: str) -> None:
    served.view = busy() if view == "busy" else last()
    answer = served.answer(address)
    assert answer.status_code == 200, answer.text
    assert same_bytes(answer.content, kind)


def test_before_the_first_look_answers_are_their_structs_too(served: Served) -> None:
    served.view = View(version=0, now_ms=0, loop=LoopStatus())
    for address, kind in READ:
        answer = served.answer(address)
        if answer.status_code != 200:
            kind = ErrorBody
        assert same_bytes(answer.content, kind), address


def test_what_is_commanded_is_answered_with_its_struct(served: Served) -> None:
    told = {"Authorization": f"Bearer {TOKEN}"}
    for command in ("loop/pause", "loop/continue", "queues/production/resume"):
        answer = served.answer(f"/v1/{command}", "POST", headers=told)
        assert answer.status_code == 202
        assert same_bytes(answer.content, Commanded)


def test_errors_have_one_body(served: Served) -> None:
    for address in MISSING:
        answer = served.answer(address)
        assert answer.status_code == 404
        assert same_bytes(answer.content, ErrorBody)


def test_admissions_are_their_structs(served: Served) -> None:
    there = AtTheDesk("justice")
    known = there.ask(3, estimate=Estimate(180_000, 9_000, "history:3 runs of job"))
    there.ask(4)
    there.submit(known)
    there.go(2_000)
    served.view = View(version=1, now_ms=there.now_ms, loop=LoopStatus(), admission=there.desk.shown())
    assert same_bytes(served.answer("/v1/admissions").content, AdmissionPage)
    one = served.answer(f"/v1/admissions/{known.admission}").content
    assert same_bytes(one, AdmissionOut)
    assert msgspec.json.decode(one, type=AdmissionOut).request.estimate is not None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b'{"vcores":1,"memory_mib":2}', "another order"),
        (b'{"memory_mib":2,"vcores":1,"disks":1}', "a field more"),
    ],
)
def test_a_difference_is_seen(said: bytes, why: str) -> None:
    assert not same_bytes(said, Size), why
    with pytest.raises(msgspec.ValidationError):
        same_bytes(b'{"memory_mib":2}', Size)


# --- described ----------------------------------------------------------------------------------------


def operations() -> list[APIRoute]:
    """Return the routes of all addresses under /v1, and of the watchers."""
    view = busy()
    routers = [
        state_routes(lambda: view, lambda: 0, 1),
        reading_routes(lambda: view, None),
        writing_routes(lambda: view, Tokens(), None),
        admission_routes(lambda: view, Tokens(), None),
    ]
    return [route for router in routers for route in router.routes if isinstance(route, APIRoute)]


def test_every_operation_but_the_metrics_is_made_of_its_struct() -> None:
    kinds = {route.path: get_type_hints(route.endpoint)["return"] for route in operations()}
    for route in operations():
        if kinds[route.path] is not PlainTextResponse:
            assert isinstance(route, AnswerRoute), route.path
            assert route.response_model is described(get_type_hints(route.endpoint)["return"]), route.path
    assert [path for path, kind in kinds.items() if kind is PlainTextResponse] == ["/metrics"]
    assert len(kinds) > 15


def test_the_document_has_the_structs_names_and_order() -> None:
    for kind, name in (
        (Page[ReclaimList], "ReclaimPage"),
        (AdmissionPage, "AdmissionPage"),
        (Loop, "Loop"),
        (Estimate, "EstimateOut"),
        (Explained, "Explained"),
    ):
        schema = described(kind).model_json_schema(mode="serialization")
        names = [field.encode_name for field in msgspec.structs.fields(kind)]
        optional = {field.name for field in msgspec.structs.fields(kind) if may_lack(kind, field)}
        required = [each for each in names if each not in optional]
        shown = [each for each in schema["properties"] if each not in map(instant_name, names)]
        assert (schema["title"], shown, schema["required"]) == (name, names, required)
        assert optional == ({"given_by", "phases"} if kind is Estimate else set())


def test_constraints_and_roles_are_described() -> None:
    schema = described(Queue).model_json_schema()
    assert schema["properties"]["role"]["enum"] == ["preempting", "preemptable", "other"]
    assert schema["properties"]["containers"]["minimum"] == 0
    assert schema["additionalProperties"] is False
    assert "additionalProperties" not in described(Explained).model_json_schema()


class Told(msgspec.Struct):
    """One number."""

    number: Count


def told() -> Told:
    return Told(3)


def test_a_route_that_is_made_a_second_time_encodes_once() -> None:
    """A router that is included may make its routes again, from the function that it has by then."""
    first = AnswerRoute("/told", told)
    second = AnswerRoute("/told", first.endpoint)
    assert first.endpoint().body == second.endpoint().body == b'{"number":3}'
    assert first.response_model is second.response_model is described(Told)
