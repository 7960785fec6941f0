"""Echoes: asks that stand there once more although a container has just been given for them.

Law: pure. A master that has been given one of two containers says with its next heartbeat that it wants one
more. If the second was given meanwhile, the scheduler believes the old word until the heartbeat after that,
a second later. So what an application should still ask for is kept for ``ECHO_MS`` after it was given
something; what it seems to ask for beyond, up to what it was given, is doubted, and nobody is stopped for
it. A real ask that comes just then is served that much later; an echo would cost a patient task its room for
nothing.

Seen on Hadoop 3.4.2 with MapReduce, whose master hears and asks once a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from yarnctl.deciding.inputs import Echo
from yarnctl.deciding.model import ApplicationView
from yarnctl.units import Resources

ECHO_MS = 2_500
"""Two heartbeats of MapReduce's master (one second by default) and a half."""

_Asks = Mapping[tuple[int, Resources], int]


class _Seen(NamedTuple):
    """What an application held, and should still ask for (``due``).

    ``given`` containers since its asks could last be trusted, which is again so at ``until_ms``; ``early`` of
    its asks were gone before the containers that met them were seen (both are read one after the other).
    """

    due: _Asks
    containers: int
    at_ms: int
    given: int = 0
    until_ms: int = 0
    early: int = 0
    doubted: int = 0


class Echoes:
    """Compares each look at the hurried applications with those before."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def left(self) -> dict[str, Echo]:
        """Return what the looks so far have left, as values."""
        return {
            name: Echo(
                tuple((priority, size, count) for (priority, size), count in seen.due.items()), *seen[1:]
            )
            for name, seen in self._seen.items()
        }

    def go_on(self, left: Mapping[str, Echo]) -> None:
        """Go on from what earlier looks have left."""
        self._seen = {
            name: _Seen(
                {(priority, Resources(*size)): count for priority, size, count in echo.due}, *echo[1:]
            )
            for name, echo in left.items()
        }

    def look(self, views: Iterable[ApplicationView], as_of_ms: int) -> Mapping[str, int]:
        """Take in what is seen now; return application -> how many of its asks are doubted."""
        before, self._seen = self._seen, {}
        for view in views:
            self._seen[view.application] = _compared(before.get(view.application), view, as_of_ms)
        return {name: seen.doubted for name, seen in self._seen.items() if seen.doubted}


def _compared(before: _Seen | None, view: ApplicationView, as_of_ms: int) -> _Seen:
    asks = {(ask.priority, ask.size): ask.count for ask in view.asks}
    if before is None or as_of_ms - before.at_ms >= ECHO_MS:  # nobody has looked for too long
        return _Seen(asks, view.containers, as_of_ms)
    now_given = max(0, view.containers - before.containers)
    until_ms = as_of_ms + ECHO_MS if now_given else before.until_ms
    due = _less(before.due, max(0, now_given - before.early))
    fell = sum(max(0, count - asks.get(key, 0)) for key, count in due.items())
    early = fell if not now_given else 0
    if as_of_ms >= until_ms:
        return _Seen(asks, view.containers, as_of_ms, early=early)
    given = before.given + now_given
    beyond = sum(max(0, asks.get(key, 0) - count) for key, count in due.items())
    # Another size or priority is another wave: that was never asked for before, so it is no echo.
    due = {key: min(count, due.get(key, count)) for key, count in asks.items()} | {
        key: 0 for key in due if key not in asks
    }
    return _Seen(due, view.containers, as_of_ms, given, until_ms, early, min(beyond, given))


def _less(asks: _Asks, given: int) -> _Asks:
    """Return asks after some containers were given: what YARN serves first goes first."""
    left = {}
    for key in sorted(asks):
        served = min(asks[key], given)
        given -= served
        left[key] = asks[key] - served
    return left
