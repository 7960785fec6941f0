"""The shells of both programs: exit statuses, errors in one line, lazy help, two outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from emulator.cli import COMMANDS as EMULATOR_COMMANDS
from yarnctl import command_line
from yarnctl.cli import COMMANDS as YARNCTL_COMMANDS
from yarnctl.errors import BadInput, Different, InvariantBroken, Unreachable

ROOT = Path(__file__).parents[2]

HEAVY = (
    "msgspec", "numpy", "pyarrow", "rich", "requests", "hdfs", "fastapi", "uvicorn", "matplotlib", "asyncio",
)  # fmt: skip

SHOW_MODULES = """
import sys
try:
    from {package}.cli import main
    main(["--help"])
except SystemExit as leaving:
    print("status", leaving.code, file=sys.stderr)
print(" ".join(sorted({{name.partition(".")[0] for name in sys.modules}})), file=sys.stderr)
print(" ".join(name for name in sys.modules if name.startswith("{package}.cli")), file=sys.stderr)
"""


def failing(error: BaseException) -> click.Command:
    @click.command()
    def command() -> None:
        raise error

    return command


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Callable[[click.Command], click.Group]:
    """Return a maker of programs with one command ``do``, loaded without a module."""

    def make(command: click.Command) -> click.Group:
        monkeypatch.setattr(command_line, "load", lambda target: command)
        return command_line.program("tool", "A tool.", {"do": ("nowhere:command", "Do it.")})

    return make


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (BadInput("trace.tsv:7: size", "-3 is negative"), 2, "error: trace.tsv:7: size: -3 is negative"),
        (Unreachable("http://rm:8088 does not answer"), 3, "error: http://rm:8088 does not answer"),
        (Different("record 4 differs"), 1, "error: record 4 differs"),
        (InvariantBroken("keys", "two\nlines"), 1, "error: invariant keys is broken: two lines"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (FileNotFoundError(2, "No such file or directory", "a.tsv"), 2,
         "error: a.tsv: No such file or directory"),
        (OSError(28, "No space left on device"), 2, "error: No space left on device"),
        (BadInput("a\0b\x1b[2J", "c"), 2, "error: a\\x00b\\x1b[2J: c"),
        (click.UsageError("a thing is wrong."), 2, "error: a thing is wrong; see 'tool do --help'"),
    ],
)  # fmt: skip
def test_every_error_is_one_line_with_its_status(group, capsys, error, status, line):
    with pytest.raises(SystemExit) as leaving:
        command_line.run(group(failing(error)), ["do"])
    assert leaving.value.code == status
    assert capsys.readouterr() == ("", line + "\n")


def test_our_own_faults_are_not_hidden(group):
    with pytest.raises(ZeroDivisionError):
        command_line.run(group(failing(ZeroDivisionError())), ["do"])


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (1, 1)])
def test_a_command_may_return_its_status(group, returned, status):
    with pytest.raises(SystemExit) as leaving:
        command_line.run(group(click.command()(lambda: returned)), ["do"])
    assert leaving.value.code == status


@pytest.mark.parametrize(
    "arguments", [["nothing-like-it"], ["--nothing"], ["do", "--nothing"], ["do", "extra"]]
)
def test_a_command_line_that_is_not_understood_is_bad_input(group, capsys, arguments):
    with pytest.raises(SystemExit) as leaving:
        command_line.run(group(failing(ValueError())), arguments)
    captured = capsys.readouterr()
    assert leaving.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "output"),
    [([], "table"), (["-o", "table"], "table"), (["-o", "json"], "json"), (["--json"], "json")],
)
def test_json_is_an_alias(group, capsys, arguments, output):
    @click.command()
    @click.option("--nodes", default=1)
    @command_line.output_option
    def command(nodes: int, output: str) -> None:
        click.echo(f"{nodes} {output}")

    with pytest.raises(SystemExit) as leaving:
        command_line.run(group(command), ["do", "--nodes", "3", *arguments])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"3 {output}\n"


def test_json_keeps_the_order_of_the_keys(capsys):
    command_line.print_json({"b": 1, "a": [1.5, None, "é"]})
    text = capsys.readouterr().out
    assert text.endswith("}\n")
    assert list(json.loads(text)) == ["b", "a"]
    assert "é" in text


def test_a_table_holds_every_cell(capsys):
    command_line.print_table(["scheme", "mean s"], [["natjam [x]", 12.5], ["kill", None]], title="Both")
    text = capsys.readouterr().out
    assert "natjam [x]" in text
    assert "12.5" in text
    assert "Both" in text


def test_a_title_stays_on_one_line(capsys):
    title = "Fig 3: a long title over a table that is narrow"
    command_line.print_table(["a"], [[1]], title=title)
    assert capsys.readouterr().out.splitlines()[0] == title


@pytest.mark.parametrize(
    ("package", "commands"), [("yarnctl", YARNCTL_COMMANDS), ("emulator", EMULATOR_COMMANDS)]
)
def test_help_lists_the_commands_without_importing_them(package, commands):
    done = subprocess.run(
        [sys.executable, "-c", SHOW_MODULES.format(package=package)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    status, modules, ours = done.stderr.splitlines()
    assert status == "status 0"
    assert not set(HEAVY) & set(modules.split())
    assert ours == f"{package}.cli"
    for name, (_, about) in commands.items():
        assert f"  {name} " in done.stdout
        assert about in done.stdout


@pytest.mark.parametrize("package", ["yarnctl", "emulator"])
def test_nothing_asked_shows_the_help_and_is_bad_input(package):
    program = f"from {package}.cli import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "Commands:" in done.stderr


PRINTS = [
    "click.echo('x' * 10_000_000)",
    "click.echo('x')",
    "print('x')",
    "c.print_table(['a'], [[1]])",
    "c.print_json({'a': 1})",
]


def printing(what: str) -> list[str]:
    """Return a program that prints something on stdout."""
    text = (
        "import sys, click, yarnctl.command_line as c\n"
        f"c.load = lambda target: click.command()(lambda: {what})\n"
        "c.run(c.program('tool', 'A tool.', {'do': ('', 'Do.')}), ['do'])\n"
    )
    return [sys.executable, "-c", text]


@pytest.mark.parametrize("what", PRINTS)
@pytest.mark.parametrize(
    ("redirect", "line"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor"),
     ("<&- >&-", "Bad file descriptor")],
)  # fmt: skip
def test_an_output_that_cannot_be_written_is_one_line(what, redirect, line):
    words = ["sh", "-c", f'exec "$@" {redirect}', "sh", *printing(what)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"error: standard output: {line}\n")


def test_a_closed_output_is_no_error_if_nothing_is_printed():
    for redirect in (">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"):
        words = ["sh", "-c", f'exec "$@" {redirect}', "sh", *printing("None")]
        assert subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("what", PRINTS)
def test_a_closed_pipe_is_quiet(what):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(printing(what), cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert done.returncode == command_line.PIPE_CLOSED
    assert done.stderr == b""


def test_an_interrupt_while_importing_is_quiet(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(
        [sys.executable, "-c", "from emulator.cli import main; main()"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_written_for_every_shell(capsys, shell):
    with pytest.raises(SystemExit) as leaving:
        command_line.run(completing(), ["completion", shell])
    assert leaving.value.code == 0
    assert "_YARN_EMULATOR_COMPLETE" in capsys.readouterr().out


def completing() -> click.Group:
    return command_line.program(
        "yarn-emulator",
        "A tool.",
        {"convert": ("nowhere:x", "Convert."), "compare": ("nowhere:x", "Compare.")},
    )


def test_names_complete_without_importing_the_commands(monkeypatch, capsys):
    monkeypatch.setenv("_YARN_EMULATOR_COMPLETE", "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "yarn-emulator co")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit) as leaving:
        command_line.run(completing())
    assert leaving.value.code == 0
    assert {"compare", "completion", "convert"} <= set(capsys.readouterr().out.split("\n"))


def test_a_target_that_is_no_command_is_our_own_fault():
    with pytest.raises(TypeError, match=r"yarnctl\.errors:BadInput"):
        command_line.load("yarnctl.errors:BadInput")
