"""Old names of what users type: each means what the new one means, is warned of, and excludes the new one."""

from __future__ import annotations

from typing import Any

import click
import pytest

from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.old_names import RenamedOption

OPTIONS = [
    ("run", "--hurried", "--preempting", ("a", "b")),
    ("run", "--victims", "--preemptable", ("a", "b")),
    ("run", "--hold-queue", "--cap-queue", ()),
    ("run", "--ahead", "--predicted-demand", ("4",)),
    ("check", "--hurried", "--preempting", ("a", "b")),
    ("check", "--victims", "--preemptable", ("a", "b")),
]
"""Command, old name, new name, and a value for each time it is given (none: a flag)."""


def words_of(name: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (name, value)] or [name]


def command_of(name: str) -> click.Command:
    command = PROGRAM.get_command(click.Context(PROGRAM), name)
    assert command is not None
    return command


def read(command: str, words: list[str]) -> dict[str, Any]:
    """Return what a command would be given."""
    return command_of(command).make_context(command, words).params


def test_the_table_has_every_renamed_option() -> None:
    found = {
        (name, param.was, param.opts[0])
        for name in PROGRAM.list_commands(click.Context(PROGRAM))
        for param in command_of(name).params
        if isinstance(param, RenamedOption)
    }
    assert found == {row[:3] for row in OPTIONS}


@pytest.mark.parametrize(("command", "old", "new", "values"), OPTIONS)
def test_an_old_option_means_the_new_one_and_is_warned_of_once(
    command: str, old: str, new: str, values: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    meant = read(command, words_of(new, values))
    assert capsys.readouterr().err == "", "the new name needs no warning"
    assert meant != read(command, []), "else nothing is shown below"
    assert read(command, words_of(old, values)) == meant
    told = capsys.readouterr()
    assert told.err == f"warning: {old} is now {new}; the old name works for one release\n"
    assert told.out == ""


@pytest.mark.parametrize(("command", "old", "new", "values"), OPTIONS)
@pytest.mark.parametrize("is_old_first", [True, False])
def test_both_names_together_are_refused(
    command: str,
    old: str,
    new: str,
    values: tuple[str, ...],
    is_old_first: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = [words_of(old, values), words_of(new, values)]
    words = [word for each in (both if is_old_first else both[::-1]) for word in each]
    assert exit_status_of(PROGRAM, [command, *words]) == 2
    told = capsys.readouterr()
    assert told.err == f"error: {old}: is the old name of {new}, and both are given; give the new one\n"
    assert told.out == ""


def test_a_wrong_value_is_refused_by_the_name_that_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status_of(PROGRAM, ["run", "--ahead", "soon"]) == 2
    assert "'--ahead'" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check"])
def test_help_and_completion_show_new_names_only(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.shell_completion import ShellComplete

    completed = ShellComplete(PROGRAM, {}, "yarnctl", "_YARNCTL_COMPLETE").get_completions([command], "--")
    offered = {each.value for each in completed}
    shown = command_of(command).get_help(click.Context(command_of(command)))
    for of, old, new, _ in OPTIONS:
        if of == command:
            assert new in offered
            assert new in shown
            assert old not in offered
            assert old not in shown
