"""Pruned journals: the record of the segments that were deleted, and where what is left begins.

The record (``journal.pruned.json``) is written before the first segment is deleted. Readers leave out the
segments that it names, so that a deletion that was interrupted changes nothing for them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from yarnctl.errors import BadInput
from yarnctl.journal.chain import Chain
from yarnctl.journal.segments import number_of, segments, sync_folder

FORMAT = 1


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted: all up to ``segment``, whose last line is ``line`` with the digest ``chain``.

    ``journal``: the digest of the journal's first line; ``export``: the last one that held what was deleted.
    """

    format: int = FORMAT
    journal: str
    segment: int
    line: int
    chain: str
    export: str


class Left(NamedTuple):
    """The files of a journal that are left, the chain before the first, and the record if some are gone."""

    files: tuple[Path, ...]
    chain: Chain
    pruned: Pruned | None


def left_of(path: Path) -> Left:
    """Return what is left of a journal; raises BadInput for a record that cannot be read."""
    files, place = segments(path), _place(path)
    try:
        pruned = msgspec.json.decode(place.read_bytes(), type=Pruned)
    except FileNotFoundError:
        return Left(files, Chain(), None)
    except msgspec.DecodeError as error:
        remedy = "restore the file: without it, what is left of the journal cannot be read"
        raise BadInput(str(place), f"is not a record of deleted segments ({error})", remedy) from None
    if pruned.format != FORMAT:
        raise BadInput(str(place), f"has format {pruned.format}", "use the version that wrote it")
    files = tuple(each for each in files if each == path or number_of(path, each) > pruned.segment)
    return Left(files, Chain(pruned.line, pruned.chain), pruned)


def record(path: Path, pruned: Pruned) -> None:
    """Write the record, whole or not at all. Raises OSError."""
    place = _place(path)
    beside = place.with_name(f"{place.name}.next")
    with beside.open("wb") as file:
        file.write(msgspec.json.encode(pruned) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, place)
    sync_folder(path.parent)


def _place(path: Path) -> Path:
    return path.with_name(f"{path.stem}.pruned.json")
