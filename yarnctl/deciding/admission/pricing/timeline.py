"""Work with deadlines on capacity over time: what is free before which deadline, and which job ends when.

A :class:`Due` is a claim on capacity beside a load: work on at most ``most`` containers, done by an instant.
Work is laid exactly: whole containers for whole milliseconds, and the rest of a division for one millisecond.

* *Laid late* (MRM section 5, Fig 7): the last deadline first, each as late as fits. It shows what is free
  now, and until when.
* *Earliest deadline first*: what a scheduler does that serves the ranks of deadlines. A promise is feasible
  if this keeps it. Less work or more capacity never makes any job later, and the schedule of what is left
  after some time is the rest of the schedule; so what is feasible once remains so.

On one server (``most`` is the capacity) both keep every deadline, or neither does. With narrower jobs they
differ, and earliest deadline first decides.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from yarnctl.deciding.admission.capacity import FOREVER_MS, Profile


class Due(NamedTuple):
    """``work_ms`` container-ms on at most ``most`` containers, done by ``due_at_ms``.

    ``master_ms``: of the work so much is one container's that computes nothing, held while the others compute
    (0: none is). Laid late it is work; served, one container of those that the job gets does not count, and
    it is held for ``tail_ms`` longer than the work takes.
    """

    who: str
    work_ms: int
    most: int
    due_at_ms: int
    master_ms: int = 0
    tail_ms: int = 0


_DUE_AT_MS = attrgetter("due_at_ms")


class Laid(NamedTuple):
    """What is ``free`` beside work that is laid late, and the work that did not fit: (who, ms)."""

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
    if at_ms[0] > from_ms:  # before its first step a profile has its first step's value
        at_ms = (from_ms, *at_ms[1:])
    rate = tuple(max(0, each) for each in profile.free[first:])
    total = [0]
    for step in range(1, len(at_ms)):
        total.append(total[-1] + rate[step - 1] * (at_ms[step] - at_ms[step - 1]))
    return Supply(at_ms, tuple(total), rate)


def by_deadline(dues: Iterable[Due]) -> list[Due]:
    """Return the dues in the order in which they are served: deadline, then order of arrival."""
    return sorted(dues, key=_DUE_AT_MS)


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


class Schedule(NamedTuple):
    """When each due begins and ends, by its name; FOREVER_MS: it never does."""

    begin_ms: dict[str, int]
    end_ms: dict[str, int]


def schedule(profile: Profile, dues: Iterable[Due], from_ms: int) -> Schedule:
    """Return when each due begins and ends if the earliest deadline is served first.

    The last results are kept: a round needs the same one several times. Do not change them.
    """
    return _schedule(profile, tuple(by_deadline(dues)), from_ms)


@lru_cache(maxsize=8)
def _schedule(profile: Profile, ordered: tuple[Due, ...], from_ms: int) -> Schedule:
    steps, found = _Steps(_begun(profile, from_ms)), Schedule({}, {})
    begin_ms, end_ms = found
    for due in ordered:
        who = due[0]
        end_ms[who] = steps.serve(due)
        begin_ms[who] = steps.began_ms
    return found


def served(profile: Profile, dues: Iterable[Due], from_ms: int) -> dict[str, int]:
    """Return when each due ends if the earliest deadline is served first."""
    return dict(schedule(profile, dues, from_ms).end_ms)


def served_of(profile: Profile, dues: Iterable[Due], from_ms: int, who: Collection[str]) -> dict[str, int]:
    """Return when these dues end, as :func:`served`; what is served behind the last of them is not laid."""
    steps, end_ms, ordered = _Steps(_begun(profile, from_ms)), dict[str, int](), by_deadline(dues)
    last = max((place for place, due in enumerate(ordered) if due.who in who), default=-1)
    for due in ordered[: last + 1]:
        end_ms[due.who] = steps.serve(due)
    return {name: end_ms[name] for name in who if name in end_ms}


def left_at(profile: Profile, dues: Iterable[Due], from_ms: int, until_ms: int) -> dict[str, int]:
    """Return what each due has still to do at an instant if the earliest deadline is served first.

    What is free behind the instant changes nothing before it: only the time until then is laid.
    """
    steps, left_ms = _Steps(_cut(_begun(profile, from_ms), until_ms)), {}
    free_ms = steps.given()
    for due in by_deadline(dues):
        before_ms = free_ms
        if free_ms:
            steps.serve(due)
            free_ms = steps.given()
        left_ms[due.who] = due.work_ms - (before_ms - free_ms)
    return left_ms


def broken(profile: Profile, dues: Sequence[Due], from_ms: int) -> tuple[str, ...]:
    """Return the jobs whose deadline would be missed if the earliest is served first."""
    ends_ms = schedule(profile, dues, from_ms).end_ms
    return tuple(due.who for due in dues if ends_ms[due.who] > due.due_at_ms)


def judged(profile: Profile, dues: Sequence[Due], from_ms: int, due: Due) -> tuple[int, bool]:
    """Return when one job more would end, and whether another's deadline would be missed by it."""
    ends_ms = schedule(profile, (*dues, due), from_ms).end_ms
    return ends_ms[due.who], any(ends_ms[each.who] > each.due_at_ms for each in dues)


Tried = Callable[[Due], tuple[int, bool]]
"""When a job with some deadline would end, and whether another promise would be broken."""


def earliest_due(
    profile: Profile, dues: Sequence[Due], due: Due, from_ms: int, tried: Tried | None = None
) -> int:
    """Return the earliest deadline of ``due`` that breaks no promise; its own is not read.

    It follows from what is free beside work that is laid late, and from when the job would then end. Where
    narrow jobs make earliest deadline first differ from that, the ranks between the deadlines behind it are
    tried, nearest first by halving; the last rank delays no job. ``tried`` None: by ``judged``.
    """
    judge = tried or partial(judged, profile, dues, from_ms)
    found_ms = earliest(_free_beside(profile, tuple(dues)), due.work_ms, due.most, from_ms)
    ends_ms = found_ms
    for due_at_ms in (found_ms, FOREVER_MS):  # again where it would end, if that is later
        due_at_ms = min(due_at_ms, ends_ms)
        if due_at_ms < FOREVER_MS:
            ends_ms, breaks = judge(due._replace(due_at_ms=due_at_ms))
            if ends_ms <= due_at_ms and not breaks:
                return due_at_ms
    later_ms = sorted({each.due_at_ms for each in dues if each.due_at_ms >= found_ms})
    low, high = 0, len(later_ms)
    best_ms = judge(due._replace(due_at_ms=FOREVER_MS))[0]
    best_ms = max([best_ms, *(each.due_at_ms for each in dues)])
    while low < high:
        middle = (low + high) // 2
        ends_ms, breaks = judge(due._replace(due_at_ms=later_ms[middle]))
        if breaks or ends_ms > later_ms[middle]:
            low = middle + 1
        else:
            best_ms, high = later_ms[middle], middle
    return best_ms


@lru_cache(maxsize=4)
def _free_beside(profile: Profile, dues: tuple[Due, ...]) -> Profile:
    """Return what is free beside work that is laid late; the last results are kept."""
    return laid_late(profile, dues).free


def _cut(profile: Profile, until_ms: int) -> Profile:
    """Return the profile with nothing free from an instant on."""
    behind = bisect_left(profile.at_ms, until_ms)
    return Profile((*profile.at_ms[:behind], until_ms), (*profile.free[:behind], 0))


def _begun(profile: Profile, from_ms: int) -> Profile:
    first = max(0, bisect_right(profile.at_ms, from_ms) - 1)
    return Profile((from_ms, *profile.at_ms[first + 1 :]), profile.free[first:])


class _Steps:
    """A profile into which work is laid.

    Work is served into the steps as they are, from the first that has any free: the steps before it are not
    gone through again. ``_front[n]``: no step before it has n free. ``began_ms``: when the work that was
    served last begins.
    """

    def __init__(self, profile: Profile) -> None:
        self.at_ms, self.free = list(profile.at_ms), list(profile.free)
        self._front = [0, 0, 0]
        self.began_ms = self.at_ms[0]

    def given(self) -> int:
        """Return how much is free until the last step."""
        spans = zip(self.free, pairwise(self.at_ms), strict=False)
        return sum(there * (until_ms - at_ms) for there, (at_ms, until_ms) in spans if there > 0)

    def _first(self, least: int) -> int:
        """Return the first step with so many free (1 or 2); behind the last if there is none."""
        step, last, free = self._front[least], len(self.free), self.free
        while step < last and free[step] < least:
            step += 1
        self._front[least] = step
        return step

    def lay(self, due: Due) -> int:
        """Use the latest free time before the deadline; return what did not fit."""
        behind = bisect_left(self.at_ms, due.due_at_ms)
        if not behind:
            return due.work_ms
        self._front = [0, 0, 0]
        most, left_ms, until_ms = due.most, due.work_ms, due.due_at_ms
        step, at_ms, free = behind, [until_ms], [self.free[behind - 1]]  # from the deadline backwards
        if behind < len(self.at_ms) and self.at_ms[behind] == until_ms:
            free, behind = [self.free[behind]], behind + 1
        while left_ms and step:
            step -= 1
            begin_ms, there = self.at_ms[step], self.free[step]
            wide = most if most < there else there
            if wide > 0 and wide * (until_ms - begin_ms) > left_ms:
                whole_ms, rest = divmod(left_ms, wide)
                pieces = ((until_ms - whole_ms, there - wide), (until_ms - whole_ms - 1, there - rest))
                for each_ms, rate in (*pieces[: 1 if whole_ms else 0], *pieces[1 : 2 if rest else 1]):
                    _behind(at_ms, free, each_ms, rate)
                left_ms, wide = 0, 0
                if at_ms[-1] == begin_ms:
                    break
            elif wide > 0:
                left_ms -= wide * (until_ms - begin_ms)
                there -= wide
            _behind(at_ms, free, begin_ms, there)
            until_ms = begin_ms
        self._put(step, behind, at_ms[::-1], free[::-1])
        return left_ms

    def serve(self, due: Due) -> int:
        """Use the first free time; return when the work ends."""
        at_ms, free, most = self.at_ms, self.free, due.most
        idle = 1 if due.master_ms else 0
        left_ms, ends_ms = due.work_ms - due.master_ms, at_ms[0]
        step, last = self._first(idle + 1), len(at_ms)
        self.began_ms = at_ms[step] if step < last else FOREVER_MS
        if not idle:
            self._front[2] = step  # steps in front of it may be divided
        while left_ms and step < last:
            there = free[step]
            wide = (most if most < there else there) - idle
            if wide > 0:
                begin_ms = at_ms[step]
                ends_ms = at_ms[step + 1] if step + 1 < last else FOREVER_MS
                room_ms = wide * (ends_ms - begin_ms)
                if room_ms > left_ms:
                    ends_ms = self._divide(step, wide, idle, left_ms)
                    left_ms = 0
                else:
                    left_ms -= room_ms
                    free[step] = there - wide - idle
            step += 1
        if left_ms:
            return FOREVER_MS
        if due.tail_ms:
            self.hold(ends_ms, ends_ms + due.tail_ms)
        return ends_ms

    def _divide(self, step: int, wide: int, idle: int, left_ms: int) -> int:
        """Use the begin of a step for the last of some work; return when that ends."""
        begin_ms, there = self.at_ms[step], self.free[step]
        whole_ms, rest = divmod(left_ms, wide)
        ends_ms = begin_ms + whole_ms
        at_ms, free = [begin_ms, ends_ms], [there - wide - idle, there]
        if rest:
            at_ms, free = [begin_ms, ends_ms, ends_ms + 1], [*free[:1], there - rest - idle, there]
            ends_ms += 1
        if not whole_ms:
            del at_ms[0], free[0]
        if step + 1 < len(self.at_ms) and at_ms[-1] == self.at_ms[step + 1]:
            del at_ms[-1], free[-1]
        self.at_ms[step : step + 1], self.free[step : step + 1] = at_ms, free
        return ends_ms

    def hold(self, from_ms: int, until_ms: int) -> None:
        """Use one container between two instants."""
        for at_ms in (from_ms, until_ms):
            step = bisect_left(self.at_ms, at_ms)
            if step == len(self.at_ms) or self.at_ms[step] != at_ms:
                self.at_ms.insert(step, at_ms)
                self.free.insert(step, self.free[step - 1])
        first, behind = bisect_left(self.at_ms, from_ms), bisect_left(self.at_ms, until_ms)
        for step in range(first, behind):
            self.free[step] -= 1
        self._front = [min(each, first) for each in self._front]

    def _put(self, step: int, behind: int, at_ms: list[int], free: list[int]) -> None:
        """Replace steps by others and join equal ones at both ends."""
        if behind < len(self.at_ms) and self.free[behind] == free[-1]:
            behind += 1
        if step and self.free[step - 1] == free[0]:
            del at_ms[0], free[0]
        self.at_ms[step:behind], self.free[step:behind] = at_ms, free


def _behind(at_ms: list[int], free: list[int], begin_ms: int, rate: int) -> None:
    """Continue backwards: equal steps become one."""
    if free[-1] == rate:
        at_ms[-1] = begin_ms
    else:
        at_ms.append(begin_ms)
        free.append(rate)
