"""Freed containers that go to another application: how it is noticed, and the queue cap that prevents it.

``Misdirection`` reads records alone, so its state survives a restart. The cap is off unless an administrator
sets it. A preemptable queue is capped at its own guarantee, never below; the limit before is in the record
that is written first, and is restored when no preempting application has had pending requests and no order
has been open for a while. Between two waves of a preempting job there are no requests, and the preemptable
jobs' requests would be served first (facts, section 11: take-back).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.deciding.model import Accepted, Refused, SetQueueMaximum, Withheld
from yarnctl.deciding.reasons.modes import Misdirected
from yarnctl.deciding.reasons.orders import QueueReason, QueueServing, Unclaimed
from yarnctl.deciding.records import (
    HoldEnded,
    HoldFound,
    Holding,
    Performed,
    Record,
    Stance,
    Transition,
    is_of,
)

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


def lower(queue: str, limits: QueueLimits, at_ms: int) -> Holding | None:
    """Return the record of capping a queue at its guarantee; None if there is nothing to cap."""
    if limits.maximum_ratio <= limits.guaranteed_ratio:
        return None
    return Holding(at_ms, queue, limits.maximum_ratio, limits.guaranteed_ratio, QueueServing(), lowers=True)


def put_back(held: Mapping[str, Holding], at_ms: int, why: QueueReason) -> tuple[Holding, ...]:
    """Return the records of restoring the queues' limits, by name."""
    return tuple(
        Holding(at_ms, queue, held[queue].ratio, held[queue].before_ratio, why) for queue in sorted(held)
    )


def action_of(record: Holding) -> SetQueueMaximum:
    """Return a record's action."""
    return SetQueueMaximum(record.queue, record.ratio, back=not record.lowers)


class HeldQueues:
    """Which queues are capped and not restored, by the records: each change can be undone.

    ``held``: queue -> the record of its cap; ``due``: the last record without an outcome. A change
    that was written down and whose outcome is not known counts as made.
    """

    def __init__(self, held: Mapping[str, Holding] | None = None, due: Holding | None = None) -> None:
        self.held: dict[str, Holding] = dict(held or {})
        self.due = due

    def apply(self, record: object) -> None:
        """Note what is to be changed, or its outcome."""
        if isinstance(record, Holding):
            self.due = record
            if record.lowers:
                self.held[record.queue] = record
        elif isinstance(record, HoldFound):
            self.held[record.queue] = Holding(
                record.at_ms, record.queue, record.before_ratio, record.ratio, QueueServing(), lowers=True
            )
        elif isinstance(record, HoldEnded):
            self.held.pop(record.queue, None)
        elif isinstance(record, Performed) and record.queue:
            self.due = None
            done = isinstance(record.outcome, Accepted)
            undone = isinstance(record.outcome, Refused | Withheld)
            if done if record.back else undone:
                self.held.pop(record.queue, None)

    def problem(self, record: object) -> str:
        """Return why this record cannot come next, "" if it can. Before :meth:`apply`."""
        if isinstance(record, Performed) and record.queue:
            is_due = self.due is not None and is_of(record, action_of(self.due))
            return "" if is_due else f"the maximum of {record.queue} was set, and no record says so"
        if not isinstance(record, Holding | HoldFound | HoldEnded):
            return ""
        held = self.held.get(record.queue)
        if isinstance(record, HoldEnded):
            return "" if held is not None else f"{record.queue} is not held any more, and no record held it"
        if isinstance(record, HoldFound) or record.lowers:
            if held is not None:
                return f"{record.queue} is held already"
            return "" if record.ratio < record.before_ratio else f"{record.queue} is raised, not held"
        if held is None or (held.before_ratio, held.ratio) != (record.ratio, record.before_ratio):
            return f"{record.queue} is put back to {record.ratio}, and no record says that it was so"
        return ""
