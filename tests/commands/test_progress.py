"""Progress: nothing within a second or off a terminal, then a bar on stderr; stdout stays the result's."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from emulator.cli import PROGRAM as EMULATOR
from emulator.experiments.results.runs import run_experiment
from emulator.scenario import Scenario, prepare
from yarnctl import command_line
from yarnctl.cli import PROGRAM as YARNCTL
from yarnctl.command_line import ProgressBar, exit_status_of, lines_in

SMALL = Scenario(
    nodes=3,
    slots=5,
    production="synthetic:production-s",
    research="synthetic:research-s",
    schemes=("natjam",),
)


class Terminal(io.StringIO):
    """A stderr that says it is a terminal, and remembers what was drawn."""

    def isatty(self) -> bool:
        return True

    def drawn(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.getvalue())


class Timer:
    """A timer that goes off when it is told to."""

    made: list[Timer]

    def __init__(self, after_s: float, call: Callable[[], None]) -> None:
        self.after_s, self.call = after_s, call
        self.daemon = self.started = self.cancelled = False
        Timer.made.append(self)

    def start(self) -> None:
        self.started = True

    def cancel(self) -> None:
        self.cancelled = True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make stderr a terminal; in the test itself, since pytest sets it anew after the fixtures."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return stream


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[Timer]:
    Timer.made = []
    monkeypatch.setattr("threading.Timer", Timer)
    return Timer.made


def test_the_bar_waits_for_a_second(monkeypatch: pytest.MonkeyPatch, timers: list[Timer]) -> None:
    terminal = on_terminal(monkeypatch)
    with ProgressBar("records read", 7) as progress:
        for _ in progress.counted("abc"):
            pass
        (timer,) = timers
        assert (timer.after_s, timer.started, timer.daemon) == (1.0, True, True)
        assert terminal.getvalue() == ""
        timer.call()
        assert "records read" in terminal.drawn()
        assert "3/7" in terminal.drawn()
        progress.step()
    assert "4/7" in terminal.drawn()
    assert timer.cancelled


def test_who_is_done_within_a_second_has_seen_nothing(
    monkeypatch: pytest.MonkeyPatch, timers: list[Timer]
) -> None:
    terminal = on_terminal(monkeypatch)

    def whole() -> int:
        raise AssertionError("asked for nothing")

    with ProgressBar("records read", whole) as progress:
        progress.step()
    (timer,) = timers
    assert timer.cancelled
    terminal.truncate(0)
    late = ProgressBar("records read", 3)
    with late:
        pass
    late.show()  # a timer that went off just then
    assert terminal.getvalue() == ""


def test_off_a_terminal_there_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], timers: list[Timer]
) -> None:
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    with ProgressBar("records read", 7) as progress:
        progress.step()
    assert timers == []
    assert capsys.readouterr() == ("", "")


def test_what_is_to_be_done_may_become_known_later(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    with ProgressBar("[bold]runs") as progress:
        assert "0/?" in terminal.drawn()
        progress.expect(4)
        progress.expect(5)
        progress.step("kill done", by=2)
        assert "2/9" in terminal.drawn()
    assert "[bold]runs" in terminal.drawn()
    assert "kill done" in terminal.drawn()


def test_lines_are_counted_in_files_alone(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\nb\n" + b"x" * (1 << 20) + b"\ntorn")
    assert lines_in(path) == 4
    assert lines_in(tmp_path) is None
    assert lines_in(tmp_path / "none") is None
    os.mkfifo(tmp_path / "pipe")
    assert lines_in(tmp_path / "pipe") is None  # else it would wait for a writer


# --- the commands ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("progress") / "out"
    run_experiment(prepare(SMALL), workers=1, out=out)
    return out / "natjam/journal.jsonl"


def last_count(terminal: Terminal) -> tuple[int, int]:
    done, whole = re.findall(r"(\d+)/(\d+)", terminal.drawn())[-1]
    return int(done), int(whole)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["replay"], "records replayed"), (["explain", "o-000001", "--journal"], "records read")],
)
def test_a_journal_shows_how_far_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    journal: Path,
    words: list[str],
    said: str,
) -> None:
    terminal = on_terminal(monkeypatch)

    def answer() -> str:
        assert exit_status_of(YARNCTL, [*words, str(journal)]) == 0
        return capsys.readouterr().out

    quiet = answer()
    assert terminal.getvalue() == ""
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    assert answer() == quiet
    assert said in terminal.drawn()
    lines = journal.read_bytes().count(b"\n")
    assert last_count(terminal) == (lines - 1, lines)  # the line that closes it is no record


def test_a_difference_is_told_under_the_bar(
    monkeypatch: pytest.MonkeyPatch, journal: Path, tmp_path: Path
) -> None:
    terminal = on_terminal(monkeypatch)
    lines = journal.read_bytes().splitlines(keepends=True)
    torn = tmp_path / "journal.jsonl"
    torn.write_bytes(b"".join(lines[:5] + lines[6:]))
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    assert exit_status_of(YARNCTL, ["replay", str(torn)]) == 1
    last = terminal.drawn().rstrip("\n").rpartition("\n")[2]
    assert last.lstrip("\r").startswith(f"error: {torn}:6: ")


def test_convert_shows_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    terminal = on_terminal(monkeypatch)
    path = tmp_path / "hour.parquet"
    words = ["convert", "packaged:fb2009@21-22", "--out", str(path)]
    assert exit_status_of(EMULATOR, words) == 0
    assert terminal.getvalue() == ""
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    assert exit_status_of(EMULATOR, words) == 0
    assert capsys.readouterr().out == f"{path}: 291 jobs\n" * 2
    assert "reading rows" in terminal.drawn()
    assert "rows read, writing jobs" in terminal.drawn()
    assert last_count(terminal) == (291, 291)


def test_a_comparison_shows_its_schemes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    words = "compare --production synthetic:production-s --research synthetic:research-s --nodes 3 --slots 5"
    words += f" --schemes soft-cap,natjam --workers 1 --out {tmp_path / 'out'}"
    assert exit_status_of(EMULATOR, words.split()) == 0
    assert "natjam done" in terminal.drawn()
    assert exit_status_of(EMULATOR, words.split()) == 0
    assert "natjam was done before" in terminal.drawn()
    assert last_count(terminal) == (2, 2)


def test_the_bar_stands_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(command_line, "WORTH_SHOWING_S", 0.0)
    with ProgressBar("runs", 2):
        click.echo("a result")
    assert capsys.readouterr().out == "a result\n"
    assert "a result" not in terminal.drawn()
