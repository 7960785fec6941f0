"""YARN's settings that yarnctl lowers for a while: how each is read, compared and restored.

A value that cannot be read is not compared: the change stays open and is read again. Source of the requests:
Hadoop's ResourceManager REST API (scheduler-conf, priority).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import unread
from yarnctl.attach.observing.activity_reader import ActivityReader
from yarnctl.deciding.model import Accepted, Change, Outcome
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.resource_manager import ENDED, ResourceManager
from yarnctl.journal.rendering import text
from yarnctl.restoring.change_file import neighbour
from yarnctl.restoring.restorer import Reading, same_value

SEEN_WITHIN_MS = 5_000
"""How long a record of the scheduler is awaited: two heartbeats, and what the daemon is late."""
LOOKED_AT = 2  # Nodes: those with the most free memory


class QueueMaximum:
    """The maximum of a queue."""

    def __init__(self, connection: Connection) -> None:
        self._manager = connection.manager

    def read(self, change: Change) -> Reading:
        """Read the configured maximum; "gone" if there is no such queue."""
        found = self._manager.queue_maximum(change.target)
        return Reading("gone") if found is None else compared(change, repr(found))

    def write(self, change: Change) -> Outcome:
        """Request the maximum before."""
        self._manager.set_queue_maximum(change.target, float(change.before))
        return Accepted()


class QueuePreemption:
    """The leaf's own key ``disable_preemption``. A value of its own wins over its parents'."""

    def __init__(self, connection: Connection) -> None:
        self._manager = connection.manager

    def read(self, change: Change) -> Reading:
        """Read the key. A queue that was removed has none, so it reads as one whose owner took it away."""
        return compared(change, self._manager.preemption_key(change.target))

    def write(self, change: Change) -> Outcome:
        """Request the value before; an empty one takes the key away."""
        self._manager.set_preemption_key(change.target, change.before)
        return Accepted()


class _Look(NamedTuple):
    """Since when records are read for an application, and their reader."""

    since_ms: int
    activities: ActivityReader


class ApplicationPriority:
    """The YARN priority of an application.

    YARN's scheduler ignores a request for the priority of the submission, which is mostly the value before,
    and shows it all the same (docs/facts/hadoop.md, 2). So the neighbour of that value is requested first:
    then the order of grants differs from the one before by one level at most.

    What the scheduler grants by is in its records of heartbeats (``appPriority``), if one looks at the
    application. So a value before is confirmed by a record made after the request, at most one level off.
    Without such a record the value that ``/apps`` shows counts: the application has no pending request, its
    requests are hidden, no node has free capacity, no record names it within ``SEEN_WITHIN_MS`` (its queue
    is left before it, or it is not activated), or the scheduler makes no records (before Hadoop 3.3).
    """

    def __init__(self, connection: Connection, new_activities: Callable[[], ActivityReader]) -> None:
        self._connection = connection
        self._manager = connection.manager
        self._clock = connection.clock
        self._new_activities = new_activities
        self._looks: dict[str, _Look] = {}

    def read(self, change: Change) -> Reading:
        """Read the priority; "gone" if the application has ended."""
        try:
            row = self._manager.application(change.target)
        except Missing:
            return Reading("gone")
        found = str(row.priority)
        if row.state in ENDED:
            return Reading("gone", found)
        reading = compared(change, found)
        if reading.state == "other" and row.priority == neighbour(change):  # between the two requests
            return Reading("now", found)
        if reading.state == "before" and any(request.count > 0 for request in row.requests):
            return self._confirmed(change)
        return reading

    def _confirmed(self, change: Change) -> Reading:
        """Return the reading of an application that ``/apps`` shows with the value before."""
        now_ms = self._clock()
        look = self._looks.setdefault(change.target, _Look(now_ms, self._new_activities()))
        free = [(node.free, node.node) for node in self._manager.nodes() if self._connection.offers(node)]
        look.activities.renew([node for _, node in sorted(free, reverse=True)[:LOOKED_AT]])
        level = look.activities.priority(change.target)
        may_show = bool(free) and not look.activities.is_paused
        if level is None and may_show and 0 <= now_ms - look.since_ms < SEEN_WITHIN_MS:
            return Reading("unseen", change.before)
        del self._looks[change.target]
        if level is not None and abs(level - int(change.before)) > 1:
            return Reading("now", str(level))
        return Reading("before", change.before)

    def write(self, change: Change) -> Outcome:
        """Request the priority before, and its neighbour first."""
        self._looks.pop(change.target, None)  # only a record of a later heartbeat proves something
        set_back(self._manager, change)
        return Accepted()


def set_back(manager: ResourceManager, change: Change) -> None:
    """Set the priority before a change; the scheduler is at most one level off. Raises as the client."""
    if neighbour(change) != int(change.now):
        manager.set_priority(change.target, neighbour(change))
    manager.set_priority(change.target, int(change.before))


def compared(change: Change, found: str) -> Reading:
    """Return the reading of a value: that before the change, that after it, or another."""
    if same_value(change.kind, found, change.before):
        return Reading("before", found)
    return Reading("now" if same_value(change.kind, found, change.now) else "other", found)


def not_read(problem: Absent | Problem) -> Reading:
    """Return the reading of a setting whose application's own program gave no answer, or none yet."""
    return Reading("late" if isinstance(problem, LateAnswer) else "unread", text(unread(problem)))


def has_ended(connection: Connection, application: str) -> bool:
    """Return whether an application has ended, or YARN does not know it. Raises as the client does."""
    try:
        return connection.manager.application(application).state in ENDED
    except Missing:
        return True
