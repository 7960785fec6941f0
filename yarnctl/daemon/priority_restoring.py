"""Restore priorities that an earlier run changed.

Law: each attempt is written to the journal first, then performed. A changed priority is restored after the
next start, with any options and with or without pending requests. A failed attempt is repeated until YARN
accepts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from yarnctl.deciding.model import Accepted, Outcome, Refused, SetPriority, Unknown
from yarnctl.deciding.reasons.orders import LeftByEarlierRun
from yarnctl.deciding.records import Record, Restoring, performed
from yarnctl.journal.rendering import said

_LOG = logging.getLogger("yarnctl.daemon")

RETRY_MS = 5_000
RETRY_MAX_MS = 600_000
AT_ONCE_MAX = 8
"""The maximum number of attempts after one tick: the ResourceManager may answer each slowly."""


class PriorityRestoring:
    """Restores the priorities ``changed``: application -> its earlier one. ``perform`` performs an action."""

    def __init__(self, perform: Callable[[SetPriority], Outcome], changed: Mapping[str, int]) -> None:
        self._perform = perform
        self.changed = dict(changed)
        self._pending = sorted(self.changed)
        self._again_at_ms = 0
        self._pause_ms = RETRY_MS

    def reconcile(self, write: Callable[[Record], None], now_ms: int) -> None:
        """Restore some of the remaining priorities after a tick; repeat failed ones after a pause."""
        if not self.changed or now_ms < self._again_at_ms:
            return
        round_, self._pending = self._pending[:AT_ONCE_MAX], self._pending[AT_ONCE_MAX:]
        for application in round_:
            self._restore(write, now_ms, application)
        if not self._pending and self.changed:
            self._pending = sorted(self.changed)
            self._again_at_ms = now_ms + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, RETRY_MAX_MS)

    def _restore(self, write: Callable[[Record], None], now_ms: int, application: str) -> None:
        priority = self.changed[application]
        write(Restoring(now_ms, application, priority, LeftByEarlierRun()))
        action = SetPriority(application, priority, back=True)
        outcome = self._perform(action)
        write(performed(now_ms, action, outcome))
        if isinstance(outcome, Accepted):
            del self.changed[application]
        elif isinstance(outcome, Refused | Unknown):
            _LOG.warning(
                "cannot restore priority %d of %s, will retry: %s", priority, application, said(outcome.why)
            )
