"""Segments: a journal that has grown too large for one file goes on in a new one.

Law: nothing is ever thrown away or changed. ``journal.jsonl`` is what is being written; when it is full it is
renamed, whole, to ``journal.000001.jsonl``, ``journal.000002.jsonl``, ...: the chain of digests goes on from
one to the next, so a missing or exchanged segment shows as a missing line does. A segment that is no longer
written to may be compressed with gzip (``journal.000001.jsonl.gz``); it is read just the same.

The rename is one step of the file system and happens between two whole lines. Whoever dies before it has a
file that is a little too large, whoever dies after it has none to write to: both are journals.
"""

from __future__ import annotations

import errno
import gzip
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

_LOG = logging.getLogger("yarnctl.journal")


def segments(path: Path) -> tuple[Path, ...]:
    """Return the files of a journal in order: its segments, and ``path`` itself if it is there."""
    name = re.compile(re.escape(path.stem) + r"\.([0-9]{6,12})" + re.escape(path.suffix) + r"(\.gz)?")
    found: dict[int, Path] = {}
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        names = []
    for each in names:  # a plain file comes before its compressed twin, which may be unfinished
        match = name.fullmatch(each)
        if match is not None:
            found.setdefault(int(match[1]), path.parent / each)
    ordered = tuple(found[number] for number in sorted(found))
    return (*ordered, path) if path.exists() or not ordered else ordered


def written_last(path: Path) -> Path | None:
    """Return the last of a journal's files that holds anything; None: there is no journal yet."""
    held = [each for each in segments(path) if each.exists() and each.stat().st_size > 0]
    return held[-1] if held else None


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
    """Raise OSError if another file than the opened one, or none, lies at ``path``."""
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


def set_aside(path: Path) -> BinaryIO | None:
    """Rename the file that is full and open a new one; None if that cannot be done now.

    Then the old handle is still good: what is written to it stands at the journal's end all the same.
    """
    try:
        if path.exists():
            numbers = [_number(path, each) for each in segments(path) if each != path]
            target = path.with_name(f"{path.stem}.{max(numbers, default=0) + 1:06d}{path.suffix}")
            os.rename(path, target)
            sync_folder(path.parent)
        file = path.open("ab")
        sync_folder(path.parent)
    except OSError as error:
        _LOG.warning("the journal %s cannot go on in a new file yet: %s", path, error.strerror)
        return None
    return file


def _number(path: Path, segment: Path) -> int:
    return int(segment.name[len(path.stem) + 1 :].partition(".")[0])


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
