"""Rebuild: what a controller that is gone has left in its journal, to go on from there.

Law: the journal is read with the same eyes as by replay, and believed only as far as it is whole. A
crash may leave half a line at the end: it is cut off and kept beside, because nothing that was in it
has been acted on (the line comes before the act).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from yarnctl.deciding.controller import Remembered
from yarnctl.deciding.model import SetPriority
from yarnctl.deciding.records import Record, Stance, Transition
from yarnctl.journal.file import Interrupted, read
from yarnctl.journal.replay import Replay


class Rebuilt(NamedTuple):
    """What the journal implies. ``recent`` are its last records, for people who ask why.

    ``priorities`` are those that were changed and not put back: application -> the one it had.
    """

    remembered: Remembered
    recent: tuple[Record, ...]
    priorities: dict[str, int]
    stances: tuple[Stance, ...]
    transitions: tuple[Transition, ...]


def mend(path: Path) -> Path | None:
    """Cut half a line off the journal's end into a file beside it; return that file's path."""
    if not path.exists():
        return None
    with path.open("rb+") as file:
        data_end = file.seek(0, 2)
        keep = _last_newline(path, data_end)
        if keep == data_end:
            return None
        file.seek(keep)
        torn = file.read()
        beside = path.with_name(f"{path.name}.torn-{keep}")
        beside.write_bytes(torn)
        file.truncate(keep)
    return beside


def _last_newline(path: Path, size: int) -> int:
    """Return the offset behind the last newline (0: there is none)."""
    block = 1 << 16
    with path.open("rb") as file:
        end = size
        while end > 0:
            begin = max(0, end - block)
            file.seek(begin)
            place = file.read(end - begin).rfind(b"\n")
            if place >= 0:
                return begin + place + 1
            end = begin
    return 0


def rebuild(path: Path, keep: int = 20_000) -> Rebuilt | None:
    """Read a journal to its end; None if there is none. Raises BadInput or Different as replay does."""
    if not path.exists() or path.stat().st_size == 0:
        return None
    state = Replay(str(path))
    recent: list[Record] = []
    try:
        for line in read(path):
            state.line(line)
            recent.append(line.record)
            if len(recent) > 2 * keep:
                del recent[:keep]
    except Interrupted:
        mend(path)
        return rebuild(path, keep)
    left = state.left()
    work = left.work
    remembered = Remembered(work.ledger, work.sent, left.numbered, left.due, left.now_ms or 0)
    moves = tuple(record for record in recent if isinstance(record, Transition))
    return Rebuilt(
        remembered, tuple(recent[-keep:]), state.priorities.changed, tuple(state.stances), moves[-1000:]
    )


def restores(priorities: dict[str, int], alive: Sequence[str]) -> list[SetPriority]:
    """Return the actions that put back the priorities of applications that still run."""
    return [SetPriority(name, priorities[name]) for name in sorted(priorities) if name in alive]
