"""Work with deadlines on capacity over time: what is free before whom, and who ends when.

Law: a value in, a value out. A :class:`Due` is a claim on capacity beside a load: so much work, on at
most ``most`` containers, done by an instant, whenever. Work is laid exactly: whole containers for whole
milliseconds, and the rest of a division for one millisecond.

Two schedules of the same dues:

* *laid late* (MRM section 5, Fig 7): in order of deadlines, the last one first, each as late as fits. It
  shows what is free now, and until when.
* *earliest deadline first*: what a scheduler does that serves the ranks of deadlines. A promise is
  feasible if this keeps it. Less work or more capacity never makes anybody later, and the schedule of
  what is left after some time is the rest of the schedule; so what is feasible once remains so.

On one server (``most`` is the capacity) both keep every deadline, or neither does. With narrower jobs
they differ, and earliest deadline first decides.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile


class Due(NamedTuple):
    """``work_ms`` container-ms on at most ``most`` containers, done by ``due_at_ms``."""

    who: str
    work_ms: int
    most: int
    due_at_ms: int


class Laid(NamedTuple):
    """What is ``free`` beside work that is laid late, and who could not be laid whole: (who, ms)."""

    free: Profile
    short: tuple[tuple[str, int], ...]


class Supply(NamedTuple):
    """The container-ms that a profile gives from ``at_ms[0]`` on: ``total`` at each step, ``rate`` after."""

    at_ms: tuple[int, ...]
    total: tuple[int, ...]
    rate: tuple[int, ...]

    def until(self, instant_ms: int) -> int:
        """Return the container-ms until an instant (0 before the first step)."""
        step = bisect_right(self.at_ms, instant_ms) - 1
        if step < 0:
            return 0
        return self.total[step] + self.rate[step] * (instant_ms - self.at_ms[step])

    def when(self, work_ms: int) -> int:
        """Return the first instant until which so much is given, FOREVER_MS if it never is."""
        step = max(0, bisect_left(self.total, work_ms) - 1)
        if self.rate[step] <= 0:
            return self.at_ms[0] if work_ms <= 0 else FOREVER_MS
        return self.at_ms[step] + -(-max(0, work_ms - self.total[step]) // self.rate[step])


def supply(profile: Profile, from_ms: int) -> Supply:
    """Return what is free from an instant on; less than nothing counts as nothing."""
    first = max(0, bisect_right(profile.at_ms, from_ms) - 1)
    at_ms = (max(from_ms, profile.at_ms[first]), *profile.at_ms[first + 1 :])
    if at_ms[0] > from_ms:  # before its first step a profile has what its first step has
        at_ms = (from_ms, *at_ms[1:])
    rate = tuple(max(0, each) for each in profile.free[first:])
    total = [0]
    for step in range(1, len(at_ms)):
        total.append(total[-1] + rate[step - 1] * (at_ms[step] - at_ms[step - 1]))
    return Supply(at_ms, tuple(total), rate)


def by_deadline(dues: Iterable[Due]) -> list[Due]:
    """Return the dues in the order in which they are served: deadline, then as they came."""
    return sorted(dues, key=lambda due: due.due_at_ms)


def laid_late(profile: Profile, dues: Iterable[Due]) -> Laid:
    """Lay each due as late as it fits before its deadline, the last deadline first (MRM section 5)."""
    steps = _Steps(profile)
    short = []
    for due in reversed(by_deadline(dues)):
        left_ms = steps.lay(due)
        if left_ms:
            short.append((due.who, left_ms))
    return Laid(Profile(tuple(steps.at_ms), tuple(steps.free)), tuple(short))


def earliest(profile: Profile, work_ms: int, most: int, from_ms: int) -> int:
    """Return when work that begins at ``from_ms`` ends in what is free; FOREVER_MS if it never does."""
    at_ms = from_ms
    step = max(0, bisect_right(profile.at_ms, from_ms) - 1)
    left_ms = work_ms
    while left_ms > 0:
        until_ms = profile.at_ms[step + 1] if step + 1 < len(profile.at_ms) else FOREVER_MS
        wide = min(most, max(0, profile.free[step]))
        if wide:
            needed_ms = -(-left_ms // wide)
            if needed_ms <= until_ms - at_ms:
                return at_ms + needed_ms
            left_ms -= wide * (until_ms - at_ms)
        if until_ms == FOREVER_MS:
            return FOREVER_MS
        at_ms, step = until_ms, step + 1
    return at_ms


def served(profile: Profile, dues: Iterable[Due], from_ms: int) -> dict[str, int]:
    """Return when each due ends if the earliest deadline is served first."""
    steps = _Steps(_begun(profile, from_ms))
    return {due.who: steps.serve(due) for due in by_deadline(dues)}


def broken(profile: Profile, dues: Sequence[Due], from_ms: int) -> tuple[str, ...]:
    """Return whose deadline would be missed if the earliest is served first."""
    ends_ms = served(profile, dues, from_ms)
    return tuple(due.who for due in dues if ends_ms[due.who] > due.due_at_ms)


def blocking(who: str, containers: int, from_ms: int, rest_ms: int) -> Load:
    """Return what a running task holds that cannot be suspended: YARN takes no container from it."""
    return Load(who, containers, from_ms, from_ms + rest_ms)


def earliest_due(profile: Profile, dues: Sequence[Due], job: Due, from_ms: int) -> int:
    """Return the earliest deadline of ``job`` by which nobody's promise is broken; its own is not read.

    What is free beside work that is laid late says when. Where narrow jobs make earliest deadline first
    differ from that, the places between the deadlines behind it are tried, nearest first by halving; the
    last place harms nobody.
    """
    found_ms = earliest(laid_late(profile, dues).free, job.work_ms, job.most, from_ms)
    if found_ms < FOREVER_MS and not broken(profile, (*dues, job._replace(due_at_ms=found_ms)), from_ms):
        return found_ms
    later_ms = sorted({due.due_at_ms for due in dues if due.due_at_ms >= found_ms})
    low, high = 0, len(later_ms)
    best_ms = served(profile, (*dues, job._replace(due_at_ms=FOREVER_MS)), from_ms)[job.who]
    best_ms = max([best_ms, *(due.due_at_ms for due in dues)])
    while low < high:
        middle = (low + high) // 2
        tried_ms = later_ms[middle]
        if broken(profile, (*dues, job._replace(due_at_ms=tried_ms)), from_ms):
            low = middle + 1
        else:
            best_ms, high = tried_ms, middle
    return best_ms


def _begun(profile: Profile, from_ms: int) -> Profile:
    """Return the profile from an instant on."""
    first = max(0, bisect_right(profile.at_ms, from_ms) - 1)
    return Profile((from_ms, *profile.at_ms[first + 1 :]), profile.free[first:])


class _Steps:
    """A profile while work is laid into it: equal neighbours are one step, so that full time is skipped."""

    def __init__(self, profile: Profile) -> None:
        self.at_ms, self.free = list(profile.at_ms), list(profile.free)

    def lay(self, due: Due) -> int:
        """Take the latest free time before the deadline; return what did not fit."""
        left_ms, until_ms = due.work_ms, due.due_at_ms
        step = bisect_left(self.at_ms, until_ms) - 1
        while left_ms > 0 and step >= 0:
            begin_ms = self.at_ms[step]
            wide = min(due.most, self.free[step])
            if wide > 0:
                whole_ms = min(left_ms // wide, until_ms - begin_ms)
                self._take(until_ms - whole_ms, until_ms, wide)
                left_ms -= whole_ms * wide
                until_ms -= whole_ms
                if until_ms > begin_ms and left_ms:
                    self._take(until_ms - 1, until_ms, left_ms)
                    left_ms = 0
            until_ms = begin_ms
            step = bisect_left(self.at_ms, until_ms) - 1
        return left_ms

    def serve(self, due: Due) -> int:
        """Take the first free time; return when the work ends."""
        left_ms, at_ms = due.work_ms, self.at_ms[0]
        while left_ms > 0:
            step = bisect_right(self.at_ms, at_ms) - 1
            until_ms = self.at_ms[step + 1] if step + 1 < len(self.at_ms) else FOREVER_MS
            wide = min(due.most, self.free[step])
            if wide > 0:
                whole_ms = min(left_ms // wide, until_ms - at_ms)
                self._take(at_ms, at_ms + whole_ms, wide)
                left_ms -= whole_ms * wide
                at_ms += whole_ms
                if left_ms and at_ms < until_ms:
                    self._take(at_ms, at_ms + 1, left_ms)
                    return at_ms + 1
            elif until_ms == FOREVER_MS:
                return FOREVER_MS
            if left_ms:
                at_ms = until_ms
        return at_ms

    def _take(self, from_ms: int, until_ms: int, wide: int) -> None:
        """Take ``wide`` containers in a span that lies within one step."""
        if until_ms <= from_ms:
            return
        step = bisect_right(self.at_ms, from_ms) - 1
        free = self.free[step]
        end_ms = self.at_ms[step + 1] if step + 1 < len(self.at_ms) else None
        pieces = [(self.at_ms[step], free)] if from_ms > self.at_ms[step] else []
        pieces.append((from_ms, free - wide))
        if end_ms is None or until_ms < end_ms:
            pieces.append((until_ms, free))
        elif step + 1 < len(self.free) and self.free[step + 1] == free - wide:
            del self.at_ms[step + 1], self.free[step + 1]
        if step > 0 and self.free[step - 1] == pieces[0][1]:
            del pieces[0]
        self.at_ms[step : step + 1] = [at for at, _ in pieces]
        self.free[step : step + 1] = [each for _, each in pieces]
