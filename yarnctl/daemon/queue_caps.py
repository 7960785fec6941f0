"""Lower the maximum of preemptable queues while production has demand (``--cap-queue``).

* All queues of one decision are recorded in one write before the first is lowered; :mod:`yarnctl.restoring`
  restores them when the demand has ended, or when yarnctl may not act.
* A scheduler that cannot be changed is logged once, and the loop continues without caps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

from yarnctl.deciding.model import Change, Outcome, Refused, SetQueueMaximum, Withheld
from yarnctl.deciding.queue_hold import QueueCap, QueueLimits, capping
from yarnctl.deciding.queue_names import QueueTree, capped
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.orders import DemandOver, QueueServing
from yarnctl.deciding.records import Record, performed
from yarnctl.journal.rendering import text
from yarnctl.restoring.restorer import Restorer

_LOG = logging.getLogger("yarnctl.daemon")

Write = Callable[[Record], None]


class ReadLimits(Protocol):
    """Returns a preemptable queue's path and configured limits, or why they are unknown."""

    def __call__(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Read one queue."""
        ...


class QueueCaps:
    """Caps ``preemptable_queues`` while requests are being served.

    ``perform`` performs an action; ``restorer`` records and restores. ``enabled`` False: no queue is capped.
    ``cap`` decides when. ``tree`` returns the newest tree of queues: parents with only preemptable leaves are
    capped, too.
    """

    def __init__(
        self,
        limits: ReadLimits,
        perform: Callable[[SetQueueMaximum], Outcome],
        preemptable_queues: Iterable[str],
        restorer: Restorer,
        *,
        enabled: bool = True,
        cap: QueueCap | None = None,
        tree: Callable[[], QueueTree | None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._perform = perform
        self.preemptable_queues = tuple(preemptable_queues)
        self._restorer = restorer
        self.enabled = enabled
        self._tree = tree
        self._cap = cap or QueueCap()
        self._logged = ""

    def reconcile(
        self, write: Write, now_ms: int, open_orders: int, waiting: bool, closed: ModeReason | None
    ) -> None:
        """After a tick: cap, or let queues be restored. ``closed``: why yarnctl may not act."""
        if closed is not None:
            self._cap.clear()
        elif not self._cap.is_due(now_ms, open_orders, waiting):
            self._restorer.make_due(DemandOver(), ("queue",))
        elif self.enabled and not any(kind == "queue" for kind, _ in self._restorer.open):
            self._lower(write, now_ms)

    def _lower(self, write: Write, now_ms: int) -> None:
        changes: list[Change] = []
        for queue in capped(self.preemptable_queues, self._tree()):
            found = self._limits(queue)
            if isinstance(found, str):
                self._disable(found)
                return
            change = capping(*found)
            if change is not None:
                changes.append(change)
        if not changes:
            return
        if problem := self._restorer.record(changes, QueueServing()):
            if problem != self._logged:
                _LOG.warning("queue capping paused: %s", problem)
            self._logged = problem
            return
        self._logged = ""
        for change in changes:
            action = SetQueueMaximum(change.target, float(change.now))
            outcome = self._perform(action)
            write(performed(now_ms, action, outcome))
            if isinstance(outcome, Refused | Withheld):
                self._restorer.not_made(change.key)
            if isinstance(outcome, Refused):
                self._disable(text(outcome.why))

    def _disable(self, why: str) -> None:
        if self.enabled:
            _LOG.warning("queue capping disabled: %s", why)
        self.enabled = False
