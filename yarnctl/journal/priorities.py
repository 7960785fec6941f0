"""Priorities: whose place in YARN's order we have changed, and from what.

Law: what was changed can be put back, also by a program that has only the journal. The ranking is the
written intent: from then on a priority counts as changed, until it is known that it was not.
"""

from __future__ import annotations

from yarnctl.deciding.model import Accepted, Refused, SetPriority, Withheld
from yarnctl.deciding.records import Header, Performed, Ranking, Record, Restoring


class Priorities:
    """Whose priority we have changed, and from what; ``due``: what is to be put back next."""

    def __init__(self) -> None:
        self.changed: dict[str, int] = {}
        self.due: Restoring | None = None
        self._fresh: set[str] = set()
        self._observing = False

    def take(self, record: Record) -> None:
        """Note a ranking, what is to be put back, or what came of a change."""
        if isinstance(record, Header):
            self._observing, self._fresh = record.settings.observe_only, set()
        elif isinstance(record, Ranking):
            if not self._observing:
                self._ranked(record)
        elif isinstance(record, Restoring):
            self.due = record
        elif isinstance(record, Performed) and isinstance(record.action, SetPriority):
            self._performed(record.action, record)

    def _ranked(self, ranking: Ranking) -> None:
        """Count what is about to be changed as changed.

        What the ranking before counted, and was not sent, is not: who was refused waits for a while.
        """
        for name in self._fresh:
            self.changed.pop(name, None)
        self._fresh = set()
        for row in ranking.order:
            if row.priority != row.before and row.application not in self.changed:
                self.changed[row.application] = row.before
                self._fresh.add(row.application)

    def _performed(self, action: SetPriority, record: Performed) -> None:
        name = action.application
        if action.back:
            self.due = None
        as_it_was = isinstance(record.outcome, Accepted) and self.changed.get(name) == action.priority
        undone = isinstance(record.outcome, Refused | Withheld) and name in self._fresh and not action.back
        if as_it_was or undone:
            del self.changed[name]
        self._fresh.discard(name)

    def problem(self, record: Restoring) -> str:
        """Say why this record cannot come next, "" if it can. Before :meth:`take`."""
        if self.changed.get(record.application) != record.priority:
            return f"{record.application} is put back to {record.priority}, and no record says that it was so"
        return ""

    def performed_problem(self, action: SetPriority) -> str:
        """Say why this restoring action cannot come next, "" if it can. Before :meth:`take`."""
        due = self.due
        if due is None or (due.application, due.priority) != (action.application, action.priority):
            return f"the priority of {action.application} was put back, and no record says so"
        return ""
