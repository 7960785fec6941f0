"""The event kernel: virtual time in integer milliseconds.

Law: events run in the order (time, sequence) and in no other; sequence is the order in which they were put
in. Time jumps from one instant that has events to the next; nothing of clusters is in it.

Two levels keep an event cheap when tens of thousands wait: the events of one span of 512 ms share a flat list
(instant, handler, argument, instant ...), appended to in order of arrival: an event that waits is no object
of its own, which would have left the processor's caches by the time it runs. When the span begins they are
made tuples and sorted by time (a stable sort, so that sequence decides ties); a heap holds the spans. Only an
event that is put into the running span is sorted in one by one, behind those of its instant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from operator import itemgetter, length_hint
from typing import Any

Handler = Callable[[Any], object]
Event = tuple[int, Handler, Any]

SPAN_BITS = 9
_NO_END_MS = 1 << 63
_instant = itemgetter(0)


class Kernel:
    """A queue of (instant, handler, argument) and the instant that is now.

    ``_events`` are those of the running span and ``_times`` their instants, what has run included.
    ``before_advance`` is called with the next instant that has events, before it begins.
    """

    __slots__ = (
        "_events",
        "_span",
        "_spans",
        "_stopped",
        "_times",
        "_waiting",
        "before_advance",
        "events",
        "now_ms",
    )

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self.before_advance: Callable[[int], None] | None = None
        self._span = -1
        self._events: list[Event] = []
        self._times: list[int] = []
        self._waiting: dict[int, list[Any]] = {}
        self._spans: list[int] = []
        self._stopped = False

    def at(self, at_ms: int, handler: Handler, argument: Any) -> None:
        """Run ``handler(argument)`` at ``at_ms``, which must not be in the past."""
        try:
            waiting = self._waiting[at_ms >> SPAN_BITS]
        except KeyError:
            self._open_or_insert(at_ms, handler, argument)
            return
        waiting.append(at_ms)
        waiting.append(handler)
        waiting.append(argument)

    def _open_or_insert(self, at_ms: int, handler: Handler, argument: Any) -> None:
        span = at_ms >> SPAN_BITS
        if span > self._span:
            self._waiting[span] = [at_ms, handler, argument]
            heappush(self._spans, span)
        elif at_ms < self.now_ms:
            raise ValueError(f"an event for {at_ms} ms was put in at {self.now_ms} ms")
        else:
            # Behind all of its instant, so never among those that have run (they are at or before now).
            place = bisect_right(self._times, at_ms)
            self._times.insert(place, at_ms)
            self._events.insert(place, (at_ms, handler, argument))

    def stop(self) -> None:
        """Leave ``run`` after the instant that is running."""
        self._stopped = True

    def waiting_ms(self) -> Iterator[int]:
        """Yield the instants of the events that wait for an instant after now."""
        yield from self._times[bisect_right(self._times, self.now_ms) :]
        for waiting in self._waiting.values():
            yield from waiting[::3]

    def next_at_ms(self) -> int | None:
        """Return the first instant after now that has an event, or None."""
        place = bisect_right(self._times, self.now_ms)
        if place < len(self._times):
            return self._times[place]
        return min(self._waiting[self._spans[0]][::3]) if self._spans else None

    def run(self, until_ms: int | None = None, after_each: Callable[[], None] | None = None) -> None:
        """Run events in order until none is left, ``stop`` is called or the next lies after ``until_ms``.

        ``after_each`` is called after every single event (invariants are checked there).
        """
        self._stopped = False
        end_ms = _NO_END_MS if until_ms is None else until_ms
        while self._run_span(end_ms, after_each) and self._spans and not self._stopped:
            self._span = heappop(self._spans)
            flat = self._waiting.pop(self._span)
            self._events = list(zip(flat[::3], flat[1::3], flat[2::3], strict=True))
            self._events.sort(key=_instant)
            self._times = list(map(_instant, self._events))

    def _run_span(self, end_ms: int, after_each: Callable[[], None] | None) -> bool:
        """Run the running span; say whether it was run to its end."""
        now_ms, events, before_advance = -1, self._events, self.before_advance
        left = iter(events)
        # A handler may put events into this very list, behind the one that runs: iteration reaches them.
        for at_ms, handler, argument in left:
            if at_ms != now_ms:
                if self._stopped:
                    break
                if at_ms > end_ms:
                    self.now_ms = end_ms
                    break
                if before_advance is not None:
                    before_advance(at_ms)
                self.now_ms = now_ms = at_ms
            handler(argument)
            if after_each is not None:
                after_each()
        else:
            self.events += len(events)
            events.clear()
            self._times.clear()
            return True
        # The event that came too late was taken from the iterator, and has not run.
        done = len(events) - length_hint(left) - 1
        self.events += done
        del events[:done], self._times[:done]
        return False
