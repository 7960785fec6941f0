"""A disk that is full, a journal that was changed: the path, the next step, and nothing half-written."""

from __future__ import annotations

import errno
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest

from tests.unit.daemon.test_loop import busy, daemon
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.records import Contact, Record
from yarnctl.errors import BadInput, Different
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.rebuild import rebuild, repair


@contextmanager
def full(limit_bytes: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def first_records() -> list[Record]:
    loop, journal = daemon(busy())
    loop.run(20)
    return journal.records


def written(path: Path) -> Path:
    with JournalFile(path, durable=False) as file:
        file.append(first_records())
    return path


def test_an_append_that_fails_names_the_path_and_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, durable=False)
    journal.append(first_records())
    with full(path.stat().st_size), pytest.raises(OSError, match="restart") as told:
        journal.append([Contact(1, "1")])
    assert told.value.errno == errno.EFBIG
    assert told.value.filename == str(path)
    journal.file.close()
    assert rebuild(path) is not None


def test_the_error_that_ends_the_daemon_names_the_path_and_the_next_step(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, durable=False)
    journal.append(first_records())

    @click.group()
    def program() -> None:
        """Stand for the daemon's program."""

    @program.command()
    def run() -> None:
        with full(path.stat().st_size):
            journal.append([Contact(1, "1")])

    assert exit_status_of(program, ["run"]) == BadInput.exit_status
    journal.file.close()
    (line,) = [each for each in capfd.readouterr().err.splitlines() if each.startswith("error: ")]
    assert line.startswith(f"error: {path}: {os.strerror(errno.EFBIG)}; free disk space")


def test_half_a_line_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.jsonl")
    with path.open("ab") as file:
        file.write(b'{"type":"contact","at_ms":')
    whole = path.read_bytes()
    with full(0), pytest.raises(OSError, match="restart") as told:
        repair(path)
    assert "journal.jsonl.torn-" in str(told.value.filename)
    assert str(told.value.strerror).startswith(f"{os.strerror(errno.EFBIG)}; ")
    assert [one.name for one in tmp_path.iterdir()] == ["journal.jsonl"]
    assert path.read_bytes() == whole
    beside = repair(path)
    assert beside is not None
    assert beside.read_bytes() == b'{"type":"contact","at_ms":'


def test_a_journal_that_was_changed_names_the_line_and_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path / "journal.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"at_ms":', b'"at_ms":1', 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(Different, match=r"journal\.jsonl:3: the chain breaks.*move the directory aside"):
        list(read(path))
    del lines[2]
    path.write_bytes(b"".join(lines))
    with pytest.raises(Different, match=r"journal\.jsonl:3: .*removed, added or moved; .*move the directory"):
        list(read(path))


def test_a_state_directory_stands_for_the_journal_in_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "journal.jsonl")
    assert [line.raw for line in read(tmp_path)] == [line.raw for line in read(path)]
    statuses = [exit_status_of(PROGRAM, ["replay", str(named)]) for named in (tmp_path, path)]
    assert statuses[0] == statuses[1]
    told = capfd.readouterr()
    assert "Is a directory" not in told.err
