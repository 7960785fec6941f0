"""A histogram as a value."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

ORDER_BOUNDS_MS = (250, 500, 1_000, 1_500, 2_500, 5_000, 12_000, 30_000, 60_000)
"""Upper bounds for the times of orders."""


class Histogram(msgspec.Struct, frozen=True):
    """The number of spans in each bucket, and the sum of all spans. The last bucket has no upper bound."""

    bounds_ms: tuple[int, ...] = ORDER_BOUNDS_MS
    counts: tuple[int, ...] = (0,) * (len(ORDER_BOUNDS_MS) + 1)
    sum_ms: int = 0

    @classmethod
    def over(cls, bounds_ms: tuple[int, ...]) -> Histogram:
        """Return an empty histogram with these upper bounds, which rise."""
        return cls(bounds_ms, (0,) * (len(bounds_ms) + 1))

    def plus(self, span_ms: int) -> Histogram:
        """Return the histogram with one more span."""
        place = bisect_left(self.bounds_ms, span_ms)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Histogram(self.bounds_ms, counts, self.sum_ms + span_ms)
