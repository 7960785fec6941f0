"""The trial's table: each line is mended, answered or open, and each test that it names is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.acceptance.trial import ROOT, Line, lines


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    functions = {
        node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)
    }
    return not name or name in functions


@pytest.mark.parametrize("line", lines(), ids=lambda line: line.says[:60])
def test_each_line_names_tests_that_are_there(line: Line) -> None:
    assert all(map(is_there, line.tests))
    assert bool(line.tests) is (line.state != "open")
    assert bool(line.why) is (line.state == "answered")


def test_a_test_that_is_not_there_is_found_out() -> None:
    here = f"tests/acceptance/{Path(__file__).name}"
    assert is_there(f"{here}::test_a_test_that_is_not_there_is_found_out")
    assert not is_there(f"{here}::test_of_nothing")
    assert not is_there("tests/acceptance/test_nothing.py")


def test_no_line_stands_twice() -> None:
    said = [line.says for line in lines()]
    assert len(set(said)) == len(said) >= 25
