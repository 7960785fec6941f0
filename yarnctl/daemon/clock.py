"""The daemon's clock: the wall clock's time at the start, and from then on what has really passed.

Law: it never goes back and never leaps. A wall clock that is set back would stop the loop, let the lock run
out unrenewed and holds never end; so it is read once, and from then on only compared with.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from yarnctl.hadoop.http.elapsed import passed_ns

_LOG = logging.getLogger("yarnctl.daemon")

APART_MS = 5_000
"""So far the wall clock may move away before it is said: checkpoints carry its time."""


def wall_ns() -> int:
    """Return the wall clock in ns since the epoch."""
    return time.time_ns()


class SteadyClock:
    """Tells ms since the epoch. ``wall_ns`` and ``passed_ns``: see the functions of these names."""

    def __init__(
        self, wall_ns: Callable[[], int] = wall_ns, passed_ns: Callable[[], int] = passed_ns
    ) -> None:
        self._wall_ns = wall_ns
        self._passed_ns = passed_ns
        self._offset_ns = wall_ns() - passed_ns()
        self._said_ms = 0

    def __call__(self) -> int:
        """Return the time."""
        now_ms = (self._offset_ns + self._passed_ns()) // 1_000_000
        self._compare(self._wall_ns() // 1_000_000 - now_ms)
        return now_ms

    def _compare(self, ahead_ms: int) -> None:
        """Say so when the wall clock has been set."""
        if abs(ahead_ms - self._said_ms) < APART_MS:
            return
        self._said_ms = ahead_ms
        if abs(ahead_ms) >= APART_MS:
            told = f"{abs(ahead_ms) / 1000:.0f} s {'forward' if ahead_ms > 0 else 'back'}"
            _LOG.warning("the wall clock was set %s; yarnctl goes by its own until it is started again", told)
