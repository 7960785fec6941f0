"""Pairs of recorded hours: which hour is played as research beside which hour of production.

Law: the pairs are a function of the traces alone, as research/notes/levers.md, "How unseen hours are judged", has it.
An hour h has the jobs submitted in [h, h + 1) hours of its trace. Each hour with work is production once;
research beside it is the next hour but eleven: of the other hours with work, in the order in which they
follow and after the last one from the first one on, eleven are left out and the twelfth is taken (counting
goes round again among fewer than twelve). FB-2009 ``_0`` gives 23 pairs: 0/13, 1/14, ... 10/23, 12/0, ...
23/12.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from yarnctl.traces.job import Job
from yarnctl.traces.swim import HOUR_MS

LEFT_OUT = 11
"""So many other hours with work lie between production's hour and research's."""

LAST_HOUR_LEAST_MS = 60_000
"""The last hour counts if a job is submitted so long after its beginning: FB-2009 ``_0`` runs over by 4 s."""

Hours = Mapping[int, tuple[Job, ...]]
"""The hours with work of a trace, in order; times of their jobs count from the hour's beginning."""


class HourPair(NamedTuple):
    """Which hour of the first trace is production, and which of the second is research."""

    production: int
    research: int


def hours_of(jobs: Sequence[Job]) -> Hours:
    """Return the hours with work of a trace."""
    found: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        found[job.submitted_at_ms // HOUR_MS].append(job)
    last = max(found, default=0)
    if last and max(job.submitted_at_ms for job in found[last]) < last * HOUR_MS + LAST_HOUR_LEAST_MS:
        del found[last]
    return {hour: tuple(_earlier(job, hour * HOUR_MS) for job in found[hour]) for hour in sorted(found)}


def _earlier(job: Job, by_ms: int) -> Job:
    """Return a job with its instants counted from a later beginning."""
    deadline = job.deadline_at_ms
    return msgspec.structs.replace(
        job,
        submitted_at_ms=job.submitted_at_ms - by_ms,
        deadline_at_ms=None if deadline is None else max(0, deadline - by_ms),
    )


def next_but_eleven(hour: int, hours: Sequence[int]) -> int | None:
    """Return the hour that is research beside ``hour``; None if there is no other hour."""
    following = [each for each in hours if each > hour] + [each for each in hours if each < hour]
    return following[LEFT_OUT % len(following)] if following else None


def pairs_of(production: Sequence[int], research: Sequence[int]) -> tuple[HourPair, ...]:
    """Return the pairs of two traces' hours with work (in order), by the hour of production."""
    beside = {hour: next_but_eleven(hour, research) for hour in production}
    return tuple(HourPair(hour, other) for hour, other in beside.items() if other is not None)
