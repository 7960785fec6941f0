"""The style linter: it finds each planted breach, and leaves everything else alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.style import ROOT, WORDS, in_page, in_source, main, user_pages

WRONG = [
    "the user who waits", "a queue whose share is low", "nobody asked", "Somebody has changed it",
    "how to mend it", "it is dear", "unless told to", "leave it away", "so long as it runs",
    "so many at once", "so often", "there is no queue", "it goes on", "go on", "it comes back",
    "come back later",
]  # fmt: skip
RIGHT = [
    "the request is no longer pending",
    "leave it. It runs away",
    "a whole hour",
    "untold riches",
    "nodes",
]
PLACES = {
    "help": "click.option('--x', help={!r})", "error": "raise BadInput('--x', {!r}, 'use 3')",
    "log": "_LOG.warning({!r}, 3)", "reason": "SENTENCES = {{Full: {!r}}}", "made before": "said = {!r}",
    "concatenated": "said = 'a job and ' {!r}", "formatted": "said = f'{{x}} ' f{!r}",
    "docstring of a command": "@click.command()\ndef command() -> None:\n    {!r}",
    "docstring of a group's command": "@group.command('x')\ndef command() -> None:\n    {!r}",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_words_finds_each_rejected_word(text):
    assert WORDS.search(text)


@pytest.mark.parametrize("text", RIGHT)
def test_words_accepts_plain_text(text):
    assert not WORDS.search(text)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", WRONG)
def test_in_source_finds_a_text_wherever_it_stands(place, text):
    found = in_source("yarnctl/one.py", "\n\n" + PLACES[place].format(text) + "\n")
    assert len(found) == 1
    assert found[0].where.startswith("yarnctl/one.py:")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", RIGHT)
def test_in_source_accepts_plain_text(place, text):
    assert in_source("yarnctl/one.py", PLACES[place].format(text) + "\n") == []


def test_in_source_accepts_names_of_fields():
    assert in_source("one.py", "sentence = 'the worker cannot be drained: {told}'\n") == []
    assert in_source("yarnctl/api/one.py", 'class Busy:\n    """``told``: as reported."""\n') == []
    assert in_source("one.py", "sentence = 'nobody waits: {told}'\n")


def test_in_source_finds_words_around_a_value():
    assert in_source("one.py", "said = f'{name} is no {kind}'\n")
    assert in_source("one.py", "said = f'leave {name} away'\n")


@pytest.mark.parametrize("folder", ["yarnctl/api", "yarnctl/attach/check", "yarnctl/deciding/reasons"])
def test_in_source_reads_docstrings_that_are_printed(folder):
    source = 'class Full:\n    """Nobody waits."""\n\n    x: int\n    """Who asked."""\n'
    assert [each.where for each in in_source(f"{folder}/one.py", source)] == [
        f"{folder}/one.py:2",
        f"{folder}/one.py:5",
    ]
    assert in_source("yarnctl/cli/one.py", source) == []


@pytest.mark.parametrize("text", WRONG)
def test_in_page_finds_each_rejected_word(text):
    assert [each.where for each in in_page("docs/one.md", f"# One\n\n{text}\n")] == ["docs/one.md:3"]


@pytest.mark.parametrize("text", [f"`{WRONG[0]}`", f"```text\n{WRONG[0]}\n```", f"~~~\n{WRONG[0]}\n~~~"])
def test_in_page_accepts_words_in_code(text):
    assert in_page("docs/one.md", text + "\n") == []


def test_in_page_finds_long_lines_and_long_paragraphs():
    assert in_page("one.md", "x" * 110 + "\n" + "\n".join(["x"] * 4)) == []
    assert [each.says for each in in_page("one.md", "x" * 111)] == ["a line of 111 characters (at most 110)"]
    assert [each.where for each in in_page("one.md", "x\n" * 9)] == ["one.md:6"]
    assert in_page("one.md", "x\n" * 5 + "\n" + "x\n" * 5 + "- x\n" * 9 + "| x |\n" * 9) == []
    assert in_page("one.md", "```\n" + "x\n" * 9 + "```\n") == []


def test_main_reads_everything_or_what_it_is_given(tmp_path: Path, capsys):
    for name, text in {
        "yarnctl/one.py": "x = 'nobody waits'\n", "emulator/deep/two.py": "x = 'somebody waits'\n",
        "research/yarn_research/three.py": "x = 'so many of them'\n",
        "yarnctl/task_runner/yarnctl_task.py": "x = 'nobody waits'\n",
        "tests/four.py": "x = 'nobody waits'\n", "README.md": "nobody\n", "docs/spark.md": "nobody\n",
        "docs/style.md": "nobody\n\n```text\nREADME.md\ndocs/spark.md\ndocs/later.md\n```\n",
        "docs/other.md": "nobody\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main([], tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [
        "yarnctl/one.py:1: 'nobody' in: nobody waits",
        "emulator/deep/two.py:1: 'somebody' in: somebody waits",
        "research/yarn_research/three.py:1: 'so many' in: so many of them",
        "README.md:1: 'nobody' in: nobody",
        "docs/spark.md:1: 'nobody' in: nobody",
        "style: 5 breaches",
    ]
    assert main(["yarnctl/task_runner"], tmp_path) == 0
    assert main(["emulator/deep", "README.md"], tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "style: 2 breaches"


def test_user_pages_are_those_of_the_style_page():
    found = user_pages()
    assert {"README.md", "docs/quickstart.md"} < set(found)
    assert [name for name in found if not (ROOT / name).is_file()] == []
