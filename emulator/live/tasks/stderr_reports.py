r"""What streaming reads from a command's standard error: lines, counters, status.

Law: as Hadoop's LineReader and PipeMapRed do. A line ends at ``\n``, ``\r`` or ``\r\n``; a counter's line is
trimmed, split at commas without empty fields at its end, and its number is what ``Long.parseLong`` takes;
sums wrap around. Standard library only: task processes run this file.
"""

from __future__ import annotations

import re
import unicodedata

LONG_RANGE = range(-(1 << 63), 1 << 63)
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")
_BLANKS = "".join(chr(code) for code in range(0x21))


class LineReader:
    """Cuts bytes that come in pieces into lines without their ends."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._after_return = False

    def take(self, data: bytes) -> list[bytes]:
        """Return the lines that are known to have ended."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        self._after_return = data.endswith(b"\r") or (self._after_return and not data)
        found = data.splitlines(keepends=True)
        lines: list[bytes] = []
        for line in found:
            self._rest += line.rstrip(b"\r\n")
            if line.endswith((b"\r", b"\n")):
                lines.append(bytes(self._rest))
                self._rest.clear()
        return lines

    def finish(self) -> list[bytes]:
        """Return the last line, if it has no end."""
        return [bytes(self._rest)] if self._rest else []


def java_text(data: bytes) -> str:
    """Return bytes as Hadoop's Text shows them: a surrogate in UTF-8 is one U+FFFD (three in Python)."""
    return _SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def counted(text: str) -> tuple[str, str, int] | None:
    """Return group, name and amount of what follows ``reporter:counter:``, None if nothing is counted."""
    fields = text.strip(_BLANKS).split(",")
    while fields and not fields[-1]:
        fields.pop()
    if len(fields) != 3:
        return None
    amount = parse_long(fields[2])
    return None if amount is None else (fields[0], fields[1], amount)


def parse_long(text: str) -> int | None:
    """Return what ``Long.parseLong`` makes of a text, None where it raises."""
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    values = [unicodedata.decimal(char, -1) if char <= "\uffff" else -1 for char in digits]
    if not values or -1 in values:
        return None
    plain = "".join(map(str, values)).lstrip("0")
    if len(plain) > 19:
        return None
    amount = int(f"{sign}{plain or 0}")
    return amount if amount in LONG_RANGE else None


def wrapped(value: int) -> int:
    """Return a sum as a Java long holds it."""
    return (value - LONG_RANGE.start) % (1 << 64) + LONG_RANGE.start
