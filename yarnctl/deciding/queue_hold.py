"""Freed containers that go to another application: the pause of their queue, and the cap that prevents it.

``Misdirection`` reads records alone, so its state survives a restart. The cap is off unless an administrator
sets it. A preemptable queue is capped at its own guarantee, never below; the limit before is in the record
that is written first, and is restored when no preempting application has had pending requests and no order
has been open for a while. Between two waves of a preempting job there are no requests, and the preemptable
jobs' requests would be served first (facts, section 11: take-back).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from yarnctl.deciding.forecast import model_queues
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.model import Change, Snapshot
from yarnctl.deciding.queue_names import ROOT
from yarnctl.deciding.reasons.demand import BindingLimit, QueueAtMaximum, StandingAside
from yarnctl.deciding.reasons.orders import Unclaimed
from yarnctl.deciding.records import (
    Decision,
    FreedContainer,
    QueueReleases,
    QueueResumed,
    Record,
    Requester,
    Resumed,
    Stance,
    StoodAside,
    Transfer,
    Transition,
)
from yarnctl.deciding.tree_model import QueueTreeModel

RECENT_ORDERS = 10
MISDIRECTED_MAX = 3
FIRST_PAUSE_MS = 5 * 60_000
PAUSE_MAX_MS = 60 * 60_000
GRANTED_TO_FORGET = 10
"""So many granted containers in a row after a pause: the next pause is a first one again."""
CONTINUED = "continued"
"""The loop state that is written when a person continues the loop."""


class Misdirection:
    """Counts, for each requesting queue, the freed containers that other applications received.

    Three of a queue's last ten are too many: it is ``due`` for a pause, which begins with a ``StoodAside``
    record and ends by time, or with an operator's record. During a pause nothing is counted; then the count
    begins anew. Each further pause is twice as long. ``queues``: by path; ``requesters``: by open order.
    """

    def __init__(
        self, queues: Iterable[QueueReleases] = (), requesters: Mapping[str, Requester] | None = None
    ) -> None:
        self.queues = {each.queue: each for each in queues}
        self.requesters = dict(requesters or {})
        self._answered: Requester | None = None

    def apply(self, records: Iterable[Record]) -> None:
        """Read records in the order of the journal."""
        for record in records:
            if isinstance(record, Decision):
                requester = Requester(record.trigger.application, record.trigger.queue)
                self.requesters.update(dict.fromkeys(record.orders, requester))
            elif isinstance(record, Transfer):
                self._transfer(record)
            elif isinstance(record, Transition):
                self._moved(record)
            elif isinstance(record, StoodAside):
                before = self._of(record.why.queue)
                self.queues[before.queue] = QueueReleases(
                    queue=before.queue, pauses=before.pauses + 1, began_ms=record.at_ms, why=record.why
                )
            elif isinstance(record, QueueResumed):
                self._resume(record.queue)
            elif isinstance(record, Stance) and record.stance == CONTINUED:
                for queue in self.queues:
                    self._resume(queue)
            elif isinstance(record, Resumed):
                self._set_back(record.at_ms)

    def due(self) -> list[str]:
        """Return the queues whose pause is to begin."""
        return [queue for queue, each in self.queues.items() if _lost(each) >= MISDIRECTED_MAX]

    def pause(self, queue: str, now_ms: int, snapshot: Snapshot | None) -> StoodAside:
        """Return the record with which the pause of a queue begins."""
        each = self._of(queue)
        limit, holder = binding_limit(snapshot, queue)
        orders = tuple((one.order, one.application) for one in each.last if one.misdirected)
        until_ms = now_ms + pause_ms(each.pauses)
        return StoodAside(now_ms, StandingAside(queue, until_ms, orders, len(each.last), limit, holder))

    def standing(self, now_ms: int) -> dict[str, StandingAside]:
        """Return the queues for which no container is freed now, sorted, each with the reason."""
        return {
            queue: each.why
            for queue, each in sorted(self.queues.items())
            if each.why is not None and now_ms < each.why.until_ms
        }

    def problem(self, record: Record) -> str:
        """Return why a pause cannot begin with this record, "" if it can."""
        if not isinstance(record, StoodAside):
            return ""
        queue = record.why.queue
        if queue not in self.due():
            return f"queue {queue} stands aside, and too few of its freed containers were misdirected"
        limit, holder = record.why.limit, record.why.holder
        due = self.pause(queue, record.at_ms, None).why
        due = msgspec.structs.replace(due, limit=limit, holder=holder)
        return "" if record.why == due else f"queue {queue} stands aside, but due is {due}"

    def _of(self, queue: str) -> QueueReleases:
        return self.queues.get(queue) or QueueReleases(queue=queue)

    def _transfer(self, transfer: Transfer) -> None:
        """Note the new requester, by another open order of it, or by the one that was answered just before.

        Without one its queue is not known, and nothing counts.
        """
        answered = [] if self._answered is None else [self._answered]
        known = [
            each for each in (*self.requesters.values(), *answered) if each.application == transfer.target
        ]
        self.requesters.pop(transfer.order, None)
        if known:
            self.requesters[transfer.order] = known[0]

    def _moved(self, transition: Transition) -> None:
        if transition.target in OPEN:
            return
        requester = self._answered = self.requesters.pop(transition.order, None)
        misdirected = _is_misdirected(transition)
        if requester is None or not (misdirected or transition.target == "granted"):
            return
        each = self._of(requester.queue)
        if each.why is not None and transition.at_ms < each.why.until_ms:
            return  # its order was sent before the pause
        release = FreedContainer(transition.order, transition.application, misdirected)
        granted = 0 if misdirected else each.granted + 1
        self.queues[each.queue] = msgspec.structs.replace(
            each,
            last=(*each.last, release)[-RECENT_ORDERS:],
            granted=granted,
            pauses=0 if granted >= GRANTED_TO_FORGET else each.pauses,
        )

    def _resume(self, queue: str) -> None:
        """End a pause, and count anew; the next one is longer all the same."""
        self.queues[queue] = QueueReleases(queue=queue, pauses=self._of(queue).pauses)

    def _set_back(self, now_ms: int) -> None:
        """Move the pauses of a clock that was set back: none becomes longer by it."""
        for queue, each in self.queues.items():
            if each.why is not None and now_ms < each.began_ms:
                until_ms = each.why.until_ms - each.began_ms + now_ms
                why = msgspec.structs.replace(each.why, until_ms=until_ms)
                self.queues[queue] = msgspec.structs.replace(each, began_ms=now_ms, why=why)


def pause_ms(pauses: int) -> int:
    """Return how long a queue is paused after so many pauses before: 5, 10, 20, 40, 60 minutes."""
    return min(FIRST_PAUSE_MS << min(pauses, 10), PAUSE_MAX_MS)


def _lost(releases: QueueReleases) -> int:
    return sum(release.misdirected for release in releases.last)


def _is_misdirected(transition: Transition) -> bool:
    """Return whether another application got the container: observed, or while its requester waits."""
    return transition.target == "misdirected" or (
        isinstance(transition.why, Unclaimed) and transition.why.requester_waits
    )


def binding_limit(snapshot: Snapshot | None, queue: str) -> tuple[BindingLimit, str]:
    """Return the limit that most probably keeps a queue from freed containers, and the holder at it."""
    queues = {} if snapshot is None else model_queues(snapshot, ())
    model = queues.get(queue)
    if snapshot is None or model is None:
        return "unknown", ""
    leaf = QueueTreeModel(snapshot, queues).leaves[queue] if snapshot.parents else None
    for wanted in model.waiting():
        why = model.forbids(wanted)
        if why is not None:
            return ("queue", "") if isinstance(why, QueueAtMaximum) else ("user", wanted.application.user)
        above = None if leaf is None else leaf.binding(wanted.size)
        if above is not None and above.path != ROOT:
            return "parent", above.path
    held = any(view.queue == queue and not view.activated for view in snapshot.applications)
    return ("masters", "") if held else ("unknown", "")


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
