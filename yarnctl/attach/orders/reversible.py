"""The four settings that yarnctl lowers for a while: how each is read, compared and restored.

A value that cannot be read is not compared: the change stays open and is read again. Source of the requests:
docs/facts/flink.md, 4; docs/facts/spark.md, 6; Hadoop's ResourceManager REST API (scheduler-conf, priority).
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import unread
from yarnctl.attach.observing.executors import ExecutorObserver
from yarnctl.attach.orders.plugin_orders import PluginOrders, start_of
from yarnctl.deciding.model import Accepted, Change, Outcome, Refused, Unknown
from yarnctl.deciding.reasons.outcomes import AttemptUnknown, NoHdfs
from yarnctl.errors import Unreachable
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.http.answers import Missing
from yarnctl.hadoop.job_manager import JobManager
from yarnctl.hadoop.resource_manager import ENDED
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.hadoop.wire.flink_rest import Bounds, FlinkJob
from yarnctl.journal.rendering import text
from yarnctl.restoring.restorer import Reading, same_value

DYNAMIC = "spark.dynamicAllocation.enabled"


class QueueMaximum:
    """The maximum of a queue."""

    def __init__(self, connection: Connection) -> None:
        self._manager = connection.manager

    def read(self, change: Change) -> Reading:
        """Read the configured maximum; "gone" if there is no such queue."""
        found = self._manager.queue_maximum(change.target)
        if found is None:
            return Reading("gone")
        if same_value("queue", repr(found), change.before):
            return Reading("before", repr(found))
        return Reading("now" if same_value("queue", repr(found), change.now) else "other", repr(found))

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
        if row.state in ENDED:
            return Reading("gone", found)
        if found == change.before:
            return Reading("before", found)
        return Reading("now" if found == change.now else "other", found)

    def write(self, change: Change) -> Outcome:
        """Request the priority before."""
        self._manager.set_priority(change.target, int(change.before))
        return Accepted()


class JobBounds(msgspec.Struct, frozen=True):
    """The bounds of all vertices of a Flink job: the text of a change of kind "bounds"."""

    job: str
    bounds: Bounds

    def text(self) -> str:
        """Return it as JSON with sorted vertices."""
        ordered = JobBounds(self.job, dict(sorted(self.bounds.items())))
        return msgspec.json.encode(ordered).decode()


def bounds_in(text: str) -> JobBounds:
    """Parse the text of a change of kind "bounds"; raises Unreadable."""
    try:
        return msgspec.json.decode(text, type=JobBounds)
    except msgspec.MsgspecError as problem:
        raise Unreadable(f"the bounds on record cannot be parsed: {problem}") from None


class JobNow(msgspec.Struct, frozen=True):
    """A job that has not ended, and its bounds."""

    job: FlinkJob
    bounds: Bounds


def job_now(manager: JobManager, job_wanted: str = "") -> JobNow | Absent:
    """Read the job that has not ended; Absent if the JobManager does not answer, or has not one job.

    If it is not ``job_wanted`` ("": any) its bounds are not read.
    """
    job = manager.job()
    if isinstance(job, Absent):
        return job
    if job_wanted and job.job != job_wanted:
        return JobNow(job, {})
    bounds = manager.bounds(job.job)
    return bounds if isinstance(bounds, Absent) else JobNow(job, bounds)


class FlinkBounds:
    """The bounds of a Flink job."""

    def __init__(self, connection: Connection, job_manager: Callable[[str], JobManager]) -> None:
        self._connection = connection
        self._job_manager = job_manager

    def read(self, change: Change) -> Reading:
        """Read the bounds; "gone" if the application has ended, "other" if another job runs in it."""
        if has_ended(self._connection, change.target):
            return Reading("gone")
        manager = self._job_manager(change.target)
        job = bounds_in(change.before).job
        found = self._connection.guard.read(change.target, "grow", lambda _name, _: job_now(manager, job))
        if isinstance(found, Absent | Problem):
            return Reading("unread", text(unread(found)))
        is_now = JobBounds(found.job.job, found.bounds).text()
        if is_now == change.before:
            return Reading("before", is_now)
        return Reading("now" if is_now == change.now else "other", is_now)

    def write(self, change: Change) -> Outcome:
        """Request the bounds before, by one PUT."""
        before = bounds_in(change.before)
        manager = self._job_manager(change.target)
        answer = self._connection.guard.change(
            change.target, "bounds back", lambda: manager.set_bounds(before.job, before.bounds)
        )
        return Unknown(unread(answer)) if isinstance(answer, Absent) else Accepted()


class SparkExecutors:
    """The number of executors of a Spark application whose driver has the plugin."""

    def __init__(self, connection: Connection, executors: ExecutorObserver) -> None:
        self._connection = connection
        self._executors = executors

    def read(self, change: Change) -> Reading:
        """Count active executors; nothing has ended before the order is written: they may be leaving still.

        With dynamic allocation Spark keeps the number by its pending tasks: the written order is enough. With
        a fixed number it is enough while the driver has no pending task.
        """
        application = change.target
        if has_ended(self._connection, application):
            return Reading("gone")
        settings = self._executors.settings(application)
        if isinstance(settings, Absent | Problem):
            return Reading("unread", text(unread(settings)))
        active = self._executors.active(application)
        if isinstance(active, Absent | Problem):
            return Reading("unread", text(unread(active)))
        if not self._orders().has_back(application, start_of(settings), change.now.split()):
            return Reading("now", str(active))
        is_back = (
            active >= int(change.before)
            or settings.get(DYNAMIC) == "true"
            or self._executors.has_pending_task(application) is False
        )
        return Reading("before" if is_back else "now", str(active))

    def write(self, change: Change) -> Outcome:
        """Order the plugin to request as many executors as left by these decisions; written once."""
        settings = self._executors.settings(change.target)
        if isinstance(settings, Absent | Problem):
            return Unknown(unread(settings))
        start = start_of(settings)
        if not start:
            return Refused(AttemptUnknown())
        if self._connection.hdfs is None:
            return Unknown(NoHdfs())
        self._orders().back(change.target, start, change.now.split())
        return Accepted()

    def _orders(self) -> PluginOrders:
        if self._connection.hdfs is None:
            raise Unreachable("HDFS is not known, so no order can be read")
        return PluginOrders(self._connection.hdfs, self._connection.settings.requests_root)


def has_ended(connection: Connection, application: str) -> bool:
    """Return whether an application has ended, or YARN does not know it. Raises as the client does."""
    try:
        return connection.manager.application(application).state in ENDED
    except Missing:
        return True
