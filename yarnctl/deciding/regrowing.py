"""Executors that were drained, and when their application may request as many again.

A fold over the journal: what is requested is noted before it is performed, so that a crash leaves no
application small. An application grows again when no production application has pending requests, none of its
executors is under order, and nothing has happened to them for ``GROW_AFTER_MS``; also while requests are
pending, or the cluster is not observed, once nothing has happened for ``GROW_UNSERVED_AFTER_MS`` and no order
is open. The request is sent again until it was accepted or refused. It names the decisions that it undoes,
and the driver knows how many left for each: a request that arrives twice, or for an order that never arrived,
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from yarnctl.deciding.model import Accepted, Action, Drain, Grow, Outcome, Refused, Withheld

GROW_AFTER_MS = 15_000
"""About the pause between a job's maps and its reduces, as of a queue's cap (:mod:`.queue_hold`)."""
GROW_UNSERVED_AFTER_MS = 60_000
"""How long a request that brings no order, or a cluster that cannot be seen, keeps applications small."""
GROW_AGAIN_MS = 30_000
"""How long until what may not have arrived is sent again."""


class DrainOrder(NamedTuple):
    """An order to an executor, and its decision."""

    order: str
    decision: int


class Shrunk(msgspec.Struct, frozen=True, array_like=True):
    """An application of which executors were drained by ``orders``.

    ``at_ms``: when something last happened to them; ``sent_ms``: when the request to grow was sent (0: not
    yet).
    """

    application: str
    orders: tuple[DrainOrder, ...]
    at_ms: int
    sent_ms: int = 0


class Regrowing:
    """``shrunk``: application -> what left of it."""

    def __init__(self, shrunk: Iterable[Shrunk] = ()) -> None:
        self.shrunk: dict[str, Shrunk] = {each.application: each for each in shrunk}

    def requested(self, action: Action, at_ms: int) -> None:
        """Note a request that is about to be performed."""
        if isinstance(action, Drain):
            before = self.shrunk.get(action.application)
            drain_order = DrainOrder(action.order, action.decision)
            orders = (*(() if before is None else before.orders), drain_order)
            self.shrunk[action.application] = Shrunk(action.application, orders, at_ms)
        elif isinstance(action, Grow) and (held := self.shrunk.get(action.application)):
            self.shrunk[action.application] = msgspec.structs.replace(held, sent_ms=at_ms)

    def performed(self, action: Action, outcome: Outcome) -> None:
        """Note an outcome: a drain that was not sent shrinks nothing; what grew is whole again."""
        if isinstance(action, Drain) and isinstance(outcome, Refused | Withheld):
            self._without(action.application, action.order)
        elif isinstance(action, Grow) and isinstance(outcome, Accepted | Refused):
            self.shrunk.pop(action.application, None)

    def _without(self, application: str, order: str) -> None:
        held = self.shrunk.get(application)
        if held is None:
            return
        orders = tuple(drain_order for drain_order in held.orders if drain_order.order != order)
        if orders:
            self.shrunk[application] = msgspec.structs.replace(held, orders=orders)
        else:
            del self.shrunk[application]

    def moved(self, application: str, at_ms: int) -> None:
        """Note that an order of an application moved."""
        held = self.shrunk.get(application)
        if held is not None:
            self.shrunk[application] = msgspec.structs.replace(held, at_ms=max(at_ms, held.at_ms))

    def forget(self, application: str) -> None:
        """Forget an application that has ended."""
        self.shrunk.pop(application, None)

    def set_back(self, by_ms: int) -> None:
        """Move every instant back by a span."""
        for name, each in self.shrunk.items():
            sent_ms = each.sent_ms and each.sent_ms - by_ms
            self.shrunk[name] = msgspec.structs.replace(each, at_ms=each.at_ms - by_ms, sent_ms=sent_ms)

    def due(self, now_ms: int, under_order: Iterable[str], after_ms: int = GROW_AFTER_MS) -> list[Grow]:
        """Return the requests for applications that are small and to which nothing has happened lately.

        ``under_order``: applications with an open order; ``after_ms``: what counts as lately.
        """
        busy = set(under_order)
        return [
            grow(each)
            for name, each in self.shrunk.items()
            if name not in busy
            and now_ms - each.at_ms >= after_ms
            and (not each.sent_ms or now_ms - each.sent_ms >= GROW_AGAIN_MS)
        ]

    def all(self) -> list[Grow]:
        """Return the requests for all: the controller stops."""
        return [grow(each) for each in self.shrunk.values()]


def grow(shrunk: Shrunk) -> Grow:
    """Return the request by which an application grows again."""
    return Grow(
        shrunk.application, tuple(dict.fromkeys(drain_order.decision for drain_order in shrunk.orders))
    )
