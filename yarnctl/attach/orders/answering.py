"""Which container answers an order, where its application chooses who leaves.

Law: an order names a container, and is answered by it if that is gone; else by another one of those that its
application held when it was asked, if no order has that one. A container answers one order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from yarnctl.attach.connection.calls import Problem
from yarnctl.attach.observing.cluster_state import Held


class NumberedOrder(Protocol):
    """An order to one of several containers. ``others``: container -> node, of all that were there; ``left``:
    the one that answers it.
    """

    order: str
    application: str
    container: str
    node: str
    left: str
    others: dict[str, str]


def bind(orders: Sequence[NumberedOrder], seen: Mapping[str, Held | Problem]) -> None:
    """Let each order that is not answered have a container that is gone."""
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        if one.container not in held.containers:
            take(one, one.container, orders)
    for one in sorted(orders, key=lambda one: one.order):
        held = seen.get(one.application)
        if not isinstance(held, Held) or held.ended or one.left:
            continue
        named = {each.container for each in orders if not each.left}
        gone = sorted(one.others.keys() - held.containers.keys() - named)
        if gone:
            take(one, gone[0], orders)


def take(one: NumberedOrder, container: str, orders: Sequence[NumberedOrder]) -> None:
    """Let a container answer an order, and no other."""
    one.left, one.node = container, one.others.get(container, one.node)
    for each in orders:
        each.others.pop(container, None)
