"""Perform actions: each gives one outcome.

Law: nothing is sent that the permission check (``permission``) does not allow. Every action is idempotent by
its order.

======================================  ==========================
what happened                           outcome
======================================  ==========================
it was done, or had been done before    Accepted
the settings do not enforce             Withheld
a guard on the job or the attempt       Refused, with the reason
Suspend not sent, for other             Withheld: no fault of the
reasons (blocked, no HDFS)              attempt
sent, and no answer came                Unknown; only a fact decides
Release or Withdraw not possible now    Unknown, so that it is retried
======================================  ==========================
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from yarnctl.attach.connection.calls import fault_text
from yarnctl.attach.connection.connection import Connection
from yarnctl.attach.eligibility.permission import Permission, later
from yarnctl.attach.orders.connected import Connected
from yarnctl.attach.orders.reversible import set_back
from yarnctl.attach.orders.tracking import OrderTracking
from yarnctl.deciding.model import (
    Accepted,
    Action,
    Change,
    ChangeKind,
    DisablePreemption,
    Drain,
    Grow,
    Kill,
    OrderAction,
    Outcome,
    Refused,
    Release,
    Restore,
    SetPriority,
    SetQueueMaximum,
    Suspend,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.reasons.orders import DeadlineOrder, DemandOver
from yarnctl.deciding.reasons.outcomes import (
    ClientFault,
    ForeignAttempt,
    ManifestUnusable,
    NeverSent,
    NoReduceOf,
    NoSuchOrder,
)
from yarnctl.deciding.reasons.rooting import FAULT_MAX
from yarnctl.errors import YarnctlError
from yarnctl.hadoop.http.answers import Altered, Uncertain
from yarnctl.restoring.restorer import Restorer, ReversibleSetting
from yarnctl.task_runner.runner.protocol.stores import StoreError, Unusable


class Performing:
    """Performs all actions of the controller on one cluster; ``frameworks``: by kind."""

    def __init__(
        self,
        connection: Connection,
        tracking: OrderTracking,
        permission: Permission,
        frameworks: Mapping[str, Connected],
        reversible: Mapping[ChangeKind, ReversibleSetting],
        restorer: Restorer,
    ) -> None:
        self._frameworks = frameworks
        self._reversible = reversible
        self._restorer = restorer
        self._connection = connection
        self._manager = connection.manager
        self._tracking = tracking
        self._permission = permission

    def perform(self, action: Action) -> Outcome:
        """Perform one action; never raises for a fault of the cluster or of an application's data."""
        try:
            return self._permission.may_act(action) or self._perform(action)
        except Uncertain as problem:
            return Unknown(_fault(problem))
        except Unusable as problem:
            return Refused(ManifestUnusable(str(problem)[:FAULT_MAX]))
        except (YarnctlError, StoreError) as problem:
            return later(action, _fault(problem))
        except Exception as problem:  # an application's data: it is not known whether the action was sent
            return Unknown(ClientFault(fault_text(problem)[:FAULT_MAX]))

    def _perform(self, action: Action) -> Outcome:
        match action:
            case Suspend() | Withdraw() | Release():
                return self._order(action, "suspend")
            case Kill():
                return self._order(action, "kill")
            case Drain():
                return self._order(action, "drain")
            case Grow():
                return self._grow(action)
            case SetPriority():
                return self._set_priority(action)
            case SetQueueMaximum():
                self._manager.set_queue_maximum(action.queue, action.ratio)
                return Accepted()
            case DisablePreemption():
                self._manager.set_preemption_key(action.queue, "true")
                return Accepted()
            case Restore():
                return self._reversible[action.change.kind].write(action.change)

    def _order(self, action: OrderAction, verb: str) -> Outcome:
        generation = action.generation if isinstance(action, Suspend | Release) else 0
        tracked = self._tracking.begin(
            action.order, action.application, action.attempt, action.container, generation, verb
        )
        if tracked is None:
            return Refused(foreign(action))
        if isinstance(action, Drain) and tracked.released_at_ms:
            return Accepted()
        return self._frameworks[tracked.kind].orders.perform(action, tracked)

    def _grow(self, grow: Grow) -> Outcome:
        return self._restorer.restore(grow.application, DemandOver(), ("bounds", "executors"))

    def _set_priority(self, set_priority: SetPriority) -> Outcome:
        """Set a priority whose change is recorded; the record of a ranking has all of its changes."""
        row = self._connection.row(set_priority.application)
        change = Change("priority", set_priority.application, str(row.priority), str(set_priority.priority))
        if not self._restorer.covers(change.kind, change.target, change.now):
            problem = self._restorer.record((change,), DeadlineOrder())
            if problem:
                return Withheld(ClientFault(problem[:FAULT_MAX]))
        try:
            first = self._restorer.open[change.key].change
            if change.now == first.before:  # the ranking is at the value before again
                set_back(self._manager, Change("priority", change.target, change.now, change.before))
            else:
                self._manager.set_priority(set_priority.application, set_priority.priority)
        except Uncertain:
            raise
        except Altered as problem:  # YARN capped it: what it set is what is restored from
            if problem.got == change.before:
                self._restorer.not_made(change.key)
            else:
                capped = msgspec.structs.replace(change, now=problem.got)
                self._restorer.record((capped,), DeadlineOrder())
            return Unknown(_fault(problem))
        except YarnctlError:
            self._restorer.not_made(change.key)
            raise
        return Accepted()


def foreign(action: OrderAction) -> ForeignAttempt | NeverSent | NoReduceOf | NoSuchOrder:
    """Return why an action whose attempt or order is not of its application is refused."""
    match action:
        case Withdraw():
            return NeverSent()
        case Release():
            return NoSuchOrder()
        case Kill():
            return NoReduceOf(action.attempt, action.application)
        case _:
            return ForeignAttempt(action.attempt, action.application)


def _fault(problem: Exception) -> ClientFault:
    return ClientFault(str(problem)[:FAULT_MAX])
