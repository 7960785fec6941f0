"""Indices of the open orders, for every look-up that the ledger answers.

Law: an index holds ids of open orders and nothing else; each is empty where no open order calls for an entry.
"""

from __future__ import annotations

from yarnctl.deciding.order import Order, order_number

Index = dict[str, dict[str, None]]


class Indices:
    """Ids of open orders by container, asker, victim, group; of those that are freed by node and asker."""

    def __init__(self) -> None:
        self.by_container: dict[str, str] = {}
        self.by_asker: Index = {}
        self.by_victim: Index = {}
        self.by_group: Index = {}
        self.freed_on: Index = {}
        self.freed_for: Index = {}

    def enter(self, order: Order) -> None:
        """Enter an open order."""
        self.by_container[order.container] = order.order
        self.by_asker.setdefault(order.asker, {})[order.order] = None
        self.by_victim.setdefault(order.victim, {})[order.order] = None
        self.by_group.setdefault(order.group, {})[order.order] = None

    def leave(self, order: Order) -> None:
        """Take an order out that is settled."""
        del self.by_container[order.container]
        _remove(self.by_asker, order.asker, order.order)
        _remove(self.by_victim, order.victim, order.order)
        _remove(self.by_group, order.group, order.order)

    def free(self, order: Order) -> None:
        """Enter an order whose container has ended, behind those before."""
        self.freed_on.setdefault(order.node, {})[order.order] = None
        self.freed_for.setdefault(order.asker, {})[order.order] = None

    def unfree(self, order: Order) -> None:
        """Take a freed order out that goes on to another state."""
        _remove(self.freed_on, order.node, order.order)
        _remove(self.freed_for, order.asker, order.order)

    def transfer(self, order: Order, asker: str) -> None:
        """Put an open order under another asker, where its age places it."""
        _remove(self.by_asker, order.asker, order.order)
        if order.state == "freed":
            _remove(self.freed_for, order.asker, order.order)
            self.freed_for.setdefault(asker, {})[order.order] = None
        names = [*self.by_asker.get(asker, ()), order.order]
        self.by_asker[asker] = dict.fromkeys(sorted(names, key=order_number))


def _remove(index: Index, name: str, order_id: str) -> None:
    index[name].pop(order_id, None)
    if not index[name]:
        del index[name]
