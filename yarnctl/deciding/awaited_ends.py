"""Awaited ends: until when tasks that are about to end were promised to have ended.

Law: the first promise stands. A task that has not ended by then is not awaited again, so that an ask
waits for it once and never longer. Promises change by records alone, but for what time ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from yarnctl.deciding.levers import AwaitedTask

KEPT_MS = 3_600_000
"""For so long a promise is remembered."""


class AwaitedEnds:
    """``until_ms``: attempt -> the instant that was promised first."""

    def __init__(self, until_ms: Mapping[str, int] | None = None) -> None:
        self.until_ms: dict[str, int] = dict(until_ms or {})

    def note(self, tasks: Iterable[AwaitedTask]) -> None:
        """Note promises; an attempt that has one keeps it."""
        for task in tasks:
            self.until_ms.setdefault(task.lever.unit, task.until_ms)

    def retire(self, now_ms: int) -> None:
        """Forget what was promised for long ago."""
        for name in [name for name, until_ms in self.until_ms.items() if until_ms + KEPT_MS <= now_ms]:
            del self.until_ms[name]

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.until_ms = {name: until_ms - by_ms for name, until_ms in self.until_ms.items()}
