"""Holding victims' queues (``--hold-queue``): written down first, done then, put back in any case.

Law: what was lowered is put back when the demand ends, when yarnctl may not act any more, when it stops,
and when it starts again after a crash; a try that fails is made again. A cluster whose scheduler cannot be
changed says so once, and everything goes on without.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from yarnctl.deciding.model import Accepted, Outcome, Refused, SetQueueMaximum, Unknown, Withheld
from yarnctl.deciding.queue_hold import (
    ASIDE,
    FOUND,
    OVER,
    STOPPING,
    QueueHold,
    QueueLimits,
    action_of,
    hold,
    put_back,
)
from yarnctl.deciding.records import Holding, Performed, Record

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 5_000
RETRY_MAX_MS = 600_000


class Limits(Protocol):
    """Tells a victim queue's path and configured limits, or why they cannot be known."""

    def __call__(self, queue: str) -> tuple[str, QueueLimits] | str:
        """Ask for one queue."""
        ...


class Holder:
    """Holds the queues ``victims`` while asks are being served, and puts back what it finds ``held``.

    ``perform`` carries an action out, ``write`` puts a record into the journal. ``enabled`` False: only
    what an earlier run left is put back.
    """

    def __init__(
        self,
        limits: Limits,
        perform: Callable[[SetQueueMaximum], Outcome],
        victims: Iterable[str],
        held: Mapping[str, Holding] | None = None,
        *,
        enabled: bool = True,
        when: QueueHold | None = None,
    ) -> None:
        self._limits = limits
        self._perform = perform
        self._victims = tuple(victims)
        self.enabled = enabled
        self._when = when or QueueHold()
        self.held: dict[str, Holding] = dict(held or {})
        self._left = FOUND if self.held else ""
        self._again_at_ms = 0
        self._pause_ms = RETRY_MS

    def follow(
        self, write: Callable[[Record], None], now_ms: int, open_orders: int, waiting: bool, closed: str
    ) -> None:
        """After a tick: hold, or put back. ``closed`` says why yarnctl may not act ("": it may)."""
        if closed:
            self._when.forget()
            self._restore(write, now_ms, ASIDE)
        elif self._left:
            self._restore(write, now_ms, self._left)
        elif self._when.wanted(now_ms, open_orders, waiting):
            if self.enabled and not self.held:
                self._hold(write, now_ms)
        else:
            self._restore(write, now_ms, OVER)

    def stop(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Put everything back, now or never (never: the journal knows, and the next start does it)."""
        self._again_at_ms = 0
        self._restore(write, now_ms, STOPPING)

    def _hold(self, write: Callable[[Record], None], now_ms: int) -> None:
        for queue in self._victims:
            found = self._limits(queue)
            if isinstance(found, str):
                self._give_up(found)
                return
            record = hold(*found, now_ms)
            if record is None:
                continue
            write(record)
            self.held[record.queue] = record
            outcome = self._done(write, record)
            if isinstance(outcome, Refused | Withheld):
                del self.held[record.queue]
            if isinstance(outcome, Refused):
                self._give_up(outcome.why)
                return

    def _give_up(self, why: str) -> None:
        self.enabled = False
        _LOG.warning("queues are not held back from now on, all else goes on: %s", why)

    def _restore(self, write: Callable[[Record], None], now_ms: int, why: str) -> None:
        if not self.held or now_ms < self._again_at_ms:
            return
        for record in put_back(self.held, now_ms, why):
            write(record)
            outcome = self._done(write, record)
            if isinstance(outcome, Accepted):
                del self.held[record.queue]
            elif isinstance(outcome, Refused | Unknown):
                told = f"{record.queue} has not been put back to {record.ratio:g} yet: {outcome.why}"
                _LOG.warning("%s; it is tried again", told)
        if self.held:
            self._again_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, RETRY_MAX_MS)
        else:
            self._left, self._again_at_ms, self._pause_ms = "", 0, RETRY_MS

    def _done(self, write: Callable[[Record], None], record: Holding) -> Outcome:
        action = action_of(record)
        outcome = self._perform(action)
        write(Performed(record.at_ms, action, outcome))
        return outcome
