"""Capping preemptable queues (``--cap-queue``): recorded first, then set, and restored in every case.

Law: a lowered maximum is restored when the demand ends, when yarnctl may not act any more, when it stops, and
when it starts again after a crash; a failed try is repeated. Before a queue is lowered its maximum is
recorded in HDFS (``keeper``), so that a daemon on another host can restore it; the record is removed after
the queue is restored. Only a value that is still the one we set is restored: a maximum that was changed since
belongs to its administrator. A scheduler that cannot be changed is logged once, and the loop continues
without caps.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from yarnctl.deciding.model import Accepted, Outcome, Refused, SetQueueMaximum
from yarnctl.deciding.queue_hold import (
    HeldQueues,
    QueueCap,
    QueueLimits,
    action_of,
    lower,
    put_back,
)
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
    """Returns a preemptable queue's path and configured limits, or why they cannot be known."""

    def __call__(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Ask for one queue."""
        ...


class QueueMaximum(Protocol):
    """Returns a queue's configured maximum, None if it does not exist, or why it cannot be known."""

    def __call__(self, path: str) -> float | str | None:
        """Ask for one queue by its full path."""
        ...


class CapFile(Protocol):
    """What the holder needs of :class:`yarnctl.hadoop.lowered_queues.LoweredFile`."""

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
    """The records in HDFS of lowered queues: this process's, and those that others have left.

    ``lasting`` has the records that exist, or perhaps do: name -> the queues in them. Without
    ``keeper`` there are none. A fault of HDFS is logged once and answered by trying again later.
    """

    def __init__(self, keeper: CapFile | None) -> None:
        self._keeper = keeper
        self.lasting: dict[str, tuple[str, ...]] = {}
        self._read = keeper is None
        self._again_at_ms = 0
        self._logged = ""

    def remove(self) -> None:
        """Read the others' records again: another daemon may have held the lock meanwhile."""
        self._read = self._keeper is None

    def write(self, queues: Sequence[LoweredQueue], now_ms: int) -> bool:
        """Write what is lowered and what is about to be; False: that failed, so it must not be lowered."""
        if self._keeper is None:
            return True
        if not self._read or now_ms < self._again_at_ms:
            return False
        self.lasting[self._keeper.name] = tuple(one.queue for one in queues)
        try:
            self._keeper.write(queues)
        except YarnctlError as problem:
            self._failed(now_ms, f"no queue is lowered, for its maximum cannot be recorded: {problem}")
            return False
        return True

    def left(self, now_ms: int) -> Mapping[str, tuple[str, LoweredQueue]]:
        """Return once what other processes have left: queue -> the record's name and its content."""
        if self._read or self._keeper is None or now_ms < self._again_at_ms:
            return {}
        try:
            found = self._keeper.all()
        except YarnctlError as problem:
            self._failed(now_ms, f"the records of lowered queues cannot be read: {problem}")
            return {}
        self._read, self._logged = True, ""
        left: dict[str, tuple[str, LoweredQueue]] = {}
        for name, record in found.items():
            if record is None:
                _LOG.warning("%s beside the lock is no record of a lowered queue: see yarnctl check", name)
                continue
            self.lasting.setdefault(name, tuple(one.queue for one in record.queues))
            for one in record.queues:
                if one.queue not in left or one.before_ratio > left[one.queue][1].before_ratio:
                    left[one.queue] = name, one
        return left

    def tidy(self, held: Mapping[str, Holding], now_ms: int) -> None:
        """Remove the records without a queue that is still held."""
        if self._keeper is None or not self.lasting or now_ms < self._again_at_ms:
            return
        for name in [name for name, queues in self.lasting.items() if held.keys().isdisjoint(queues)]:
            try:
                self._keeper.remove(name)
            except YarnctlError as problem:
                self._failed(now_ms, f"the record {name}, of no lowered queue, is not removed yet: {problem}")
                return
            del self.lasting[name]
            self._logged = ""

    def at_once(self) -> None:
        """Let the next try be made now."""
        self._again_at_ms = 0

    def _failed(self, now_ms: int, story: str) -> None:
        self._again_at_ms = now_ms + RETRY_MS
        if story != self._logged:
            _LOG.warning("%s", story)
        self._logged = story


class QueueCaps:
    """Caps the queues ``victims`` while asks are being served, and restores those in ``held``.

    ``perform`` carries an action out, ``write`` puts a record into the journal; ``stands`` looks a queue's
    maximum up before it is put back, ``keeper`` keeps records in HDFS (None: there are none). ``enabled``
    False: only what an earlier run, or another daemon, left is put back.
    """

    def __init__(
        self,
        limits: ReadLimits,
        perform: Callable[[SetQueueMaximum], Outcome],
        victims: Iterable[str],
        held: Mapping[str, Holding] | None = None,
        *,
        stands: QueueMaximum,
        keeper: CapFile | None = None,
        enabled: bool = True,
        when: QueueCap | None = None,
    ) -> None:
        self._limits = limits
        self._perform = perform
        self._maximum_of = stands
        self.preemptable_queues = tuple(victims)
        self.enabled = enabled
        self._when = when or QueueCap()
        self._queues = HeldQueues(held)
        self.capped = self._queues.held
        self.records = CapRecords(keeper)
        self._left: QueueReason | None = LeftByEarlierRun() if self.capped else None
        self._again_at_ms = 0
        self._pause_ms = RETRY_MS

    def reconcile(
        self, write: Write, now_ms: int, open_orders: int, waiting: bool, closed: ModeReason | None
    ) -> None:
        """After a tick: cap, or restore. ``closed`` is why yarnctl may not act (None: it may)."""
        if closed is not None:
            self._when.clear()
            self.records.remove()
            self._restore(write, now_ms, MayNotAct())
        else:
            self._lower_due(write, now_ms, open_orders, waiting)
        self.records.tidy(self.capped, now_ms)

    def _lower_due(self, write: Write, now_ms: int, open_orders: int, waiting: bool) -> None:
        """Put back what was left lowered; then hold while asks are being served, and put back after."""
        self._adopt(write, now_ms)
        if self._left:
            self._restore(write, now_ms, self._left)
        elif self._when.is_due(now_ms, open_orders, waiting):
            if self.enabled and not self.capped:
                self._lower(write, now_ms)
        else:
            self._restore(write, now_ms, DemandOver())

    def stop(self, write: Write, now_ms: int) -> None:
        """Restore all queues, or never (never: the records keep them, and the next start restores them)."""
        self._again_at_ms = 0
        self.records.at_once()
        self._restore(write, now_ms, Stopping())
        self.records.tidy(self.capped, now_ms)

    def _adopt(self, write: Write, now_ms: int) -> None:
        """Hold what a daemon that is gone has left lowered, so that it is put back."""
        for queue, (name, one) in self.records.left(now_ms).items():
            if queue not in self.capped:
                self._note(write, HoldFound(now_ms, queue, one.before_ratio, one.ratio, name))
                self._left = LeftByEarlierRun()

    def _lower(self, write: Write, now_ms: int) -> None:
        for queue in self.preemptable_queues:
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
        _LOG.warning("queues are not held back from now on, all else goes on: %s", why)

    def _restore(self, write: Write, now_ms: int, why: QueueReason) -> None:
        if not self.capped or now_ms < self._again_at_ms:
            return
        for record in put_back(self.capped, now_ms, why):
            problem = self._back(write, record)
            if problem:
                by_hand = command_for(record.queue, record.ratio)
                told = f"{record.queue} has not been put back to {record.ratio:g} yet: {problem}"
                _LOG.warning("%s; it is tried again (by hand: %s)", told, by_hand)
        if self.capped:
            self._again_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, RETRY_MAX_MS)
        else:
            self._left, self._again_at_ms, self._pause_ms = None, 0, RETRY_MS

    def _back(self, write: Write, record: Holding) -> str:
        """Restore one queue if it is still as it was set; return why that is to be tried again, or ""."""
        stands = self._maximum_of(record.queue)
        if isinstance(stands, str):
            return stands
        ours = (record.before_ratio, record.ratio)  # put back perhaps, without a record
        if stands is None or not any(same_ratio(stands, one) for one in ours):
            why: QueueReason = QueueGone() if stands is None else ChangedByOthers()
            self._note(write, HoldEnded(record.at_ms, record.queue, stands, why))
            return ""
        outcome = self._done(write, record)
        return "" if isinstance(outcome, Accepted) else said(outcome.why) or "nobody answered"

    def _done(self, write: Write, record: Holding) -> Outcome:
        """Write down what is to be changed, change it, and write down what came of it."""
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
