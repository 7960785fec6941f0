"""The OpenAPI document as generators and readers need it: short ids, examples, nothing that is dropped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema_rs  # of schemathesis
import pytest
from pydantic import ValidationError

from tests.service.generated_client import document, generate, modules, operations
from yarnctl.service.routes.admissions import AdmissionRequest


def test_a_generated_client_has_every_operation(tmp_path: Path) -> None:
    generate(tmp_path)
    assert modules(tmp_path).keys() == operations().keys()


def test_operation_ids_are_short_and_unique() -> None:
    told = [each["operationId"] for methods in document()["paths"].values() for each in methods.values()]
    assert len(set(told)) == len(told)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+){0,2}", each) and len(each) < 22 for each in told), told


def test_every_body_and_every_part_of_a_path_has_an_example() -> None:
    schemas: dict[str, Any] = document()["components"]["schemas"]
    for methods in document()["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                assert parameter["in"] != "path" or parameter["schema"]["examples"], operation["operationId"]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for reference in re.findall(r"#/components/schemas/(\w+)", str(body)):
                assert schemas[reference]["examples"], reference


TIMES: tuple[dict[str, Any], ...] = ({"deadline_ms": 1}, {"budget_mtokens": 1}, {})
SIZES: tuple[dict[str, Any], ...] = ({"queue": "q", "containers": 1}, {"options": []}, {"queue": "q"}, {})


@pytest.mark.parametrize("time", TIMES, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_document_rejects_what_the_daemon_rejects(time: dict[str, int], size: dict[str, Any]) -> None:
    whole = document()
    wanted = {"name": "a", "user": "ann", **time, **size}
    schema = {**whole["components"]["schemas"]["AdmissionRequest"], "components": whole["components"]}
    described = jsonschema_rs.is_valid(schema, wanted)
    try:
        AdmissionRequest.model_validate(wanted)
        accepted = True
    except ValidationError:
        accepted = False
    assert described == accepted
