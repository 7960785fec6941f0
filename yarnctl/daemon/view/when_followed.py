"""Follow all applications from look to look, and foretell when each starts and ends.

An application passes a stage when a look first shows it: submitted (without a container), requested (its
first tasks), and parts of its progress. What a look shows is known to the length of the pause between two.
Applications that ran when the daemon began are foretold from their progress on. An application that is gone
has ended; whether it was killed is not known.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from yarnctl.deciding.foresight import MASTER_PRIORITY
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.prediction.when_ending import Foreteller, Interval, Known, Stage, Target

PARTS: tuple[tuple[float, Stage], ...] = ((0.25, "25%"), (0.5, "50%"), (0.75, "75%"))
_DIGITS = re.compile(r"[0-9]+")


class When(NamedTuple):
    """When an application starts (None: it has, or it is not known) and ends, in spans from now on."""

    starts: Interval | None
    ends: Interval | None


def unforetold(_application: str, _now_ms: int) -> When:
    """Return what is known without earlier applications: nothing."""
    return When(None, None)


class Followed:
    """One application: what was known at each stage, when it passed them, and what was foretold there."""

    def __init__(self, submitted_at_ms: int, started: bool) -> None:
        self.submitted_at_ms = submitted_at_ms
        self.started = started
        self.passed: dict[Stage, tuple[Known, int]] = {}
        self.stage: Stage = "submitted"
        self.spans: dict[Target, tuple[int, ...]] = {}
        self.given: dict[Target, tuple[Known, int, Interval]] = {}


def size_of(view: ApplicationView) -> int:
    """Return how many tasks an application has and requests; 0: its master has requested none yet."""
    wanted = sum(each.count for each in view.requests if each.priority != MASTER_PRIORITY)
    return wanted + max(0, view.containers - 1)


class Following:
    """``look`` takes each snapshot once, in order; any thread may call ``when``."""

    def __init__(self) -> None:
        self.foreteller = Foreteller()
        self._followed: dict[str, Followed] = {}
        self._begun = False
        self._lock = Lock()

    def look(self, snapshot: Snapshot, now_ms: int) -> None:
        """Note what a snapshot shows; the applications that it lacks have ended."""
        with self._lock:
            self._look(snapshot, now_ms)

    def _look(self, snapshot: Snapshot, now_ms: int) -> None:
        pending: Counter[str] = Counter()
        seen: set[str] = set()
        for view in sorted(snapshot.applications, key=lambda each: (each.queue, each.rank, each.application)):
            seen.add(view.application)
            self._see(view, pending[view.queue], now_ms)
            pending[view.queue] += sum(each.count for each in view.requests)
        for name in [name for name in self._followed if name not in seen]:
            self._end(self._followed.pop(name), now_ms)
        self._begun = True

    def when(self, application: str, now_ms: int) -> When:
        """Return when an application starts and ends, as far as it is known."""
        with self._lock:
            followed = self._followed.get(application)
            if followed is None or not followed.passed:
                return unforetold(application, now_ms)
            starts = None if followed.started else self._left(followed, "start", now_ms)
            return When(starts, self._left(followed, "end", now_ms))

    def given(self, application: str) -> Mapping[Target, tuple[Known, int, Interval]]:
        """Return the first intervals that were given, by target: what was known, when, and the interval."""
        followed = self._followed.get(application)
        return {} if followed is None else followed.given

    def _left(self, followed: Followed, target: Target, now_ms: int) -> Interval | None:
        stage: Stage = "submitted" if target == "start" else followed.stage
        if stage not in followed.passed:
            return None
        known, at_ms = followed.passed[stage]
        passed_ms = now_ms - at_ms
        found = self.foreteller.interval(known, target, followed.spans.get(target, ()), passed_ms)
        if found is None:
            return None
        least_ms, middle_ms, most_ms, rows = found
        return Interval(
            max(0, least_ms - passed_ms), max(0, middle_ms - passed_ms), max(0, most_ms - passed_ms), rows
        )

    def _see(self, view: ApplicationView, ahead: int, now_ms: int) -> None:
        followed = self._followed.get(view.application)
        if followed is None:
            followed = Followed(view.submitted_at_ms, view.containers > 0)
            self._followed[view.application] = followed
            if self._begun:
                self._pass(followed, "submitted", _known(view, math.log1p(ahead)), now_ms)
        if view.containers > 0 and not followed.started:
            followed.started = True
            self._came(followed, "start", now_ms)
        if "requested" not in followed.passed and "submitted" in followed.passed and (size := size_of(view)):
            self._pass(followed, "requested", _known(view, math.log1p(size), math.log1p(ahead)), now_ms)
        for part, stage in PARTS:
            if view.progress_ratio >= part and stage not in followed.passed:
                pace = (1 - view.progress_ratio) / view.progress_ratio
                left_ms = max(0, now_ms - view.submitted_at_ms) * pace
                self._pass(followed, stage, _known(view, math.log1p(left_ms / 1000)), now_ms)

    def _pass(self, followed: Followed, stage: Stage, known: Known, now_ms: int) -> None:
        """Let an application pass a stage, and foretell from there."""
        followed.passed[stage], followed.stage = (known, now_ms), stage
        targets: tuple[Target, ...] = ("start", "end") if stage == "submitted" else ("end",)
        for target in targets:
            spans = followed.spans[target] = self.foreteller.nearest(known, stage, target)
            found = self.foreteller.interval(known, target, spans, 0)
            if found is not None and stage in ("submitted", "requested"):
                followed.given[target] = (known, now_ms, found)

    def _came(self, followed: Followed, target: Target, now_ms: int) -> None:
        """Learn from a start or an end, and judge what was foretold of it."""
        for stage, (known, at_ms) in followed.passed.items():
            if target == "end" or stage == "submitted":
                self.foreteller.learn(known, stage, target, now_ms - at_ms)
        if target in followed.given:
            known, at_ms, interval = followed.given[target]
            self.foreteller.judge(known, target, interval, now_ms - at_ms)

    def _end(self, followed: Followed, now_ms: int) -> None:
        self._came(followed, "end", now_ms)


def _known(view: ApplicationView, *numbers: float) -> Known:
    """Return what is known of an application; names that differ in digits alone are one kind of job."""
    return Known(view.queue, f"{view.user}/{_DIGITS.sub('', view.name)}", numbers)
