"""Deadlines that fall: jobs that would end in time, and do not once containers are taken from them.

A job is projected from its progress: the rest takes as long for each part as what is done. What it loses is
taken not to return before its end, which is pessimistic. A job without progress is not projected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.deciding.what_if.played_forward import Chosen
from yarnctl.deciding.what_if.supposed import LostNode


class Fallen(NamedTuple):
    """A job that misses its deadline; ``before_at_ms``, ``after_at_ms``: when it is projected to end."""

    application: str
    user: str
    deadline_at_ms: int
    before_at_ms: int
    after_at_ms: int


def projected_end_ms(view: ApplicationView, now_ms: int) -> int | None:
    """Return when an application ends at its pace so far; None: it has no progress."""
    if not 0 < view.progress_ratio <= 1:
        return None
    passed_ms = max(0, now_ms - view.submitted_at_ms)
    return now_ms + round(passed_ms * (1 - view.progress_ratio) / view.progress_ratio)


def fallen(snapshot: Snapshot, chosen: Iterable[Chosen], lost: LostNode | None, now_ms: int) -> list[Fallen]:
    """Return the deadlines that fall, by application."""
    taken: Counter[str] = Counter()
    cost_ms: Counter[str] = Counter()
    for each in chosen:
        taken[each.application] += 1
        cost_ms[each.application] += each.lost_ms + each.overhead_ms
    for name, sizes in lost.held.items() if lost is not None else ():
        taken[name] += len(sizes)
    found = []
    for view in sorted(snapshot.applications, key=lambda each: each.application):
        before_ms = projected_end_ms(view, now_ms)
        if view.deadline_at_ms is None or before_ms is None or not taken[view.application]:
            continue
        tasks = max(1, view.containers - 1)
        left = max(1, tasks - taken[view.application])
        after_ms = now_ms + (before_ms - now_ms) * tasks // left + cost_ms[view.application] // left
        if before_ms <= view.deadline_at_ms < after_ms:
            row = Fallen(view.application, view.user, view.deadline_at_ms, before_ms, after_ms)
            found.append(row)
    return found
