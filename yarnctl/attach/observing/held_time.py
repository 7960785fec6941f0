"""What preemptable applications have held: container time by queue and user, since this port began to watch.

Law: a sum that never falls. Counted is how much an application's own counter (YARN's memorySeconds) grew
between two observations of it; what it held before it was seen first, and after it was seen last, is not
known and gives no budget. A daemon that starts anew counts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.attach.connection.connection import Attachment
from yarnctl.deciding.model import HeldTime
from yarnctl.hadoop.wire import yarn


class HeldTimes:
    """The counter of each application as seen last, and the sums."""

    def __init__(self, settings: Attachment) -> None:
        self._settings = settings
        self._seen: dict[str, int] = {}
        self._sums: dict[tuple[str, str], int] = {}

    def update(self, rows: Iterable[yarn.AppInfo], names: Mapping[str, str]) -> None:
        """Apply an observation of all unfinished applications; ``names`` of queues, as views have them."""
        before, self._seen = self._seen, {}
        for row in rows:
            queue = names.get(row.queue, row.queue)
            if not self._settings.may_give(queue):
                continue
            mib_s = max(0, row.mib_seconds)
            grew = max(0, mib_s - before.get(row.application, mib_s))
            self._seen[row.application] = max(mib_s, before.get(row.application, 0))
            self._sums[queue, row.user] = self._sums.get((queue, row.user), 0) + grew * 1000

    def held(self) -> tuple[HeldTime, ...]:
        """Return the sums, by queue and user."""
        return tuple(HeldTime(queue, user, mib_ms) for (queue, user), mib_ms in sorted(self._sums.items()))
