"""The targets are complete, and every command in them can be understood by its program."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import click
import pytest

from emulator.cli import PROGRAM as EMULATOR
from tests.acceptance.figures import STEP
from tests.acceptance.rows import ROOT, Row, complaints, expected_ids, load_rows
from yarnctl.cli import PROGRAM as YARNCTL
from yarnctl.errors import BadInput

ROWS = load_rows()
COMMANDS = sorted({words for row in ROWS for words in row.commands})
PROGRAMS = {"yarnctl": YARNCTL, "yarn-emulator": EMULATOR}


def commands_of(name: str) -> list[tuple[str, ...]]:
    """Return the commands that run a program."""
    return [words for words in COMMANDS if words[0] == name]


def test_every_row_that_was_asked_for_is_there():
    assert complaints(ROWS, expected_ids()) == []


def test_rows_stand_in_the_order_of_the_list():
    assert [row.id for row in ROWS] == expected_ids()


def test_nothing_of_this_issue_is_only_planned():
    assert [row.id for row in ROWS if row.issue == 3 and row.state == "planned"] == []


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "show" in row.id and row.figure], ids=lambda row: row.id
)
def test_a_row_with_figures_judges_at_least_one(row):
    assert any(figure.op is not None for figure in row.figure)
    for figure in row.figure:
        assert (figure.op is None) == (figure.bound is None)
        assert (figure.op == "within") == (figure.tolerance > 0)
        assert "".join(STEP.findall(figure.path)) == re.sub(r"\.(?![^\[]*\])", "", figure.path)


VALUED = ("-n", "--dist", "-m")
"""Options of pytest that the rows use and that take a word."""


def selections(words: Sequence[str]) -> list[str]:
    """Return what a pytest command selects: its words that are neither options nor their values."""
    pairs = pairwise(words)
    return [word for before, word in pairs if not word.startswith("-") and before not in VALUED]


@pytest.mark.parametrize(
    "path", sorted({path for words in commands_of("pytest") for path in selections(words)})
)
def test_every_selection_of_tests_exists(path):
    assert (ROOT / path.partition("::")[0]).exists()


@pytest.mark.parametrize(
    "words", commands_of("yarn-emulator") + commands_of("yarnctl"), ids=lambda words: " ".join(words)
)
def test_every_command_line_is_understood(words):
    group = PROGRAMS[words[0]]
    with group.make_context(words[0], list(words[1:])) as context:
        name, command, arguments = group.resolve_command(context, list(words[1:]))
        assert isinstance(command, click.Command), f"{words[0]} has no command {words[1]}"
        command.make_context(name, arguments, parent=context).close()


def test_every_other_program_is_one_that_a_checkout_has():
    assert {words[0] for words in COMMANDS} <= {"make", "pytest", "python", *PROGRAMS}


def test_what_is_wrong_with_rows_is_said():
    rows = [
        Row("3.a", 3, "A", "a"),
        Row("3.a", 4, "A", "a", state="planned"),
        Row("3.c", 3, "C", "c", command=["x"]),
    ]
    assert complaints(rows, ["3.a", "3.b"]) == [
        "row 3.b is absent",
        "row 3.a stands twice",
        "row 3.c is not in expected-ids.txt",
        "row 3.a has no command",
        "row 3.a belongs to another issue",
    ]


def test_a_mistake_in_the_file_is_bad_input(tmp_path):
    torn = tmp_path / "targets.toml"
    torn.write_text('[[row]]\nid = "3.a"\nissue = 3\ntitle = "A"\ntarget = "a"\ncomand = ["x"]\n')
    with pytest.raises(BadInput, match=r"targets\.toml: .*comand"):
        load_rows(torn)
