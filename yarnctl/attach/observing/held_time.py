"""What preemptable applications have held: container time by queue and user, since this port began to watch.

Law: a sum that never falls. Counted is how much an application's own counter (YARN's memorySeconds) grew
between two observations of it; what it held before it was seen first, and after it was seen last, is not
known and gives no budget. A daemon that starts anew counts anew. A job whose tag says what may be lost of it
is counted by itself, and not for its queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.attach.connection.connection import Attachment
from yarnctl.deciding.model import HeldTime, JobConsent
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.mapreduce import may_lose_tag_ratio, tags_in


class HeldTimes:
    """The counter of each application as seen last, and the sums."""

    def __init__(self, settings: Attachment) -> None:
        self._settings = settings
        self._seen: dict[str, int] = {}
        self._sums: dict[tuple[str, str], int] = {}
        self._consents: dict[str, JobConsent] = {}

    def update(self, rows: Iterable[yarn.AppInfo], names: Mapping[str, str]) -> None:
        """Apply an observation of all unfinished applications; ``names`` of queues, as views have them."""
        before, self._seen = self._seen, {}
        consented, self._consents = self._consents, {}
        for row in rows:
            queue = names.get(row.queue, row.queue)
            if not self._settings.may_give(queue):
                continue
            name, mib_s = row.application, max(0, row.mib_seconds)
            grew_ms = max(0, mib_s - before.get(name, mib_s)) * 1000
            self._seen[name] = max(mib_s, before.get(name, 0))
            ratio = may_lose_tag_ratio(tags_in(row.tags))
            if ratio is None:
                self._sums[queue, row.user] = self._sums.get((queue, row.user), 0) + grew_ms
                continue
            held_ms = grew_ms + (consented[name].mib_ms if name in consented else 0)
            self._consents[name] = JobConsent(name, row.user, ratio, held_ms)

    def held(self) -> tuple[HeldTime, ...]:
        """Return the sums, by queue and user."""
        return tuple(HeldTime(queue, user, mib_ms) for (queue, user), mib_ms in sorted(self._sums.items()))

    def consents(self) -> tuple[JobConsent, ...]:
        """Return what tagged jobs say and have held, by id."""
        return tuple(self._consents[name] for name in sorted(self._consents))
