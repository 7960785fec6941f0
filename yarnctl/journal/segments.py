"""Segments: a journal that has grown too large for one file continues in a new one.

Nothing is changed, and only ``journal prune`` removes what an export holds (:mod:`yarnctl.journal.pruned`).
``journal.jsonl`` is the file that is written to; when it is full it is
renamed, whole, to ``journal.000001.jsonl``, ``journal.000002.jsonl``, ...: the chain of digests continues
from one to the next, so a missing or exchanged segment is found. A segment may be compressed with gzip
(``journal.000001.jsonl.gz``); it is read just the same.

A file in which a journal continues begins with the state after the lines before it (``state``). It is written
beside first, whole (``journal.jsonl.next``), and becomes the journal's file by a rename, between two whole
lines. After a crash before that, the journal is whole, and the file beside is written anew.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

STATE = b'{"type":"state",'
"""How the line of a state begins."""


class NotNow(OSError):
    """A journal cannot continue in a new file now; in the one before it can."""


def segments(path: Path) -> tuple[Path, ...]:
    """Return the files of a journal in order: its segments, and ``path`` itself if it is there."""
    name = re.compile(re.escape(path.stem) + r"\.([0-9]{6,12})" + re.escape(path.suffix) + r"(\.gz)?")
    found: dict[int, Path] = {}
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        names = []
    for each in names:  # a plain file comes before its compressed counterpart, which may be unfinished
        match = name.fullmatch(each)
        if match is not None:
            found.setdefault(int(match[1]), path.parent / each)
    ordered = tuple(found[number] for number in sorted(found))
    return (*ordered, path) if path.exists() or not ordered else ordered


def written_last(path: Path) -> Path | None:
    """Return the last of a journal's files that is not empty; None: there is no journal yet."""
    held = [each for each in segments(path) if each.exists() and each.stat().st_size > 0]
    return held[-1] if held else None


def last_begun(files: Sequence[Path]) -> int:
    """Return which file to read first for the journal's state: 0, or one that begins with a state.

    It is the last such file; the one before it, if that can be read by itself: it has the latest records.
    """
    for place in range(len(files) - 1, 0, -1):
        if _begins_with_state(files[place]):
            return place - 1 if place == 1 or _begins_with_state(files[place - 1]) else place
    return 0


def _begins_with_state(segment: Path) -> bool:
    try:
        with opened(segment) as file:
            return file.read(len(STATE)) == STATE
    except (OSError, EOFError, zlib.error):
        return False


@contextmanager
def opened(segment: Path) -> Iterator[BinaryIO]:
    """Open a journal's file for reading, compressed or not."""
    if segment.suffix == ".gz":
        with gzip.open(segment, "rb") as packed:
            yield cast(BinaryIO, packed)
    else:
        with segment.open("rb") as file:
            yield file


def require_same(path: Path, handle: int) -> None:
    """Raise OSError if ``path`` is another file than the opened one, or none."""
    if not _is_same(path, os.fstat(handle)):
        story = (
            "is not there any more, or is not the file that yarnctl opened: the state directory was emptied"
            " or replaced while yarnctl ran; put its files back, or start yarnctl again without its past"
        )
        raise OSError(errno.ESTALE, story, str(path))


def require_in_place(path: Path, file: BinaryIO) -> None:
    """Raise OSError if what is written to ``file`` is not part of the journal at ``path`` any more."""
    opened_file = os.fstat(file.fileno())
    if not any(_is_same(each, opened_file) for each in (path, *segments(path))):
        require_same(path, file.fileno())


def _is_same(path: Path, opened_file: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(), opened_file)
    except OSError:
        return False


def set_aside(path: Path, head: bytes, *, durable: bool) -> BinaryIO:
    """Rename the journal's file, if it is not empty, and return a new one that begins with ``head``.

    Raises NotNow if that cannot be done now: then a handle to the file before is still valid, and what is
    written to it is at the journal's end all the same. Any other OSError comes after the change.
    """
    beside = path.with_name(f"{path.name}.next")
    try:
        file = beside.open("wb")
        try:
            file.write(head)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if path.exists() and path.stat().st_size > 0:
                numbers = [number_of(path, each) for each in segments(path) if each != path]
                os.rename(path, path.with_name(f"{path.stem}.{max(numbers, default=0) + 1:06d}{path.suffix}"))
            sync_folder(path.parent)
            os.rename(beside, path)
        except OSError:
            file.close()
            raise
    except OSError as error:
        raise NotNow(error.errno, error.strerror or str(error), str(path)) from error
    sync_folder(path.parent)
    return file


def number_of(path: Path, segment: Path) -> int:
    """Return the number in the name of a segment."""
    return int(segment.name[len(path.stem) + 1 :].partition(".")[0])


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
