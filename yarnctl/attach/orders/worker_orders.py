"""Rescale a Flink job to fewer workers, by one PUT of its bounds.

Law: one action gives one outcome, by the rules of ``performing``.

* The bounds before a change are recorded in HDFS before they are lowered (:mod:`yarnctl.restoring`).
* One PUT covers all workers of a decision; Flink chooses which of them leave.

Source: docs/facts/flink.md, 4.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import Permission, later, unread
from yarnctl.attach.observing.cluster_state import LiveContainers
from yarnctl.attach.orders.reversible import JobBounds, job_now
from yarnctl.attach.orders.tracking import TrackedOrder
from yarnctl.deciding.model import Accepted, Change, Drain, Outcome, Refused, Unknown, Withheld
from yarnctl.deciding.reasons.orders import QueueServing
from yarnctl.deciding.reasons.outcomes import ClientFault, ExecutorBusy, NoHdfs
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.http.answers import Uncertain
from yarnctl.hadoop.job_manager import JobManager
from yarnctl.hadoop.wire.flink_rest import Bounds, least, lowered
from yarnctl.restoring.restorer import Restorer


class WorkerOrders:
    """Performs ``Drain``; raises as the clients do."""

    def __init__(
        self,
        connection: Connection,
        live: LiveContainers,
        permission: Permission,
        job_manager: Callable[[str], JobManager],
        restorer: Restorer,
    ) -> None:
        self._connection, self._permission = connection, permission
        self._job_manager = job_manager
        self._live = live
        self._restorer = restorer
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
            action.application, "order", lambda _name, _: (job_now(manager), manager.task_managers())
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
        job = now.job.job
        change = Change(
            "bounds", action.application, JobBounds(job, now.bounds).text(), JobBounds(job, fewer).text()
        )
        if problem := self._restorer.record((change,), QueueServing()):
            return Withheld(ClientFault(problem[:FAULT_MAX]))
        if no := self._permission.may_act(action):
            self._restorer.not_made(change.key)
            return no
        try:
            outcome = self._set(action, manager, job, fewer)
        except YarnctlError as problem:
            # After a missing answer the bounds are read: if they are unchanged, they were not lowered.
            if not isinstance(problem, Uncertain) or manager.bounds(job) == now.bounds:
                self._restorer.not_made(change.key)
            raise
        if not isinstance(outcome, Accepted | Unknown):
            self._restorer.not_made(change.key)
        return outcome

    def _set(self, action: Drain, manager: JobManager, job: str, bounds: Bounds) -> Outcome:
        answer = self._connection.guard.change(
            action.application, f"bounds fewer {action.decision}", lambda: manager.set_bounds(job, bounds)
        )
        return later(action, unread(answer)) if isinstance(answer, Absent) else Accepted()
