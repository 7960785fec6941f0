"""The settings of other owners that yarnctl has lowered and not restored, by the records of a journal.

A change that was written counts as made until its end was observed. What is restored is what the records in
HDFS name (:mod:`yarnctl.restoring`); this fold serves display, and the check of a journal.
"""

from __future__ import annotations

from collections.abc import Iterable

from yarnctl.deciding.model import Change, ChangeKind
from yarnctl.deciding.records import Lowering, Performed, Restored, Restoring


class OpenChanges:
    """``open``: setting -> the change of it."""

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        self.open: dict[tuple[ChangeKind, str], Change] = {change.key: change for change in changes}

    def apply(self, record: object) -> None:
        """Note changes that are about to be made, and ends of changes."""
        if isinstance(record, Lowering):
            self.open.update((change.key, change) for change in record.changes)
        elif isinstance(record, Restored):
            self.open.pop((record.kind, record.target), None)

    def problem(self, record: object) -> str:
        """Return why this record cannot come next, "" if it can. Before :meth:`apply`."""
        if isinstance(record, Restoring) and self.open.get(record.change.key) != record.change:
            one = record.change
            return f"the {one.kind} of {one.target} is restored, and no record says that it was so changed"
        if isinstance(record, Restored) and (record.kind, record.target) not in self.open:
            return f"the change of {record.kind} of {record.target} has ended, and no record says it was made"
        if isinstance(record, Performed) and record.queue and not record.back:
            known = ("queue", record.queue) in self.open
            return "" if known else f"the maximum of {record.queue} was set, and no record says so"
        return ""
