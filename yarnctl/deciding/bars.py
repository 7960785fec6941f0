"""Bars: which attempts may not be asked now, why, and until when.

Law: a bar belongs to the last order that set it: what an earlier order has left behind never lifts it. Who
did not stop is asked again after a pause that grows with each try that failed, at last never.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import NamedTuple

from yarnctl.deciding.lifecycle import Event
from yarnctl.deciding.order import Order
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.settings import Settings

DOUBLINGS_MAX = 10
"""The pause after a failed try stops growing here."""


class Pause(NamedTuple):
    """The bar "just-tried" that an order set on an attempt is lifted at this instant, if it still stands."""

    until_ms: int
    attempt: str
    order: str


class Bars:
    """``barred``: attempt -> why; ``by``: attempt -> the order that set the bar; ``tries``: failed ones."""

    def __init__(self) -> None:
        self.barred: dict[str, Reason] = {}
        self.by: dict[str, str] = {}
        self.tries: dict[str, dict[str, int]] = {}
        self.pauses: list[Pause] = []

    def set(self, order: Order, why: Reason) -> None:
        """Bar the attempt of an order; the bar is this order's from now on."""
        self.barred[order.attempt] = why
        self.by[order.attempt] = order.order

    def lift(self, attempt: str, order_id: str, why: Reason) -> None:
        """Lift a bar that this order set for this reason; one of a later order stays."""
        if self.by.get(attempt) == order_id and self.barred[attempt] == why:
            del self.barred[attempt], self.by[attempt]

    def pause(self, order: Order, event: Event, at_ms: int, settings: Settings) -> None:
        """Bar an attempt that was not stopped: longer after each try that failed, at last for good."""
        if order.freed_at_ms is not None or order.state == "completed":
            return
        pause_ms = settings.rest_ms
        if order.observed and not settings.observe_only:
            pause_ms = 0  # nobody was asked
        if event in ("give-up", "refused"):
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
        """Lift the bars whose pause is over."""
        while self.pauses and self.pauses[0].until_ms <= now_ms:
            over = heappop(self.pauses)
            self.lift(over.attempt, over.order, "just-tried")

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        self.pauses = [pause._replace(until_ms=pause.until_ms - by_ms) for pause in self.pauses]
