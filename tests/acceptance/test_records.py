"""Recorded figures: named, stale as soon as what they depend on has changed, and never held by absence."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.acceptance import __main__ as runner
from tests.acceptance.records import Record, changed_since
from tests.acceptance.rows import ROOT, Figure, Recorded, Row, complaints, load_rows, paths_of
from tests.acceptance.running import Commands, run_row
from tests.acceptance.table import BEGIN, END
from yarnctl.errors import BadInput

RECORDED = [row for row in load_rows() if row.recorded is not None]
COMMIT = "a" * 40
KEPT = Figure("a", "a", answer=1, op="<=", bound=5)


def row(document, *figures, of=""):
    """Return a row whose only command prints recorded figures."""
    words: list[str | list[str]] = ["python", "-c", f"print({json.dumps(json.dumps(document))})"]
    return Row(
        "3.r", 3, "r", "a <= 5", command=words, figure=list(figures), recorded=Recorded("hadoop", of=of)
    )


def unchanged(commit, paths, root):
    """Say that nothing has changed."""
    return []


@pytest.mark.parametrize(
    ("document", "changed", "verdict", "said"),
    [
        ({"a": 3, "commit": COMMIT, "campaign": "c"}, [], "holds", "recorded: c, commit aaaaaaaa, unchanged"),
        ({"a": 3, "commit": COMMIT, "campaign": "c"}, ["x", "y"], "stale", "2 files changed since, x among"),
        ({"a": 3, "commit": COMMIT, "campaign": "c"}, None, "stale", "which git does not know"),
        ({"a": 3, "commit": None, "campaign": "c"}, [], "stale", "recorded: c, of an unknown commit"),
        ({"a": 3, "campaign": "c"}, [], "stale", "of an unknown commit"),
        ({"a": 6, "commit": COMMIT, "campaign": "c"}, [], "missed", "a 6"),
        ({"a": 6, "commit": COMMIT, "campaign": "c"}, ["x"], "missed", "1 files changed since"),
        ({"commit": COMMIT, "campaign": "c"}, [], "broken", "does not run: a: nothing at 'a'"),
        ({"a": None, "commit": COMMIT, "campaign": "c"}, [], "broken", "does not run"),
        ([], [], "broken", "does not run"),
    ],
)
def test_verdicts_of_a_record(document, changed, verdict, said, tmp_path):
    result = run_row(row(document, KEPT), Commands(tmp_path), lambda *_: changed)
    assert result.verdict == verdict
    assert said in result.measured
    assert result.record()["holds"] is {"holds": True, "missed": False, "stale": False}.get(verdict)


def test_a_file_of_figures_that_is_absent_or_torn_holds_nothing(tmp_path):
    figure = Figure("a", "a", of="out.json", op="<=", bound=5)
    commands = Commands(tmp_path)
    assert run_row(row({}, figure, of="out.json"), commands, unchanged).verdict == "broken"
    (tmp_path / "out.json").write_text("{")
    assert run_row(row({}, figure, of="out.json"), commands, unchanged).verdict == "broken"
    (tmp_path / "out.json").write_text(json.dumps({"a": 3}))
    assert run_row(row({}, figure, of="out.json"), commands, unchanged).verdict == "stale"
    (tmp_path / "out.json").write_text(json.dumps({"a": 3, "commit": COMMIT}))
    assert run_row(row({}, figure, of="out.json"), commands, unchanged).verdict == "holds"


@pytest.fixture
def repository(tmp_path):
    """Return a repository with one commit, and that commit."""

    def git(*words):
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *words],
            cwd=tmp_path, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "code.py").write_text("1\n")
    (tmp_path / "beside.py").write_text("1\n")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    return tmp_path, git, git("rev-parse", "HEAD")


def test_what_was_committed_edited_or_added_since_is_found(repository):
    root, git, first = repository
    assert changed_since(first, ["in"], root) == []
    (root / "beside.py").write_text("2\n")
    assert changed_since(first, ["in"], root) == []
    (root / "in" / "code.py").write_text("2\n")
    assert changed_since(first, ["in"], root) == ["in/code.py"]
    git("commit", "-q", "-a", "-m", "second")
    assert changed_since(first, ["in"], root) == ["in/code.py"]
    assert changed_since(git("rev-parse", "HEAD"), ["in"], root) == []
    (root / "in" / "new.py").write_text("1\n")
    assert changed_since(first, ["in"], root) == ["in/code.py", "in/new.py"]
    assert changed_since("f" * 40, ["in"], root) is None


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        ('"""Another law."""\n\nx = 1  # other words\n\n\ndef f():\n    """Say."""\n    return x\n', False),
        ('"""A law."""\n\nx = 2  # why\n\n\ndef f():\n    """Tell."""\n    return x\n', True),
        ('"""A law."""\n\nx = 1  # why\n\n\ndef f():\n    """Tell."""\n    return "x"\n', True),
        ('"""A law."""\n\nx = (\n', True),
    ],
    ids=["comments and docstrings", "a number", "a string that is returned", "no Python any more"],
)
def test_reworded_comments_change_nothing_that_was_measured(repository, now, changed):
    root, git, _ = repository
    code = root / "in" / "program.py"
    code.write_text('"""A law."""\n\nx = 1  # why\n\n\ndef f():\n    """Tell."""\n    return x\n')
    git("add", "-A")
    git("commit", "-q", "-m", "program")
    code.write_text(now)
    assert changed_since(git("rev-parse", "HEAD"), ["in"], root) == (["in/program.py"] if changed else [])


def test_what_git_cannot_say_is_stale(tmp_path):
    assert Record.of("c", COMMIT, changed_since, ["in"], tmp_path).stale


def test_every_record_names_paths_that_exist():
    for one in RECORDED:
        assert one.recorded is not None
        for path in paths_of(one.recorded.depends):
            assert (ROOT / path).exists(), f"{one.id}: {path}"
    with pytest.raises(BadInput, match=r"\[paths\] has no list 'nowhere'"):
        paths_of("nowhere")


def test_a_recorded_row_that_plays_nothing_is_complained_of():
    assert "row 3.r is recorded and plays nothing of its own" in complaints([row({}, KEPT)], ["3.r"])[-1]
    assert [line for line in complaints(RECORDED, []) if "plays nothing" in line] == []


def test_whoever_reads_what_was_measured_says_so():
    """A row that reads docs/measured, or judges a campaign, is marked as recorded."""
    programs = (
        "judging",
        "estimates_judging",
        "placement_judging",
        "study_judging",
        "spark_soak_judging",
        "flink_judging",
        "lever_predictions",
        "mixed_judging",
        "spark_beside_judging",
        "spark_fidelity",
        "spark_overhead_judging",
        "spark_versions_judging",
        "fidelity",
        "predicting",
    )
    readers = ("--told", *(f"tests.cluster.{program}" for program in programs))
    for one in load_rows():
        reads = any(figure.of.startswith("docs/measured") for figure in one.figure)
        reads |= any(set(readers) & set(words) for words in one.commands)
        assert reads == (one.recorded is not None), one.id


def test_a_stale_row_is_printed_and_is_no_failure(tmp_path, monkeypatch, capsys):
    (tmp_path / "acceptance.md").write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(runner, "ACCEPTANCE", tmp_path / "acceptance.json")
    monkeypatch.setattr(runner, "PAGE", tmp_path / "acceptance.md")
    one = row({"a": 3, "commit": None, "campaign": "c"}, KEPT)
    monkeypatch.setattr(runner, "load_rows", lambda: [one])
    monkeypatch.setattr(runner, "complaints", lambda *_: [])
    assert runner.main([]) == 0
    assert "1 stale" in capsys.readouterr().out
    assert "| **stale** |" in (tmp_path / "acceptance.md").read_text()


def test_figures_of_one_answer_are_not_sought_in_another(tmp_path):
    words: list[str | list[str]] = [["python", "-c", f"print('{{\"{name}\": 1}}')"] for name in "ab"]
    figures = [Figure("a", "a", answer=1), Figure("b", "b", answer=2, op="==", bound=1)]
    given = Row("3.two", 3, "two", "b", command=words, figure=figures)
    assert run_row(given, Commands(tmp_path)).verdict == "holds"
    third = Row("3.two", 3, "two", "b", command=words, figure=[Figure("c", "c", answer=3)])
    assert run_row(third, Commands(tmp_path)).verdict == "broken"
