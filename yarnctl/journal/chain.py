"""The chain: every line of a journal proves all lines before it unchanged.

A line is a record's own bytes with an envelope at its end: its number, and a digest over the line before and
these bytes, without clock, path or secret. To change, remove, swap or repeat a line breaks the chain; a chain
that was computed anew must still pass :mod:`yarnctl.journal.replay`. The last line of a closed journal marks
its end, so that a cut is found too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b

from yarnctl.deciding.records import Record, encode

END = b'{"type":"end"}\n'
"""The body of the line that closes a journal: it is no record."""

_ENVELOPE = re.compile(rb',"line":([1-9][0-9]{0,17}),"chain":"([0-9a-f]{16})"\}\n\Z')

ENVELOPE_MAX = 80
"""No envelope is longer than this, in bytes."""


class Chain:
    """The running digest; ``number`` and ``digest`` are those of the last line."""

    __slots__ = ("digest", "number")

    def __init__(self, number: int = 0, digest: str = "0" * 16) -> None:
        self.number = number
        self.digest = digest

    def seal(self, record: Record) -> bytes:
        """Return the next line."""
        return self.seal_body(encode(record))

    def seal_end(self) -> bytes:
        """Return the line that closes the journal."""
        return self.seal_body(END)

    def seal_body(self, body: bytes) -> bytes:
        """Return the next line, from a record's own bytes (an object of JSON and a newline)."""
        self.number += 1
        self.digest = blake2b(self.digest.encode() + body, digest_size=8).hexdigest()
        return b'%b,"line":%d,"chain":"%b"}\n' % (body[:-2], self.number, self.digest.encode())


def last_link(tail: bytes) -> Chain | None:
    """Return the chain after a journal that ends in ``tail``; None: no envelope there."""
    found = _ENVELOPE.search(tail)
    return None if found is None else Chain(int(found[1]), found[2].decode())


def body_of(line: bytes) -> bytes | None:
    """Return a line without its envelope; None if it has none."""
    found = _ENVELOPE.search(line, max(0, len(line) - ENVELOPE_MAX))
    return None if found is None else line[: found.start()] + b"}\n"


class MemoryJournal:
    """Keeps the records in a list; implements :class:`yarnctl.loop.Journal`."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        self.records.extend(records)

    def encoded(self) -> bytes:
        """Return the bytes of a journal file with these records, once closed."""
        chain = Chain()
        return b"".join(map(chain.seal, self.records)) + chain.seal_end()
