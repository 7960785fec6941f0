"""Priorities: whose place in YARN's order we have changed, and from what.

Law: what was changed can be put back, also by a program that has only the journal.
"""

from __future__ import annotations

from yarnctl.deciding.model import Accepted, SetPriority
from yarnctl.deciding.records import Performed, Ranking, Record


class Priorities:
    """Whose priority we have changed, and from what."""

    def __init__(self) -> None:
        self.changed: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def take(self, record: Record) -> None:
        """Note a ranking, or what came of a change."""
        if isinstance(record, Ranking):
            self._before = {row.application: row.before for row in record.order}
        elif isinstance(record, Performed) and isinstance(record.action, SetPriority):
            self._performed(record.action, isinstance(record.outcome, Accepted))

    def _performed(self, action: SetPriority, done: bool) -> None:
        name = action.application
        if not done:
            return
        if self.changed.get(name) == action.priority:
            del self.changed[name]
        elif name in self._before:
            self.changed.setdefault(name, self._before[name])
