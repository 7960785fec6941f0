"""Drain executors of Spark.

An executor's state is read from its driver right before the order, which is sent once. The submitter's tag
decides the route. Without a plugin Spark requests executors again without an order, so none is sent then.
"""

from __future__ import annotations

from typing import Protocol

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.executor_reader import Drainable, ExecutorReader
from yarnctl.attach.eligibility.permission import Permission, unread
from yarnctl.attach.observing.executors import ExecutorObserver, executor_in
from yarnctl.attach.orders.plugin_orders import PluginOrders, start_of
from yarnctl.attach.orders.tracking import TrackedOrder
from yarnctl.deciding.model import Accepted, Change, Drain, Outcome, Refused, Withheld
from yarnctl.deciding.reasons.orders import QueueServing
from yarnctl.deciding.reasons.outcomes import (
    AttemptUnknown,
    ClientFault,
    ExecutorBusy,
    NoHdfs,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.http.answers import Uncertain
from yarnctl.restoring.restorer import Restorer


class LeavingOrders(Protocol):
    """The orders to applications of one framework; methods raise as the clients do."""

    def drain(self, action: Drain, one: TrackedOrder) -> Outcome:
        """Order an executor to leave, once."""


class ExecutorOrders:
    """Performs ``Drain``; raises as the clients do."""

    def __init__(
        self,
        connection: Connection,
        permission: Permission,
        executors: ExecutorObserver,
        drainable: ExecutorReader,
        restorer: Restorer,
    ) -> None:
        self._connection = connection
        self._permission = permission
        self._executors = executors
        self._drainable = drainable
        self._restorer = restorer

    def drain(self, action: Drain, one: TrackedOrder) -> Outcome:
        """Order an executor to leave, once."""
        obstacle = self._executors.still_there(one.application, one.attempt, one.container)
        if isinstance(obstacle, Absent | Problem):
            return Withheld(unread(obstacle))
        if obstacle:
            return Refused(ExecutorBusy(obstacle[:FAULT_MAX]))
        found = self._drainable.judged(self._connection.row(one.application))
        route = found.route if isinstance(found, Drainable) else None
        if no := self._permission.may_act(action):
            return no
        one.released_at_ms = self._connection.clock()
        try:
            outcome: Outcome = Accepted()
            if route == "plugin":
                outcome = self._order_plugin(action)
            else:
                self._connection.manager.signal(one.container, "GRACEFUL_SHUTDOWN")
        except Uncertain:
            raise
        except YarnctlError:
            one.released_at_ms = 0
            raise
        if not isinstance(outcome, Accepted):
            one.released_at_ms = 0
        return outcome

    def _order_plugin(self, action: Drain) -> Outcome:
        """Order the plugin to let executors leave; their number before is recorded first."""
        application, hdfs = action.application, self._connection.hdfs
        settings = self._executors.settings(application)
        if hdfs is None:
            return Withheld(NoHdfs())
        if isinstance(settings, Absent | Problem):
            return Withheld(unread(settings))
        start = start_of(settings)
        if not start:
            return Refused(AttemptUnknown())
        decision = self._connection.settings.name_of(f"d{action.decision}")
        if not self._is_recorded(application, decision):
            active = self._executors.active(application)
            if isinstance(active, Absent | Problem):
                return Withheld(unread(active))
            change = Change("executors", application, str(active), decision)
            if problem := self._restorer.record((change,), QueueServing()):
                return Withheld(ClientFault(problem[:FAULT_MAX]))
        named = [executor_in(application, mate) for mate in action.mates]
        leaving = [name for name in named if name is not None]
        orders = PluginOrders(hdfs, self._connection.settings.requests_root)
        is_written = orders.leave(
            application, start, leaving, decision, lambda: self._permission.may_act(action) is None
        )
        if is_written:
            return Accepted()
        return self._permission.may_act(action) or Withheld(ClientFault("not permitted for a moment"))

    def _is_recorded(self, application: str, decision: str) -> bool:
        one = self._restorer.open.get(("executors", application))
        return one is not None and one.why is None and decision in one.change.now.split()
