"""A journal over several files: read as one, also when its writer died at any step of changing files."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journal.test_restart import played
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.records import Record, State, encode
from yarnctl.errors import BadInput, Different
from yarnctl.journal.chain import body_of
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.fold import Fold
from yarnctl.journal.rebuild import rebuild, repair
from yarnctl.journal.replay import replay
from yarnctl.journal.segments import STATE, segments

SMALL_BYTES = 4_000


class Died(BaseException):
    """kill -9: nothing after it is done."""


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """The records of a whole run, which replays."""
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    played(path, ())
    return [line.record for line in read(path, closed=True)]


def written(path: Path, records: list[Record], close: bool = True) -> None:
    rebuilt = rebuild(path)
    fold = None if rebuilt is None else rebuilt.fold
    journal = JournalFile(path, durable=False, segment_bytes=SMALL_BYTES, fold=fold)
    for record in records:
        journal.append([record])
    if close:
        journal.close()
    else:
        journal.file.close()


def records_of(path: Path) -> list[Record]:
    """Return what was appended: what a file begins with is the journal's own."""
    return [line.record for line in read(path) if not isinstance(line.record, State)]


def test_it_goes_on_in_files_of_bounded_size_and_is_read_as_one(
    tmp_path: Path, steps: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole = tmp_path / "journal.jsonl", tmp_path / "whole" / "journal.jsonl"
    whole.parent.mkdir()
    written(path, steps)
    with JournalFile(whole, durable=False) as journal:
        journal.append(steps)
    files = segments(path)
    assert len(files) > 3
    assert files[-1] == path
    assert [file.name for file in files[:2]] == ["journal.000001.jsonl", "journal.000002.jsonl"]
    lines = [file.read_bytes().splitlines(keepends=True) for file in files]
    assert all(first.startswith(b'{"type":"state",') for first, *_ in lines[1:])
    bodies = [body_of(line) for line in [*lines[0], *(line for _, *rest in lines[1:] for line in rest)]]
    alike = [body_of(line) for line in whole.read_bytes().splitlines(keepends=True)]
    assert bodies == alike
    longest = max(len(line) for line in whole.read_bytes().splitlines(keepends=True))
    assert all(sum(map(len, rest)) < SMALL_BYTES + longest for _, *rest in lines)
    written_in_all = len(steps) + len(files) - 1
    assert [line.number for line in read(path, closed=True)] == list(range(1, written_in_all + 1))
    assert replay(read(path, closed=True), str(path)).records == written_in_all
    order = next(record.order for record in steps if hasattr(record, "order"))
    said = []
    for each in (path, whole):
        assert exit_status_of(PROGRAM, ["explain", "--journal", str(each), str(order)]) == 0
        said.append(capsys.readouterr().out)
        assert exit_status_of(PROGRAM, ["replay", str(each)]) == 0
        capsys.readouterr()
    assert said[0] == said[1]


@pytest.mark.parametrize("durable", [True, False])
def test_a_line_is_on_disk_before_append_returns(
    tmp_path: Path, steps: list[Record], monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr("os.fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=durable) as journal:
        journal.append(steps[:2])
        assert sizes == ([path.stat().st_size] if durable else [])
    assert sizes[1:] == ([path.stat().st_size] if durable else [])


@pytest.mark.parametrize(("more_bytes", "files"), [(-1, 2), (0, 2), (1, 1)])
def test_a_file_is_full_with_its_last_byte(
    tmp_path: Path, steps: list[Record], more_bytes: int, files: int
) -> None:
    measured, path = tmp_path / "measured.jsonl", tmp_path / "journal.jsonl"
    with JournalFile(measured, durable=False) as journal:
        journal.append(steps[:2])
        full_bytes = measured.stat().st_size
    with JournalFile(path, durable=False, segment_bytes=full_bytes + more_bytes) as journal:
        journal.append(steps[:2])
        assert len(segments(path)) == files


def test_old_files_may_be_compressed(tmp_path: Path, steps: list[Record]) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, steps)
    for file in segments(path)[:-1]:
        (tmp_path / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    assert records_of(path) == steps
    path.unlink()  # and if there is nothing but compressed ones, the next line hangs on the last of them
    before = records_of(path)
    written(path, steps[:1])
    assert records_of(path) == [*before, steps[0]]
    packed = segments(path)[0]
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(BadInput, match=f"{packed.name}.*cannot be unpacked"):
        records_of(path)


def test_a_missing_or_exchanged_file_shows(tmp_path: Path, steps: list[Record]) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, steps)
    second, third = segments(path)[1:3]
    held = second.read_bytes()
    second.unlink()
    with pytest.raises((Different, BadInput)):
        records_of(path)
    second.write_bytes(third.read_bytes())
    third.write_bytes(held)
    with pytest.raises((Different, BadInput)):
        records_of(path)


class Steps:
    """Every call of the operating system while files are changed; the process dies before the chosen one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fatal: int) -> None:
        self.count, self.fatal = 0, fatal
        for name in ("rename", "open", "fsync", "close"):
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))
        monkeypatch.setattr(Path, "open", self._counted(Path.open))

    def _counted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            self.count += 1
            if self.count == self.fatal:
                raise Died
            return real(*given, **more)

        return call


def deaths(
    tmp_path: Path, steps: list[Record], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[int, Path, int]]:
    """Die before each call of each change of files; yield the point, the journal, what had been appended."""
    for fatal in range(1, 10_000):
        path = tmp_path / f"{fatal}" / "journal.jsonl"
        path.parent.mkdir()
        journal = JournalFile(path, durable=False, segment_bytes=SMALL_BYTES)
        done = 0
        with monkeypatch.context() as patched:
            watch = Steps(patched, fatal)
            try:
                for record in steps:
                    done += 1
                    journal.append([record])
            except Died:
                pass
        journal.file.close()
        yield fatal, path, done
        if watch.count < fatal:
            return


def test_whoever_dies_while_files_are_changed_has_a_journal(
    tmp_path: Path, steps: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    points = 0
    for _, path, done in deaths(tmp_path, steps, monkeypatch):
        points += 1
        assert repair(path) is None
        assert records_of(path) == steps[:done]
        rebuilt = rebuild(path)
        assert rebuilt is not None
        whole = Fold()
        for record in records_of(path):
            whole.apply(record)
        assert encode(rebuilt.fold.state()) == encode(whole.state())
        written(path, steps[done:])
        assert records_of(path) == steps
        assert all(each.read_bytes().startswith(STATE) for each in segments(path)[1:])
        if done < len(steps):
            replay(read(path, closed=True), str(path))
    assert points > 20


def test_a_file_that_cannot_be_begun_lets_the_old_one_go_on(
    tmp_path: Path, steps: list[Record], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, durable=False, segment_bytes=SMALL_BYTES)
    half = len(steps) // 2
    with monkeypatch.context() as full:

        def refuse(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        full.setattr(Path, "open", refuse)
        for record in steps[:half]:
            journal.append([record])
    assert "No space left" in caplog.text
    for record in steps[half:]:
        journal.append([record])
    journal.close()
    assert records_of(path) == steps
    replay(read(path, closed=True), str(path))


def test_half_a_line_at_the_end_of_a_file_that_was_set_aside_is_cut_off(
    tmp_path: Path, steps: list[Record]
) -> None:
    path = tmp_path / "journal.jsonl"
    written(path, steps, close=False)
    path.unlink()
    last = segments(path)[-1]
    last.write_bytes(last.read_bytes()[:-20])
    beside = repair(path)
    assert beside is not None
    assert beside.name.startswith(last.name + ".torn-")
    before = records_of(path)
    assert before == steps[: len(before)]
    written(path, steps[len(before) :])
    assert records_of(path) == steps


def test_a_journal_with_half_a_line_is_not_gone_on_with(tmp_path: Path, steps: list[Record]) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalFile(path, durable=False) as journal:
        journal.append(steps[:3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    with pytest.raises(BadInput, match="the last line is torn"):
        JournalFile(path, durable=False)
    assert path.read_bytes() == whole[:-3]
