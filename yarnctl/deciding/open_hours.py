"""The hours in which the containers of a queue may be taken: windows of a week in local time.

Law: arithmetic on the given instant alone. The offsets of the time zone from UTC are part of the value, and
so of the journal: a replay needs no database of time zones and cannot differ with another version of it.

An instant has one local time, so a window is what local clocks show: the hour that a clock repeats in autumn
is in it twice, the hour that it leaves out in spring is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from yarnctl.deciding.reasons.demand import OutsideHours

MINUTE_MS = 60_000
DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
_MONDAY_MINUTES = 3 * DAY_MINUTES  # 1970-01-01 was a Thursday
_WEEK_MS = WEEK_MINUTES * MINUTE_MS


class OpenHours(msgspec.Struct, frozen=True, array_like=True):
    """When containers of ``queue`` may be taken.

    ``windows``: first minute of the local week (0: Monday 00:00) and length in minutes. ``offsets``: from
    which instant (ms since the epoch) local time is ahead of UTC by so many minutes, in ascending order; the
    first counts also before its instant. ``zone``: their name, for people.
    """

    queue: str
    zone: str
    windows: tuple[tuple[int, int], ...]
    offsets: tuple[tuple[int, int], ...]

    def offset_minutes(self, at_ms: int) -> int:
        """Return how far local time is ahead of UTC."""
        found = self.offsets[0][1]
        for from_ms, minutes in self.offsets:
            if from_ms > at_ms:
                break
            found = minutes
        return found

    def is_open(self, at_ms: int) -> bool:
        """Return whether containers may be taken at this instant."""
        minute = at_ms // MINUTE_MS + self.offset_minutes(at_ms) + _MONDAY_MINUTES
        return any((minute - first) % WEEK_MINUTES < length for first, length in self.windows)

    def opens_at_ms(self, at_ms: int) -> int:
        """Return the first instant from ``at_ms`` on at which containers may be taken.

        While it is closed, a queue opens where a window begins, or where clocks are set into one.
        """
        changes = [from_ms for from_ms, _ in self.offsets if at_ms < from_ms <= at_ms + 3 * _WEEK_MS]
        offsets = {self.offset_minutes(each) for each in (at_ms, *changes)}
        starts = (
            (first - _MONDAY_MINUTES - offset) * MINUTE_MS for first, _ in self.windows for offset in offsets
        )
        later = (
            start + ((at_ms - start + _WEEK_MS - 1) // _WEEK_MS + weeks) * _WEEK_MS
            for start in starts
            for weeks in (0, 1, 2)
        )
        found = (each for each in (at_ms, *changes, *later) if self.is_open(each))
        return min(found, default=at_ms + 3 * _WEEK_MS)


def outside_hours(hours: Iterable[OpenHours], queues: Iterable[str], at_ms: int) -> dict[str, OutsideHours]:
    """Return those of ``queues`` of which no container may be taken now, and when each opens next."""
    named = set(queues)
    return {
        each.queue: OutsideHours(each.queue, each.opens_at_ms(at_ms), each.zone)
        for each in hours
        if each.queue in named and not each.is_open(at_ms)
    }
