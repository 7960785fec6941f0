"""Assign ended containers to orders whose application chooses which of its containers leave.

If the container that an order names has ended, it fulfils the order. Otherwise another container that the
application held at the time of the order does, if no other order names it. One container fulfils one order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.observing.cluster_state import Held


class NumberedOrder(Protocol):
    """An order for one of several containers of an application.

    ``others``: container -> node of all containers at the time of the order; ``left``: the container that has
    fulfilled it ("": none yet).
    """

    order: str
    application: str
    container: str
    node: str
    left: str
    others: dict[str, str]


def bind(orders: Sequence[NumberedOrder], seen: Mapping[str, Held | Problem]) -> None:
    """Assign a container that has ended to each order that has none."""
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        if one.container not in held.containers:
            fulfil(one, one.container, orders)
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        named = {each.container for each in orders if not each.left}
        gone = sorted(one.others.keys() - held.containers.keys() - named)
        if gone:
            fulfil(one, gone[0], orders)


def fulfil(one: NumberedOrder, container: str, orders: Sequence[NumberedOrder]) -> None:
    """Let a container fulfil one order, and no other order."""
    one.left, one.node = container, one.others.get(container, one.node)
    for each in orders:
        each.others.pop(container, None)
