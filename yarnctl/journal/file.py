"""The journal file: append-only, one record a line.

Law: what is appended is on disk when ``append`` returns, and is never changed again. A reader takes
whole lines that this program could have written and nothing else: a torn or foreign line is bad
input, named by file and line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import msgspec

from yarnctl.deciding.records import FORMAT, Header, Record, decode, encode
from yarnctl.errors import BadInput


class Line(NamedTuple):
    """One record with the number of its line (the first is 1) and its bytes."""

    number: int
    record: Record
    raw: bytes


class JournalFile:
    """Writes records to a file; satisfies :class:`yarnctl.loop.Journal`. Use it in a ``with``.

    ``durable``: wait for the disk at each append (a real cluster), not only for the operating
    system (an emulator's run). Raises BadInput if the file ends in the middle of a line: after a
    crash, somebody has to look at it first.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self.durable = durable
        self._file = path.open("ab")
        if not _ends_with_newline(path):
            self._file.close()
            raise BadInput(str(path), "the last line is torn", "move the file away, or cut that line")

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order; return when they are safe."""
        self._file.write(b"".join(map(encode, records)))
        self._file.flush()
        if self.durable:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; nothing is left to be written."""
        self._file.close()

    def __enter__(self) -> JournalFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def read(path: Path) -> Iterator[Line]:
    """Yield the records of a journal file; raises BadInput("file:line", ...) and OSError."""
    number = 0
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            where = f"{path}:{number}"
            if not raw.endswith(b"\n"):
                raise BadInput(where, "the line is torn (no newline at its end)")
            try:
                record = decode(raw)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadInput(where, f"no record of a yarnctl journal ({error})") from None
            if number == 1 and not isinstance(record, Header):
                raise BadInput(where, "a journal begins with a header")
            if isinstance(record, Header) and record.format != FORMAT:
                raise BadInput(
                    where, f"format {record.format} of the journal is not known", f"expected {FORMAT}"
                )
            yield Line(number, record, raw)
    if number == 0:
        raise BadInput(str(path), "the journal is empty")
