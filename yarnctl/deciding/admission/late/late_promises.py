"""Late promises: an admitted job that will miss its deadline, noticed before it does.

A job is projected by its pace, the mean of two: since the first look that showed progress, and over the newer
half of that time (a job starts slowly, and its tasks end in waves). It counts as late once all looks of
``LATE_FOR_RATIO`` of the time that it was given, at least ``LOOKS``, project its end behind the deadline, and
as on time again as soon as one look does not. Nothing is projected in the first third of its time. The
ratios were chosen on seeds 77 and 78 of ``python -m tests.soak late-promises``.

MapReduce counts maps and reduces by half each, however long they take: where its estimate has phases,
progress is converted to time.

Law: this decides nothing and is in no journal. The same looks give the same late promises.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from yarnctl.deciding.admission.records import Phases

LOOKS = 3
LATE_FOR_RATIO = 0.05
QUIET_RATIO = 0.33
SETUP_RATIO, TASKS_RATIO = 0.05, 0.9
POINTS_MAX = 400
"""Of more looks at one job every other one is forgotten."""


class RunningPromise(NamedTuple):
    """A running job with a deadline, as one look shows it. ``since_ms``: when it was promised its time."""

    admission: str
    since_ms: int
    deadline_at_ms: int
    progress_ratio: float

    @property
    def given_ms(self) -> int:
        """The time that the job was given."""
        return max(1, self.deadline_at_ms - self.since_ms)


def passed_ratio(progress_ratio: float, phases: Phases | None, containers: int) -> float:
    """Return which part of its time on so many containers a job with this progress has behind it.

    Hadoop's progress: 5 % setup, 90 % maps (with reduces 45 % each), 5 % cleanup (JobImpl). Without phases
    it is taken as it is.
    """
    kinds = () if phases is None else phases.kinds
    spans_ms = [-(-each.tasks // max(1, containers)) * each.mean_ms for each in kinds]
    if len(spans_ms) not in (1, 2) or not sum(spans_ms):
        return progress_ratio
    part, left = TASKS_RATIO / len(spans_ms), progress_ratio - SETUP_RATIO
    passed_ms = 0.0
    for span_ms in spans_ms:
        passed_ms += span_ms * min(1.0, max(0.0, left / part))
        left -= part
    return passed_ms / sum(spans_ms)


class LatePromise(NamedTuple):
    """A promise that will be missed: since when that is known, and when its job will end by its pace."""

    admission: str
    known_at_ms: int
    projected_at_ms: int
    deadline_at_ms: int


class _Paced:
    """What looks have shown of one job, from the first progress on; ``late_looks`` in a row are late."""

    def __init__(self) -> None:
        self.at_ms: list[int] = []
        self.ratios: list[float] = []
        self.late_since_ms = 0
        self.late_looks = 0
        self.known_at_ms: int | None = None

    def note(self, ratio: float, now_ms: int) -> None:
        if self.at_ms and (now_ms < self.at_ms[-1] or ratio < self.ratios[-1]):
            self.__init__()  # type: ignore[misc]  # the clock was set back, or another attempt began
        if ratio > 0:
            self.at_ms.append(now_ms)
            self.ratios.append(ratio)
        if len(self.at_ms) > POINTS_MAX:
            del self.at_ms[1::2], self.ratios[1::2]

    def projected_ms(self, now_ms: int) -> int | None:
        """Return when the job ends by its pace; None: it has not moved since the first look."""
        if not self.at_ms or self.ratios[-1] <= self.ratios[0]:
            return None
        began_ms, done = self.at_ms[0], self.ratios[-1]
        half = bisect_left(self.at_ms, (began_ms + now_ms) // 2)
        left = [
            (1 - done) * (now_ms - self.at_ms[place]) / (done - self.ratios[place])
            for place in (0, half)
            if place < len(self.at_ms) and done > self.ratios[place]
        ]
        return now_ms + round(sum(left) / len(left))


class LateWatch:
    """Follows promises from look to look. ``late``: those that will be missed, by admission."""

    def __init__(self) -> None:
        self.late: dict[str, LatePromise] = {}
        self._paced: dict[str, _Paced] = {}

    def look(self, promises: Iterable[RunningPromise], now_ms: int) -> list[LatePromise]:
        """Take one look at all running promises; return those that it shows as late for the first time."""
        paced, self._paced, before, self.late = self._paced, {}, self.late, {}
        for promise in promises:
            found = paced.get(promise.admission) or _Paced()
            self._paced[promise.admission] = found
            found.note(promise.progress_ratio, now_ms)
            late = _judged(promise, found, now_ms)
            if late is not None:
                self.late[promise.admission] = late
        return [each for name, each in self.late.items() if name not in before]


def _judged(promise: RunningPromise, paced: _Paced, now_ms: int) -> LatePromise | None:
    if now_ms - promise.since_ms < QUIET_RATIO * promise.given_ms:
        return None
    projected_ms = paced.projected_ms(now_ms)
    if projected_ms is None:  # it stands still, and takes at least as long as it has stood
        projected_ms = now_ms + max(0, now_ms - promise.since_ms)
    if projected_ms <= promise.deadline_at_ms:
        paced.late_looks, paced.known_at_ms = 0, None
        return None
    if not paced.late_looks:
        paced.late_since_ms = now_ms
    paced.late_looks += 1
    if paced.late_looks < LOOKS or now_ms - paced.late_since_ms < LATE_FOR_RATIO * promise.given_ms:
        return None
    paced.known_at_ms = now_ms if paced.known_at_ms is None else paced.known_at_ms
    return LatePromise(promise.admission, paced.known_at_ms, projected_ms, promise.deadline_at_ms)
