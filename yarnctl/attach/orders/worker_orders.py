"""Rescale a Flink job to fewer workers and back, by one PUT of its bounds.

Law: one action gives one outcome, by the rules of ``performing``.

* The bounds before a change are written to the daemon's own folder in HDFS before they are lowered. If the
  daemon dies at any point, the next one finds them there.
* One PUT covers all workers of a decision; Flink chooses which of them leave.
* Bounds that another user has changed since are not restored.

Source: docs/facts/flink.md, 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import Permission, later, unread
from yarnctl.attach.observing.cluster_state import LiveContainers
from yarnctl.attach.orders.tracking import TrackedOrder
from yarnctl.deciding.model import Accepted, Drain, Grow, Outcome, Refused, Unknown, Withheld
from yarnctl.deciding.reasons.outcomes import ClientFault, ExecutorBusy, NoHdfs
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.http.answers import Missing, Uncertain
from yarnctl.hadoop.job_manager import JobManager
from yarnctl.hadoop.webhdfs import WebHdfs
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.hadoop.wire.flink_rest import Bounds, FlinkJob, least, lowered

FOLDER_MODE, FILE_MODE = 0o755, 0o644
BYTES_MAX = 1 << 20


class KeptBounds(msgspec.Struct, frozen=True):
    """The bounds of a job before the first decision lowered them, and those that the last one set."""

    job: str
    before: Bounds
    lowered: Bounds


class JobNow(NamedTuple):
    """A job that has not ended, and its bounds."""

    job: FlinkJob
    bounds: Bounds


class WorkerOrders:
    """Performs ``Drain`` and ``Grow``; raises as the clients do."""

    def __init__(
        self,
        connection: Connection,
        live: LiveContainers,
        permission: Permission,
        job_manager: Callable[[str], JobManager],
    ) -> None:
        self._connection, self._permission = connection, permission
        self._job_manager = job_manager
        self._live = live
        self._done: dict[tuple[str, int], Outcome] = {}
        self._held: dict[str, str] = {}

    def drain(self, action: Drain, one: TrackedOrder) -> Outcome:
        """Drain a worker; the first order of a decision drains all of its workers."""
        which = action.application, action.decision
        if which not in self._done:
            try:
                self._done = {which: self._lower(action)}
            except Uncertain as problem:
                self._done = {which: Unknown(ClientFault(str(problem)[:FAULT_MAX]))}
        outcome = self._done[which]
        if isinstance(outcome, Accepted | Unknown):  # sent, or possibly sent: not to be repeated
            one.released_at_ms = self._connection.clock()
            one.others = dict(self._held)
        return outcome

    def _lower(self, action: Drain) -> Outcome:
        hdfs, manager = self._connection.hdfs, self._job_manager(action.application)
        if hdfs is None:
            return Withheld(NoHdfs())
        answer = self._connection.guard.read(
            action.application, "order", lambda _name, _: (_job_now(manager), manager.task_managers())
        )
        if isinstance(answer, Problem):
            return Withheld(unread(answer))
        now, managers = answer
        if isinstance(now, Absent):
            return Withheld(unread(now))
        if isinstance(managers, Absent):
            return Withheld(unread(managers))
        here = {each.container: each.slots for each in managers}
        if not now.job.works or not set(action.mates) <= here.keys():
            return Refused(ExecutorBusy(now.job.state[:FAULT_MAX]))
        held = self._live.of(action.application)
        self._held = {row.container: row.node for row in held.containers.values()}
        most = (len(here) - len(action.mates)) * max(1, min(here.values()))
        if most < least(now.bounds):
            return Refused(ExecutorBusy(f"the job needs {least(now.bounds)} slots; {most} would remain"))
        fewer = lowered(now.bounds, most)
        if no := self._permission.may_act(action):
            return no
        path = self._path(action.application)
        earlier = self._kept(hdfs, path)
        self._keep(hdfs, path, earlier, KeptBounds(now.job.job, now.bounds, fewer))
        try:
            outcome = self._set(action, manager, now.job.job, fewer)
        except YarnctlError as problem:
            # After a missing answer the bounds are read: if they are unchanged, they were not lowered.
            if not isinstance(problem, Uncertain) or manager.bounds(now.job.job) == now.bounds:
                self._forget(hdfs, path, earlier)
            raise
        if not isinstance(outcome, Accepted | Unknown):
            self._forget(hdfs, path, earlier)
        return outcome

    def _set(self, action: Drain | Grow, manager: JobManager, job: str, bounds: Bounds) -> Outcome:
        answer = self._connection.guard.change(
            action.application, f"bounds {_decisions(action)}", lambda: manager.set_bounds(job, bounds)
        )
        return later(action, unread(answer)) if isinstance(answer, Absent) else Accepted()

    def grow(self, action: Grow) -> Outcome:
        """Restore the bounds, unless another user has changed them meanwhile."""
        hdfs, application = self._connection.hdfs, action.application
        if hdfs is None:
            return later(action, NoHdfs())
        path = self._path(application)
        kept = self._kept(hdfs, path)
        if kept is not None:
            manager = self._job_manager(application)
            now = self._connection.guard.read(application, "grow", lambda _name, _: _job_now(manager))
            if isinstance(now, Absent | Problem):
                return later(action, unread(now))
            if (now.job.job, now.bounds) == (kept.job, kept.lowered):
                outcome = self._set(action, manager, kept.job, kept.before)
                if not isinstance(outcome, Accepted):
                    return outcome
        hdfs.delete(path)
        return Accepted()

    def _path(self, application: str) -> str:
        return f"{self._connection.settings.requests_root.rstrip('/')}/{application}/bounds.json"

    @staticmethod
    def _kept(hdfs: WebHdfs, path: str) -> KeptBounds | None:
        try:
            return msgspec.json.decode(hdfs.read(path, BYTES_MAX), type=KeptBounds)
        except Missing:
            return None
        except msgspec.MsgspecError as problem:
            raise Unreadable(f"{path} was changed and cannot be parsed: {problem}") from None

    @staticmethod
    def _keep(hdfs: WebHdfs, path: str, earlier: KeptBounds | None, bounds: KeptBounds) -> None:
        """Write a temporary file and rename it. Of bounds that were lowered twice, keep the first ones."""
        if earlier is not None and (earlier.job, earlier.lowered) == (bounds.job, bounds.before):
            bounds = msgspec.structs.replace(bounds, before=earlier.before)
        hdfs.make_directories(path.rpartition("/")[0], FOLDER_MODE)
        hdfs.create(f"{path}.tmp", msgspec.json.encode(bounds), mode=FILE_MODE, overwrite=True)
        hdfs.rename(f"{path}.tmp", path, overwrite=True)

    def _forget(self, hdfs: WebHdfs, path: str, earlier: KeptBounds | None) -> None:
        """Remove the kept bounds of a request that lowered nothing, so that later bounds are not restored."""
        if earlier is None:
            hdfs.delete(path)
        else:
            self._keep(hdfs, path, None, earlier)


def _decisions(action: Drain | Grow) -> str:
    return f"fewer {action.decision}" if isinstance(action, Drain) else f"back {action.decisions}"


def _job_now(manager: JobManager) -> JobNow | Absent:
    job = manager.job()
    if isinstance(job, Absent):
        return job
    bounds = manager.bounds(job.job)
    return bounds if isinstance(bounds, Absent) else JobNow(job, bounds)
