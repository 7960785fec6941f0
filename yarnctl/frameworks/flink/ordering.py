"""Rescale a Flink job to fewer workers, and back, by one PUT of its bounds.

Law: one action gives one outcome, by the rules of ``performing``.

* The bounds before a change are recorded in HDFS before they are lowered (:mod:`yarnctl.restoring`).
* One PUT covers all workers of a decision; Flink chooses which of them leave.

Source: docs/facts/flink.md, 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import later, unread
from yarnctl.attach.eligibility.settings_reader import ExecutorReader
from yarnctl.attach.orders.connected import Connected, TrackedOrder
from yarnctl.attach.orders.reversible import compared, has_ended, not_read
from yarnctl.deciding.model import (
    Accepted,
    Change,
    ChangeKind,
    Drain,
    OrderAction,
    Outcome,
    Refused,
    Unknown,
    Withheld,
)
from yarnctl.deciding.reasons.orders import QueueServing
from yarnctl.deciding.reasons.outcomes import ClientFault, ExecutorBusy, NoHdfs
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.frameworks.flink.consent import FlinkConsent
from yarnctl.frameworks.flink.job_manager import JobManager
from yarnctl.frameworks.flink.observing import WorkerObserver
from yarnctl.frameworks.flink.rest import KIND, Bounds, FlinkJob, least, lowered
from yarnctl.frameworks.framework import Parts
from yarnctl.hadoop.http.answers import Uncertain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.restoring.restorer import Reading, ReversibleSetting

_CONTAINER = re.compile(r"container_(?:e[0-9]+_)?([0-9]+_[0-9]+)_[0-9]+_[0-9]+")


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
        if self._connection.guard.is_changing(change.target):
            return Reading("late", "a request to change the bounds has no answer yet")
        manager = self._job_manager(change.target)
        job = bounds_in(change.before).job
        found = self._connection.guard.read(change.target, "grow", lambda _name, _: job_now(manager, job))
        if isinstance(found, Absent | Problem):
            return not_read(found)
        return compared(change, JobBounds(found.job.job, found.bounds).text())

    def write(self, change: Change) -> Outcome:
        """Request the bounds before, by one PUT."""
        before = bounds_in(change.before)
        manager = self._job_manager(change.target)
        answer = self._connection.guard.change(
            change.target, "bounds back", lambda: manager.set_bounds(before.job, before.bounds)
        )
        return Unknown(unread(answer)) if isinstance(answer, Absent) else Accepted()


class WorkerOrders:
    """Performs ``Drain``; raises as the clients do."""

    def __init__(self, parts: Parts, job_manager: Callable[[str], JobManager]) -> None:
        self._connection, self._permission = parts.connection, parts.permission
        self._live, self._restorer, self._job_manager = parts.live, parts.restorer, job_manager
        self._done: dict[tuple[str, int], Outcome] = {}
        self._held: dict[str, str] = {}

    def is_name(self, application: str, name: str) -> bool:
        """Return whether a name is that of a container of an application."""
        match = _CONTAINER.fullmatch(name)
        return match is not None and f"application_{match[1]}" == application

    def perform(self, action: OrderAction, tracked: TrackedOrder) -> Outcome:
        """Drain a worker; the first order of a decision drains all of its workers."""
        assert isinstance(action, Drain), "the reader's verbs name no other"
        which = action.application, action.decision
        if which not in self._done:
            try:
                self._done = {which: self._lower(action)}
            except Uncertain as problem:
                self._done = {which: Unknown(ClientFault(str(problem)[:FAULT_MAX]))}
        outcome = self._done[which]
        if isinstance(outcome, Accepted | Unknown):  # sent, or possibly sent: not to be repeated
            tracked.released_at_ms = self._connection.clock()
            tracked.others = dict(self._held)
        return outcome

    def _lower(self, drain: Drain) -> Outcome:
        hdfs, manager = self._connection.hdfs, self._job_manager(drain.application)
        if hdfs is None:
            return Withheld(NoHdfs())
        answer = self._connection.guard.read(
            drain.application, "order", lambda _name, _: (job_now(manager), manager.task_managers())
        )
        if isinstance(answer, Problem):
            return Withheld(unread(answer))
        now, managers = answer
        if isinstance(now, Absent):
            return Withheld(unread(now))
        if isinstance(managers, Absent):
            return Withheld(unread(managers))
        here = {each.container: each.slots for each in managers}
        if not now.job.works or not set(drain.mates) <= here.keys():
            return Refused(ExecutorBusy(now.job.state[:FAULT_MAX]))
        held = self._live.of(drain.application)
        self._held = {row.container: row.node for row in held.containers.values()}
        most = (len(here) - len(drain.mates)) * max(1, min(here.values()))
        if most < least(now.bounds):
            return Refused(ExecutorBusy(f"the job needs {least(now.bounds)} slots; {most} would remain"))
        fewer = lowered(now.bounds, most)
        job = now.job.job
        change = Change(
            "bounds", drain.application, JobBounds(job, now.bounds).text(), JobBounds(job, fewer).text()
        )
        if problem := self._restorer.record((change,), QueueServing()):
            return Withheld(ClientFault(problem[:FAULT_MAX]))
        if no := self._permission.may_act(drain):
            self._restorer.not_made(change.key)
            return no
        try:
            outcome = self._set(drain, manager, job, fewer)
        except Uncertain:
            raise  # it may arrive later: reading the bounds now would prove nothing, so the change is open
        except YarnctlError:
            self._restorer.not_made(change.key)
            raise
        if not isinstance(outcome, Accepted | Unknown):
            self._restorer.not_made(change.key)
        return outcome

    def _set(self, drain: Drain, manager: JobManager, job: str, bounds: Bounds) -> Outcome:
        answer = self._connection.guard.change(
            drain.application, f"bounds fewer {drain.decision}", lambda: manager.set_bounds(job, bounds)
        )
        return later(drain, unread(answer)) if isinstance(answer, Absent) else Accepted()


class Flink:
    """Flink as a framework; ``masters`` reaches JobManagers behind YARN's web proxy."""

    KIND = KIND

    def __init__(self, masters: Transport) -> None:
        self._job_manager: Callable[[str], JobManager] = lambda name: JobManager(masters, name)

    def connect(self, parts: Parts) -> Connected:
        """Return the framework on one cluster, with the bounds of a job as a setting."""
        reader = ExecutorReader(parts.connection, KIND, FlinkConsent(self._job_manager), parts.reasons)
        settings: dict[ChangeKind, ReversibleSetting] = {
            "bounds": FlinkBounds(parts.connection, self._job_manager)
        }
        workers = WorkerObserver(parts, reader, self._job_manager)
        return Connected(reader, workers, WorkerOrders(parts, self._job_manager), settings)
