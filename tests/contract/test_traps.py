"""Every trap of the facts has a test, or a reason why it has none: ``traps.toml``.

An id is ``path::test`` (a parametrised test is named without its parameters). A test that was renamed or
deleted fails here, so that no trap loses its guard unseen.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = ("hadoop", "natjam")


def problems(entries: list[dict[str, Any]], root: Path = ROOT) -> list[str]:
    found: list[str] = []
    seen: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        where = f"trap {number} ({entry.get('section', '?')}: {str(entry.get('trap', '?'))[:60]})"
        found += [f"{where}: {what}" for what in wrong(entry, root)]
        text = " ".join(str(entry.get("trap", "")).lower().split())
        if text in seen:
            found.append(f"{where}: said already by {seen[text]}")
        seen[text] = where
    return found


def wrong(entry: dict[str, Any], root: Path) -> list[str]:
    unknown = set(entry) - {"section", "trap", "test", "reason"}
    if unknown:
        return [f"unknown keys {sorted(unknown)}"]
    found = [f"{key} is missing" for key in ("section", "trap") if not str(entry.get(key, "")).strip()]
    if str(entry.get("section", "")).split(" ")[0] not in SOURCES:
        found.append(f"the section begins with one of {', '.join(SOURCES)}")
    if "\n" in str(entry.get("trap", "")):
        found.append("a trap is one line")
    if ("test" in entry) == ("reason" in entry):
        return [*found, "give a test or a reason, and not both"]
    if "reason" in entry:
        return found if len(str(entry["reason"])) >= 20 else [*found, "a reason is a sentence"]
    ids = entry["test"] if isinstance(entry["test"], list) else [entry["test"]]
    return (
        found
        + [f"{one} does not exist" for one in ids if not exists(str(one), root)]
        + ([] if ids else ["no id"])
    )


def exists(name: str, root: Path) -> bool:
    """Whether a test of this id would be collected."""
    path, _, test = name.partition("::")
    file = root / path
    inside = path.startswith("tests/") and ".." not in path and file.name.startswith("test_")
    return inside and file.is_file() and test in named_in(file)


@functools.cache
def named_in(file: Path) -> frozenset[str]:
    """Return the tests of a file: functions, and methods as ``Class::method``."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(), str(file)).body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found |= {f"{node.name}::{one.name}" for one in node.body if is_test(one)}  # type: ignore[attr-defined]
        elif is_test(node):
            found.add(node.name)  # type: ignore[attr-defined]
    return frozenset(found)


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def entries() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads((HERE / "traps.toml").read_text())["trap"]
    return found


def test_every_trap_has_a_test_or_a_reason() -> None:
    assert problems(entries()) == []


def test_every_section_with_traps_is_there() -> None:
    sections = {str(one["section"]) for one in entries()}
    wanted = {"1.1", "1.2", "1.3", "1.4", "1.5", "2", "2.1", "2.2", "3", "4.1", "4.2", "4.3", "4.4", "4.5"}
    wanted |= {"5", "6", "7", "8", "9", "10", "11"}
    assert {f"hadoop {one}" for one in wanted} <= sections
    assert {"natjam 0", "natjam 2", "natjam 3", "natjam 5"} <= sections


GOOD = {
    "section": "hadoop 1.1",
    "trap": "one",
    "test": "tests/contract/test_traps.py::test_every_trap_has_a_test_or_a_reason",
}
WHY = "it is not used by anybody here"


@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ({"test": "tests/contract/test_traps.py::test_that_was_renamed"}, "does not exist"),
        ({"test": "tests/contract/test_gone.py::test_it"}, "does not exist"),
        ({"test": "tests/contract/test_traps.py::problems"}, "does not exist"),
        ({"test": [GOOD["test"], "tests/contract/test_traps.py::test_no"]}, "test_no does not exist"),
        (
            {"test": "tests/../tests/contract/test_traps.py::test_every_section_with_traps_is_there"},
            "does not exist",
        ),
        ({"test": []}, "no id"),
        ({"test": GOOD["test"], "reason": WHY}, "not both"),
        ({}, "a test or a reason"),
        ({"reason": "no"}, "a sentence"),
        ({"reason": WHY, "trap": ""}, "trap is missing"),
        ({"reason": WHY, "section": "paper 1"}, "begins with"),
        ({"reason": WHY, "tests": "x"}, "unknown keys"),
        ({"reason": WHY, "trap": " ONE"}, "said already"),
    ],
)
def test_what_is_planted_is_found(planted: dict[str, Any], said: str) -> None:
    assert problems([GOOD, {"section": "hadoop 1.1", "trap": "two", "reason": WHY}]) == []
    told = problems([GOOD, {"section": "hadoop 1.1", "trap": "two", **planted}])
    assert any(said in one for one in told), told
