"""Effects: what a change of the ledger leads to, in order: records that say so, actions to be asked of the
cluster.

Law: who changes something returns its effects; whoever called adds them to its own. Nothing is collected in a
place that somebody must remember to clear.
"""

from __future__ import annotations

from yarnctl.deciding.model import Action
from yarnctl.deciding.records import Record


class Effects:
    """Records and actions, each in the order in which they were made."""

    __slots__ = ("actions", "records")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.actions: list[Action] = []

    def add(self, more: Effects) -> None:
        """Append what another change has led to."""
        self.records += more.records
        self.actions += more.actions
