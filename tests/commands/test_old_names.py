"""Old names of what users type: each means what the new one means, is warned of, and excludes the new one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import click
import pytest

from emulator.cluster.timing import HADOOP3, Timing
from emulator.live.programs.master_program import OLD_SPANS, own_spans
from emulator.live.wire.submitted_job import ModelledJob
from emulator.scenario import prepare, read_scenario
from emulator.scenario.record import OLD_ROLES
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.config import OLD_KEYS, load_cluster
from yarnctl.errors import BadInput
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


# --- files ----------------------------------------------------------------------------------------------

CLUSTER = '[cluster]\nresource_managers = ["http://rm:8088"]\n'
KEYS = [("silence_ms", "read_timeout_ms")]
ROLES = [("hurried", "preempting"), ("victim", "preemptable"), ("apart", "unmanaged")]
SPANS = [("emulator.timing.hold_ms", "emulator.timing.release_wait_ms")]


def test_the_tables_have_every_renamed_key_and_value() -> None:
    assert list(OLD_KEYS.items()) == KEYS
    assert list(OLD_ROLES.items()) == ROLES
    assert list(OLD_SPANS.items()) == SPANS


def written(folder: Path, text: str) -> Path:
    path = folder / "given.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("old", "new"), KEYS)
def test_an_old_key_of_the_cluster_is_read(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meant = load_cluster(written(tmp_path, f"{CLUSTER}{new} = 4321\n"))
    assert capsys.readouterr().err == ""
    assert meant != load_cluster(written(tmp_path, CLUSTER))
    path = written(tmp_path, f"{CLUSTER}{old} = 4321\n")
    assert load_cluster(path) == meant
    assert capsys.readouterr().err == (
        f"warning: {path}: {old} is now {new}; the old name works for one release\n"
    )
    path = written(tmp_path, f"{CLUSTER}{old} = 4321\n{new} = 4321\n")
    with pytest.raises(BadInput) as refused:
        load_cluster(path)
    assert str(refused.value).startswith(f"{path}: {old}: is the old name of {new}, and both are given")
    assert refused.value.exit_status == 2


def test_the_read_timeout_is_what_every_call_gets(tmp_path: Path) -> None:
    cluster = load_cluster(written(tmp_path, f"{CLUSTER}read_timeout_ms = 4321\n"))
    assert cluster.limits.pair() == (3.0, 4.321)


@pytest.mark.parametrize(("old", "new"), ROLES)
def test_an_old_role_of_a_queue_is_read(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(
        [
            'nodes = 2\nslots = 2\nproduction = "synthetic:production-s"\nshares = [0.6, 0.15]',
            'caps = [0.6, 0.15]\n[[queues]]\nname = "etl"\nguaranteed_ratio = 0.25\nrole = "ROLE"\n',
        ]
    )
    meant = prepare(*read_scenario(written(tmp_path, text.replace("ROLE", new))))
    assert capsys.readouterr().err == ""
    path = written(tmp_path, text.replace("ROLE", old))
    assert prepare(*read_scenario(path)) == meant
    told = f"{path}:9, [[queues]] 1, field role: {old} is now {new}; the old name works for one release"
    assert capsys.readouterr().err == f"warning: {told}\n"


@pytest.mark.parametrize("role", ['"patient"', "1", '["hurried"]', '{ hurried = "victim" }'])
def test_a_role_that_never_was_is_refused(role: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\[\[queues\]\] 1, field role"):
        read_scenario(written(tmp_path, f'nodes = 1\n[[queues]]\nname = "etl"\nrole = {role}\n'))


@pytest.mark.parametrize(("old", "new"), SPANS)
def test_an_old_setting_of_a_modelled_job_is_read(
    old: str, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def spans(settings: dict[str, str]) -> Timing:
        return own_spans(HADOOP3, cast("ModelledJob", SimpleNamespace(settings=settings)))

    meant = spans({new: "9000"})
    assert (meant.release_wait_ms, HADOOP3.release_wait_ms) == (9000, 30_000)
    assert capsys.readouterr().err == ""
    assert spans({old: "9000"}) == meant
    told = f"warning: job settings: {old} is now {new}; the old name works for one release\n"
    assert capsys.readouterr().err == told
    with pytest.raises(BadInput, match="and both are given"):
        spans({old: "9000", new: "9000"})
