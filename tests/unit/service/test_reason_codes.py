"""Reasons in answers of the API: a code for programs stands beside a reason's text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import msgspec

import yarnctl.api
from yarnctl.api.paged import ReasonOut
from yarnctl.journal.explaining import story

TEXTS = ("why", "why_not", "reason")


def answers() -> Iterator[type[msgspec.Struct]]:
    """Yield every struct that the API's modules declare, and the stories of an explanation."""
    found = [
        importlib.import_module(f"yarnctl.api.{each.name}")
        for each in pkgutil.iter_modules(yarnctl.api.__path__)
    ]
    for module in (*found, story):
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__:
                yield kind


def lacks_code(kind: type[msgspec.Struct]) -> bool:
    """Say whether a struct tells a reason in words alone."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    if not any(fields.get(name) is str for name in TEXTS):
        return False
    return fields.get("reason") != ReasonOut | None and fields.get("reason_code") is not str


def test_every_reason_in_an_answer_has_a_code() -> None:
    told = [kind for kind in answers() if any(name in kind.__struct_fields__ for name in TEXTS)]
    assert len(told) >= 10  # the walk sees them
    assert [kind.__name__ for kind in told if lacks_code(kind)] == []


def test_a_reason_in_words_alone_is_found() -> None:
    class Planted(msgspec.Struct):
        why: str

    assert lacks_code(Planted)
