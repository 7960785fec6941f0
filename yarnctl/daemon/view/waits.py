"""How long applications of production wait for containers, by queue, as the snapshots show it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.daemon.view.histogram import Histogram
from yarnctl.daemon.view.occupancy import pending_of
from yarnctl.deciding.model import Snapshot
from yarnctl.deciding.settings import Settings

WAIT_BOUNDS_MS = (1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000)


class QueueWaits(msgspec.Struct, frozen=True):
    """``ended``: waits that have ended; ``longest_ms``: the longest of those that go on (0: none)."""

    ended: Histogram
    longest_ms: int = 0


class Waits:
    """A wait begins with an application's first pending request, and ends when none is pending.

    It ends, too, with the application. A change is seen at the next snapshot only.
    """

    def __init__(self) -> None:
        self._ended: dict[str, Histogram] = {}
        self._since: dict[str, tuple[str, int]] = {}

    def look(self, snapshot: Snapshot, settings: Settings, now_ms: int) -> None:
        """Compare a snapshot with the one before."""
        waiting = {
            view.application: view.queue
            for view in snapshot.applications
            if settings.may_preempt(view.queue) and pending_of(view)
        }
        for application in [name for name in self._since if name not in waiting]:
            queue, since_ms = self._since.pop(application)
            self._ended[queue] = self._of(queue).plus(max(0, now_ms - since_ms))
        for application, queue in waiting.items():
            self._since.setdefault(application, (queue, now_ms))

    def _of(self, queue: str) -> Histogram:
        return self._ended.get(queue) or Histogram.over(WAIT_BOUNDS_MS)

    def by_queue(self, now_ms: int) -> Mapping[str, QueueWaits]:
        """Return the waits of each queue that has waited, by its path."""
        longest: dict[str, int] = {}
        for queue, since_ms in self._since.values():
            longest[queue] = max(longest.get(queue, 0), now_ms - since_ms)
        queues = sorted({*self._ended, *longest})
        return {queue: QueueWaits(self._of(queue), longest.get(queue, 0)) for queue in queues}
