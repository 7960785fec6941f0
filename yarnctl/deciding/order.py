"""Order: what yarnctl has sent for one container, as a value, with its id and its actions on the cluster.

Law: values only. The ledger and the life cycle decide which order follows from which.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from yarnctl.deciding.case import Pick
from yarnctl.deciding.levers import LEAVING, LeverPull
from yarnctl.deciding.lifecycle import OPEN, RECALLABLE, Event, State
from yarnctl.deciding.model import Action, Drain, Kill, Release, Suspend, TaskView, Withdraw
from yarnctl.deciding.releaser import is_killed
from yarnctl.deciding.settings import LeverSettings, Settings
from yarnctl.units import Resources

SUSPEND_MS, LEAVE_MS = 4_000, 1_500
"""The predicted spans from an order to the freed container, of a suspension and of a kill. Source:
facts/hadoop.md, section 11: a checkpoint takes some seconds, YARN gives a killed attempt's container to the
next within half a second, and the next observation shows both."""

SILENT_TIMES = 3
"""A governed suspension without a sign of life for so many times its predicted span is over: its task does no
work meanwhile. Three times was seen of one that came (12.4 s, with key groups of 7 s). So is the order of an
idle executor: its driver removes it with the next look, or it has a task and stays (60 of 60 within 4 s)."""

OrderVerb = Literal["suspend", "kill", "drain"]
ORDER_VERBS: tuple[OrderVerb, ...] = get_args(OrderVerb)
"""The verbs of orders: the actions of these tags send one, every other action follows up."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One order for a container; instants in ms, None: has not happened.

    ``serves`` requests of ``request_size`` are met once all of ``group`` are free. ``progress_at_ms``
    is when the attempt was last known to be alive: the time-out counts from there. ``remaining_ms`` is the
    work that it had left when it was chosen (-1: unknown), ``resume_cost_ms`` its predicted resume cost.
    ``group_ms``: how long a suspended task worked on one key group (UNSET: short or unknown).
    ``observed``: made by a controller that only observed, so that no request was sent. A simulated order
    has freed its container at ``freed_at_ms`` as predicted, not as observed.
    """

    order: str
    requester: str
    victim: str
    attempt: str
    container: str
    node: str
    size: Resources
    request_size: Resources
    serves: int
    group: str
    generation: int
    verb: OrderVerb
    decision: int
    ordered_at_ms: int
    progress_at_ms: int
    state: State = "ordered"
    freed_at_ms: int | None = None
    settled_at_ms: int | None = None
    remaining_ms: int = -1
    resume_cost_ms: int = 0
    observed: bool = False
    group_ms: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def is_open(self) -> bool:
        """Return whether the order still counts."""
        return self.state in OPEN

    @property
    def is_idle(self) -> bool:
        """Return whether it drains an executor that had no task: then neither leaving nor returning costs."""
        return self.verb == "drain" and not self.resume_cost_ms

    @property
    def is_recallable(self) -> bool:
        """Return whether its request can still be withdrawn without waste: a drain cannot be undone."""
        return self.state in RECALLABLE and self.verb != "drain"

    def is_simulated_at(self, as_of_ms: int) -> bool:
        """Return whether a snapshot of that instant is decided on as if the order had been carried out."""
        return self.state == "simulated" and (self.freed_at_ms or 0) <= as_of_ms

    def predicted_ms(self, settings: Settings) -> int:
        """Return the span from the order until its container is free, as its lever predicted it."""
        if self.verb == "drain":
            return max(0, self.remaining_ms)
        if self.verb == "suspend":
            own_ms = self.group_ms or 0
            return own_ms + (SUSPEND_MS if settings.levers is None else settings.levers.suspend_ms)
        return LEAVE_MS if settings.levers is None else settings.levers.leave_ms

    def limit_ms(self, settings: Settings) -> int:
        """Return how long it may stay without progress: an executor with tasks ends them first."""
        limit_ms = settings.kill_timeout_ms
        if settings.governed and self.state in RECALLABLE:
            if self.is_idle:
                return min(limit_ms, SILENT_TIMES * max(LEAVE_MS, self.remaining_ms))
            if self.verb == "suspend":
                return min(limit_ms, SILENT_TIMES * self.predicted_ms(settings))
        waits = self.verb == "drain" and self.state != "freed"
        return limit_ms + (max(0, self.remaining_ms) if waits else 0)


class RecentlySettled(NamedTuple):
    """A settled order: its container was freed at ``room_ms``, its request was met at ``until_ms``."""

    order: Order
    room_ms: int
    until_ms: int


class Sent(NamedTuple):
    """A request whose effect has not been observed. ``unsure``: the last outcome was Unknown."""

    action: Release | Withdraw
    first_ms: int
    last_ms: int
    unsure: bool


SIGNS_OF_LIFE = ("accepted", "progress", "manifest")
"""Events after which an order's time-out counts anew."""


def order_number(name: str) -> int:
    """Return the number of an order id: its age among orders."""
    return int(name[2:])


def order_id(number: int) -> str:
    """Return the id of the order of that number (the first is 1)."""
    return f"o-{number:06d}"


def name_orders(picks: Sequence[Pick], issued: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return an order id and a group for each pick, after ``issued`` orders.

    A pick of the requested size is its own group; picks that add up on one node form a
    group, named after the first, that ends with the pick that completes the container.
    """
    orders: list[str] = []
    groups: list[str] = []
    unfinished: dict[str, str] = {}
    for place, pick in enumerate(picks):
        name = order_id(issued + place + 1)
        group = name
        if pick.task.size != pick.request_size:
            group = unfinished.setdefault(pick.task.node, name)
            if pick.serves:
                del unfinished[pick.task.node]
        orders.append(name)
        groups.append(group)
    return tuple(orders), tuple(groups)


class OrderNames(NamedTuple):
    """An order's id, its group, and the number of its decision."""

    order: str
    group: str
    decision: int


def new_order(
    pick: Pick,
    names: OrderNames,
    requester: str,
    at_ms: int,
    settings: Settings,
    pull: LeverPull | None,
    lever_settings: LeverSettings | None = None,
) -> Order:
    """Return the order for one pick, as it is entered at ``at_ms``; ``pull``: its lever, of a mix.

    ``lever_settings``: those that the lever was predicted with. What it takes beyond them is its task's own.
    """
    task = pick.task
    verb = verb_of(task, settings, pull)
    own_ms = 0
    if verb == "suspend" and pull is not None and lever_settings is not None:
        own_ms = pull.lever.free_in_ms - lever_settings.suspend_ms
    return Order(
        order=names.order,
        requester=requester,
        victim=pick.application,
        attempt=task.attempt,
        container=task.container,
        node=task.node,
        size=task.size,
        request_size=pick.request_size,
        serves=pick.serves,
        group=names.group,
        generation=task.generation + 1,
        verb=verb,
        decision=names.decision,
        ordered_at_ms=at_ms,
        progress_at_ms=at_ms,
        remaining_ms=task.remaining_ms,
        resume_cost_ms=task.resume_cost_ms,
        observed=settings.observe_only,
        group_ms=own_ms if own_ms > 0 else msgspec.UNSET,
    )


def verb_of(task: TaskView, settings: Settings, pull: LeverPull | None) -> OrderVerb:
    """Return what an order demands of a task."""
    if pull is None:
        return "kill" if is_killed(task, settings) else "suspend"
    if pull.lever.kind in LEAVING.values():
        return "drain"
    return "suspend" if pull.lever.kind == "suspend" else "kill"


def requested(order: Order, settings: Settings, together: Sequence[Order] = ()) -> Action:
    """Return the action that requests an order; ``together``: the orders of its decision."""
    if order.verb == "drain":
        alike = ("drain", order.victim, order.is_idle)
        mates = [one.attempt for one in together if (one.verb, one.victim, one.is_idle) == alike]
        return Drain(
            order.order,
            order.victim,
            order.attempt,
            order.container,
            order.decision,
            tuple(sorted(mates)),
            order.is_idle or msgspec.UNSET,
        )
    if order.verb == "kill":
        return Kill(order.order, order.victim, order.attempt, order.container)
    deadline_at_ms = order.ordered_at_ms + settings.kill_timeout_ms
    return Suspend(
        order.order, order.victim, order.attempt, order.container, order.generation, deadline_at_ms
    )


def gone_on(order: Order, event: Event, target: State, at_ms: int) -> Order:
    """Return an order after an event that leads to ``target``."""
    lives = event in SIGNS_OF_LIFE
    return msgspec.structs.replace(
        order,
        state=target,
        progress_at_ms=max(order.progress_at_ms, at_ms) if lives else order.progress_at_ms,
        freed_at_ms=at_ms if target in ("freed", "simulated") else order.freed_at_ms,
        settled_at_ms=None if target in OPEN else at_ms,
    )


def set_back(order: Order, by_ms: int) -> Order:
    """Return an order with all its instants moved back by a span."""
    freed, settled = order.freed_at_ms, order.settled_at_ms
    return msgspec.structs.replace(
        order,
        ordered_at_ms=order.ordered_at_ms - by_ms,
        progress_at_ms=order.progress_at_ms - by_ms,
        freed_at_ms=None if freed is None else freed - by_ms,
        settled_at_ms=None if settled is None else settled - by_ms,
    )


Index = dict[str, dict[str, None]]


class Indices:
    """Ids of open orders by container, requester, victim, group; freed ones by node and requester."""

    def __init__(self) -> None:
        self.by_container: dict[str, str] = {}
        self.by_requester: Index = {}
        self.by_victim: Index = {}
        self.by_group: Index = {}
        self.freed_on: Index = {}
        self.freed_for: Index = {}

    def enter(self, order: Order) -> None:
        """Enter an open order."""
        self.by_container[order.container] = order.order
        self.by_requester.setdefault(order.requester, {})[order.order] = None
        self.by_victim.setdefault(order.victim, {})[order.order] = None
        self.by_group.setdefault(order.group, {})[order.order] = None

    def leave(self, order: Order) -> None:
        """Remove a settled order."""
        del self.by_container[order.container]
        _remove(self.by_requester, order.requester, order.order)
        _remove(self.by_victim, order.victim, order.order)
        _remove(self.by_group, order.group, order.order)

    def bind(self, order: Order, container: str) -> None:
        """Put an open order under the container that answers it, instead of its own."""
        del self.by_container[order.container]
        self.by_container[container] = order.order

    def free(self, order: Order) -> None:
        """Enter an order whose container has ended, behind those before."""
        self.freed_on.setdefault(order.node, {})[order.order] = None
        self.freed_for.setdefault(order.requester, {})[order.order] = None

    def unfree(self, order: Order) -> None:
        """Remove a freed order that moves to another state."""
        _remove(self.freed_on, order.node, order.order)
        _remove(self.freed_for, order.requester, order.order)

    def transfer(self, order: Order, requester: str) -> None:
        """Put an open order under another requester, at the position of its age."""
        _remove(self.by_requester, order.requester, order.order)
        if order.state == "freed":
            _remove(self.freed_for, order.requester, order.order)
            self.freed_for.setdefault(requester, {})[order.order] = None
        names = [*self.by_requester.get(requester, ()), order.order]
        self.by_requester[requester] = dict.fromkeys(sorted(names, key=order_number))


def _remove(index: Index, name: str, order_id: str) -> None:
    index[name].pop(order_id, None)
    if not index[name]:
        del index[name]
