"""Serving the earliest deadline first as it was written first: the oracle of the timeline's faster form.

Law: it is not made faster. Every piece of work goes through all steps from the first, and what is left at an
instant is the difference of two sums over the whole profile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from yarnctl.deciding.admission.capacity import FOREVER_MS, Load, Profile
from yarnctl.deciding.admission.pricing.timeline import Due, by_deadline, supply


def served(profile: Profile, dues: Iterable[Due], from_ms: int) -> dict[str, int]:
    """Return when each due ends if the earliest deadline is served first."""
    steps = _Steps(begun(profile, from_ms))
    return {due.who: steps.serve(due) for due in by_deadline(dues)}


def begins(profile: Profile, dues: Iterable[Due], from_ms: int) -> dict[str, int]:
    """Return when each due begins if the earliest deadline is served first; FOREVER_MS if it never does."""
    steps, begin_ms = _Steps(begun(profile, from_ms)), {}
    for due in by_deadline(dues):
        begin_ms[due.who] = steps.first_free(2 if due.master_ms else 1)
        steps.serve(due)
    return begin_ms


def left_at(profile: Profile, dues: Iterable[Due], from_ms: int, until_ms: int) -> dict[str, int]:
    """Return what each due has still to do at an instant if the earliest deadline is served first."""
    steps, left_ms = _Steps(begun(profile, from_ms)), {}
    for due in by_deadline(dues):
        before_ms = steps.given(from_ms, until_ms)
        steps.serve(due)
        left_ms[due.who] = due.work_ms - (before_ms - steps.given(from_ms, until_ms))
    return left_ms


def judged(profile: Profile, dues: Sequence[Due], from_ms: int, job: Due) -> tuple[int, bool]:
    """Return when one job more would end, and whether another's deadline would be missed by it."""
    ends_ms = served(profile, (*dues, job), from_ms)
    return ends_ms[job.who], any(ends_ms[due.who] > due.due_at_ms for due in dues)


def with_load(profile: Profile, load: Load) -> Profile:
    """Return the profile with one load more; equal neighbours stay two steps."""
    edges = {load.from_ms, load.until_ms} if load.until_ms < FOREVER_MS else {load.from_ms}
    at_ms = tuple(sorted({*profile.at_ms, *edges}))
    held = [load.containers if load.from_ms <= at < load.until_ms else 0 for at in at_ms]
    return Profile(at_ms, tuple(profile.free_at(at) - taken for at, taken in zip(at_ms, held, strict=True)))


def begun(profile: Profile, from_ms: int) -> Profile:
    """Return the profile from an instant on."""
    first = max(0, bisect_right(profile.at_ms, from_ms) - 1)
    return Profile((from_ms, *profile.at_ms[first + 1 :]), profile.free[first:])


class _Steps:
    """A profile into which work is laid: all steps are written anew for each piece of work."""

    def __init__(self, profile: Profile) -> None:
        self.at_ms, self.free = list(profile.at_ms), list(profile.free)

    def given(self, from_ms: int, until_ms: int) -> int:
        """Return how much is free between two instants."""
        return supply(Profile(tuple(self.at_ms), tuple(self.free)), from_ms).until(until_ms)

    def first_free(self, least: int) -> int:
        """Return the first instant with so many free."""
        free = zip(self.at_ms, self.free, strict=True)
        return next((at_ms for at_ms, there in free if there >= least), FOREVER_MS)

    def serve(self, due: Due) -> int:
        """Use the first free time; return when the work ends."""
        most, left_ms, ends_ms = due.most, due.work_ms - due.master_ms, self.at_ms[0]
        idle = 1 if due.master_ms else 0
        at_ms: list[int] = []
        free: list[int] = []
        step, last = 0, len(self.at_ms)
        while left_ms and step < last:
            begin_ms, there = self.at_ms[step], self.free[step]
            step += 1
            until_ms = self.at_ms[step] if step < last else FOREVER_MS
            wide = (most if most < there else there) - idle
            if wide > 0 and wide * (until_ms - begin_ms) > left_ms:
                whole_ms, rest = divmod(left_ms, wide)
                ends_ms = begin_ms + whole_ms
                if whole_ms:
                    _then(at_ms, free, begin_ms, there - wide - idle)
                if rest:
                    _then(at_ms, free, ends_ms, there - rest - idle)
                    ends_ms += 1
                left_ms = 0
                if ends_ms < until_ms:
                    _then(at_ms, free, ends_ms, there)
            elif wide > 0:
                left_ms -= wide * (until_ms - begin_ms)
                ends_ms = until_ms
                _then(at_ms, free, begin_ms, there - wide - idle)
            else:
                _then(at_ms, free, begin_ms, there)
        if step < last and free and self.free[step] == free[-1]:
            step += 1
        self.at_ms[:step], self.free[:step] = at_ms, free
        if left_ms:
            return FOREVER_MS
        if due.tail_ms:
            self.hold(ends_ms, ends_ms + due.tail_ms)
        return ends_ms

    def hold(self, from_ms: int, until_ms: int) -> None:
        """Use one container between two instants."""
        for at_ms in (from_ms, until_ms):
            step = bisect_left(self.at_ms, at_ms)
            if step == len(self.at_ms) or self.at_ms[step] != at_ms:
                self.at_ms.insert(step, at_ms)
                self.free.insert(step, self.free[step - 1])
        for step in range(bisect_left(self.at_ms, from_ms), bisect_left(self.at_ms, until_ms)):
            self.free[step] -= 1


def _then(at_ms: list[int], free: list[int], begin_ms: int, rate: int) -> None:
    """Continue forwards: equal steps become one."""
    if not free or free[-1] != rate:
        at_ms.append(begin_ms)
        free.append(rate)
