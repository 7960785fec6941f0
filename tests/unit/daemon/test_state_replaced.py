"""A state directory that is emptied or replaced under a running daemon: noticed before anything is done."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.daemon.test_loop import Lock, busy, daemon, kinds
from tests.unit.daemon.test_queue_caps import Queues, capping_loop
from yarnctl.daemon.loop import Loop
from yarnctl.daemon.running import _require_in_place
from yarnctl.daemon.state_dir import StateDir
from yarnctl.deciding.records import Contact, State
from yarnctl.journal import segments
from yarnctl.journal.file import JournalFile, read


def emptied(folder: Path) -> None:
    for each in folder.iterdir():
        each.unlink()


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))


def replaced(folder: Path) -> None:
    """Another directory with the same files: as after a restore from a copy."""
    shutil.copytree(folder, folder.with_name("copy"))
    shutil.rmtree(folder)
    folder.with_name("copy").rename(folder)


def journal_removed(folder: Path) -> None:
    (folder / "journal.jsonl").unlink()


def lock_replaced(folder: Path) -> None:
    (folder / "lock").unlink()
    (folder / "lock").touch()


HARM = [emptied, moved, replaced, journal_removed, lock_replaced]


def begun(state: StateDir, loop: Loop) -> tuple[Loop, JournalFile]:
    journal = JournalFile(state.journal, durable=False)
    loop.recorder.journal = journal
    loop._in_place = lambda: _require_in_place(state, journal)
    return loop, journal


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_it_stops_puts_back_and_withdraws(tmp_path: Path, harm: Callable[[Path], None], caplog) -> None:
    caplog.set_level(logging.INFO)
    cluster, queues = busy(), Queues(0.9)
    cluster.drain_ms = 1 << 40
    with StateDir(tmp_path / "state", lambda: "a1b2") as state:
        loop, journal = begun(state, capping_loop(cluster, queues))
        while queues.maximum_ratio() == 0.9:
            loop._once()
        asked = kinds(cluster).count("Suspend")
        cluster.submit("production-2", "production", 0, 3)
        harm(state.path)
        with pytest.raises(OSError, match="start yarnctl again") as stopped:
            loop.run(loop.ticks + 2000)
        journal.file.close()
    assert str(stopped.value.filename).startswith(str(state.path))
    assert kinds(cluster) == ["Suspend"] * asked + ["Withdraw"] * asked
    assert asked == 3
    ends = [line.getMessage() for line in caplog.records if " -> withdrawn " in line.getMessage()]
    assert len(ends) == asked  # nothing can be written down any more, so the log alone tells of it
    assert (queues.maximum_ratio(), queues.hdfs.files) == (0.9, {})
    assert loop.publisher.view.loop.state == "stopped"


@pytest.mark.parametrize("harm", [emptied, moved, replaced, journal_removed], ids=lambda harm: harm.__name__)
def test_nothing_is_done_on_a_record_that_nobody_will_find(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """The harm comes between the look and the append: the append itself must notice."""
    cluster = busy()
    with StateDir(tmp_path / "state", lambda: "a1b2") as state:
        loop, journal = begun(state, daemon(cluster, lock=Lock())[0])
        loop._in_place = lambda: None
        append = journal.append

        def late(records) -> None:
            if any(type(record).__name__ == "Decision" for record in records):
                harm(state.path)
            append(records)

        journal.append = late  # type: ignore[method-assign]
        with pytest.raises(OSError, match="start yarnctl again"):
            loop.run(60)
        journal.file.close()
    assert "Suspend" not in kinds(cluster)


def test_a_journal_that_goes_on_in_a_new_file_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, durable=False, segment_bytes=1)
    begin = MemoryHeader.records()
    journal.append(begin)
    journal.append([Contact(1, "1")])
    assert len(segments.segments(path)) == 3

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    # The rename is done and the new file cannot be made: the old handle stands at the journal's end.
    monkeypatch.setattr(segments, "sync_folder", full)
    journal.append([Contact(2, "2")])
    journal.append([Contact(3, "3")])
    monkeypatch.undo()
    journal.close()
    told = [line.record for line in read(path, closed=True) if not isinstance(line.record, State)]
    assert told[1:] == [Contact(n, str(n)) for n in (1, 2, 3)]


class MemoryHeader:
    """The header that a controller writes."""

    @staticmethod
    def records():
        loop, journal = daemon(busy())
        loop._once()
        return journal.records[:1]
