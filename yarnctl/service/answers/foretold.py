"""When an application starts and ends, why, and what would make it sooner: from one view."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from yarnctl.api.cluster_answers import ForetoldOut, WhenOut
from yarnctl.daemon.view.occupancy import pending_of
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.why_waiting import cause_meaning, sentence
from yarnctl.deciding.model import ApplicationView, Snapshot
from yarnctl.journal.rendering import sentence_and_remedy
from yarnctl.prediction.when_ending import Interval
from yarnctl.service.answers.of_newest import OfNewest
from yarnctl.units import fits, plus

UNKNOWN = "too few applications of its queue have ended since the daemon started"


def when_of(application: ApplicationView, view: View) -> WhenOut:
    """Return when an application starts and ends, why, and what would make it sooner."""
    when = view.when(application.application, view.now_ms)
    ends = _at(when.ends, view.now_ms)
    return WhenOut(
        starts=_at(when.starts, view.now_ms),
        ends=ends,
        because=_why(application, view, UNKNOWN if ends is None else ""),
        sooner=sooner(application, view),
    )


def in_words(application: ApplicationView, view: View) -> list[str]:
    """Return lines for an explanation: start and end; and why and what would help, if it does not wait."""
    when = when_of(application, view)
    lines = [
        f"now: {verb} in {(found.middle_at_ms - view.now_ms) / 1000:.0f} s"
        f" ({(found.least_at_ms - view.now_ms) / 1000:.0f} to {(found.most_at_ms - view.now_ms) / 1000:.0f} s"
        f" in 9 of 10 cases), as {found.runs} earlier applications took"
        for verb, found in (("starts", when.starts), ("ends", when.ends))
        if found is not None
    ]
    if application.application in view.waiting:
        return lines
    lines.append(f"now: why: {when.because}")
    return [*lines, f"now: sooner: {when.sooner}"] if when.sooner else lines


def _at(interval: Interval | None, now_ms: int) -> ForetoldOut | None:
    if interval is None:
        return None
    return ForetoldOut(
        least_at_ms=now_ms + interval.least_ms,
        middle_at_ms=now_ms + interval.middle_ms,
        most_at_ms=now_ms + interval.most_ms,
        runs=interval.rows,
    )


def _why(application: ApplicationView, view: View, unknown: str) -> str:
    waiting = view.waiting.get(application.application)
    if waiting is not None:
        return sentence(waiting)
    if unknown:
        return unknown
    pending = pending_of(application)
    if not pending:
        return "it holds all containers that it requests"
    ahead = _ahead(application, view)
    return f"{pending} of its requests are pending, after {ahead} of other applications of its queue"


def _ahead(application: ApplicationView, view: View) -> int:
    """Return how many containers its queue is to be given before it."""
    return 0 if view.snapshot is None else AHEAD(view.snapshot).get(application.application, 0)


def _all_ahead(snapshot: Snapshot) -> dict[str, int]:
    found, before = dict[str, int](), Counter[str]()
    ranked = sorted(snapshot.applications, key=lambda each: (each.queue, each.rank))
    for _, same in groupby(ranked, key=lambda each: (each.queue, each.rank)):
        together = list(same)
        found.update((each.application, before[each.queue]) for each in together)
        before[together[0].queue] += sum(map(pending_of, together))
    return found


AHEAD = OfNewest(_all_ahead)
"""How many containers the queue of each application is to be given before it."""


def sooner(application: ApplicationView, view: View) -> str:
    """Return what a person can do so that an application gets its containers sooner; "": nothing known."""
    waiting = view.waiting.get(application.application)
    if waiting is not None:
        whys = [each for each in (waiting.why, waiting.rest) if each is not None]
        remedies = [sentence_and_remedy(each)[1] for each in whys]
        remedies += [cause_meaning(each)[1] for each in waiting.causes]
        return next((remedy for remedy in remedies if remedy), "")
    if not pending_of(application) or view.snapshot is None:
        return ""
    queue = next((each for each in view.snapshot.queues if each.queue == application.queue), None)
    if queue is None or not any(queue.guaranteed):
        return "give its queue a guarantee"
    if fits(plus(queue.used, application.task_size), queue.guaranteed):
        return "wait: its queue uses less than its guarantee"
    if _ahead(application, view):
        return "raise its priority: its queue serves other applications first"
    return f"raise the guarantee of {queue.queue}: it uses all of it"
