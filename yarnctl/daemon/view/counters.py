"""Counters since the daemon began: what was decided, asked for, and became of it, and how long it took.

Law: counters only grow, and are counted from records, so they agree with the journal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

import msgspec

from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.records import Decision, Epoch, Performed, Record, Refusal, SavedLost, Transition

BOUNDS_MS = (250, 500, 1_000, 1_500, 2_500, 5_000, 12_000, 30_000, 60_000)
"""Upper bounds of the histograms' buckets; the last bucket has none."""

ASKED_MAX = 50_000


class Histogram(msgspec.Struct, frozen=True):
    """How often a span fell into each bucket of :data:`BOUNDS_MS`, and the sum of all spans."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS_MS) + 1)
    sum_ms: int = 0

    def plus(self, span_ms: int) -> Histogram:
        """Return the histogram with one more span."""
        place = bisect_left(BOUNDS_MS, span_ms)
        counts = (*self.counts[:place], self.counts[place] + 1, *self.counts[place + 1 :])
        return Histogram(counts, self.sum_ms + span_ms)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """All counters. ``asked`` counts orders by verb, ``ended`` by their last state.

    ``checkpoints_lost`` were not used by the next attempt; ``keys_lost`` are the keys in them, where known.
    ``actions`` counts requests by (action, outcome). ``saved`` and ``freed`` are spans from the order
    to its checkpoint, and to the end of its container.
    """

    decisions: int = 0
    refusals: int = 0
    epochs: int = 0
    keys_saved: int = 0
    checkpoints_lost: int = 0
    keys_lost: int = 0
    asked: Mapping[str, int] = {}
    ended: Mapping[str, int] = {}
    actions: Mapping[tuple[str, str], int] = {}
    saved: Histogram = Histogram()
    freed: Histogram = Histogram()


class Counted:
    """Counts records as they come."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._asked_at_ms: dict[str, int] = {}
        self._asked: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._actions: dict[tuple[str, str], int] = {}
        self._dirty = False

    def take(self, record: Record) -> None:
        """Count one record."""
        self._dirty = True
        counts = self._counts
        if isinstance(record, Decision):
            self._counts = msgspec.structs.replace(counts, decisions=counts.decisions + 1)
            self._begin(record)
        elif isinstance(record, Transition):
            self._moved(record)
        elif isinstance(record, Performed):
            key = (record.action, _tag(record.outcome))
            self._actions[key] = self._actions.get(key, 0) + 1
            if key[0] in ("suspend", "kill"):
                self._asked[key[0]] = self._asked.get(key[0], 0) + 1
        elif isinstance(record, Refusal):
            self._counts = msgspec.structs.replace(counts, refusals=counts.refusals + 1)
        elif isinstance(record, SavedLost):
            lost, keys = counts.checkpoints_lost + 1, counts.keys_lost + max(0, record.keys_lost)
            self._counts = msgspec.structs.replace(counts, checkpoints_lost=lost, keys_lost=keys)
        elif isinstance(record, Epoch):
            self._counts = msgspec.structs.replace(counts, epochs=counts.epochs + 1)

    def _begin(self, record: Decision) -> None:
        self._asked_at_ms.update(dict.fromkeys(record.orders, record.at_ms))
        while len(self._asked_at_ms) > ASKED_MAX:
            del self._asked_at_ms[next(iter(self._asked_at_ms))]

    def _moved(self, record: Transition) -> None:
        counts, asked_at_ms = self._counts, self._asked_at_ms.get(record.order)
        if asked_at_ms is not None and record.source != record.target:
            span_ms = max(0, record.at_ms - asked_at_ms)
            if record.target == "checkpointed":
                keys_saved = counts.keys_saved + max(0, record.keys_done)
                saved = counts.saved.plus(span_ms)
                self._counts = msgspec.structs.replace(counts, saved=saved, keys_saved=keys_saved)
            elif record.target == "freed":
                self._counts = msgspec.structs.replace(counts, freed=counts.freed.plus(span_ms))
        if record.target not in OPEN:
            self._ended[record.target] = self._ended.get(record.target, 0) + 1
            self._asked_at_ms.pop(record.order, None)

    def counts(self) -> Counts:
        """Return the counters as they stand now, as a value."""
        if self._dirty:
            self._dirty = False
            self._counts = msgspec.structs.replace(
                self._counts, asked=dict(self._asked), ended=dict(self._ended), actions=dict(self._actions)
            )
        return self._counts


def _tag(record: msgspec.Struct) -> str:
    return str(record.__struct_config__.tag)
