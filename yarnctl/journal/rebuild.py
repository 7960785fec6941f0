"""Rebuild: the state that an earlier controller left in its journal, to continue from there.

All that is acted upon is in the journal's last ``state`` or behind it: a restart reads from there on, and
about one file before, for display. Decisions are not made again (``yarnctl replay`` does that), so that a
newer program continues what an older one has written. A crash may leave half a line at the end: it is cut off
and kept beside, because no action followed it (the line is written before the action).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from yarnctl.deciding.admission.book import AdmissionStore
from yarnctl.deciding.controller import Remembered
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.model import Change
from yarnctl.deciding.queue_hold import Misdirection
from yarnctl.deciding.reasons.modes import Paused
from yarnctl.deciding.records import Record, Requests, State, Stopped
from yarnctl.journal.file import REPAIRED, Interrupted, read_last
from yarnctl.journal.fold import Fold
from yarnctl.journal.segments import written_last

NOT_TOLD = (Observed, Stopped, Requests, State)
"""Kinds that replay needs and people do not."""


class Rebuilt(NamedTuple):
    """The state after the journal. ``recent`` are its last records, for explanations.

    ``changes`` are the settings that were lowered and not restored; ``epoch`` is the ResourceManager that
    answered last ("": not known); ``book`` has all admissions; ``misdirection`` the misdirected containers.
    ``fold`` is for the next writer: nothing else here changes with it. ``paused``: the operator's pause,
    which the next daemon continues.
    """

    remembered: Remembered
    recent: tuple[Record, ...]
    changes: tuple[Change, ...]
    epoch: str
    book: AdmissionStore
    misdirection: Misdirection
    fold: Fold
    paused: Paused | None

    @property
    def must_undo(self) -> bool:
        """Whether an earlier run left open orders, or settings that it had lowered."""
        return bool(self.remembered.ledger.open or self.changes)

    def paused_from(self, now_ms: int) -> Paused | None:
        """Return the pause at the start of the next run, whose clock may be behind the journal's."""
        back_ms = max(0, self.remembered.now_ms - now_ms)
        return None if self.paused is None else self.paused.set_back(back_ms)


def repair(path: Path) -> Path | None:
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
    """Write half a line to a file, whole or not at all."""
    try:
        with beside.open("wb") as file:
            file.write(torn)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OSError(error.errno, f"{error.strerror or error}; {REPAIRED}", str(beside)) from error


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


def rebuild(
    path: Path, keep: int = 20_000, moved: Callable[[Path], object] = lambda torn: None
) -> Rebuilt | None:
    """Read a journal to its end; None if there is none.

    Half a line at its end is cut off and kept beside (:func:`repair`), once all before it has been read;
    ``moved`` is called with that file's path.
    Raises BadInput for what is no journal, or a newer program's, and Different for a broken chain.
    Nothing is decided again: decisions that this program would make otherwise stay.
    """
    if written_last(path) is None:
        return None
    fold, recent = Fold(), list[Record]()
    try:
        for line in read_last(path):
            record = line.record
            fold.apply(record)
            if not isinstance(record, NOT_TOLD):
                recent.append(record)
            if len(recent) > 2 * keep:
                del recent[:keep]
    except Interrupted:
        torn = repair(path)
        if torn is None:
            raise
        moved(torn)
        return rebuild(path, keep)
    left = fold.copy()
    return Rebuilt(
        fold.remembered(),
        tuple(recent[-keep:]),
        tuple(fold.changes.open.values()),
        fold.epoch,
        left.book,
        left.misdirection,
        fold,
        fold.paused,
    )
