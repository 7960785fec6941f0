"""Drain executors of Spark, and let their application request as many again.

An executor's state is read from its driver right before the order, which is sent once. The submitter's tag
decides the route. Without a plugin Spark requests executors again without an order, so none is sent then.
"""

from __future__ import annotations

from typing import Protocol

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.executor_reader import Drainable, ExecutorReader
from yarnctl.attach.eligibility.permission import Permission, later, unread
from yarnctl.attach.observing.executors import ExecutorObserver, executor_in
from yarnctl.attach.orders.plugin_orders import PluginOrders, start_of
from yarnctl.attach.orders.tracking import TrackedOrder
from yarnctl.deciding.model import Accepted, Drain, Grow, Outcome, Refused, Withheld
from yarnctl.deciding.reasons.outcomes import (
    AttemptUnknown,
    ExecutorBusy,
    MasterSilent,
    NoHdfs,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.app_master import Absent
from yarnctl.hadoop.http.answers import Uncertain


class LeavingOrders(Protocol):
    """The orders to applications of one framework; methods raise as the clients do."""

    def drain(self, action: Drain, one: TrackedOrder) -> Outcome:
        """Order an executor to leave, once."""

    def grow(self, action: Grow) -> Outcome:
        """Let an application that has not ended have as many executors as before."""


class ExecutorOrders:
    """Performs ``Drain`` and ``Grow``; raises as the clients do."""

    def __init__(
        self,
        connection: Connection,
        permission: Permission,
        executors: ExecutorObserver,
        drainable: ExecutorReader,
    ) -> None:
        self._connection = connection
        self._permission = permission
        self._executors = executors
        self._drainable = drainable

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
            if route == "plugin":
                return self._order_plugin(action)
            self._connection.manager.signal(one.container, "GRACEFUL_SHUTDOWN")
        except Uncertain:
            raise
        except YarnctlError:
            one.released_at_ms = 0
            raise
        return Accepted()

    def grow(self, action: Grow) -> Outcome:
        """Let an application that has not ended have as many executors as before."""
        found = self._drainable.judged(self._connection.row(action.application))
        if not self._drainable.is_settled(action.application):  # the route is not known yet
            return later(action, MasterSilent("the driver has not answered yet"))
        if not isinstance(found, Drainable) or found.route != "plugin":
            return Accepted()
        return self._order_plugin(action)

    def _order_plugin(self, action: Drain | Grow) -> Outcome:
        hdfs, settings = self._connection.hdfs, self._executors.settings(action.application)
        if hdfs is None:
            return Withheld(NoHdfs())
        if isinstance(settings, Absent | Problem):
            return later(action, unread(settings))
        start = start_of(settings)
        if not start:
            return Refused(AttemptUnknown())
        orders, name_of = (
            PluginOrders(hdfs, self._connection.settings.requests_root),
            self._connection.settings.name_of,
        )
        if isinstance(action, Grow):
            orders.back(action.application, start, [name_of(f"d{number}") for number in action.decisions])
        else:
            named = [executor_in(action.application, mate) for mate in action.mates]
            leaving = [name for name in named if name is not None]
            orders.leave(action.application, start, leaving, name_of(f"d{action.decision}"))
        return Accepted()
