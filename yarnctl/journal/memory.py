"""A journal in memory, for tests and for runs that write their journal at the end."""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.deciding.records import Record, encode


class MemoryJournal:
    """Keeps the records in a list; satisfies :class:`yarnctl.loop.Journal`."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        self.records.extend(records)

    def encoded(self) -> bytes:
        """Return the bytes that a journal file would hold."""
        return b"".join(map(encode, self.records))
