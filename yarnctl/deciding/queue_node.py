"""A queue in the model of a tree: its place, what it may have, and what it uses."""

from __future__ import annotations

from yarnctl.deciding.forecast import SCALE, Key, QueueModel
from yarnctl.deciding.model import ParentView, QueueView
from yarnctl.units import NOTHING, Resources, at_least, at_most, dominant, fits, minus, plus

EQUAL = 1_000_000
"""Shares of a guarantee are compared in parts of this."""


class QueueNode:
    """A queue in the tree: a parent, or a leaf with its ``model``.

    ``chain``: the queue and its ancestors, root last. ``active``: its children with pending requests at or
    below them. ``priority`` None: its parent orders by utilization alone. ``fair``: a leaf that serves the
    application first that uses the least. ``smallest``: of root, the smallest container. ``blocked``: of a
    parent, the headroom of leaves below it that were left in this descent.
    """

    __slots__ = (
        "_key",
        "_over",
        "_share",
        "_smallest",
        "_total",
        "active",
        "blocked",
        "chain",
        "fair",
        "guaranteed",
        "maximum",
        "model",
        "path",
        "priority",
        "reserved",
        "smallest",
        "used",
    )

    def __init__(
        self,
        view: ParentView | QueueView,
        parent_node: QueueNode | None,
        priority: int | None,
        model: QueueModel | None = None,
    ) -> None:
        self.path, self.guaranteed, self.maximum = view.queue, view.guaranteed, view.maximum
        self.used = view.used
        self.priority = priority
        self.model = model
        self.chain: tuple[QueueNode, ...] = (self,) if parent_node is None else (self, *parent_node.chain)
        self.fair = False
        self.active: list[QueueNode] = []
        self.blocked = self.smallest = self.reserved = NOTHING
        self._key: tuple[int | str, ...] | None = None
        self._over: Key | None = None
        self._total: Resources | None = None
        self._smallest = NOTHING
        self._share = 0

    def add(self, size: Resources) -> None:
        """Count ``size`` (negative: freed) as used here and in all ancestors."""
        for node in self.chain:
            node.used = plus(node.used, size)
            node._key = node._over = None

    def binding(self, size: Resources, own_resources: Resources = NOTHING) -> QueueNode | None:
        """Return the queue whose maximum ``size`` exceeds, from the leaf up; None: no limit binds.

        ``own_resources``: the application's own reservation.
        """
        memory_mib, vcores = size[0] - own_resources[0], size[1] - own_resources[1]
        others = minus(size, own_resources) if len(size) > 2 else None
        for node in self.chain:
            used, maximum, blocked = node.used, node.maximum, node.blocked
            memory_mib, vcores = memory_mib + blocked[0], vcores + blocked[1]
            if used[0] + memory_mib > maximum[0] or used[1] + vcores > maximum[1]:
                return node
            if others is not None:
                others = plus(others, blocked)
                if not fits(plus(used, others), maximum):
                    return node
        return None

    def headroom(self) -> Resources:
        """Return what is left below every maximum, never negative."""
        least, blocked = self.maximum, NOTHING
        for node in self.chain:
            blocked = plus(blocked, node.blocked)
            least = at_most(least, minus(minus(node.maximum, node.used), blocked))
        return at_least(least, NOTHING)

    def block(self) -> None:
        """Keep a leaf's headroom from the siblings that come later in this descent."""
        if len(self.chain) > 1:
            self.chain[1].blocked = plus(self.chain[1].blocked, self.headroom())

    def in_order(self) -> list[QueueNode]:
        """Return the children with pending requests, the one that is served first in front."""
        return sorted(self.active, key=QueueNode.key) if len(self.active) > 1 else self.active[:]

    def key(self) -> tuple[int | str, ...]:
        """Return the place among its siblings by its parent's policy.

        Under ``priority-utilization`` a queue below its guarantee comes first, then the higher priority.
        """
        if self._key is None:
            key = self.over()
            if self.priority is None:
                self._key = key
            else:
                self._key = (key[0], int(key[1] >= SCALE), -self.priority, *key[1:])
        return self._key

    def over(self) -> Key:
        """Return how far a victim is over its own guarantee; the largest gives first."""
        if self._over is None:
            self._over = self._computed_over()
        return self._over

    def _computed_over(self) -> Key:
        """Return :meth:`over`: YARN compares dominant shares of the cluster.

        A guarantee is cut off to whole resources, so the ratio in one resource alone can be far higher. One
        below the smallest container counts as one. Its numbers have 32 bits: shares that differ by less than
        a millionth are equal.
        """
        used, root = self.used, self.chain[-1]
        if self._total is None or self._smallest is not root.smallest:
            self._total, self._smallest = at_least(root.maximum, Resources(1, 1)), root.smallest
            self._share = dominant(self.guaranteed, self._total)
            if self._share > 0:
                self._share = max(self._share, dominant(root.smallest, self._total))
        if self._share <= 0:
            return (1, used[0], 0, self.path)
        ratio = (dominant(used, self._total) * EQUAL * 2 + self._share) // (self._share * 2)
        return (0, ratio * (SCALE // EQUAL), -self.guaranteed[0], self.path)
