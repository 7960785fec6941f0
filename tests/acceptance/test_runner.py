"""The runner: paths into JSON, rules, verdicts, what it writes and with which exit status."""

from __future__ import annotations

import json

import pytest

from tests.acceptance import __main__ as runner
from tests.acceptance.figures import NotFound, find, holds, text_of, value_of
from tests.acceptance.rows import Figure, Row
from tests.acceptance.running import Commands, Result, run_row, summary
from tests.acceptance.table import BEGIN, END, with_table
from yarnctl.errors import BadInput

PAPER = {
    "figures": [
        {
            "figure": "4",
            "rows": [{"relative_error": 0.01}, {"relative_error": None}],
            "claims": [{"holds": True}],
        },
        {
            "figure": "5",
            "rows": [{"relative_error": -0.03}],
            "claims": [{"holds": False, "profile": "default"}],
        },
    ],
    "mean": 0.02,
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("mean", [0.02]),
        ("figures.1.figure", ["5"]),
        ("figures.*.figure", ["4", "5"]),
        ("figures.[figure=5|6].rows.*.relative_error", [-0.03]),
        ("figures.*.claims.[profile!=default].holds", [True]),
        ("figures.[figure=9].rows", []),
    ],
)
def test_a_path_leads_through_json(path, found):
    assert find(PAPER, path) == found


@pytest.mark.parametrize("path", ["median", "figures.7", "mean.x", "figures.*.rows.*.absolute_error"])
def test_a_path_that_leads_nowhere_is_an_error(path):
    with pytest.raises(NotFound):
        find(PAPER, path)


@pytest.mark.parametrize(
    ("path", "reduction", "value"),
    [
        ("mean", "only", 0.02),
        ("figures.*.rows.*.relative_error", "mean-abs", 0.02),
        ("figures.*.rows.*.relative_error", "max-abs", 0.03),
        ("figures.*.rows.*.relative_error", "max", 0.01),
        ("figures.*.rows.*.relative_error", "min", -0.03),
        ("figures.*.rows.*.relative_error", "undecided", 3),
        ("figures.*.claims.*.holds", "held", 0.5),
        ("figures.*.claims.*.holds", "count", 2),
        ("figures.*.claims.*.holds", "undecided", 0),
    ],
)
def test_values_are_reduced_to_one(path, reduction, value):
    assert value_of(Figure("x", path, reduce=reduction), [PAPER]) == pytest.approx(value)


def test_several_documents_are_taken_together():
    assert value_of(Figure("x", "a.*", reduce="sum"), [{"a": [1]}, {"a": []}, {"a": [2]}]) == 3


@pytest.mark.parametrize(
    ("figure", "documents"),
    [
        (Figure("x", "a"), []),
        (Figure("x", "a.*"), [{"a": [1, 2]}]),
        (Figure("x", "a"), [{"a": {}}]),
        (Figure("x", "a.*", reduce="max"), [{"a": [None]}]),
    ],
)
def test_no_value_is_never_a_silent_zero(figure, documents):
    with pytest.raises(NotFound):
        value_of(figure, documents)


@pytest.mark.parametrize(
    ("op", "bound", "tolerance", "value", "kept"),
    [
        (None, None, 0, 5, True),
        ("<=", 5, 0, 5, True),
        ("<=", 5, 0, 5.1, False),
        (">=", 5, 0, 4.9, False),
        (">=", 5, 0, float("nan"), False),
        ("==", True, 0, True, True),
        ("==", 0, 0, 1, False),
        ("within", 1.37, 0.15, 1.5, True),
        ("within", 1.37, 0.15, 1.6, False),
        ("<=", 5, 0, "many", False),
    ],
)
def test_rules(op, bound, tolerance, value, kept):
    assert holds(Figure("x", "a", op=op, bound=bound, tolerance=tolerance), value) is kept


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("percent", 0.0163, "x 1.6 %"),
        ("times", 7412.3, "x 7,412 x"),
        ("ms", 1.8432, "x 1.843 ms"),
        ("plain", 12, "x 12"),
        ("yes", True, "x yes"),
    ],
)
def test_values_are_written_with_their_unit(unit, value, text):
    assert text_of(Figure("x", "a", unit=unit), value) == text


def printing(document: object) -> list[str | list[str]]:
    """Return a command that prints JSON."""
    return ["python", "-c", f"print({json.dumps(document)!r})"]


def row(name: str, command: list[str | list[str]], *figures: Figure) -> Row:
    """Return a row of issue 3."""
    return Row(f"3.{name}", 3, name, "a <= 5", command=command, figure=list(figures))


SMALL = Figure("a", "a", op="<=", bound=5)
HOLDS = row("holds", printing({"a": 4}), SMALL)
MISSED = row("missed", printing({"a": 6}), SMALL)
ABSENT_FIGURE = row("absent-figure", printing({"b": 6}), SMALL)
NO_JSON = row("no-json", ["python", "-c", "print('{')"], SMALL)
FAILING = row("failing", ["python", "-c", "import sys; sys.exit('error: no such thing')"])
NO_PROGRAM = row("no-program", ["no-such-program-anywhere"])
SILENT = row("silent", ["python", "-c", "pass"])
PLANNED = Row("3.planned", 3, "later", "later", state="planned")


@pytest.mark.parametrize(
    ("given", "verdict", "measured"),
    [
        (HOLDS, "holds", "a 4"),
        (MISSED, "missed", "a 6"),
        (ABSENT_FIGURE, "broken", "does not run: a: nothing at 'a'"),
        (NO_JSON, "broken", "does not run: output is no JSON: Input data was truncated"),
        (NO_PROGRAM, "broken", "does not run: no-such-program-anywhere: FileNotFoundError"),
        (SILENT, "holds", "exit status 0"),
        (PLANNED, "planned", "planned"),
    ],
)
def test_verdicts(given, verdict, measured, tmp_path):
    assert run_row(given, Commands(tmp_path)) == Result(given, verdict, measured)


def test_a_failing_command_says_its_last_line(tmp_path):
    result = run_row(FAILING, Commands(tmp_path))
    assert result.verdict == "broken"
    assert result.measured.endswith("exit status 1: error: no such thing")


def test_a_command_that_hangs_does_not_run(tmp_path):
    hanging = row("hanging", ["python", "-c", "import time; time.sleep(60)"])
    assert run_row(hanging, Commands(tmp_path, limit_s=0.2)).measured.endswith("TimeoutExpired")


def test_a_shared_command_runs_once_and_a_file_is_read(tmp_path):
    write = "import os, json; os.mkdir('once'); json.dump([{'name': 'tick', 'a': 3}], open('out.json', 'w'))"
    of_file = Figure("a", "[name=tick].a", of="out.json", op="<=", bound=5)
    commands = Commands(tmp_path)
    first, second = (run_row(row(name, ["python", "-c", write], of_file), commands) for name in "xy")
    assert (first.verdict, second.verdict) == ("holds", "holds")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("...\n============ 31 passed in 0.93s ============\n", "31 passed"),
        ("=== 1 skipped, 2 passed, 1 warning in 75.01s (0:01:15) ===\n", "1 skipped, 2 passed, 1 warning"),
        ("hello\n", "exit status 0"),
    ],
)
def test_pytest_is_summed_up_without_its_time(text, counts):
    assert summary(text) == counts


def test_only_the_text_between_the_markers_changes():
    text = f"# A\n{BEGIN}\nold\n{END}\nB\n"
    assert with_table(text, "new", "acceptance.md") == f"# A\n{BEGIN}\nnew\n{END}\nB\n"
    with pytest.raises(BadInput, match=r"acceptance\.md: the markers"):
        with_table("# A\n", "new", "acceptance.md")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a maker of a project with rows, in whose folder the runner works."""
    (tmp_path / "acceptance.md").write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(runner, "ACCEPTANCE", tmp_path / "acceptance.json")
    monkeypatch.setattr(runner, "PAGE", tmp_path / "acceptance.md")

    def make(*rows, expected=None):
        monkeypatch.setattr(runner, "load_rows", lambda: list(rows))
        monkeypatch.setattr(runner, "expected_ids", lambda: expected or [given.id for given in rows])
        return tmp_path

    return make


def test_a_missed_target_is_printed_and_not_hidden(project, capsys):
    folder = project(HOLDS, MISSED, PLANNED)
    assert runner.main([]) == 0
    assert "3.missed  missed  a 6" in capsys.readouterr().out
    records = json.loads((folder / "acceptance.json").read_text())
    assert [list(record) for record in records] == [
        ["id", "title", "target", "measured", "holds", "verdict", "command"]
    ] * 3
    assert [record["holds"] for record in records] == [True, False, None]
    table = (folder / "acceptance.md").read_text()
    assert "| 3.missed | missed | a <= 5 | a 6 | **missed** |" in table
    assert "planned" not in table


@pytest.mark.parametrize("rows", [[HOLDS, FAILING], [ABSENT_FIGURE]])
def test_a_row_that_does_not_run_fails(project, rows):
    folder = project(*rows)
    assert runner.main([]) == 1
    assert "**broken**" in (folder / "acceptance.md").read_text()


def test_an_absent_row_fails(project, capsys):
    project(HOLDS, expected=["3.holds", "3.gone"])
    assert runner.main([]) == 1
    assert "error: row 3.gone is absent" in capsys.readouterr().err


def test_only_some_rows_leave_the_others_as_they_were(project):
    folder = project(HOLDS, MISSED)
    assert runner.main([]) == 0
    project(row("holds", printing({"a": 3}), SMALL), FAILING, MISSED)
    assert runner.main(["--only", "3.holds"]) == 0
    records = json.loads((folder / "acceptance.json").read_text())
    assert [(record["id"], record["measured"]) for record in records] == [
        ("3.holds", "a 3"),
        ("3.missed", "a 6"),
    ]


def test_the_page_keeps_the_rows_that_were_not_run_on_a_fresh_clone_too(project):
    folder = project(HOLDS, MISSED)
    assert runner.main([]) == 0
    (folder / "acceptance.json").unlink()
    page = (folder / "acceptance.md").read_text()
    assert "| 3.missed |" in page
    assert runner.main(["--only", "3.holds"]) == 0
    assert (folder / "acceptance.md").read_text() == page


def test_an_unknown_id_is_bad_input(project, capsys):
    project(HOLDS)
    assert runner.main(["--only", "3.nothing"]) == 2
    assert capsys.readouterr().err == "error: --only: no row has the id 3.nothing\n"
