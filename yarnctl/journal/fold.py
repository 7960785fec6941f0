"""Fold: what the records of a journal leave, for a restart and for replay.

Law: the changes are applied and nothing is decided again. There is one fold: what a controller goes on with
is what replay and the checks of a run see, too.
"""

from __future__ import annotations

from yarnctl.deciding.admission.book import Book
from yarnctl.deciding.controller import Remembered
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.ledger_state import ledger_of, state_of
from yarnctl.deciding.order import order_number
from yarnctl.deciding.prioritising import ChangedPriorities
from yarnctl.deciding.queue_hold import HeldQueues
from yarnctl.deciding.records import Contact, Decision, Epoch, Header, Record, Resumed, Stopped


class Fold:
    """``ledger`` and ``now_ms`` as the last step left them; what the daemon's own parts have changed."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.now_ms = 0
        self.queues = HeldQueues()
        self.priorities = ChangedPriorities()
        self.book = Book()
        self.epoch = ""
        self._fresh: Header | None = None

    def apply(self, record: Record) -> None:
        """Apply the next record. None is refused: what a ledger cannot take here, replay tells."""
        if isinstance(record, Header):
            self._fresh = record
        elif isinstance(record, Resumed):
            self._resumed(record)
        elif isinstance(record, Observed | Stopped):
            if self._fresh is not None:
                self.ledger, self._fresh, self.now_ms = Ledger(self._fresh.settings), None, 0
            self.now_ms = max(self.now_ms, record.at_ms)
        elif isinstance(record, Contact | Epoch):
            self.epoch = record.epoch
        elif isinstance(record, Decision):
            self._make_way(record)
        self.ledger.apply(record)
        self.queues.apply(record)
        self.priorities.apply(record)
        self.book.take(record)

    def _resumed(self, record: Resumed) -> None:
        """A controller goes on: by its own settings, and by a clock that may have been set back."""
        self.ledger.retire(self.now_ms)  # the last step has ended what time ends, after its facts
        if self._fresh is not None:
            self.ledger.settings, self._fresh = self._fresh.settings, None
        if record.at_ms < self.now_ms:
            self.ledger.set_back(self.now_ms - record.at_ms)
        self.now_ms, self.ledger.due = record.at_ms, []

    def _make_way(self, record: Decision) -> None:
        """Count an order as lost whose container is under order anew: its end was not told."""
        for pick in record.picks:
            standing = self.ledger.by_container.get(pick.task.container)
            if standing is not None:
                self.ledger.happen(standing, "epoch-changed", record.at_ms)
        if record.orders:
            self.ledger.issued = order_number(record.orders[0]) - 1

    def remembered(self) -> Remembered:
        """Return what the next controller goes on with; the fold itself is not touched by it."""
        return Remembered(ledger_of(state_of(self.ledger), self.ledger.settings), self.now_ms)

    def problem(self, record: Record) -> str:
        """Say why a record that no step makes cannot come next, "" if it can. Before :meth:`apply`."""
        return self.queues.problem(record) or self.priorities.problem(record) or self.book.problem(record)
