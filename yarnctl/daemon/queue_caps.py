"""Lower the maximum of preemptable queues while production has demand (``--cap-queue``), and restore it.

Law:

* A lowered maximum is restored when the demand ends, when yarnctl may not act any more, when it stops, and
  when it starts again after a crash. A failed attempt is repeated.
* Before a queue is lowered its maximum is recorded in HDFS (``cap_file``), so that a daemon on another host
  can restore it. The record is removed after the queue is restored.
* A maximum is restored only if it still has the value that yarnctl set: another value is an administrator's.
* A scheduler that cannot be changed is logged once, and the loop continues without caps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from yarnctl.deciding.model import Accepted, Outcome, Refused, SetQueueMaximum
from yarnctl.deciding.queue_hold import HeldQueues, QueueCap, QueueLimits, action_of, lower, put_back
from yarnctl.deciding.queue_names import QueueTree, capped
from yarnctl.deciding.reasons.modes import ModeReason
from yarnctl.deciding.reasons.orders import (
    ChangedByOthers,
    DemandOver,
    LeftByEarlierRun,
    MayNotAct,
    QueueGone,
    QueueReason,
    Stopping,
)
from yarnctl.deciding.records import HoldEnded, HoldFound, Holding, Record, performed
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.lowered_queues import LoweredQueue, LoweredRecord, command_for, same_ratio
from yarnctl.journal.rendering import said, text

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 5_000
RETRY_MAX_MS = 600_000

Write = Callable[[Record], None]


class ReadLimits(Protocol):
    """Returns a preemptable queue's path and configured limits, or why they are unknown."""

    def __call__(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Read one queue."""
        ...


class QueueMaximum(Protocol):
    """Returns a queue's configured maximum, None if the queue does not exist, or why it is unknown."""

    def __call__(self, path: str) -> float | str | None:
        """Read one queue by its full path."""
        ...


class CapFile(Protocol):
    """The part of :class:`yarnctl.hadoop.lowered_queues.LoweredFile` that caps need."""

    @property
    def name(self) -> str:
        """The name of this process's record."""
        ...

    def write(self, queues: Sequence[LoweredQueue]) -> None:
        """Write this process's record."""
        ...

    def all(self) -> Mapping[str, LoweredRecord | None]:
        """Return every record by its name."""
        ...

    def remove(self, name: str) -> None:
        """Remove a record."""
        ...


class CapRecords:
    """The records in HDFS of lowered queues: this process's, and those of other processes.

    ``lasting``: the records that exist, or may exist: name -> the queues in them. Without ``cap_file`` there
    are none. A fault of HDFS is logged once, and the operation is retried later.
    """

    def __init__(self, cap_file: CapFile | None) -> None:
        self._cap_file = cap_file
        self.lasting: dict[str, tuple[str, ...]] = {}
        self._read = cap_file is None
        self._again_at_ms = 0
        self._logged = ""

    def reread(self) -> None:
        """Read the records of other processes again: another daemon may have held the lock meanwhile."""
        self._read = self._cap_file is None

    def write(self, queues: Sequence[LoweredQueue], now_ms: int) -> bool:
        """Record the queues that are lowered or about to be; False: it failed, so lower no queue."""
        if self._cap_file is None:
            return True
        if not self._read or now_ms < self._again_at_ms:
            return False
        self.lasting[self._cap_file.name] = tuple(one.queue for one in queues)
        try:
            self._cap_file.write(queues)
        except YarnctlError as problem:
            self._failed(
                now_ms, f"queue capping paused: cannot record the queue's maximum in HDFS: {problem}"
            )
            return False
        return True

    def left(self, now_ms: int) -> Mapping[str, tuple[str, LoweredQueue]]:
        """Return the records of other processes, once: queue -> the record's name and its content."""
        if self._read or self._cap_file is None or now_ms < self._again_at_ms:
            return {}
        try:
            found = self._cap_file.all()
        except YarnctlError as problem:
            self._failed(now_ms, f"cannot read the records of lowered queues: {problem}")
            return {}
        self._read, self._logged = True, ""
        left: dict[str, tuple[str, LoweredQueue]] = {}
        for name, record in found.items():
            if record is None:
                _LOG.warning("%s in the lock's folder is not a valid record; run yarnctl check", name)
                continue
            self.lasting.setdefault(name, tuple(one.queue for one in record.queues))
            for one in record.queues:
                if one.queue not in left or one.before_ratio > left[one.queue][1].before_ratio:
                    left[one.queue] = name, one
        return left

    def tidy(self, held: Mapping[str, Holding], now_ms: int) -> None:
        """Remove the records without a queue that is still lowered."""
        if self._cap_file is None or not self.lasting or now_ms < self._again_at_ms:
            return
        for name in [name for name, queues in self.lasting.items() if held.keys().isdisjoint(queues)]:
            try:
                self._cap_file.remove(name)
            except YarnctlError as problem:
                self._failed(now_ms, f"cannot remove the obsolete record {name}, will retry: {problem}")
                return
            del self.lasting[name]
            self._logged = ""

    def at_once(self) -> None:
        """Make the next attempt now."""
        self._again_at_ms = 0

    def _failed(self, now_ms: int, story: str) -> None:
        self._again_at_ms = now_ms + RETRY_MS
        if story != self._logged:
            _LOG.warning("%s", story)
        self._logged = story


class QueueCaps:
    """Caps ``preemptable_queues`` while requests are being served, and restores those in ``held``.

    ``perform`` performs an action. ``maximum_of`` reads a queue's maximum before it is restored. ``cap_file``
    keeps records in HDFS (None: no records). ``cap`` decides when to cap. ``enabled`` False: only queues that
    an earlier run, or another daemon, left lowered are restored. ``tree`` returns the newest tree of queues:
    parents with only preemptable leaves are capped, too.
    """

    def __init__(
        self,
        limits: ReadLimits,
        perform: Callable[[SetQueueMaximum], Outcome],
        preemptable_queues: Iterable[str],
        held: Mapping[str, Holding] | None = None,
        *,
        maximum_of: QueueMaximum,
        cap_file: CapFile | None = None,
        enabled: bool = True,
        cap: QueueCap | None = None,
        tree: Callable[[], QueueTree | None] = lambda: None,
    ) -> None:
        self._limits = limits
        self._perform = perform
        self._maximum_of = maximum_of
        self.preemptable_queues = tuple(preemptable_queues)
        self.enabled = enabled
        self._tree = tree
        self._cap = cap or QueueCap()
        self._queues = HeldQueues(held)
        self.capped = self._queues.held
        self.records = CapRecords(cap_file)
        self._left: QueueReason | None = LeftByEarlierRun() if self.capped else None
        self._again_at_ms = 0
        self._pause_ms = RETRY_MS

    def reconcile(
        self, write: Write, now_ms: int, open_orders: int, waiting: bool, closed: ModeReason | None
    ) -> None:
        """After a tick: cap or restore. ``closed``: why yarnctl may not act (None: it may)."""
        if closed is not None:
            self._cap.clear()
            self.records.reread()
            self._restore(write, now_ms, MayNotAct())
        else:
            self._lower_due(write, now_ms, open_orders, waiting)
        self.records.tidy(self.capped, now_ms)

    def _lower_due(self, write: Write, now_ms: int, open_orders: int, waiting: bool) -> None:
        """Restore queues that were left lowered; then cap while requests are served, and restore after."""
        self._adopt(write, now_ms)
        if self._left:
            self._restore(write, now_ms, self._left)
        elif self._cap.is_due(now_ms, open_orders, waiting):
            if self.enabled and not self.capped:
                self._lower(write, now_ms)
        else:
            self._restore(write, now_ms, DemandOver())

    def stop(self, write: Write, now_ms: int) -> None:
        """Try once to restore all queues; the next start restores the rest from the records."""
        self._again_at_ms = 0
        self.records.at_once()
        self._restore(write, now_ms, Stopping())
        self.records.tidy(self.capped, now_ms)

    def _adopt(self, write: Write, now_ms: int) -> None:
        """Adopt queues that another daemon left lowered, so that they are restored."""
        for queue, (name, one) in self.records.left(now_ms).items():
            if queue not in self.capped:
                self._note(write, HoldFound(now_ms, queue, one.before_ratio, one.ratio, name))
                self._left = LeftByEarlierRun()

    def _lower(self, write: Write, now_ms: int) -> None:
        for queue in capped(self.preemptable_queues, self._tree()):
            found = self._limits(queue)
            if isinstance(found, str):
                self._abandon(found)
                return
            record = lower(*found, now_ms)
            if record is None:
                continue
            if not self.records.write([_lowered(one) for one in (*self.capped.values(), record)], now_ms):
                return
            outcome = self._done(write, record)
            if isinstance(outcome, Refused):
                self._abandon(text(outcome.why))
                return

    def _abandon(self, why: str) -> None:
        self.enabled = False
        _LOG.warning("queue capping disabled: %s", why)

    def _restore(self, write: Write, now_ms: int, why: QueueReason) -> None:
        if not self.capped or now_ms < self._again_at_ms:
            return
        for record in put_back(self.capped, now_ms, why):
            problem = self._back(write, record)
            if problem:
                by_hand = command_for(record.queue, record.ratio)
                _LOG.warning(
                    "cannot restore the maximum of %s to %g %%, will retry (or run: %s): %s",
                    record.queue,
                    record.ratio * 100,
                    by_hand,
                    problem,
                )
        if self.capped:
            self._again_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, RETRY_MAX_MS)
        else:
            self._left, self._again_at_ms, self._pause_ms = None, 0, RETRY_MS

    def _back(self, write: Write, record: Holding) -> str:
        """Restore one queue if it still has the lowered maximum; return why to retry, or ""."""
        found = self._maximum_of(record.queue)
        if isinstance(found, str):
            return found
        ours = (record.before_ratio, record.ratio)  # it may be restored already, without a record
        if found is None or not any(same_ratio(found, one) for one in ours):
            why: QueueReason = QueueGone() if found is None else ChangedByOthers()
            self._note(write, HoldEnded(record.at_ms, record.queue, found, why))
            return ""
        outcome = self._done(write, record)
        return "" if isinstance(outcome, Accepted) else said(outcome.why) or "no answer"

    def _done(self, write: Write, record: Holding) -> Outcome:
        """Write the change to the journal, perform it, and write its outcome."""
        self._note(write, record)
        action = action_of(record)
        outcome = self._perform(action)
        self._note(write, performed(record.at_ms, action, outcome))
        return outcome

    def _note(self, write: Write, record: Record) -> None:
        write(record)
        self._queues.apply(record)


def _lowered(record: Holding) -> LoweredQueue:
    return LoweredQueue(record.queue, record.before_ratio, record.ratio)
