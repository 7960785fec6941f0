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
  passed over there until it has had as many turns as the cluster has nodes, since a descent for a node
  without a label last came to a container or reservation for it. It has no turn where something was found
  for the label that a limit did not allow. Masters without a label stay on nodes without one. The limit of
  masters counts them all together.
* Resource types beside memory and vcores (``types``) count as these do, in shares, maxima, headroom,
  reservations and limits of users; the limit of masters is in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

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
from emulator.cluster.queues.descent import Descent, IdleDescent
from emulator.cluster.queues.tree_queue import QueueSource, SharedLeaf, TreeQueue
from emulator.cluster.queues.user_shares import shares
from emulator.cluster.scheduler import CapacityScheduler
from yarnctl.units import NOTHING, Resources, at_least, fits, minus, plus, times


class TreeScheduler(CapacityScheduler):
    """The scheduler of nested queues. ``parents``: root (named "") and the others, each before its children.

    ``nodes``: every queue by its path below root. ``kept``: the nodes reserved for an application.
    ``source``: the configuration that queues on demand are created from (None: there are none).
    ``labels``: the cluster's node labels, and whether each is exclusive; ``trees``: the queues by label and
    path, those of ``nodes`` under "". ``submitted_at_ms``: the last submission to each
    leaf. ``other_totals``: by label, what its nodes have of the other types.
    """

    make_leaf = SharedLeaf

    def __init__(self, queues: tuple[QueueConfig, ...], parents: tuple[ParentConfig, ...]) -> None:
        super().__init__(queues)
        self.source: QueueSource | None = None
        self._total = Resources(0, 0)
        self.labels: dict[str, bool] = {}
        self.totals: dict[str, Resources] = {}
        self.other_totals: dict[str, Resources] = {}
        self.node_count = 0
        self.nodes: dict[str, TreeQueue] = {}
        self.trees = {"": self.nodes}
        self.kept: dict[Application, list[Node]] = {}
        self._turned: list[Ask] = []
        self._wanted: dict[Application, frozenset[str | None]] = {}
        self.in_vain: dict[tuple[Application, int], int] = {}
        self.largest = Resources(0, 0)
        self.submitted_at_ms: dict[str, int] = {}
        self._expired: set[str] = set()
        for config in parents:
            self._add(config, None)
        self.root = self.nodes[""]
        for leaf in self.queues.values():
            self._add(leaf.config, leaf)

    def _add(self, config: ParentConfig | QueueConfig, leaf: LeafQueue | None) -> None:
        for label, tree in self.trees.items():
            above = tree.get(config.name.rpartition(".")[0]) if config.name else None
            unlabelled = self.nodes.get(config.name) if label else None
            tree[config.name] = TreeQueue(config, above, leaf, label, unlabelled)

    def set_labels(self, labels: Mapping[str, bool]) -> None:
        """Set the cluster's node labels, each with whether it is exclusive, before there are nodes."""
        self.labels = dict(labels)
        for label in labels:
            tree = self.trees[label] = {}
            self.totals[label] = NOTHING
            for path, queue in self.nodes.items():
                above = tree.get(path.rpartition(".")[0]) if path else None
                tree[path] = TreeQueue(queue.config, above, queue.leaf, label, queue)

    def count_node(self, node: Node, sign: int) -> None:
        """Count a node and, if it has a label, what it adds to its partition (-1: it is removed)."""
        self.node_count += sign
        self.largest = at_least(self.largest, node.total)
        if node.others is not NOTHING:
            before = self.other_totals.get(node.label, NOTHING)
            self.other_totals[node.label] = plus(before, times(node.others, sign))
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
                total = self.totals[label] if label else self._total
                node.resize(total[0], total[1], self.other_totals.get(label, NOTHING))
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
        """Take the queues of a configuration, of those known the settings, or only the shares.

        Queues that it does not have are deleted; nothing may run or wait in them.
        """
        configs: tuple[ParentConfig | TreeLeafConfig, ...] = (*source.parents, *source.leaves)
        for config in configs:
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
        names = {config.name for config in configs}
        for name in [name for name in self.nodes if name not in names]:
            for tree in self.trees.values():
                queue = tree.pop(name)
                if queue.above is not None:
                    queue.above.below.remove(queue)
            if name in self.queues:
                self.gone.append(self.queues.pop(name))
        self.resize(*self._total)

    def expire(self, now_ms: int) -> bool:
        """Delete the leaves on demand that were empty and expired in the last round and are now.

        ``AutoCreatedQueueDeletionPolicy`` has a round in each time of expiry. Returns whether any is deleted.
        """
        source = self.source
        if source is None or source.expiry_ms is None:
            return False
        expired = {
            name
            for name, queue in self.queues.items()
            if isinstance(queue.config, TreeLeafConfig)
            and queue.config.on_demand
            and self.is_empty(name)
            and now_ms - self.submitted_at_ms.get(name, 0) > source.expiry_ms
            and not source.stays(name)
        }
        gone, self._expired = expired & self._expired, expired - self._expired
        if gone:
            self.take(source.without(gone), only_shares=True)
        return bool(gone)

    def is_empty(self, name: str) -> bool:
        """Return whether no application is in a leaf, or in any below a parent."""
        leaves = [queue for path, queue in self.queues.items() if f"{path}.".startswith(f"{name}.")]
        return not any(leaf.active or leaf.waiting or leaf.used_mib for leaf in leaves)

    def add_application(self, app: Application) -> None:
        """Add a new application; its AM is served once the queue's AM limit allows it."""
        self.submitted_at_ms[app.queue.name] = app.submitted_at_ms
        super().add_application(app)

    def servable(self) -> bool:
        """Return whether an offer may help: a node is reserved, or a queue that wants more has room."""
        return bool(self.kept or self.labels) or any(
            self.nodes[queue.name].has_room(1, 1) for queue in self.demanding
        )

    # --- demand and use -------------------------------------------------------------------

    def _enlist(self, app: Application) -> None:
        super()._enlist(app)
        self._note_labels(app)

    def _delist(self, app: Application) -> None:
        super()._delist(app)
        self._want(app, frozenset())

    def _note_labels(self, app: Application) -> None:
        self._want(app, frozenset(ask.label for ask in app.asks))

    def _want(self, app: Application, labels: frozenset[str | None]) -> None:
        """Note the labels of which an application requests nodes, in its queue and in all above."""
        before = self._wanted.pop(app, frozenset())
        if labels:
            self._wanted[app] = labels
        for label in labels - before:
            self._begin_demand(self.trees[label or ""][app.queue.name])
        for label in before - labels:
            if not any(label in self._wanted.get(each, ()) for each in app.queue.demand):
                self._end_demand(self.trees[label or ""][app.queue.name])

    @staticmethod
    def _begin_demand(leaf_queue: TreeQueue) -> None:
        for node in leaf_queue.chain[:-1]:
            above = node.above
            assert above is not None
            if node in above.demanding:
                return
            above.demanding.append(node)

    @staticmethod
    def _end_demand(leaf_queue: TreeQueue) -> None:
        for node in leaf_queue.chain[:-1]:
            above = node.above
            assert above is not None
            above.demanding.remove(node)
            if above.demanding:
                return

    def ask(self, app: Application, new_ask: Ask, count: int) -> None:
        """Ask for ``count`` more (or fewer) containers; what is withdrawn is not reserved for any more."""
        super().ask(app, new_ask, count)
        if app.activated and app.asks:
            self._note_labels(app)
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
        container.app.ranked_mib = container.app.used_mib
        queue = self.trees[container.node.label][container.app.queue.name]
        others = _negative(container.others)
        self.count_held(queue, container.app, -container.memory_mib, -container.vcores, others)

    @staticmethod
    def count_held(
        queue: TreeQueue, app: Application, memory_mib: int, vcores: int, other_resources: Resources = NOTHING
    ) -> None:
        """Count a container as used (negative: freed) in its queue and in all above."""
        queue.count(memory_mib, vcores, other_resources)
        queue.users.hold(app.user, plus(Resources(memory_mib, vcores), other_resources))

    def carry(self, app: Application, from_queue: LeafQueue, to_queue: LeafQueue) -> None:
        """Count what a moved application holds in its new queue, and in all above."""
        super().carry(app, from_queue, to_queue)
        held = dict.fromkeys(self.trees, NOTHING)
        for container in self.live.values():
            if container.app is app:
                size = plus(Resources(container.memory_mib, container.vcores), container.others)
                held[container.node.label] = plus(held[container.node.label], size)
        for queue, sign in ((from_queue, -1), (to_queue, 1)):
            for label, size in held.items():
                others = Resources(0, 0, *times(size, sign)[2:]) if len(size) > 2 else NOTHING
                self.count_held(self.trees[label][queue.name], app, sign * size[0], sign * size[1], others)
            if queue.user_mib is not None:  # counted as if all of it were on nodes without a label
                queue.users[app.user] -= sign * (app.used_mib - held[""][0])

    # --- serving --------------------------------------------------------------------------

    def _next(self, node: Node) -> tuple[Application, Ask] | None:
        root = self.trees[node.label][""]
        total = self.cluster_total()
        descent = Descent(node, total, self.kept, self._may_have_more, self._missed)
        found = descent.from_root(root)
        is_idle = found is None and not descent.is_rejected
        if is_idle and node.label and not self.labels[node.label] and self._is_shared(root):
            found = IdleDescent(node, total, self.kept, self._may_have_more, self._missed).from_root(root)
        shares = not all(self.labels.values())  # elsewhere turns change nothing
        if shares and any(0 < ask.missed <= self.node_count for ask in self._turned):
            self.version += 1
        self._turned.clear()
        if found is None:
            return None
        if found.reserves:
            self._reserve(found.app, found.ask, node)
            return None
        if found.given_up is not None:
            self.unreserve(found.given_up)
        ask = found.ask
        found.app.ranked_mib = found.app.used_mib + ask.memory_mib
        self.count_held(found.queue, found.app, ask.memory_mib, ask.vcores, ask.others)
        return found.app, ask

    def cluster_total(self) -> Resources:
        """Return what the nodes of all partitions have."""
        found = self._total
        for size in (*self.totals.values(), *self.other_totals.values()):
            found = plus(found, size)
        return found

    @staticmethod
    def _is_shared(root_queue: TreeQueue) -> bool:
        """Return whether root and a child have a capacity in a partition."""
        return bool(root_queue.shares()[0]) and any(child.shares()[0] for child in root_queue.below)

    def _missed(self, ask: Ask) -> bool:
        """Count that a request without a label has its turn; return whether idle nodes may serve it now.

        First the nodes without a label have their turn.
        """
        ask.missed += 1
        self._turned.append(ask)
        return ask.missed >= self.node_count

    def within_headroom(self, app: Application, ask: Ask) -> bool:
        """Return whether an application's request is within the headroom of its nodes."""
        label = ask.label or ""
        own = self.kept_for(app, label)
        queue = self.trees[label][app.queue.name]
        others = NOTHING if ask.others is NOTHING else minus(ask.others, own)
        return queue.has_room(ask.memory_mib - own[0], ask.vcores - own[1], others)

    def kept_for(self, app: Application, label: str | None = None) -> Resources:
        """Return what is reserved for an application, of all nodes or those with a label ("": none)."""
        memory_mib = vcores = 0
        others = NOTHING
        for node in self.kept.get(app, ()):
            reservation = node.reserved
            assert isinstance(reservation, NodeReservation)
            if label is not None and node.label != label:
                continue
            memory_mib += reservation.ask.memory_mib
            vcores += reservation.ask.vcores
            others = plus(others, reservation.ask.others)
        return Resources(memory_mib, vcores, *others[2:])

    def _over_user_limit(self, app: Application, label: str = "") -> bool:
        """Return whether a user is over its limit; the application's own reservation does not count."""
        queue = self.trees[label][app.queue.name]
        limit = queue.user_limit()
        if limit is None:
            return False
        held, total = queue.held_by(app.user), self.cluster_total()
        return shares(minus(held, self.kept_for(app, label)), total) > shares(limit, total)

    def _may_have_more(self, app: Application, ask: Ask) -> bool:
        """Return whether a request may hold another reservation: fewer than containers, or long in vain.

        After some heartbeats of reserved nodes on which it did not fit a request may hold one more, the
        larger it is the later (``shouldAllocOrReserveNewContainer``).
        """
        held = app.reserved.get(ask.priority, 0)
        if held < ask.count:
            return True
        smallest = self.nodes[""].smallest
        factor = min(_ratio(ask.size, self.largest), _ratio(minus(self.largest, smallest), self.largest))
        return int(self.in_vain.get((app, ask.priority), 0) / held * (1 - factor)) + ask.count > held

    def _reserve(self, app: Application, ask: Ask, node: Node) -> bool:
        app.reserved[ask.priority] = app.reserved.get(ask.priority, 0) + 1
        node.reserved = NodeReservation(app, ask)
        self.version += 1
        self.keep(app, ask, node)
        app.ranked_mib = app.used_mib
        return True

    def keep(self, app: Application, ask: Ask, node: Node) -> None:
        """Count a reserved node as used in the queue and all above."""
        self.kept.setdefault(app, []).append(node)
        self._count_reserved(node, app, ask, 1)

    def _count_reserved(self, node: Node, app: Application, ask: Ask, sign: int) -> None:
        size = Resources(sign * ask.memory_mib, sign * ask.vcores)
        others = ask.others if sign > 0 else _negative(ask.others)
        queue = self.trees[node.label][app.queue.name]
        queue.count(size[0], size[1], others)
        reserved = plus(size, others)
        for each in queue.chain:
            each.reserved = plus(each.reserved, reserved)
        queue.users.hold(app.user, reserved)
        self.in_vain.pop((app, ask.priority), None)

    def unreserve(self, node: Node) -> None:
        """Drop a node's reservation, if it has one, from its queue and all above."""
        reservation = node.reserved
        if isinstance(reservation, NodeReservation):
            app, ask = reservation.app, reservation.ask
            super().unreserve(node)
            app.ranked_mib = app.used_mib
            self._count_reserved(node, app, ask, -1)
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
            return None
        if not fits(ask.size, node.free):
            if not self._may_have_more(app, ask):
                self.version += 1
            key = app, ask.priority
            self.in_vain[key] = self.in_vain.get(key, 0) + 1
            return None
        self.unreserve(node)
        self.count_held(self.trees[node.label][app.queue.name], app, ask.memory_mib, ask.vcores, ask.others)
        return app, ask


def _negative(resources: Resources) -> Resources:
    return resources if resources is NOTHING else times(resources, -1)


def _ratio(size: Resources, total: Resources) -> float:
    parts = zip_longest(size, total, fillvalue=0)
    return max((part / whole for part, whole in parts if whole), default=0.0)
