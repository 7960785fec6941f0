"""The ledger: what has been ordered for which application, and the state of each order.

The reclaim list is kept per preempting application, as in the paper (section 3.2): an entry is added when an
order is sent, and removed when the application has received a container; without it the same request would be
answered twice while heartbeats are under way. Only facts and deadlines move an entry, only along
:mod:`yarnctl.deciding.lifecycle`, and a settled entry never moves again; it *retires* ``expire_ms`` after.

Facts may be newer than the snapshot that is decided on, in which the request of an order that was granted
since is still pending, and a container that ended since is still used. So orders that ended lately are kept
(:class:`RecentlySettled`) and count by their state at the snapshot's instant.

Only :meth:`Ledger.apply` changes a ledger, by a record. Two exceptions: time-outs (:meth:`Ledger.retire`),
and a clock that was set back, which moves all instants.

One request may need several containers on one node (a *group*, named after its first order): the order that
completes it carries the requests it ``serves``; the others of the group carry 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any, NamedTuple

import msgspec

from yarnctl.deciding import records
from yarnctl.deciding.governor import Trials
from yarnctl.deciding.inputs import Observed
from yarnctl.deciding.ledger_state import AwaitedEnds, Bars
from yarnctl.deciding.lever_times import LeverTimes, corrected
from yarnctl.deciding.lifecycle import OPEN, RUNNING, TABLE, Event
from yarnctl.deciding.loss_budget import LossBudget
from yarnctl.deciding.model import (
    Action,
    OrderAction,
    Refused,
    Release,
    Unknown,
    Withdraw,
    Withheld,
)
from yarnctl.deciding.order import (
    SIGNS_OF_LIFE,
    Indices,
    Order,
    OrderNames,
    RecentlySettled,
    Sent,
    gone_on,
    new_order,
    order_id,
    set_back,
)
from yarnctl.deciding.reasons.orders import ContainerHasEnded, MoveReason
from yarnctl.deciding.reasons.outcomes import OutcomeReason
from yarnctl.deciding.regrowing import Regrowing
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import Resources

LOST = ContainerHasEnded("lost")
"""Why an order moved whose container was lost with its node: its container is not free."""


class MoveDetails(NamedTuple):
    """What the record of a move says beside the move; the fields are those of :class:`Transition`."""

    why: MoveReason | OutcomeReason | None = None
    container: str = ""
    application: str = ""
    keys_done: int = -1
    left: str = ""
    left_node: str = ""


NO_DETAILS = MoveDetails()


class Ledger:
    """All orders that are open or not yet retired, with indices for every look-up."""

    def __init__(self, settings: Settings = DEFAULT) -> None:
        self.settings = settings
        self.issued = 0
        self.decisions = 0
        self.open: dict[str, Order] = {}
        self.settled: dict[str, Order] = {}
        self.terminating: dict[str, Order] = {}
        self.suspended: dict[str, Order] = {}
        self.recently_settled: dict[str, dict[str, RecentlySettled]] = {}
        self.sent: dict[str, Sent] = {}
        self.due: list[Action] = []
        self.bars = Bars()
        self.losses = LossBudget()
        self.regrowing = Regrowing()
        self.awaited = AwaitedEnds()
        self.times = LeverTimes()
        self.trials = Trials()
        self.excluded, self.tries, self.indices = self.bars.barred, self.bars.tries, Indices()
        index = self.indices
        self.by_container, self.by_requester = index.by_container, index.by_requester
        self.by_victim, self.by_group = index.by_victim, index.by_group
        self.freed_on, self.freed_for = index.freed_on, index.freed_for
        self.retiring: deque[tuple[int, str]] = deque()
        self.late_until: list[tuple[int, str, str]] = []

    # --- writing ------------------------------------------------------------------------------

    def add(self, order: Order) -> None:
        """Enter a new order; its id must be the next, its container not under order."""
        assert order.order == order_id(self.issued + 1)
        assert order.container not in self.by_container
        self.issued += 1
        self.open[order.order] = order
        self.indices.enter(order)
        self.bars.set(order, "already-ordered")

    def happen(
        self, order_id: str, event: Event, at_ms: int, details: MoveDetails = NO_DETAILS
    ) -> records.Transition | records.Progressed | None:
        """Apply what an event does to an order now; return its record, None if it does nothing."""
        order = self.open.get(order_id)
        target = None if order is None else TABLE[order.state].get(event)
        if order is None or target is None:
            return None
        record: records.Transition | records.Progressed
        if target == order.state:
            if event not in SIGNS_OF_LIFE or at_ms <= order.progress_at_ms:
                return None
            record = records.Progressed(order=order_id, at_ms=at_ms)
        else:
            record = records.Transition(
                order=order_id,
                source=order.state,
                event=event,
                target=target,
                at_ms=at_ms,
                why=details.why,
                container=details.container,
                application=details.application,
                keys_done=details.keys_done,
                left=details.left,
                left_node=details.left_node,
            )
        self.apply(record)
        return record

    def apply(self, record: object) -> None:
        """Apply a record: no order is entered, moved or forgotten in another way. Other kinds do nothing."""
        applies = _APPLIES.get(type(record))
        if applies is not None:
            applies(self, record)

    def _observed(self, observed: Observed) -> None:
        """Apply the time-outs up to the step before; that step's requests were performed."""
        if observed.since_ms:
            self.retire(observed.since_ms)
        if self.losses.charges and self.settings.levers is not None:
            self.losses.retire(observed.at_ms, self.settings.levers)
        self.due = []

    def _stopped(self, record: records.Stopped) -> None:
        self.due = []

    def _requests(self, record: records.Requests) -> None:
        self.due += record.actions
        for action in record.actions:
            self.regrowing.requested(action, record.at_ms)
            sent = self.sent.get(action.order) if isinstance(action, OrderAction) else None
            if sent is not None and sent.action == action:
                self.sent[sent.action.order] = sent._replace(last_ms=record.at_ms)

    def _decision(self, record: records.Decision) -> None:
        requester, number = record.trigger.application, record.number
        self.decisions = number
        levers = self.settings.levers
        spans = None if levers is None else corrected(levers, self.times, record.at_ms)
        named = zip(record.orders, record.picks, record.groups, record.pulls, strict=True)
        for name, pick, group, pull in named:
            names = OrderNames(name, group, number)
            self.add(new_order(pick, names, requester, record.at_ms, self.settings, pull, spans))
            if pull is not None:
                self.losses.charge(name, record.at_ms, pick.task.size, pull, pick.task.remaining_ms)

    def _awaited(self, record: records.Awaited) -> None:
        self.awaited.note(record.tasks)

    def _transition(self, record: records.Transition) -> None:
        before, target, at_ms = self.open.get(record.order), record.target, record.at_ms
        if before is None:
            return
        changed = gone_on(before, record.event, target, at_ms)
        if record.left:
            changed = msgspec.structs.replace(changed, container=record.left, node=record.left_node)
        self.indices.bind(before, changed.container)
        self.open[record.order] = changed
        if before.verb == "drain":
            self.regrowing.moved(before.victim, at_ms)
        if record.order in self.losses.charges:
            self.losses.moved(record.order, record.event, at_ms)
        if before.state == "freed":
            self.indices.unfree(before)
        if self.settings.governed:
            self.trials = self.trials.moved(before, target)
        if target == "freed":
            self.indices.free(changed)
            if record.event == "ended-as-ordered":
                self._timed(changed, at_ms)
            if before.verb == "suspend":
                self.suspended[record.order] = changed
        if target not in OPEN:
            self._settle(changed)
            self.sent.pop(record.order, None)
            self.bars.pause(changed, record.event, record.why, at_ms, self.settings)
            if record.event == "ended-otherwise" and record.why != LOST:
                self._keep(before, at_ms, at_ms)  # ended from outside: its container is free

    def _timed(self, order: Order, at_ms: int) -> None:
        """Count how long the lever of an order took: that of its charge, which all but a suspension have."""
        levers, charge = self.settings.levers, self.losses.charges.get(order.order)
        if levers is None or not levers.second_worth_ratio:
            return
        if charge is not None:
            self.times.freed(order, charge.kind, at_ms, levers)
        elif order.verb == "suspend":
            self.times.freed(order, "suspend", at_ms, levers)

    def _levers_stopped(self, record: records.LeversStopped) -> None:
        self.trials = self.trials.stopped(record.why)

    def _progressed(self, record: records.Progressed) -> None:
        order = self.open.get(record.order)
        if order is not None:
            progress_at_ms = max(order.progress_at_ms, record.at_ms)
            self.open[record.order] = msgspec.structs.replace(order, progress_at_ms=progress_at_ms)

    def _transferred(self, record: records.Transfer) -> None:
        order = self.open.get(record.order)
        if order is not None:
            self.open[record.order] = msgspec.structs.replace(order, requester=record.target)
            self.indices.transfer(order, record.target)

    def _returned(self, record: records.Return | records.SavedLost) -> None:
        self.suspended.pop(record.order, None)

    def _forgotten(self, record: records.UnknownApplication) -> None:
        self.bars.forget(record.application)
        self.regrowing.forget(record.application)
        for name in [name for name, order in self.suspended.items() if order.victim == record.application]:
            del self.suspended[name]

    def _killed_ended(self, record: records.KilledEnded) -> None:
        killed = self.terminating.pop(record.container, None)
        if killed is not None and record.ending != "lost":
            self._keep(killed, record.at_ms, record.at_ms)

    def _performed(self, record: records.Performed) -> None:
        """Record a request that perhaps must be sent again."""
        action = next((each for each in self.due if record.is_of(each)), None)
        if action is not None:
            self.due.remove(action)
            self.regrowing.performed(action, record.outcome)
        if not isinstance(action, Release | Withdraw) or isinstance(record.outcome, Withheld):
            return
        before, at_ms = self.sent.get(action.order), record.at_ms
        if not isinstance(record.outcome, Refused):
            first_ms = at_ms if before is None else before.first_ms
            self.sent[action.order] = Sent(action, first_ms, at_ms, isinstance(record.outcome, Unknown))
        elif before is not None:
            self.sent[action.order] = before._replace(last_ms=at_ms, unsure=False)

    def _settle(self, order: Order) -> None:
        del self.open[order.order]
        self.indices.leave(order)
        self.settled[order.order] = order
        if order.state == "killed":
            self.terminating.pop(order.container, None)  # an older order's: the last killed is kept
            self.terminating[order.container] = order
        assert order.settled_at_ms is not None
        latest = self.retiring[-1][0] if self.retiring else order.settled_at_ms
        self.retiring.append((max(latest, order.settled_at_ms), order.order))
        if order.state in ("granted", "misdirected", "completed"):
            self._keep(order, order.freed_at_ms or order.settled_at_ms, order.settled_at_ms)
        elif order.freed_at_ms is not None:
            self.bars.lift(order.attempt, order.order, "already-ordered")

    def _keep(self, order: Order, room_ms: int, until_ms: int) -> None:
        """Count a settled order for snapshots older than these instants.

        Its attempt stays excluded: tasks that were observed before its end still show it.
        """
        self.recently_settled.setdefault(order.requester, {})[order.order] = RecentlySettled(
            order, room_ms, until_ms
        )
        heappush(self.late_until, (max(room_ms, until_ms), order.requester, order.order))

    def retire(self, now_ms: int) -> None:
        """Drop orders that settled ``expire_ms`` ago and that no snapshot still needs; end exclusions."""
        expire_ms = self.settings.expire_ms
        keep_ms = expire_ms + self.settings.look_age_max_ms
        while self.retiring and self.retiring[0][0] + expire_ms <= now_ms:
            order = self.settled.pop(self.retiring.popleft()[1])
            if self.terminating.get(order.container) is order:
                del self.terminating[order.container]
        self.bars.retire(now_ms)
        if self.awaited.until_ms:
            self.awaited.retire(now_ms)
        for name in [name for name, sent in self.sent.items() if self.is_over(sent, now_ms)]:
            del self.sent[name]
        while self.late_until and self.late_until[0][0] + keep_ms <= now_ms:
            _, requester, name = heappop(self.late_until)
            late = self.recently_settled[requester].pop(name)
            if not self.recently_settled[requester]:
                del self.recently_settled[requester]
            self.bars.lift(late.order.attempt, name, "already-ordered")

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span: the clock that gave them has been set back."""
        moved: dict[Order, Order] = {}

        def back(order: Order) -> Order:
            return moved.setdefault(order, set_back(order, by_ms))

        for index in (self.open, self.settled, self.terminating, self.suspended):
            index.update({name: back(order) for name, order in index.items()})
        for ends in self.recently_settled.values():
            for name, end in ends.items():
                ends[name] = RecentlySettled(back(end.order), end.room_ms - by_ms, end.until_ms - by_ms)
        for name, sent in self.sent.items():
            self.sent[name] = sent._replace(first_ms=sent.first_ms - by_ms, last_ms=sent.last_ms - by_ms)
        self.retiring = deque((at_ms - by_ms, name) for at_ms, name in self.retiring)
        self.late_until = [(at_ms - by_ms, requester, name) for at_ms, requester, name in self.late_until]
        self.bars.set_back(by_ms)
        self.losses.set_back(by_ms)
        self.regrowing.set_back(by_ms)
        self.awaited.set_back(by_ms)
        self.times.set_back(by_ms)
        self.trials = self.trials.set_back(by_ms)

    # --- reading ------------------------------------------------------------------------------

    def is_over(self, sent: Sent, now_ms: int) -> bool:
        """Return whether a request need not be sent again: its effect was observed, or it timed out."""
        if isinstance(sent.action, Release):
            order = self.open.get(sent.action.order)
            return order is None or order.state != "checkpointed"
        return not sent.unsure or now_ms - sent.first_ms >= self.settings.kill_timeout_ms

    def count_running(self) -> int:
        """Return how many containers are under order and have not been observed to end."""
        return sum(order.state in RUNNING for order in self.open.values())

    def of_requester(self, application: str) -> Iterator[Order]:
        """Yield the open orders on behalf of an application, oldest first."""
        for name in self.by_requester.get(application, ()):
            yield self.open[name]

    def of_victim(self, application: str) -> Iterator[Order]:
        """Yield the open orders against an application, oldest first."""
        for name in self.by_victim.get(application, ()):
            yield self.open[name]

    def simulated(self) -> list[Order]:
        """Return the orders that were not sent and whose predicted time has passed, oldest first."""
        return [order for order in self.open.values() if order.state == "simulated"]

    def promised(
        self, application: str, as_of_ms: int | None = None, is_here: Callable[[str], bool] | None = None
    ) -> int:
        """Return how many requests of an application, at that instant, its orders will meet or have met.

        ``is_here``: whether orders on a node count (None: on every node).
        """
        coming = sum(
            order.serves
            for order in self.of_requester(application)
            if (as_of_ms is None or not order.is_simulated_at(as_of_ms))
            and (is_here is None or is_here(order.node))
        )
        if as_of_ms is None or application not in self.recently_settled:
            return coming
        return coming + sum(
            late.order.serves
            for late in self.recently_settled[application].values()
            if late.until_ms > as_of_ms
            and late.order.state != "killed"
            and (is_here is None or is_here(late.order.node))
        )

    def terminating_for(self, application: str, as_of_ms: int) -> int:
        """Return how many requests the killed entries of an application meet (the paper's "expired list")."""
        late = self.recently_settled.get(application, {}).values()
        return sum(
            order.serves for order in self.terminating.values() if order.requester == application
        ) + sum(end.order.serves for end in late if end.until_ms > as_of_ms and end.order.state == "killed")

    def recently_settled_room(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the settled orders whose container was still used at ``as_of_ms``."""
        for ends in self.recently_settled.values():
            for end in ends.values():
                if end.room_ms > as_of_ms:
                    yield end.order

    def freed_unassigned(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the orders whose container was free, and not assigned yet, at ``as_of_ms``."""
        for order in self.open.values():
            if order.state == "freed" and (order.freed_at_ms or 0) <= as_of_ms:
                yield order
        for ends in self.recently_settled.values():
            for end in ends.values():
                if end.room_ms <= as_of_ms < end.until_ms:
                    yield end.order

    def expected_room(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the orders whose container was still used in a snapshot of ``as_of_ms``.

        Killed orders count until they retire or their container is observed to end (:attr:`terminating`):
        thethe, though the entry is settled (the paper's "expired list", section 3.2).
        """
        for order in self.open.values():
            if order.state in RUNNING or (order.freed_at_ms or 0) > as_of_ms:
                yield order
        yield from self.terminating.values()
        yield from self.recently_settled_room(as_of_ms)

    def group_of(self, order: Order) -> list[Order]:
        """Return the open orders that serve one request, ``order`` included."""
        return [self.open[name] for name in self.by_group.get(order.group, ())]


def fingerprint_of(ledger: Ledger) -> tuple[object, ...]:
    """Return all that expected and promised capacity depend on: equal values, equal answers."""
    late = [end for ends in ledger.recently_settled.values() for end in ends.values()]
    return (*ledger.open.values(), None, *ledger.terminating.values(), None, *late)


def remembered_of(ledger: Ledger) -> dict[str, None]:
    """Return the applications of which anything is remembered beyond their orders."""
    away = (order.victim for order in ledger.suspended.values())
    return dict.fromkeys((*ledger.tries, *away, *ledger.regrowing.shrunk))


def oldest_freed(ledger: Ledger, requester: str, size: Resources) -> Order | None:
    """Return the requester's order that was freed first and serves a request of this size."""
    for name in ledger.freed_for.get(requester, ()):
        order = ledger.open[name]
        if order.serves and order.request_size == size:
            return order
    return None


def oldest_running(ledger: Ledger, requester: str, size: Resources) -> Order | None:
    """Return the requester's oldest order that serves a request of this size and is not freed yet."""
    for order in ledger.of_requester(requester):
        if order.state in RUNNING and order.serves and order.request_size == size:
            return order
    return None


_APPLIES: dict[type, Callable[[Ledger, Any], None]] = {
    Observed: Ledger._observed,
    records.Stopped: Ledger._stopped,
    records.Requests: Ledger._requests,
    records.Performed: Ledger._performed,
    records.Decision: Ledger._decision,
    records.Awaited: Ledger._awaited,
    records.LeversStopped: Ledger._levers_stopped,
    records.Transition: Ledger._transition,
    records.Progressed: Ledger._progressed,
    records.Transfer: Ledger._transferred,
    records.Return: Ledger._returned,
    records.SavedLost: Ledger._returned,
    records.UnknownApplication: Ledger._forgotten,
    records.KilledEnded: Ledger._killed_ended,
}
