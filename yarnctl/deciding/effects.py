"""Effects: what a change leads to.

Law: a value to its caller. Whoever changes the ledger returns the records that say so and the actions that
follow, in order; nothing collects them beside it, so nobody can forget to empty a list.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnctl.deciding.model import Action
from yarnctl.deciding.records import Record


class Effects:
    """Records and actions, in the order in which they were made."""

    __slots__ = ("actions", "records")

    def __init__(self, records: Iterable[Record] = (), actions: Iterable[Action] = ()) -> None:
        self.records: list[Record] = list(records)
        self.actions: list[Action] = list(actions)

    def add(self, more: Effects) -> None:
        """Put what came after behind."""
        self.records += more.records
        self.actions += more.actions

    def __bool__(self) -> bool:
        return bool(self.records or self.actions)
