"""Rebuild: what a controller that is gone has left in its journal, to go on from there.

Law: the journal is believed as far as it is whole. What was decided stays decided: nothing is chosen again,
that is for ``yarnctl replay``, so that a newer program goes on with what an older one has written. A
crash may leave half a line at the end: it is cut off and kept beside, because nothing that was in it has
been acted on (the line comes before the act).
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import NamedTuple

from yarnctl.deciding.admission.book import Book
from yarnctl.deciding.controller import Remembered
from yarnctl.deciding.records import Contact, Epoch, Holding, Record, Stance, Transition
from yarnctl.errors import BadInput, Different
from yarnctl.journal.believing import Believing
from yarnctl.journal.file import MENDED, Interrupted, Line, read
from yarnctl.journal.maxima import Maxima
from yarnctl.journal.priorities import Priorities
from yarnctl.journal.replay import Replay
from yarnctl.journal.segments import written_last

_LOG = logging.getLogger("yarnctl.journal")


class Rebuilt(NamedTuple):
    """What the journal implies. ``recent`` are its last records, for people who ask why.

    ``priorities`` are those that were changed and not put back: application -> the one it had; ``held``
    the queues whose maximum was lowered and not put back, with the record of it; ``epoch`` the
    ResourceManager that answered last ("": not known); ``book`` all admissions.
    """

    remembered: Remembered
    recent: tuple[Record, ...]
    priorities: dict[str, int]
    stances: tuple[Stance, ...]
    transitions: tuple[Transition, ...]
    held: dict[str, Holding]
    epoch: str
    book: Book


def mend(path: Path) -> Path | None:
    """Cut half a line off the journal's end into a file beside it; return that file's path."""
    last = written_last(path)
    if last is None or last.suffix == ".gz":
        return None
    with last.open("rb+") as file:
        data_end = file.seek(0, 2)
        keep = _last_newline(last, data_end)
        if keep == data_end:
            return None
        file.seek(keep)
        torn = file.read()
        beside = last.with_name(f"{last.name}.torn-{keep}")
        _keep(beside, torn)
        file.truncate(keep)
    return beside


def _keep(beside: Path, torn: bytes) -> None:
    """Write half a line down, whole or not at all."""
    try:
        with beside.open("wb") as file:
            file.write(torn)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, f"{error.strerror or error}; {MENDED}", str(beside)) from error


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
    """Read a journal to its end; None if there is none.

    Raises BadInput for what is no journal and Different for a broken chain. That this program would have
    decided, or settled, otherwise than the one that wrote the journal is said, and kept from nothing.
    """
    if written_last(path) is None:
        return None
    state = _Reading(str(path))
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
    moves = tuple(record for record in recent if isinstance(record, Transition))
    return Rebuilt(
        state.remembered(),
        tuple(recent[-keep:]),
        dict(state.priorities.changed),
        tuple(state.stances),
        moves[-1000:],
        dict(state.maxima.held),
        state.epoch,
        state.book,
    )


class _Reading:
    """A journal read twice at once: derived as by replay, and by its word alone for where they differ."""

    def __init__(self, source: str) -> None:
        self.priorities, self.maxima = Priorities(), Maxima()
        self.stances: list[Stance] = []
        self.epoch = ""
        self.book = Book()
        self._replay: Replay | None = Replay(source, decide=False)
        self._believing = Believing()

    def line(self, line: Line) -> None:
        """Take the next line."""
        record = line.record
        self.priorities.take(record)
        self.maxima.take(record)
        self.book.take(record)
        self._believing.take(record)
        if isinstance(record, Contact | Epoch):
            self.epoch = record.epoch
        elif isinstance(record, Stance):
            self.stances.append(record)
        if self._replay is not None:
            self._derive(self._replay, line)

    def _derive(self, replay: Replay, line: Line) -> None:
        try:
            replay.line(line)
        except (BadInput, Different, LookupError, ValueError, AssertionError) as problem:
            self._replay = None
            _LOG.warning("this program would have gone on otherwise; the journal is believed: %s", problem)

    def remembered(self) -> Remembered:
        """Return what the next controller goes on with."""
        if self._replay is not None:
            left = self._replay.left()
            work = left.work
            return Remembered(work.ledger, work.sent, left.numbered, left.due, left.now_ms or 0)
        told = self._believing.left()
        return Remembered(told.work.ledger, told.work.sent, told.numbered, told.due, told.now_ms)
