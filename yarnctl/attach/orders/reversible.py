"""YARN's settings that yarnctl lowers for a while: how each is read, compared and restored.

A value that cannot be read is not compared: the change stays open and is read again. Source of the requests:
Hadoop's ResourceManager REST API (scheduler-conf, priority).
"""

from __future__ import annotations

from yarnctl.attach.connection.application_guard import LateAnswer
from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import unread
from yarnctl.deciding.model import Accepted, Change, Outcome
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.resource_manager import ENDED
from yarnctl.journal.rendering import text
from yarnctl.restoring.restorer import Reading, same_value


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


class ApplicationPriority:
    """The YARN priority of an application."""

    def __init__(self, connection: Connection) -> None:
        self._manager = connection.manager

    def read(self, change: Change) -> Reading:
        """Read the priority; "gone" if the application has ended."""
        try:
            row = self._manager.application(change.target)
        except Missing:
            return Reading("gone")
        found = str(row.priority)
        return Reading("gone", found) if row.state in ENDED else compared(change, found)

    def write(self, change: Change) -> Outcome:
        """Request the priority before."""
        self._manager.set_priority(change.target, int(change.before))
        return Accepted()


def compared(change: Change, found: str) -> Reading:
    """Return the reading of a value: that before the change, that after it, or another."""
    if same_value(change.kind, found, change.before):
        return Reading("before", found)
    return Reading("now" if same_value(change.kind, found, change.now) else "other", found)


def unanswered(found: Absent | Problem) -> Reading:
    """Return the reading of a setting whose application gave no answer."""
    return Reading("late" if isinstance(found, LateAnswer) else "unread", text(unread(found)))


def has_ended(connection: Connection, application: str) -> bool:
    """Return whether an application has ended, or YARN does not know it. Raises as the client does."""
    try:
        return connection.manager.application(application).state in ENDED
    except Missing:
        return True
