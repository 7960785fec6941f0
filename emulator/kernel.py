"""The event kernel: virtual time in integer milliseconds.

Law: events run in the order (time, sequence) and in no other; sequence is the order in which
they were put in. Time jumps from one instant that has events to the next. The kernel knows
nothing of clusters.

Three levels keep an event cheap when tens of thousands wait: events of one instant share a
bucket (a flat list handler, argument, handler, argument ... in order of arrival); the instants
of one span of 1,024 ms share a list that is sorted once, when its span begins; a heap holds the
spans. Only an instant that is put into the running span is sorted in one by one.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Handler = Callable[[Any], object]

SPAN_BITS = 10


class Kernel:
    """A queue of (instant, handler, argument) and the instant that is now."""

    __slots__ = (
        "_buckets",
        "_instants",
        "_next",
        "_span",
        "_spans",
        "_stopped",
        "_waiting",
        "events",
        "now_ms",
    )

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._buckets: dict[int, list[Any]] = {}
        self._span = -1
        self._instants: list[int] = []
        self._next = 0
        self._waiting: dict[int, list[int]] = {}
        self._spans: list[int] = []
        self._stopped = False

    def at(self, at_ms: int, handler: Handler, argument: Any) -> None:
        """Run ``handler(argument)`` at ``at_ms``, which must not lie in the past."""
        bucket = self._buckets.get(at_ms)
        if bucket is not None:
            bucket += (handler, argument)
            return
        if at_ms < self.now_ms:
            raise ValueError(f"an event for {at_ms} ms was put in at {self.now_ms} ms")
        self._buckets[at_ms] = [handler, argument]
        span = at_ms >> SPAN_BITS
        instants = self._waiting.get(span)
        if instants is not None:
            instants.append(at_ms)
        elif span > self._span:
            self._waiting[span] = [at_ms]
            heappush(self._spans, span)
        else:
            insort(self._instants, at_ms, self._next)

    def stop(self) -> None:
        """Leave ``run`` after the instant that is running."""
        self._stopped = True

    def next_at_ms(self) -> int | None:
        """Return the instant of the next event, or None."""
        if self._next < len(self._instants):
            return self._instants[self._next]
        return min(self._waiting[self._spans[0]]) if self._spans else None

    def _advance(self) -> bool:
        """Make the next span the running one; say whether there is one."""
        if not self._spans:
            return False
        self._span = heappop(self._spans)
        self._instants = self._waiting.pop(self._span)
        self._instants.sort()
        self._next = 0
        return True

    def run(self, until_ms: int | None = None, after_each: Callable[[], None] | None = None) -> None:
        """Run events in order until none is left, ``stop`` is called or the next lies after ``until_ms``.

        ``after_each`` is called after every single event (invariants are checked there).
        """
        self._stopped = False
        buckets = self._buckets
        while not self._stopped:
            if self._next >= len(self._instants) and not self._advance():
                return
            now_ms = self._instants[self._next]
            if until_ms is not None and now_ms > until_ms:
                self.now_ms = until_ms
                return
            self.now_ms = now_ms
            self._next += 1
            bucket = buckets[now_ms]
            # A handler may append to this very bucket: list iteration sees it, in order.
            events = iter(bucket)
            if after_each is None:
                for handler in events:
                    handler(next(events))
            else:
                for handler in events:
                    handler(next(events))
                    after_each()
            self.events += len(bucket) >> 1
            del buckets[now_ms]
