"""The ledger: what has been ordered on whose behalf, and what has become of it.

Law: the reclaim list is kept per hurried application, as in the paper (section 3.2): an entry is
added when a container is asked for, and leaves when the application has been given one; without
it the same ask would be answered twice while heartbeats are on their way. Only facts and
deadlines move an entry, only along :mod:`yarnctl.deciding.lifecycle`, and a settled entry never
moves again; it *retires* ``expire_ms`` after.

Facts may be newer than the snapshot that is decided on. In that snapshot the ask of an order that
was granted since still waits, and the room of a container that ended since is still held. So what
ended lately is kept (:class:`Late`) and counts as it stood at the snapshot's instant.

Each change of the ledger has a record in the journal, or follows from the records before it and the
instant of the next decision (:meth:`Ledger.retire`). An attempt's bar belongs to the last order that set
it: what an earlier order has left behind never lifts it.

One ask may need several containers on one node (a *group*, named after its first order): the order
that completes the room carries the asks it ``serves``; the others of the group carry 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Literal, NamedTuple

import msgspec

from yarnctl.deciding.case import Pick
from yarnctl.deciding.lifecycle import OPEN, RUNNING, Event, State, after
from yarnctl.deciding.records import (
    Decision,
    Forgotten,
    KilledEnded,
    Progressed,
    Return,
    SavedLost,
    Transfer,
    Transition,
)
from yarnctl.deciding.releaser import is_killed
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import Resources


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One container that was asked for; instants in ms, None: has not happened.

    ``serves`` asks of size ``ask`` are met once the room of ``group`` is free. ``progress_at_ms``
    is when the attempt last showed life: the time-out counts from there. ``remaining_ms`` is the work that
    it had left when it was chosen (-1: unknown), ``return_cost_ms`` what coming back was predicted to cost.
    ``observed``: made by a controller that only observed, so that nobody was ever asked.
    """

    order: str
    asker: str
    victim: str
    attempt: str
    container: str
    node: str
    size: Resources
    ask: Resources
    serves: int
    group: str
    generation: int
    verb: Literal["suspend", "kill"]
    decision: int
    asked_at_ms: int
    progress_at_ms: int
    state: State = "asked"
    freed_at_ms: int | None = None
    settled_at_ms: int | None = None
    remaining_ms: int = -1
    return_cost_ms: int = 0
    observed: bool = False

    @property
    def is_open(self) -> bool:
        """Say whether the order still counts."""
        return self.state in OPEN


SIGNS_OF_LIFE = ("accepted", "progress", "manifest")
"""Events after which an order's time-out counts anew."""


class Late(NamedTuple):
    """An order that is over: its room came free at ``room_ms``, its ask was met at ``until_ms``."""

    order: Order
    room_ms: int
    until_ms: int


DOUBLINGS_MAX = 10
"""The pause after a failed try stops growing here."""

LOST = "container lost"
"""Why an order moved whose container was lost with its node: its room is not free."""


def order_number(name: str) -> int:
    """Return the number of an order id: its age among orders."""
    return int(name[2:])


def order_id(number: int) -> str:
    """Return the id of the order of that number (the first is 1)."""
    return f"o-{number:06d}"


def name_orders(picks: Sequence[Pick], issued: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return an order id and a group for each pick, after ``issued`` orders.

    A pick of the size that was asked for is its own group; picks that add up on one node form a
    group, named after the first, that ends with the pick which completes the room.
    """
    orders: list[str] = []
    groups: list[str] = []
    unfinished: dict[str, str] = {}
    for place, pick in enumerate(picks):
        name = order_id(issued + place + 1)
        group = name
        if pick.task.size != pick.ask:
            group = unfinished.setdefault(pick.task.node, name)
            if pick.serves:
                del unfinished[pick.task.node]
        orders.append(name)
        groups.append(group)
    return tuple(orders), tuple(groups)


def new_order(
    pick: Pick, name: str, group: str, asker: str, decision: int, at_ms: int, settings: Settings
) -> Order:
    """Return the order that asks for one pick of a decision, as it is entered at ``at_ms``."""
    task = pick.task
    return Order(
        order=name,
        asker=asker,
        victim=pick.application,
        attempt=task.attempt,
        container=task.container,
        node=task.node,
        size=task.size,
        ask=pick.ask,
        serves=pick.serves,
        group=group,
        generation=task.generation + 1,
        verb="kill" if is_killed(task, settings) else "suspend",
        decision=decision,
        asked_at_ms=at_ms,
        progress_at_ms=at_ms,
        remaining_ms=task.remaining_ms,
        return_cost_ms=task.return_cost_ms,
        observed=settings.observe_only,
    )


class Ledger:
    """All orders that are open or not yet retired, with indices for every look-up."""

    def __init__(self, settings: Settings = DEFAULT) -> None:
        self.settings = settings
        self.issued = 0
        self.open: dict[str, Order] = {}
        self.settled: dict[str, Order] = {}
        self.by_container: dict[str, str] = {}
        self.by_asker: dict[str, dict[str, None]] = {}
        self.by_victim: dict[str, dict[str, None]] = {}
        self.by_group: dict[str, dict[str, None]] = {}
        self.freed_on: dict[str, dict[str, None]] = {}
        self.freed_for: dict[str, dict[str, None]] = {}
        self.barred: dict[str, str] = {}
        self._barred_by: dict[str, str] = {}
        self.dying: dict[str, Order] = {}
        self.away: dict[str, Order] = {}
        self._retiring: deque[tuple[int, str]] = deque()
        self.late: dict[str, dict[str, Late]] = {}
        self.tries: dict[str, dict[str, int]] = {}
        self._cooling: list[tuple[int, str, str]] = []
        self._late_until: list[tuple[int, str, str]] = []

    # --- writing ------------------------------------------------------------------------------

    def next_id(self) -> str:
        """Return the id that the next order must carry."""
        return order_id(self.issued + 1)

    def add(self, order: Order) -> None:
        """Enter a new order; its id must be :meth:`next_id` and its container not under order."""
        assert order.order == self.next_id()
        assert order.container not in self.by_container
        self.issued += 1
        self.open[order.order] = order
        self.by_container[order.container] = order.order
        self.by_asker.setdefault(order.asker, {})[order.order] = None
        self.by_victim.setdefault(order.victim, {})[order.order] = None
        self.by_group.setdefault(order.group, {})[order.order] = None
        self._bar(order, "already-ordered")

    def make(self, order_id: str, event: Event, at_ms: int, **told: Any) -> Transition | Progressed | None:
        """Return the record of what an event does to an order now; None: nothing.

        ``told`` are further fields of the transition. Nothing is changed.
        """
        order = self.open.get(order_id)
        target = None if order is None else after(order.state, event)
        if order is None or target is None:
            return None
        if target == order.state:
            is_later = event in SIGNS_OF_LIFE and at_ms > order.progress_at_ms
            return Progressed(order=order_id, at_ms=at_ms) if is_later else None
        return Transition(order=order_id, source=order.state, event=event, target=target, at_ms=at_ms, **told)

    def happen(self, order_id: str, event: Event, at_ms: int, **told: Any) -> Transition | Progressed | None:
        """Make the record of what an event does, and apply it."""
        record = self.make(order_id, event, at_ms, **told)
        if record is not None:
            self.apply(record)
        return record

    def apply(self, record: object) -> None:
        """Apply a record: no order is entered, moved or forgotten in another way. Other kinds do nothing."""
        applies = _APPLIES.get(type(record))
        if applies is not None:
            applies(self, record)

    def _decision(self, record: Decision) -> None:
        asker, number = record.trigger.application, record.number
        for name, pick, group in zip(record.orders, record.picks, record.groups, strict=True):
            self.add(new_order(pick, name, group, asker, number, record.at_ms, self.settings))

    def _transition(self, record: Transition) -> None:
        before, target, at_ms = self.open[record.order], record.target, record.at_ms
        lives = record.event in SIGNS_OF_LIFE
        changed = msgspec.structs.replace(
            before,
            state=target,
            progress_at_ms=max(before.progress_at_ms, at_ms) if lives else before.progress_at_ms,
            freed_at_ms=at_ms if target == "freed" else before.freed_at_ms,
            settled_at_ms=None if target in OPEN else at_ms,
        )
        self.open[record.order] = changed
        if before.state == "freed":
            self._unindex(self.freed_on, before.node, record.order)
            self._unindex(self.freed_for, before.asker, record.order)
        if target == "freed":
            self.freed_on.setdefault(before.node, {})[record.order] = None
            self.freed_for.setdefault(before.asker, {})[record.order] = None
            if before.verb == "suspend":
                self.away[record.order] = changed
        if target not in OPEN:
            self._settle(changed)
            self._pause(changed, record.event, at_ms)
            if record.event == "ended-otherwise" and record.why != LOST:
                self.keep(before, at_ms, at_ms)  # others killed it: its room is free

    def _pause(self, order: Order, event: Event, at_ms: int) -> None:
        """Bar an attempt that was not stopped: longer after each try that failed, at last for good."""
        if order.freed_at_ms is not None or order.state == "completed":
            return
        settings = self.settings
        pause_ms = settings.rest_ms
        if order.observed and not settings.observe_only:
            pause_ms = 0  # nobody was asked
        if event in ("give-up", "refused"):
            before = self.failed(order)
            if before + 1 >= settings.task_tries_max:
                self.cool(order, None)
                return
            pause_ms = settings.kill_timeout_ms << min(before, DOUBLINGS_MAX)
        self.cool(order, at_ms + pause_ms)

    def _progressed(self, record: Progressed) -> None:
        order = self.open[record.order]
        changed = msgspec.structs.replace(order, progress_at_ms=max(order.progress_at_ms, record.at_ms))
        self.open[record.order] = changed

    def _transferred(self, record: Transfer) -> None:
        self.transfer(self.open[record.order], record.target)

    def _returned(self, record: Return | SavedLost) -> None:
        self.away.pop(record.order, None)

    def _forgotten(self, record: Forgotten) -> None:
        self.forget(record.application)

    def _killed_ended(self, record: KilledEnded) -> None:
        self.end_killed(record.container, record.at_ms, room_is_free=record.ending != "lost")

    def transfer(self, order: Order, asker: str) -> Order:
        """Put an open order onto another application's list: rooms of one size are all alike."""
        changed = msgspec.structs.replace(order, asker=asker)
        self.open[order.order] = changed
        self._unindex(self.by_asker, order.asker, order.order)
        if order.state == "freed":
            self._unindex(self.freed_for, order.asker, order.order)
            self.freed_for.setdefault(asker, {})[order.order] = None
        names = [*self.by_asker.get(asker, ()), order.order]
        self.by_asker[asker] = dict.fromkeys(sorted(names, key=order_number))
        return changed

    def _settle(self, order: Order) -> None:
        del self.open[order.order]
        del self.by_container[order.container]
        self._unindex(self.by_asker, order.asker, order.order)
        self._unindex(self.by_victim, order.victim, order.order)
        self._unindex(self.by_group, order.group, order.order)
        self.settled[order.order] = order
        if order.state == "killed":
            self.dying.pop(order.container, None)  # an older order's: the last killed stands last
            self.dying[order.container] = order
        assert order.settled_at_ms is not None
        latest = self._retiring[-1][0] if self._retiring else order.settled_at_ms
        self._retiring.append((max(latest, order.settled_at_ms), order.order))
        if order.state in ("granted", "taken", "completed"):
            self.keep(order, order.freed_at_ms or order.settled_at_ms, order.settled_at_ms)
        elif order.freed_at_ms is not None:
            self._lift(order.attempt, order.order, "already-ordered")

    def keep(self, order: Order, room_ms: int, until_ms: int) -> None:
        """Let an order that is over go on counting for snapshots older than these instants.

        Its attempt stays barred: tasks that were seen before its end still show it.
        """
        self.late.setdefault(order.asker, {})[order.order] = Late(order, room_ms, until_ms)
        heappush(self._late_until, (max(room_ms, until_ms), order.asker, order.order))

    def cool(self, order: Order, until_ms: int | None) -> None:
        """Bar an attempt that did not stop until that instant (None: for good)."""
        self._bar(order, "just-tried" if until_ms is not None else "task-tries")
        if until_ms is not None:
            heappush(self._cooling, (until_ms, order.attempt, order.order))

    def _bar(self, order: Order, why: str) -> None:
        """Bar the attempt of an order; the bar is this order's from now on."""
        self.barred[order.attempt] = why
        self._barred_by[order.attempt] = order.order

    def _lift(self, attempt: str, order_id: str, why: str) -> None:
        """Lift a bar that this order set for this reason; one of a later order stays."""
        if self._barred_by.get(attempt) == order_id and self.barred[attempt] == why:
            del self.barred[attempt], self._barred_by[attempt]

    def failed(self, order: Order) -> int:
        """Count one more try of an attempt that did not stop; return how many there were before."""
        tries = self.tries.setdefault(order.victim, {})
        before = tries.get(order.attempt, 0)
        tries[order.attempt] = before + 1
        return before

    def remembers(self, application: str) -> bool:
        """Say whether anything is remembered of an application's attempts."""
        return application in self.tries or any(order.victim == application for order in self.away.values())

    def forget(self, application: str) -> None:
        """Drop what is remembered of an application's attempts, as it is gone."""
        tries = self.tries.pop(application, {})
        for attempt in tries:
            if self.barred.get(attempt) == "task-tries":
                del self.barred[attempt], self._barred_by[attempt]
        away = [name for name, order in self.away.items() if order.victim == application]
        for order_id in away:
            del self.away[order_id]

    def end_killed(self, container: str, at_ms: int, *, room_is_free: bool) -> Order | None:
        """Take note that a killed container has ended; return its order, None if none is waited for."""
        killed = self.dying.pop(container, None)
        if killed is not None and room_is_free:
            self.keep(killed, at_ms, at_ms)
        return killed

    @staticmethod
    def _unindex(index: dict[str, dict[str, None]], name: str, order_id: str) -> None:
        index[name].pop(order_id, None)
        if not index[name]:
            del index[name]

    def retire(self, now_ms: int, expire_ms: int, keep_ms: int) -> list[Order]:
        """Drop what settled ``expire_ms`` ago and what no look is old enough for (``keep_ms``)."""
        retired = []
        while self._retiring and self._retiring[0][0] + expire_ms <= now_ms:
            order = self.settled.pop(self._retiring.popleft()[1])
            if self.dying.get(order.container) is order:
                del self.dying[order.container]
            retired.append(order)
        while self._cooling and self._cooling[0][0] <= now_ms:
            _, attempt, order_id = heappop(self._cooling)
            self._lift(attempt, order_id, "just-tried")
        while self._late_until and self._late_until[0][0] + keep_ms <= now_ms:
            _, asker, order_id = heappop(self._late_until)
            late = self.late[asker].pop(order_id)
            if not self.late[asker]:
                del self.late[asker]
            self._lift(late.order.attempt, order_id, "already-ordered")
        return retired

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span: the clock by which they were told has been set back."""
        moved: dict[Order, Order] = {}

        def back(order: Order) -> Order:
            return moved.setdefault(order, set_back(order, by_ms))

        for index in (self.open, self.settled, self.dying, self.away):
            index.update({name: back(order) for name, order in index.items()})
        for ends in self.late.values():
            for name, end in ends.items():
                ends[name] = Late(back(end.order), end.room_ms - by_ms, end.until_ms - by_ms)
        self._retiring = deque((at_ms - by_ms, name) for at_ms, name in self._retiring)
        self._cooling = [(at_ms - by_ms, attempt, name) for at_ms, attempt, name in self._cooling]
        self._late_until = [(at_ms - by_ms, asker, name) for at_ms, asker, name in self._late_until]

    # --- reading ------------------------------------------------------------------------------

    def standing(self) -> tuple[object, ...]:
        """Return all that what is coming and what is promised depend on: equal values, equal answers."""
        late = [end for ends in self.late.values() for end in ends.values()]
        return (*self.open.values(), None, *self.dying.values(), None, *late)

    def leaving(self) -> int:
        """Return how many containers are under order and have not been seen to end."""
        return sum(order.state in RUNNING for order in self.open.values())

    def of_asker(self, application: str) -> Iterator[Order]:
        """Yield the open orders on behalf of an application, oldest first."""
        for order_id in self.by_asker.get(application, ()):
            yield self.open[order_id]

    def of_victim(self, application: str) -> Iterator[Order]:
        """Yield the open orders against an application, oldest first."""
        for order_id in self.by_victim.get(application, ()):
            yield self.open[order_id]

    def promised(self, application: str, as_of_ms: int | None = None) -> int:
        """Return how many asks of an application, as they stood then, its orders will meet or have met."""
        coming = sum(order.serves for order in self.of_asker(application))
        if as_of_ms is None or application not in self.late:
            return coming
        return coming + sum(
            late.order.serves
            for late in self.late[application].values()
            if late.until_ms > as_of_ms and late.order.state != "killed"
        )

    def dying_for(self, application: str, as_of_ms: int) -> int:
        """Return how many asks the killed entries of an application meet (the paper's "expired list")."""
        late = self.late.get(application, {}).values()
        return sum(order.serves for order in self.dying.values() if order.asker == application) + sum(
            end.order.serves for end in late if end.until_ms > as_of_ms and end.order.state == "killed"
        )

    def late_room(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the orders that are over now, and whose room was still held at ``as_of_ms``."""
        for ends in self.late.values():
            for end in ends.values():
                if end.room_ms > as_of_ms:
                    yield end.order

    def spoken_for(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the orders whose room was free, and not given to anybody yet, at ``as_of_ms``."""
        for order in self.open.values():
            if order.state == "freed" and (order.freed_at_ms or 0) <= as_of_ms:
                yield order
        for ends in self.late.values():
            for end in ends.values():
                if end.room_ms <= as_of_ms < end.until_ms:
                    yield end.order

    def coming(self, as_of_ms: int) -> Iterator[Order]:
        """Yield the orders whose room was still held in a snapshot of ``as_of_ms``.

        Killed orders count until they retire or their container is seen to end (:attr:`dying`): the
        room comes, though the entry is settled (the paper's "expired list", section 3.2).
        """
        for order in self.open.values():
            if order.state in RUNNING or (order.freed_at_ms or 0) > as_of_ms:
                yield order
        yield from self.dying.values()
        yield from self.late_room(as_of_ms)

    def oldest_freed(self, asker: str, size: Resources) -> Order | None:
        """Return the asker's order that was freed first and serves an ask of this size."""
        for order_id in self.freed_for.get(asker, ()):
            order = self.open[order_id]
            if order.serves and order.ask == size:
                return order
        return None

    def oldest_running(self, asker: str, size: Resources) -> Order | None:
        """Return the asker's oldest order that serves an ask of this size and is not freed yet."""
        for order in self.of_asker(asker):
            if order.state in RUNNING and order.serves and order.ask == size:
                return order
        return None

    def group_of(self, order: Order) -> list[Order]:
        """Return the open orders that make up one ask's room, ``order`` included."""
        return [self.open[order_id] for order_id in self.by_group.get(order.group, ())]


def set_back(order: Order, by_ms: int) -> Order:
    """Return an order with all its instants moved back by a span."""
    freed, settled = order.freed_at_ms, order.settled_at_ms
    return msgspec.structs.replace(
        order,
        asked_at_ms=order.asked_at_ms - by_ms,
        progress_at_ms=order.progress_at_ms - by_ms,
        freed_at_ms=None if freed is None else freed - by_ms,
        settled_at_ms=None if settled is None else settled - by_ms,
    )


_APPLIES: dict[type, Callable[[Ledger, Any], None]] = {
    Decision: Ledger._decision,
    Transition: Ledger._transition,
    Progressed: Ledger._progressed,
    Transfer: Ledger._transferred,
    Return: Ledger._returned,
    SavedLost: Ledger._returned,
    Forgotten: Ledger._forgotten,
    KilledEnded: Ledger._killed_ended,
}
