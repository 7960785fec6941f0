"""From the view's log to events, and the cursors at which a stream continues.

A cursor is the start of the daemon's process and the rank of an event in it. A cursor of an earlier process,
or of an event that is no longer kept, continues at the oldest event that is kept.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from yarnctl.api.event_answers import EventOut
from yarnctl.daemon.view.published import View
from yarnctl.daemon.view.recent_events import LoggedEvent, LoopChanged
from yarnctl.deciding.records import Decision, Refusal
from yarnctl.journal.rendering import containers, joined, text
from yarnctl.service.answers.from_view import reason

CURSOR = r"^(0|[0-9]{1,16}-[0-9]{1,15})$"


class EventPart(NamedTuple):
    """The next events of a stream. ``last``: the cursor after them. ``is_gap``: others are no longer kept."""

    events: list[EventOut]
    last: str
    is_gap: bool


def newest(view: View) -> str:
    """Return the cursor after the newest event."""
    return _cursor(view, view.events_to)


def after(view: View, cursor: str, limit: int) -> EventPart:
    """Return the first events after a cursor, at most ``limit``."""
    epoch, _, number = cursor.partition("-")
    is_known = bool(number) and epoch == str(view.loop.started_at_ms)
    rank = int(number) if is_known else 0
    is_gap = 0 < rank < view.events_from - 1 or (not is_known and int(number or 0) > 0)
    begin = bisect_right(view.events, rank, key=attrgetter("rank"))
    found = [event(view, each) for each in view.events[begin : begin + limit]]
    reached = found[-1].cursor if found else _cursor(view, rank)
    if len(found) < limit:  # the rest of the log is of other users
        reached = _cursor(view, max(rank, view.events_to))
    return EventPart(found, reached, is_gap)


def _cursor(view: View, rank: int) -> str:
    return f"{view.loop.started_at_ms}-{rank}"


def event(view: View, logged: LoggedEvent) -> EventOut:
    """Return one event."""
    record, cursor = logged.record, _cursor(view, logged.rank)
    if isinstance(record, LoopChanged):
        said = joined(record.why)
        return EventOut(
            cursor=cursor,
            at_ms=record.at_ms,
            kind="loop",
            text=f"the loop is {record.state}" + (f": {said}" if said else ""),
            state=record.state,
            reason=reason(record.why[0] if record.why else None),
        )
    if isinstance(record, Decision | Refusal):
        is_decision = isinstance(record, Decision)
        why = record.trigger.why if isinstance(record, Decision) else record.why
        freed = containers(len(record.picks)) if isinstance(record, Decision) else "no container"
        return EventOut(
            cursor=cursor,
            at_ms=record.at_ms,
            kind="decision" if is_decision else "refusal",
            text=f"{freed} for {record.trigger.application}: {text(why)}",
            application=record.trigger.application,
            decision=record.number if isinstance(record, Decision) else None,
            reason=reason(why),
        )
    story = logged.story
    assert story is not None  # a transition has one
    return EventOut(
        cursor=cursor,
        at_ms=record.at_ms,
        kind="order",
        text=f"order {story.order} against {story.victim} is {record.target}",
        application=story.requester,
        victim=story.victim,
        order=story.order,
        decision=story.decision,
        state=record.target,
    )
