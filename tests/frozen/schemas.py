"""Schemas as lines: what a JSON document may hold, a line for each place with its type.

Law: names of classes do not count, only places and types: a class may be renamed, split or moved. ``[]`` is
any item of a list, ``{}`` any value of an object whose keys are data, ``<tag>`` one kind of a tagged union.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Schema = Mapping[str, Any]
ANYTHING = {"description": "anything"}
NEEDED = " required"
LIMITS = (
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "pattern",
)  # fmt: skip


def lines_of(kind: object, *, sent: bool = False) -> dict[str, str]:
    schema = msgspec.json.schema(kind, schema_hook=lambda _: dict(ANYTHING))
    return lines(schema, schema.get("$defs", {}), sent=sent)


def lines(schema: Schema, definitions: Mapping[str, Schema], *, sent: bool = False) -> dict[str, str]:
    """Return place -> its types, and what else is promised of it.

    ``sent``: a caller or a user writes it, so what must be there stands in one line, and one thing more is a
    difference. Else each that is always there has a line of its own.
    """
    found: dict[str, set[str]] = {}
    for place, told in _walk(schema, definitions, "", ()):
        found.setdefault(place or ".", set()).add(told)
    joined = {place: "|".join(sorted(told)) for place, told in found.items()}
    if not sent:
        for place in [place for place in joined if place.endswith(NEEDED)]:
            names = joined.pop(place).split()
            joined |= {f"{place.removesuffix(NEEDED)}.{name} always": "yes" for name in names}
    return dict(sorted(joined.items()))


def _walk(
    schema: Schema, definitions: Mapping[str, Schema], place: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name:
        if name in above:
            yield place, "as above"
            return
        yield from _walk(definitions[name], definitions, place, (*above, name))
        if "default" in schema:
            yield f"{place} default", _text(schema["default"])
        return
    if "default" in schema:
        yield f"{place} default", _text(schema["default"])
    options = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    for each in options or ():
        tag = tag_of(each, definitions)
        yield from _walk(each, definitions, f"{place}<{tag}>" if tag else place, above)
    if not options:
        yield from _own(schema, definitions, place, above)


def _own(
    schema: Schema, definitions: Mapping[str, Schema], place: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a schema that is no union and no reference."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    for value in values:
        yield f"{place}={value}", "value"
    kind = schema.get("type", "value" if values else "any")
    words = [kind if isinstance(kind, str) else "|".join(kind), *(["of those named"] if values else ())]
    words += [f"{limit} {_text(_whole(schema[limit]))}" for limit in LIMITS if limit in schema]
    yield place, ", ".join(words)  # one leaf: a narrower one is a difference
    properties = schema.get("properties", {})
    for name, each in properties.items():
        yield from _walk(each, definitions, f"{place}.{name}", above)
    if properties:
        yield f"{place}{NEEDED}", " ".join(sorted(schema.get("required", ())))
    for number, each in enumerate(schema.get("prefixItems", ())):
        yield from _walk(each, definitions, f"{place}[{number}]", above)
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), Mapping):
            yield from _walk(schema[key], definitions, place + step, above)


def tag_of(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """Return the one value of a record's field ``type``; "" if it has no such field."""
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    kind = (definitions[name] if name else schema).get("properties", {}).get("type", {})
    values = kind.get("enum", [kind["const"]] if "const" in kind else [])
    return str(values[0]) if len(values) == 1 else ""


def _whole(limit: object) -> object:
    """Return a limit as it is written when it is a whole number."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def shape(value: Any) -> dict[str, str]:
    """Return the lines of a document as it is: every place that is there, with the types seen there."""
    found: dict[str, set[str]] = {}
    for place, kind in _seen(value, ""):
        found.setdefault(place or ".", set()).add(kind)
    return {place: "|".join(sorted(kinds)) for place, kinds in sorted(found.items())}


def _seen(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        yield place, "object"
        for name, each in value.items():
            yield from _seen(each, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        yield place, "array"
        for each in value:
            yield from _seen(each, f"{place}[]")
    else:
        yield (
            place,
            {bool: "boolean", int: "integer", float: "number", str: "string"}.get(type(value), "null"),
        )
