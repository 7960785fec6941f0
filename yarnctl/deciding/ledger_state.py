"""Ledger state: all parts of a ledger, as one value that can be written down.

Law: lists are in the order of the ledger's dicts, except exclusions, whose order has no effect. What follows
from other parts (indices, heaps) is left out. ``journal.fold`` converts a ledger to a value and back.
An exclusion belongs to the last order that set it; an earlier order never ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

import msgspec

from yarnctl.deciding.governor import Trials
from yarnctl.deciding.lever_times import LeverTime
from yarnctl.deciding.levers import AwaitedTask
from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.loss_budget import LossState
from yarnctl.deciding.model import Action
from yarnctl.deciding.order import Order, RecentlySettled, Sent
from yarnctl.deciding.reasons.eligibility import AnswerLate
from yarnctl.deciding.regrowing import Shrunk
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings

DOUBLINGS_MAX = 10
"""The pause after a failed try stops growing here."""


class Pause(NamedTuple):
    """The exclusion "just-tried" that an order set on an attempt ends at this instant, if it is still set."""

    until_ms: int
    attempt: str
    order: str


class Bars:
    """``barred``: attempt -> why; ``by``: attempt -> the order that set it; ``tries``: failed ones."""

    def __init__(self) -> None:
        self.barred: dict[str, Reason] = {}
        self.by: dict[str, str] = {}
        self.tries: dict[str, dict[str, int]] = {}
        self.pauses: list[Pause] = []

    def set(self, order: Order, reason: Reason) -> None:
        """Exclude the attempt of an order; the exclusion is this order's from now on."""
        self.barred[order.attempt] = reason
        self.by[order.attempt] = order.order

    def lift(self, attempt: str, order_id: str, reason: Reason) -> None:
        """End an exclusion that this order set for this reason; one of a later order stays."""
        if self.by.get(attempt) == order_id and self.barred[attempt] == reason:
            del self.barred[attempt], self.by[attempt]

    def pause(self, order: Order, event: Event, why: object, at_ms: int, settings: Settings) -> None:
        """Exclude an attempt that did not stop: longer after each failed try, at last for good.

        One whose master or driver answered too late is ordered with the next look, which has the answer.
        """
        if order.freed_at_ms is not None or order.state == "completed":
            return
        if isinstance(why, AnswerLate):
            self.lift(order.attempt, order.order, "already-ordered")
            return
        pause_ms = settings.rest_ms
        if order.observed and not settings.observe_only:
            pause_ms = 0  # no request was sent
        if event in ("give-up", "refused") and not order.is_idle:  # that one had got work to do
            tries = self.tries.setdefault(order.victim, {})
            before = tries.get(order.attempt, 0)
            tries[order.attempt] = before + 1
            if before + 1 >= settings.task_tries_max:
                self.set(order, "task-tries")
                return
            pause_ms = settings.kill_timeout_ms << min(before, DOUBLINGS_MAX)
        self.set(order, "just-tried")
        heappush(self.pauses, Pause(at_ms + pause_ms, order.attempt, order.order))

    def forget(self, application: str) -> None:
        """Drop the tries of an application's attempts, as it is gone."""
        for attempt in self.tries.pop(application, {}):
            if self.barred.get(attempt) == "task-tries":
                del self.barred[attempt], self.by[attempt]

    def retire(self, now_ms: int) -> None:
        """End the exclusions whose pause is over."""
        while self.pauses and self.pauses[0].until_ms <= now_ms:
            over = heappop(self.pauses)
            self.lift(over.attempt, over.order, "just-tried")

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.pauses = [pause._replace(until_ms=pause.until_ms - by_ms) for pause in self.pauses]


KEPT_MS = 3_600_000
"""How long a promised end is remembered."""


class AwaitedEnds:
    """Until when tasks that are about to end were promised to have ended: ``until_ms``, by attempt.

    The first promise stands: a task that has not ended by then is not awaited again, so that a request waits
    for it once. Promises change by records alone, except for what time ends.
    """

    def __init__(self, until_ms: Mapping[str, int] | None = None) -> None:
        self.until_ms: dict[str, int] = dict(until_ms or {})

    def note(self, tasks: Iterable[AwaitedTask]) -> None:
        """Note promises; an attempt that has one keeps it."""
        for task in tasks:
            self.until_ms.setdefault(task.lever.unit, task.until_ms)

    def retire(self, now_ms: int) -> None:
        """Forget what was promised for long ago."""
        for name in [name for name, until_ms in self.until_ms.items() if until_ms + KEPT_MS <= now_ms]:
            del self.until_ms[name]

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.until_ms = {name: until_ms - by_ms for name, until_ms in self.until_ms.items()}


class BarSet(NamedTuple):
    """Why an attempt is excluded, and the order that set the exclusion."""

    attempt: str
    why: Reason
    order: str


class Retiring(NamedTuple):
    """When a settled order counts as settled for retiring: not before the one before it."""

    at_ms: int
    order: str


class LedgerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All parts of a ledger.

    ``freed``: ids of open orders whose container has ended, in the order of their ends on each node;
    ``freed_for``: the same ids, in the order in which each requester got the containers. ``losses`` None:
    nothing is charged. ``suspended``: orders whose suspended tasks are not back.
    """

    issued: int = 0
    decisions: int = 0
    open: tuple[Order, ...] = ()
    settled: tuple[Order, ...] = ()
    retiring: tuple[Retiring, ...] = ()
    dying: tuple[str, ...] = ()
    suspended: tuple[Order, ...] = ()
    late: tuple[RecentlySettled, ...] = ()
    bars: tuple[BarSet, ...] = ()
    pauses: tuple[Pause, ...] = ()
    tries: Mapping[str, Mapping[str, int]] = {}
    freed: tuple[str, ...] = ()
    freed_for: tuple[str, ...] = ()
    sent: tuple[Sent, ...] = ()
    due: tuple[Action, ...] = ()
    losses: LossState | None = None
    awaited_until_ms: Mapping[str, int] = {}
    shrunk: tuple[Shrunk, ...] = ()
    lever_times: tuple[LeverTime, ...] = ()
    trials: Trials | None = None
