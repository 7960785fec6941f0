"""Echoes: asks that stand there once more although a container has just been given for them.

Law: pure. An application's master repeats what it wants with each heartbeat; one that was on its way while
the scheduler gave a container sets the ask back to what it was, until the next heartbeat (a second later)
corrects it. So where an application has been given containers and the asks that it had before have not
become fewer by as many, the difference, up to what it was given, is doubted for ``ECHO_MS``: nobody is
stopped for it so long. A real ask is served that much later; an echo costs a patient task its room for
nothing.

Seen on Hadoop 3.4.2 with MapReduce, whose master hears and asks once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from yarnctl.deciding.model import ApplicationView
from yarnctl.units import Resources

ECHO_MS = 1_500
"""A heartbeat of MapReduce's master (1 s by default) and a half."""


class _Seen(NamedTuple):
    """What an application asked for and held at the last look; ``doubted`` of it until ``until_ms``."""

    asks: Mapping[tuple[int, Resources], int]
    containers: int
    doubted: int
    until_ms: int


class Echoes:
    """Compares each look at the hurried applications with the one before."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def look(self, views: Iterable[ApplicationView], as_of_ms: int) -> Mapping[str, int]:
        """Take in what is seen now; return application -> how many of its asks are doubted."""
        before, self._seen = self._seen, {}
        for view in views:
            self._seen[view.application] = _compared(before.get(view.application), view, as_of_ms)
        return {name: seen.doubted for name, seen in self._seen.items() if seen.doubted}


def _compared(before: _Seen | None, view: ApplicationView, as_of_ms: int) -> _Seen:
    asks = {(ask.priority, ask.size): ask.count for ask in view.asks}
    if before is None:
        return _Seen(asks, view.containers, 0, 0)
    given = max(0, view.containers - before.containers)
    stayed = sum(min(count, asks.get(key, 0)) for key, count in before.asks.items())
    fresh = min(given, stayed - max(0, sum(before.asks.values()) - given))
    if fresh > 0:
        return _Seen(asks, view.containers, fresh, as_of_ms + ECHO_MS)
    doubted = min(before.doubted, sum(asks.values())) if as_of_ms < before.until_ms else 0
    return _Seen(asks, view.containers, doubted, before.until_ms)
