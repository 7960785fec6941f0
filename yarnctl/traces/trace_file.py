"""Reading a trace file, plain or gzip (by its first two bytes), into text; and giving jobs unique names."""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from yarnctl.errors import BadInput

FILE_MAX_BYTES = 4 << 30
"""Of a file, and of what a packed file holds."""
_GZIP_MAGIC = b"\x1f\x8b"
_PIECE_BYTES = 1 << 20
Row = TypeVar("Row")


class CountedRows(Protocol):
    """Passes rows on, and counts them for the progress bar."""

    def __call__(self, rows: Iterable[Row], /) -> Iterator[Row]:
        """Yield the rows."""


_BLANKS = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(r"[^\x00-\x20\x7f\ud800-\udfff]{1,200}")


def read_text(path: Path, where: str) -> str:
    """Return the text of a plain or gzip file; BadInput if it cannot be read, is torn or is not UTF-8."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(where, f"cannot be read: {problem}", "check the path") from None
    return text_of(data, where)


def text_of(data: bytes | bytearray, where: str) -> str:
    """Return the text of a plain or gzip file's content; raises BadInput as :func:`read_text`."""
    if data.startswith(_GZIP_MAGIC):
        try:
            data = _unpacked(data, where)
        except (OSError, EOFError, zlib.error) as error:
            raise BadInput(where, f"the gzip data is torn: {error}", "fetch the file again") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(f"{where}:{line}", "not UTF-8 text", "give a text trace, plain or gzip") from None


def _unpacked(data: bytes | bytearray, where: str) -> bytearray:
    """Return what gzip data holds, piece by piece: a few MiB can hold any number of GiB."""
    found = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while piece := file.read(_PIECE_BYTES):
            found += piece
            if len(found) > FILE_MAX_BYTES:
                problem = f"holds more than {FILE_MAX_BYTES >> 30} GiB of text"
                raise BadInput(where, problem, "unpack it and split it at a line")
    return found


def json_objects(text: str, where: str, remedy: str) -> Iterator[tuple[str, Any]]:
    """Yield JSON values that stand one after the other, each with its place. Raises BadInput there."""
    decoder = json.JSONDecoder()
    position, line, counted = 0, 1, 0
    while (position := _end_of_blanks(text, position)) < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            raw, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as error:
            problem = f"field job: torn JSON at column {error.colno}: {error.msg}"
            raise BadInput(f"{where}:{error.lineno}", problem, remedy) from None
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where}:{line}", f"field job: cannot be read: {error}", remedy) from None
        yield f"{where}:{line}", raw


def _end_of_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def is_name(text: str) -> bool:
    """Say whether ``text`` can name a job: 1 to 200 characters, no blanks, no control characters."""
    return _NAME.fullmatch(text) is not None


def unique_names(names: Sequence[str]) -> tuple[list[str], int]:
    """Return the names with ``~2``, ``~3``... added to repeats (none of the trace's), and how many."""
    taken = set(names)
    if len(taken) == len(names):
        return list(names), 0
    seen: dict[str, int] = {}
    result: list[str] = []
    for name in names:
        count = seen.get(name, 0) + 1
        given = name
        while count > 1 and (given := f"{name}~{count}") in taken:
            count += 1
        seen[name] = count
        taken.add(given)
        result.append(given)
    return result, len(names) - len(set(names))
