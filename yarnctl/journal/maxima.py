"""Which queues' maxima were changed and not put back, and what they were before: read off the journal.

Law: what was changed can be put back, also by a program that has only the journal. A change that was written
down and whose outcome is not known counts as made.
"""

from __future__ import annotations

from yarnctl.deciding.model import Accepted, Refused, SetQueueMaximum, Withheld
from yarnctl.deciding.queue_hold import SERVING, action_of
from yarnctl.deciding.records import HoldEnded, HoldFound, Holding, Performed, Record

Told = Holding | HoldFound | HoldEnded
"""The records that say how a queue's maximum is held."""


class Maxima:
    """``held``: queue -> the record of its hold; ``due``: the last record that nothing came of yet."""

    def __init__(self) -> None:
        self.held: dict[str, Holding] = {}
        self.due: Holding | None = None

    def take(self, record: Record) -> None:
        """Note what is to be changed, or what came of it."""
        if isinstance(record, Holding):
            self.due = record
            if record.why == SERVING:
                self.held[record.queue] = record
        elif isinstance(record, HoldFound):
            self.held[record.queue] = as_holding(record)
        elif isinstance(record, HoldEnded):
            self.held.pop(record.queue, None)
        elif isinstance(record, Performed) and isinstance(record.action, SetQueueMaximum):
            self._performed(record.action, record)

    def _performed(self, action: SetQueueMaximum, record: Performed) -> None:
        self.due = None
        done = isinstance(record.outcome, Accepted)
        undone = isinstance(record.outcome, Refused | Withheld)
        if done if action.back else undone:
            self.held.pop(action.queue, None)

    def problem(self, record: Told) -> str:
        """Say why this record cannot come next, "" if it can. Before :meth:`take`."""
        held = self.held.get(record.queue)
        if isinstance(record, HoldEnded):
            return "" if held is not None else f"{record.queue} is not held any more, and no record held it"
        if isinstance(record, HoldFound) or record.why == SERVING:
            if held is not None:
                return f"{record.queue} is held already"
            return "" if record.ratio < record.before_ratio else f"{record.queue} is raised, not held"
        if held is None or (held.before_ratio, held.ratio) != (record.ratio, record.before_ratio):
            return f"{record.queue} is put back to {record.ratio}, and no record says that it was so"
        return ""

    def performed_problem(self, action: SetQueueMaximum) -> str:
        """Say why this action cannot come next, "" if it can. Before :meth:`take`."""
        if self.due is None or action_of(self.due) != action:
            return f"the maximum of {action.queue} was set, and no record says so"
        return ""


def as_holding(found: HoldFound) -> Holding:
    """Return a hold that another daemon left as the record it would be of this one."""
    return Holding(found.at_ms, found.queue, found.before_ratio, found.ratio, SERVING)
