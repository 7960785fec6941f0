"""The service's interface: every operation with its parameters, body and answers, as its document says.

Law: read from the OpenAPI document; prose and names of schemas are left out, because no caller depends on
them. All that a caller must send stands in one line: one thing more is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.frozen.schemas import lines
from tests.unit.service.played import busy
from yarnctl.service.app import make_app
from yarnctl.service.security.middleware import PAGE_FILES

ROOT = Path(__file__).parents[2]
JSON = "application/json"
MAKING = r"""(?<!class )\b(?:ApiProblem|Refusal|RefusedRequest|body|_refuse)\([^"'()]{0,40}"""
CODE = re.compile(rf"""(?:{MAKING}|\b\d{{3}}: \()["']([a-z]+(?:-[a-z]+)*)["']""")


def interface() -> dict[str, Any]:
    """Return all operations, the addresses that are not described, the body and the codes of errors."""
    document = make_app(busy).openapi()
    other = dict.fromkeys(("/openapi.json", *PAGE_FILES), True)
    return {**operations(document), "other_addresses": other, "codes": codes()}


def operations(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return every operation of an OpenAPI document, and the body that its errors have."""
    definitions = document["components"]["schemas"]
    told = {
        f"{method.upper()} {path}": operation(each, definitions)
        for path, methods in document["paths"].items()
        for method, each in methods.items()
    }
    common = next(body for each in told.values() for body in each["answers"].values() if is_error(body))
    for each in told.values():
        each["errors"] = {status: True for status, body in each["answers"].items() if is_error(body)}
        each["answers"] = {status: body for status, body in each["answers"].items() if body != common}
    return {"operations": told, "error_body": common}


def is_error(answer: Mapping[str, Any]) -> bool:
    return ".error.code" in answer.get(JSON, {})


def operation(told: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    parameters = {f"{each['in']} {each['name']}": each for each in told.get("parameters", ())}
    required = [name for name, each in parameters.items() if each.get("required")]
    answers = told["responses"].items()
    found: dict[str, Any] = {
        "id": told["operationId"],
        "parameters": {
            name: lines(each["schema"], definitions, sent=True) for name, each in parameters.items()
        },
        "required": " ".join(sorted(required)),
        "answers": {status: contents(each.get("content", {}), definitions) for status, each in answers},
    }
    if "requestBody" in told:
        found["body"] = contents(told["requestBody"]["content"], definitions, sent=True)
    return found


def contents(
    content: Mapping[str, Any], definitions: Mapping[str, Any], *, sent: bool = False
) -> dict[str, Any]:
    return {kind: lines(each.get("schema", {}), definitions, sent=sent) for kind, each in content.items()}


def codes() -> dict[str, bool]:
    """Return the codes of errors that the service's and the daemon's source names."""
    found: set[str] = set()
    for path in sorted((ROOT / "yarnctl").rglob("*.py")):
        found.update(CODE.findall(path.read_text(encoding="utf-8")))
    return dict.fromkeys(sorted(found), True)
