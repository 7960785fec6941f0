"""The capacity scheduler over a tree of queues: which request gets the free room of a node.

It descends from root for each container. At each parent the children with demand are compared by that
parent's policy, with what is used after the last grant. Source: docs/facts/hadoop.md, section 5, tried on a
ResourceManager 3.4.2. Rules beyond those of one level:

* A request is within the *headroom* if the leaf and each ancestor stay at or below their maximum in every
  resource; reserved counts as used, except the application's own. Root's maximum is the cluster.
* The first application of a leaf whose first request exceeds the headroom stops the leaf, and the leaf's
  headroom is kept from the siblings that come later (``ResourceLimits.addBlockedHeadroom``). A user over
  the limit is passed over instead.
* A request within the headroom that does not fit reserves the node. A reservation is filled on its own node
  whatever the shares and limits have become. It goes as soon as the request is placed elsewhere or withdrawn.
* Each node label has a tree of its own: the same queues, with what they may have and use of its nodes. Its
  nodes serve the requests for the label first. A shared partition then serves requests without a label, in
  the order of its own use and up to all of it, if root and a child have a capacity there. Such a request is
  passed over there once for each node of the cluster after each container. Masters without a label stay on
  nodes without one. The limit of masters counts them all together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Protocol, Self

from msgspec.structs import replace

from emulator.cluster.entities import (
    Application,
    Ask,
    Container,
    LeafQueue,
    Node,
    NodeReservation,
    ParentConfig,
    QueueConfig,
    TreeLeafConfig,
)
from emulator.cluster.scheduler import CapacityScheduler
from yarnctl.units import NOTHING, Resources, at_least, fits, plus


class QueueSource(Protocol):
    """The queues of a configuration, which may let more be created on demand."""

    @property
    def leaves(self) -> tuple[TreeLeafConfig, ...]:
        """The leaves."""

    @property
    def parents(self) -> tuple[ParentConfig, ...]:
        """The parents, root first, each before its children."""

    def created(self, path: str) -> Self | None:
        """Return the queues with one leaf more, by its path below root; None: no parent creates it."""


class SharedLeaf(LeafQueue):
    """A leaf of a tree: where users share it, the limit of each follows what all of them use.

    Source: docs/facts/hadoop.md, section 5, and ``UsersManager.computeUserLimit``. Of the larger of two
    shares, that of the active users and minimum-user-limit-percent of what is used or guaranteed, at most
    user-limit-factor x guarantee. Shares are rounded up to ``smallest_mib``, the smallest container.

    ``reserved_mib``: by user, what is reserved for its applications: it counts as used.
    """

    __slots__ = ("_fixed_mib", "reserved_mib", "smallest_mib")

    def __post_init__(self) -> None:
        self.smallest_mib = SMALLEST_MIB
        self.reserved_mib: dict[str, int] = {}
        super().__post_init__()

    @property  # type: ignore[override]
    def user_mib(self) -> int | None:
        """The memory beyond which no user is given more; None: no limit."""
        config, smallest_mib = self.config, self.smallest_mib
        percent = config.user_percent if isinstance(config, TreeLeafConfig) else 100
        most_mib, factor = self._fixed_mib, config.user_limit_factor
        if most_mib is not None and factor is not None:
            most_mib = max(most_mib, int(smallest_mib * factor))
        if percent == 100:
            return most_mib
        most_mib = self.maximum_mib if most_mib is None else most_mib
        least_mib = max(self.guaranteed.memory_mib, smallest_mib)
        used_mib = self.used_mib + sum(self.reserved_mib.values())
        whole_mib = used_mib + smallest_mib if used_mib >= least_mib else least_mib
        active = {app.user for app in self.demand}
        share_mib = whole_mib * percent / 100
        if active:
            active_mib = sum(self.held_mib(user) for user in active) + smallest_mib
            share_mib = max(share_mib, active_mib / len(active))
        return min(math.ceil(share_mib / smallest_mib) * smallest_mib, most_mib)

    @user_mib.setter
    def user_mib(self, fixed_mib: int | None) -> None:
        self._fixed_mib = fixed_mib

    def held_mib(self, user: str) -> int:
        """Return the memory that a user's containers and reservations have."""
        return self.users.get(user, 0) + self.reserved_mib.get(user, 0)

    def reserve(self, user: str, memory_mib: int) -> None:
        """Count memory as reserved for a user (negative: not any more)."""
        self.reserved_mib[user] = self.reserved_mib.get(user, 0) + memory_mib


SMALLEST_MIB = 1
"""The smallest container, as GET /scheduler-overview shows it."""


class TreeQueue:
    """A parent, or a leaf with its ``leaf``, and what is used at and below it, reserved included.

    ``chain``: the queue and its ancestors, root last. ``below``: its children. ``demanding``: those with
    demand at or below them. ``label``: of the nodes that it is about; ``users``: what each holds of them.
    ``blocked``: of a parent, the headroom of the leaves below it that a descent has left.
    """

    def __init__(
        self,
        config: ParentConfig | QueueConfig,
        parent_queue: TreeQueue | None,
        leaf: LeafQueue | None,
        label: str = "",
    ) -> None:
        self.config = config
        self.above = parent_queue
        self.leaf = leaf
        self.label = label
        self.users: dict[str, int] = {}
        self.name = config.name
        self.chain: tuple[TreeQueue, ...] = (self,) if parent_queue is None else (self, *parent_queue.chain)
        self.demanding: list[TreeQueue] = []
        self.used_mib = self.used_vcores = 0
        self.guaranteed = self.maximum = self.blocked = Resources(0, 0)
        self.below: list[TreeQueue] = []
        if parent_queue is not None:
            parent_queue.below.append(self)
        self._total = Resources(0, 0)
        self._guaranteed_share = 0.0

    @property
    def path(self) -> str:
        """The path from root, as YARN writes it."""
        return f"root.{self.name}" if self.name else "root"

    @property
    def priority(self) -> int:
        """The queue's priority: read by a parent that orders by ``priority-utilization``."""
        return self.config.priority if isinstance(self.config, ParentConfig | TreeLeafConfig) else 0

    @property
    def fair(self) -> bool:
        """Whether a leaf serves the application first that uses the least memory."""
        return isinstance(self.config, TreeLeafConfig) and self.config.fair

    @property
    def untouchable(self) -> bool:
        """Whether YARN's own preemption takes nothing from this leaf."""
        return isinstance(self.config, TreeLeafConfig) and self.config.preemption_disabled

    def serving_key(self, app: Application) -> tuple[int, ...]:
        """Return the place of an application in the line of this leaf: the lowest is served first."""
        return (app.used_mib, *app.order) if self.fair else app.order

    @property
    def stopped(self) -> bool:
        """Whether this queue or one above it takes no new application."""
        return any(
            isinstance(each.config, ParentConfig | TreeLeafConfig) and each.config.stopped
            for each in self.chain
        )

    def resize(self, total_mib: int, total_vcores: int) -> None:
        """Set the limits for a cluster of this size; shares are cut off, as YARN normalises them."""
        if self.leaf is not None:
            self.config = self.leaf.config
        config = self.config
        least, most = self.shares()
        self.guaranteed = Resources(int(total_mib * least + 1e-6), int(total_vcores * least + 1e-6))
        self.maximum = Resources(int(total_mib * most + 1e-6), int(total_vcores * most + 1e-6))
        if (
            isinstance(config, ParentConfig | TreeLeafConfig)
            and config.absolute is not None
            and not self.label
        ):
            self._set_absolute(config.absolute, config.absolute_maximum)
        self._total = Resources(total_mib, total_vcores)
        self._guaranteed_share = self._dominant_share(*self.guaranteed)
        if self.leaf is not None and not self.label:
            self.leaf.guaranteed = self.guaranteed
            self.leaf.maximum_mib, self.leaf.maximum_vcores = self.maximum

    def _set_absolute(self, least_resources: Resources, most_resources: Resources | None) -> None:
        """Set limits that are given as resources. Siblings that want more than their parent has share it."""
        above = self.above
        assert above is not None
        wanted = [_absolute(each) for each in above.below]
        self.guaranteed = Resources(
            *(
                own
                if (whole := sum(each[kind] for each in wanted)) <= above.guaranteed[kind]
                else own * above.guaranteed[kind] // whole
                for kind, own in enumerate(least_resources)
            )
        )
        self.maximum = above.maximum
        if most_resources is not None:
            self.maximum = Resources(*map(min, most_resources, above.maximum))
        if self.leaf is not None:
            self.leaf.set_limits(self.guaranteed, *self.maximum)

    def shares(self) -> tuple[float, float]:
        """Return the shares of the cluster that are guaranteed and that are the most, as ratios."""
        config = self.config
        if self.label:
            known = isinstance(config, ParentConfig | TreeLeafConfig)
            return config.labels.get(self.label, (0.0, 0.0)) if known else (0.0, 0.0)  # type: ignore[union-attr]
        if isinstance(config, ParentConfig | TreeLeafConfig) and config.absolute is not None:
            return self._guaranteed_share, self._dominant_share(*self.maximum)
        return config.capacity_ratio, config.maximum_ratio

    def may_request(self, label: str) -> bool:
        """Return whether applications of this queue may request a label."""
        accessible = self.config.accessible if isinstance(self.config, TreeLeafConfig) else None
        return not label or accessible is None or label in accessible

    @property
    def user_limit_mib(self) -> int | None:
        """The memory beyond which no user of this leaf is given more; with a label factor x guarantee."""
        leaf = self.leaf
        assert leaf is not None
        if not self.label:
            return leaf.user_mib
        factor = leaf.config.user_limit_factor
        return None if factor is None else int(self.guaranteed[0] * factor)

    def user_used_mib(self, user: str) -> int:
        """Return what a user of this leaf holds, where users are limited."""
        assert self.leaf is not None
        return (self.users if self.label else self.leaf.users).get(user, 0)

    def user_is_over(self, app: Application) -> bool:
        """Return whether a user is beyond the limit in this leaf."""
        limit_mib = self.user_limit_mib
        return limit_mib is not None and self.user_used_mib(app.user) > limit_mib

    def count(self, memory_mib: int, vcores: int) -> None:
        """Count room as used (negative: freed) here and in all ancestors."""
        for node in self.chain:
            node.used_mib += memory_mib
            node.used_vcores += vcores

    def has_room(self, memory_mib: int, vcores: int) -> bool:
        """Return whether this much more is within the maximum here and in all ancestors."""
        left = self.headroom()
        return memory_mib <= left[0] and vcores <= left[1]

    def headroom(self) -> Resources:
        """Return what is left below every maximum, less what is blocked there and below; may be negative."""
        least_mib, least_vcores = self.maximum
        blocked_mib = blocked_vcores = 0
        for node in self.chain:
            blocked_mib, blocked_vcores = blocked_mib + node.blocked[0], blocked_vcores + node.blocked[1]
            least_mib = min(least_mib, node.maximum[0] - node.used_mib - blocked_mib)
            least_vcores = min(least_vcores, node.maximum[1] - node.used_vcores - blocked_vcores)
        return Resources(least_mib, least_vcores)

    def block(self) -> None:
        """Keep a leaf's headroom from the siblings that come later in this descent."""
        if self.above is not None:
            self.above.blocked = plus(self.above.blocked, at_least(self.headroom(), NOTHING))

    def _dominant_share(self, memory_mib: int, vcores: int) -> float:
        total_mib, total_vcores = self._total
        return max(
            memory_mib / total_mib if total_mib else 0.0, vcores / total_vcores if total_vcores else 0.0
        )

    def ratio(self) -> float:
        """Return used / guaranteed, as ``usedCapacity`` shows it; a queue without a guarantee is served last.

        It is the dominant share of the cluster that is used over the dominant share that is guaranteed. So a
        guarantee whose vcores are cut off counts by its memory: 7 slots of 5.76 are 122 %, not 7 / 5.
        """
        used_share = self._dominant_share(self.used_mib, self.used_vcores)
        # YARN compares numbers of 32 bits: shares that differ by less are equal.
        return round(used_share / self._guaranteed_share, 6) if self._guaranteed_share else 1e9 + used_share

    def place(self) -> tuple[float | str, ...]:
        """Return the place among its siblings: of equal ratios the larger guarantee, then the name is first.

        Under ``priority-utilization`` a queue below its guarantee comes first, then the higher priority.
        """
        ratio = self.ratio()
        place = (ratio, -self.guaranteed[0], self.name)
        above = self.above
        if above is None or not isinstance(above.config, ParentConfig) or above.config.order == "utilization":
            return place
        return (ratio >= 1.0, -self.priority, *place)


def _absolute(queue: TreeQueue) -> Resources:
    config = queue.leaf.config if queue.leaf is not None else queue.config
    assert isinstance(config, ParentConfig | TreeLeafConfig)
    return config.absolute or NOTHING


class TreeScheduler(CapacityScheduler):
    """The scheduler of nested queues. ``parents``: root (named "") and the others, each before its children.

    ``nodes``: every queue by its path below root. ``kept``: the nodes reserved for an application.
    ``source``: the configuration that queues on demand are created from (None: there are none).
    ``labels``: the cluster's node labels, and whether each is exclusive; ``trees``: the queues by label and
    path, those of ``nodes`` under "".
    """

    make_leaf = SharedLeaf

    def __init__(self, queues: tuple[QueueConfig, ...], parents: tuple[ParentConfig, ...]) -> None:
        super().__init__(queues)
        self.source: QueueSource | None = None
        self._total = Resources(0, 0)
        self.labels: dict[str, bool] = {}
        self.totals: dict[str, Resources] = {}
        self.node_count = 0
        self.nodes: dict[str, TreeQueue] = {}
        self.trees = {"": self.nodes}
        self.kept: dict[Application, list[Node]] = {}
        for config in parents:
            self._add(config, None)
        self.root = self.nodes[""]
        for leaf in self.queues.values():
            self._add(leaf.config, leaf)

    def _add(self, config: ParentConfig | QueueConfig, leaf: LeafQueue | None) -> None:
        for label, tree in self.trees.items():
            above = tree.get(config.name.rpartition(".")[0]) if config.name else None
            tree[config.name] = TreeQueue(config, above, leaf, label)

    def set_labels(self, labels: Mapping[str, bool]) -> None:
        """Set the cluster's node labels, each with whether it is exclusive, before there are nodes."""
        self.labels = dict(labels)
        for label in labels:
            tree = self.trees[label] = {}
            self.totals[label] = NOTHING
            for path, queue in self.nodes.items():
                above = tree.get(path.rpartition(".")[0]) if path else None
                tree[path] = TreeQueue(queue.config, above, queue.leaf, label)

    def count_node(self, node: Node, sign: int) -> None:
        """Count a node and, if it has a label, what it adds to its partition (-1: it is removed)."""
        self.node_count += sign
        if node.label:
            size = Resources(sign * node.total_mib, sign * node.total_vcores)
            self.totals[node.label] = plus(self.totals[node.label], size)

    def resize(self, total_mib: int, total_vcores: int) -> None:
        """Set every queue's share of the cluster's size of now."""
        self._total = Resources(total_mib, total_vcores)
        for queue in self.queues.values():
            queue.resize(total_mib, total_vcores)
        for label, tree in self.trees.items():
            for node in tree.values():
                node.resize(*(self.totals[label] if label else self._total))
        for queue in self.queues.values():
            self.activate(queue)
        self.version += 1

    def leaf_for(self, path: str) -> LeafQueue | None:
        """Return the leaf of a path below root, created if its parent creates queues on demand."""
        if path not in self.queues and self.source is not None and not self.is_stopped(path):
            source = self.source.created(path)
            if source is not None:
                self.take(source, only_shares=True)
        return self.queues.get(path)

    def is_stopped(self, path: str) -> bool:
        """Return whether the queue of a path, or the nearest one above it that exists, is stopped."""
        while path not in self.nodes:
            path = path.rpartition(".")[0]
        return self.nodes[path].stopped

    def take(self, source: QueueSource, *, only_shares: bool = False) -> None:
        """Take the queues of a configuration, of those known the settings, or only the shares."""
        for config in (*source.parents, *source.leaves):
            node = self.nodes.get(config.name)
            if node is None:
                leaf = None if isinstance(config, ParentConfig) else self.make_leaf(config)
                if leaf is not None:
                    self.queues[config.name] = leaf
                self._add(config, leaf)
                continue
            if isinstance(config, ParentConfig):
                for tree in self.trees.values():
                    tree[config.name].config = config  # nothing else sets what a parent has
            elif node.leaf is not None:
                now = node.leaf.config
                node.leaf.config = (
                    replace(now, capacity_ratio=config.capacity_ratio) if only_shares else config
                )
        self.source = source
        self.resize(*self._total)

    def servable(self) -> bool:
        """Return whether an offer may help: a node is reserved, or a queue that wants more has room."""
        return bool(self.kept or self.labels) or any(
            self.nodes[queue.name].has_room(1, 1) for queue in self.demanding
        )

    # --- demand and use -------------------------------------------------------------------

    def _enlist(self, app: Application) -> None:
        super()._enlist(app)
        for node in self.trees[app.label][app.queue.name].chain[:-1]:
            above = node.above
            assert above is not None
            if node in above.demanding:
                return
            above.demanding.append(node)

    def _delist(self, app: Application) -> None:
        super()._delist(app)
        if any(each.label == app.label for each in app.queue.demand):
            return
        for node in self.trees[app.label][app.queue.name].chain[:-1]:
            above = node.above
            assert above is not None
            above.demanding.remove(node)
            if above.demanding:
                return

    def ask(self, app: Application, new_ask: Ask, count: int) -> None:
        """Ask for ``count`` more (or fewer) containers; what is withdrawn is not reserved for any more."""
        super().ask(app, new_ask, count)
        self._drop_withdrawn(app)

    def clear_asks(self, app: Application) -> None:
        """Withdraw everything the application asks for, with its reservations."""
        super().clear_asks(app)
        self._drop_withdrawn(app)

    def _drop_withdrawn(self, app: Application) -> None:
        for node in self.kept.get(app, ())[:]:
            reservation = node.reserved
            assert isinstance(reservation, NodeReservation)
            ask = reservation.ask
            if ask not in app.asks or app.reserved[ask.priority] > ask.count:
                self.unreserve(node)

    def free(self, container: Container, now_ms: int) -> None:
        """A container is over: take back what it held, in its queue and in all above."""
        super().free(container, now_ms)
        queue = self.trees[container.node.label][container.app.queue.name]
        self._count(queue, container.app, -container.memory_mib, -container.vcores)

    @staticmethod
    def _count(queue: TreeQueue, app: Application, memory_mib: int, vcores: int) -> None:
        """Count a container as used (negative: freed) in its queue and in all above."""
        queue.count(memory_mib, vcores)
        if queue.label:
            queue.users[app.user] = queue.users.get(app.user, 0) + memory_mib

    def carry(self, app: Application, from_queue: LeafQueue, to_queue: LeafQueue) -> None:
        """Count what a moved application holds in its new queue, and in all above."""
        super().carry(app, from_queue, to_queue)
        held = dict.fromkeys(self.trees, NOTHING)
        for container in self.live.values():
            if container.app is app:
                size = Resources(container.memory_mib, container.vcores)
                held[container.node.label] = plus(held[container.node.label], size)
        for queue, sign in ((from_queue, -1), (to_queue, 1)):
            for label, size in held.items():
                self._count(self.trees[label][queue.name], app, sign * size[0], sign * size[1])
            if queue.user_mib is not None:  # counted as if all of it were on nodes without a label
                queue.users[app.user] -= sign * (app.used_mib - held[""][0])

    # --- serving --------------------------------------------------------------------------

    def _next(self, node: Node) -> tuple[Application, Ask] | None:
        root = self.trees[node.label][""]
        try:
            for leaf in _in_order(root):
                found = self._from(leaf, node)
                if found is not None:
                    self._give(leaf, *found)
                    return found
                if node.reserved is not None:
                    return None
        finally:
            for queue in self.trees[node.label].values():
                queue.blocked = NOTHING
        if node.label and not self.labels[node.label]:
            return self._shared(root, node)
        return None

    def _shared(self, queue: TreeQueue, node: Node) -> tuple[Application, Ask] | None:
        """Return what a request without a label takes of the idle room of a shared partition."""
        if queue.above is None and not (
            queue.shares()[0] and any(child.shares()[0] for child in queue.below)
        ):
            return None
        if queue.leaf is None:
            for child in sorted(queue.below, key=TreeQueue.place):
                found = self._shared(child, node)
                if found is not None:
                    return found
            return None
        total, root = self.totals[node.label], queue.chain[-1]
        line = self.nodes[queue.name]
        for app in sorted(queue.leaf.demand, key=line.serving_key):
            ask = app.asks[0]
            size = Resources(ask.memory_mib, ask.vcores)
            fitting = fits(size, Resources(node.free_mib, node.free_vcores)) and fits(
                plus(size, Resources(root.used_mib, root.used_vcores)), total
            )
            if app.label or not ask.priority or not fitting:
                continue
            if ask.missed < self.node_count:  # first the nodes without a label have their turn
                ask.missed += 1
                self.version += 1
                continue
            ask.missed = 0
            self._count(queue, app, *size)
            return app, ask
        return None

    def _from(self, queue: TreeQueue, node: Node) -> tuple[Application, Ask] | None:
        """Return what a leaf takes of a node's room; None: nothing, or it has reserved the node."""
        leaf = queue.leaf
        assert leaf is not None
        demand = sorted(leaf.demand, key=queue.serving_key) if queue.fair else leaf.demand
        for app in demand:
            if app.label != queue.label or queue.user_is_over(app):
                continue
            ask = app.asks[0]
            if not self.within_headroom(app):
                queue.block()
                return None
            if ask.memory_mib <= node.free_mib and ask.vcores <= node.free_vcores:
                return app, ask
            if queue.has_room(ask.memory_mib, ask.vcores) and self._reserve(app, ask, node):
                return None
        return None

    def within_headroom(self, app: Application) -> bool:
        """Return whether an application's first request is within the headroom."""
        ask = app.asks[0]
        own_mib, own_vcores = self.kept_for(app)
        queue = self.trees[app.label][app.queue.name]
        return queue.has_room(ask.memory_mib - own_mib, ask.vcores - own_vcores)

    def kept_for(self, app: Application) -> Resources:
        """Return what is reserved for an application."""
        memory_mib = vcores = 0
        for node in self.kept.get(app, ()):
            reservation = node.reserved
            assert isinstance(reservation, NodeReservation)
            memory_mib += reservation.ask.memory_mib
            vcores += reservation.ask.vcores
        return Resources(memory_mib, vcores)

    def _give(self, queue: TreeQueue, app: Application, ask: Ask) -> None:
        """Count a grant in the tree, and drop a reservation that it fills or that is in its way.

        ``offer`` grants what ``_next`` and ``_reserved`` return, always.
        """
        if app in self.kept:
            alike = [each for each in self.kept[app] if each.reserved.ask is ask]  # type: ignore[attr-defined]
            if alike and len(alike) >= ask.count:
                self.unreserve(alike[0])
            while app in self.kept and not queue.has_room(ask.memory_mib, ask.vcores):
                self.unreserve(self.kept[app][0])
        ask.missed = 0
        self._count(queue, app, ask.memory_mib, ask.vcores)

    def _over_user_limit(self, app: Application) -> bool:
        """Return whether a user is over its limit; the application's own reservation does not count."""
        queue = app.queue
        assert isinstance(queue, SharedLeaf)
        limit_mib = queue.user_mib
        return limit_mib is not None and queue.held_mib(app.user) - self.kept_for(app).memory_mib > limit_mib

    def _reserve(self, app: Application, ask: Ask, node: Node) -> bool:
        if not super()._reserve(app, ask, node):
            return False
        self.keep(app, ask, node)
        return True

    def keep(self, app: Application, ask: Ask, node: Node) -> None:
        """Count a reserved node as used in the queue and all above."""
        self.kept.setdefault(app, []).append(node)
        self.trees[node.label][app.queue.name].count(ask.memory_mib, ask.vcores)
        assert isinstance(app.queue, SharedLeaf)
        app.queue.reserve(app.user, ask.memory_mib)

    def unreserve(self, node: Node) -> None:
        """Drop a node's reservation, if it has one, from its queue and all above."""
        reservation = node.reserved
        if isinstance(reservation, NodeReservation):
            app, ask = reservation.app, reservation.ask
            super().unreserve(node)
            self.trees[node.label][app.queue.name].count(-ask.memory_mib, -ask.vcores)
            assert isinstance(app.queue, SharedLeaf)
            app.queue.reserve(app.user, -ask.memory_mib)
            self.kept[app].remove(node)
            if not self.kept[app]:
                del self.kept[app]

    def _reserved(self, node: Node) -> tuple[Application, Ask] | None:
        """Fill a reservation, first and whatever the limits are now, or keep the node for it."""
        reservation = node.reserved
        assert isinstance(reservation, NodeReservation)
        app, ask = reservation.app, reservation.ask
        if ask not in app.asks or not app.activated:
            self.unreserve(node)
            return self._next(node)
        if ask.memory_mib > node.free_mib or ask.vcores > node.free_vcores:
            return None
        self.unreserve(node)
        self._count(self.trees[node.label][app.queue.name], app, ask.memory_mib, ask.vcores)
        return app, ask


def _least_first(app: Application) -> tuple[int, int]:
    """Return the place under ``fair``: of equal use the older, whatever the priorities."""
    return (app.used_mib, app.number)


def _in_order(parent_queue: TreeQueue) -> Iterator[TreeQueue]:
    """Yield the leaves with demand as the descent comes to them."""
    children = parent_queue.demanding
    for child in sorted(children, key=TreeQueue.place) if len(children) > 1 else children[:]:
        if child.leaf is not None:
            yield child
        else:
            yield from _in_order(child)
            parent_queue.blocked = plus(parent_queue.blocked, child.blocked)
