"""Freed containers that go to another application: how it is noticed, and the queue cap that prevents it.

``Misdirection`` reads records alone, so its state survives a restart. The cap is off unless an administrator
sets it. A preemptable queue is capped at its own guarantee, never below; the limit before is in the record
that is written first, and is restored when no preempting application has had pending requests and no order
has been open for a while. Between two waves of a preempting job there are no requests, and the preemptable
jobs' requests would be served first (facts, section 11: take-back).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from yarnctl.deciding.model import Change
from yarnctl.deciding.reasons.modes import Misdirected
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.records import Record, Stance, Transition

RECENT_ORDERS = 10
MISDIRECTED_MAX = 3
CONTINUED = "continued"
"""The loop state that is written when a person continues the loop."""


class Misdirection:
    """Three of the last ten misdirected is too many. ``last``: the moves that freed containers.

    Once ``why`` is set it stays so until a person continues the loop (or ``clear``).
    """

    def __init__(self, last: Iterable[Transition] = (), why: Misdirected | None = None) -> None:
        self.last: deque[Transition] = deque(last, maxlen=RECENT_ORDERS)
        self.why = why

    def apply(self, records: Iterable[Record]) -> None:
        """Read records in the order of the journal."""
        for record in records:
            if isinstance(record, Stance) and record.stance == CONTINUED:
                self.clear()
            elif isinstance(record, Transition) and (record.target == "granted" or _is_misdirected(record)):
                self.last.append(record)
                self._judge()

    def _judge(self) -> None:
        misdirected = [record for record in self.last if _is_misdirected(record)]
        if len(misdirected) >= MISDIRECTED_MAX and self.why is None:
            orders = tuple((record.order, record.application) for record in misdirected)
            self.why = Misdirected(orders, len(self.last))

    def clear(self) -> None:
        """Begin to count anew."""
        self.last.clear()
        self.why = None


def _is_misdirected(record: Transition) -> bool:
    """Return whether another application got the container: observed, or while its requester waits."""
    return record.target == "misdirected" or (
        isinstance(record.why, Unclaimed) and record.why.requester_waits
    )


CAP_AFTER_MS = 15_000
"""How long a cap outlives the last request: about the pause between a job's maps and its reduces."""
CAP_UNSERVED_MS = 60_000
"""How long a cap outlives the last order while requests wait: one that cannot be served caps no queue."""


class QueueLimits(msgspec.Struct, frozen=True):
    """A queue's configured guarantee and maximum, as parts of its parent."""

    guaranteed_ratio: float
    maximum_ratio: float


class QueueCap:
    """Decides when queues are to be capped. ``after_ms``: see :data:`CAP_AFTER_MS`."""

    def __init__(self, after_ms: int = CAP_AFTER_MS) -> None:
        self.after_ms = after_ms
        self._wanted_at_ms: int | None = None
        self._ordered_at_ms = 0

    def is_due(self, now_ms: int, open_orders: int, waiting: bool) -> bool:
        """Return whether to cap now: from an order on, while preempting applications have requests."""
        if open_orders:
            self._ordered_at_ms = now_ms
        served = now_ms - self._ordered_at_ms < CAP_UNSERVED_MS
        if open_orders or (waiting and served and self._wanted_at_ms is not None):
            self._wanted_at_ms = now_ms
        if self._wanted_at_ms is not None and now_ms - self._wanted_at_ms >= self.after_ms:
            self._wanted_at_ms = None
        return self._wanted_at_ms is not None

    def clear(self) -> None:
        """Begin anew: the next cap begins with an order."""
        self._wanted_at_ms = None


def capping(queue: str, limits: QueueLimits) -> Change | None:
    """Return the change that caps a queue at its guarantee; None if there is nothing to cap."""
    if limits.maximum_ratio <= limits.guaranteed_ratio:
        return None
    return Change("queue", queue, repr(limits.maximum_ratio), repr(limits.guaranteed_ratio))
