"""When a job starts and ends, with 90 % intervals: from the spans of the nearest earlier jobs.

A job passes stages (submitted, requested, and parts of its progress). At each it leaves a row: what was known
of it then, and, once it has ended, how long it took from there. A job at a stage is foretold from the rows of
that stage that are nearest in what was known: of the same user and name, if there are enough, else of its
queue. The longer it runs, the fewer of them are left: those that took longer.

Split conformal intervals hold for rows that could be exchanged. A cluster drifts, so the share of misses that
is aimed at follows what was missed (adaptive conformal inference, Gibbs and Candès, NeurIPS 2021, section 2):
over T judged jobs the misses differ from 10 % by at most about 1 / (STEP x T).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from heapq import nsmallest
from typing import Literal, NamedTuple

MISS_RATIO = 0.1
STEP = 0.02
MISS_LEAST, MISS_MOST = 0.02, 0.3
ROWS_MAX = 2_000
NEAREST = 60
RECURRING_LEAST = 12
"""From so many runs of the same user and name on, these alone count."""
LEFT_LEAST = 8
"""From fewer rows nothing is foretold."""
BEYOND = 2.0
"""The longest known span times this stands for what no row bounds."""

Stage = Literal["submitted", "requested", "25%", "50%", "75%"]
STAGES: tuple[Stage, ...] = ("submitted", "requested", "25%", "50%", "75%")
Target = Literal["start", "end"]


class Known(NamedTuple):
    """What is known of a job at a stage: its queue, its user and name without digits, and numbers.

    ``numbers`` are on a scale on which a difference of 1 is as much for each of them (logarithms).
    """

    queue: str
    job: str
    numbers: tuple[float, ...]


class Interval(NamedTuple):
    """A span in ms with its 90 % bounds, from the spans of ``rows`` earlier jobs."""

    least_ms: int
    middle_ms: int
    most_ms: int
    rows: int


class _Row(NamedTuple):
    known: Known
    span_ms: int


class Aim:
    """The share of misses that intervals of one queue and target aim at."""

    def __init__(self) -> None:
        self.miss_ratio = MISS_RATIO

    def judge(self, missed: bool) -> None:
        """Aim at fewer misses after a miss, and at a few more after a hit."""
        aimed = self.miss_ratio + STEP * (MISS_RATIO - missed)
        self.miss_ratio = min(MISS_MOST, max(MISS_LEAST, aimed))


class Foreteller:
    """Learns the spans of jobs and foretells those of others. Holds at most ``ROWS_MAX`` rows of a kind."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, Stage, Target], deque[_Row]] = {}
        self._aims: dict[tuple[str, Target], Aim] = {}

    def learn(self, known: Known, stage: Stage, target: Target, span_ms: int) -> None:
        """Note how long a job took from a stage to its start or end."""
        rows = self._rows.setdefault((known.queue, stage, target), deque(maxlen=ROWS_MAX))
        rows.append(_Row(known, span_ms))

    def judge(self, known: Known, target: Target, interval: Interval, span_ms: int) -> None:
        """Compare an interval that was given with what came, so that later ones miss as often as aimed at."""
        missed = not interval.least_ms <= span_ms <= interval.most_ms
        self._aims.setdefault((known.queue, target), Aim()).judge(missed)

    def nearest(self, known: Known, stage: Stage, target: Target) -> tuple[int, ...]:
        """Return the spans of the nearest rows, in order; () if there are too few."""
        rows: Sequence[_Row] = self._rows.get((known.queue, stage, target), ())
        own = [row for row in rows if row.known.job == known.job]
        if len(own) >= RECURRING_LEAST:
            rows = own
        if len(rows) < LEFT_LEAST:
            return ()
        near = nsmallest(NEAREST, rows, key=lambda row: math.dist(row.known.numbers, known.numbers))
        return tuple(sorted(row.span_ms for row in near))

    def interval(self, known: Known, target: Target, spans: Sequence[int], passed_ms: int) -> Interval | None:
        """Return the interval of a job that has been at its stage for ``passed_ms``; None: too little known.

        ``spans``: those of :meth:`nearest`. It counts from the stage on.
        """
        left = spans[bisect_right(spans, passed_ms) :]
        if not left or len(spans) < LEFT_LEAST:
            return None
        count = len(left)
        aim = self._aims.get((known.queue, target))
        half = (MISS_RATIO if aim is None else aim.miss_ratio) / 2
        lowest = math.floor((count + 1) * half)  # the rank from 1 on; 0: below the least of all
        highest = math.ceil((count + 1) * (1 - half))
        least_ms = left[lowest - 1] if lowest else passed_ms
        most_ms = left[highest - 1] if highest <= count else round(left[-1] * BEYOND)
        return Interval(least_ms, left[count // 2], most_ms, count)
