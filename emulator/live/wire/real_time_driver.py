"""Pace: a kernel's events by the wall clock.

Law: the only clock of the live emulator. Kernel time is milliseconds since the epoch, sped up by
``speed`` from the instant of the start; a handler of a message first runs what is due
(``catch_up``), then acts, and ``poke`` checks whether something is due earlier than planned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from emulator.cluster.kernel import Kernel

LONGEST_WAIT_S = 3600.0


def epoch_ms() -> int:
    """Return the wall clock in ms since the epoch."""
    return time.time_ns() // 1_000_000


class RealTimeDriver:
    """Drives ``kernel`` at ``speed`` times the wall clock; use it from one event loop only.

    ``wall_ms`` is the clock (ms since the epoch). A clock that is set back never turns kernel time back.
    """

    def __init__(self, kernel: Kernel, speed: float = 1.0, wall_ms: Callable[[], int] = epoch_ms) -> None:
        self.kernel = kernel
        self.speed = speed
        self._wall_ms = wall_ms
        self._began_ms = wall_ms()
        self._due: asyncio.TimerHandle | None = None
        self._running = False
        kernel.now_ms = max(kernel.now_ms, self._began_ms)

    def sibling(self, kernel: Kernel) -> RealTimeDriver:
        """Return a driver for another kernel on the same axis of time (instants can be compared)."""
        other = RealTimeDriver(kernel, self.speed, self._wall_ms)
        other._began_ms = self._began_ms
        kernel.now_ms = max(kernel.now_ms, other.now_ms())
        return other

    def now_ms(self) -> int:
        """Return kernel time now; it never goes back."""
        passed_ms = (self._wall_ms() - self._began_ms) * self.speed
        return max(self.kernel.now_ms, self._began_ms + int(passed_ms))

    def wall_of(self, at_ms: int) -> int:
        """Return the wall clock's instant of a kernel instant (what REST shows)."""
        return self._began_ms + int((at_ms - self._began_ms) / self.speed)

    def catch_up(self) -> int:
        """Let everything that is due happen; return now. Within an event, now is that event's instant."""
        if self._running:
            return self.kernel.now_ms
        now_ms = self.now_ms()
        self._running = True
        try:
            self.kernel.run(now_ms)
        finally:
            self._running = False
        self.kernel.now_ms = max(self.kernel.now_ms, now_ms)
        return self.kernel.now_ms

    def wake(self) -> None:
        """Plan the next run for when the next event is due; call after anything that may have added one."""
        if self._due is not None:
            self._due.cancel()
        next_ms = self.kernel.next_at_ms()
        wait_s = LONGEST_WAIT_S
        if next_ms is not None:
            wait_s = max(0.0, (next_ms - self.now_ms()) / 1000 / self.speed)
        self._due = asyncio.get_running_loop().call_later(min(wait_s, LONGEST_WAIT_S), self._happen)

    def _happen(self) -> None:
        self._due = None
        self.catch_up()
        self.wake()

    def stop(self) -> None:
        """Let nothing more happen by itself."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
