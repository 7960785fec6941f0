"""A journal in memory, for tests and for runs that write their journal at the end.

Law: it keeps records, and says which bytes a closed journal file would hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarnctl.deciding.records import Record
from yarnctl.journal.chain import Chain


class MemoryJournal:
    """Keeps the records in a list; satisfies :class:`yarnctl.loop.Journal`."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end, in order."""
        self.records.extend(records)

    def encoded(self) -> bytes:
        """Return the bytes that a journal file would hold, once closed."""
        chain = Chain()
        return b"".join(map(chain.seal, self.records)) + chain.seal_end()
