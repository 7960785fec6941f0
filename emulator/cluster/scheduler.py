"""The capacity scheduler: which ask gets the free room of a node that sends a heartbeat.

Law: on every offer the queues are served in the order of used / guaranteed (dominant resource, ties by the
order they were configured in), inside a queue by application priority, then submission; inside an application
by request priority. One off-switch container per node heartbeat (facts, natjam 2.5; hadoop 5). What would
break a maximum, a user limit or the share of masters is passed over. An ask that does not fit reserves the
node, so that small containers cannot starve a large one.

That is one level of queues; :mod:`emulator.cluster.queue_tree` has trees.

The scheduler owns the sums (free room; usage of queues, users and applications) and nothing else does.
"""

from __future__ import annotations

from bisect import insort
from operator import attrgetter

from emulator.cluster.entities import (
    RELEASED,
    Application,
    Ask,
    Container,
    LeafQueue,
    Node,
    NodeReservation,
    QueueConfig,
)
from yarnctl.units import NOTHING, Resources, minus, plus

_order = attrgetter("order")


class CapacityScheduler:
    """Queues and their demand. ``live`` are the containers in use, by number; ``gone``: deleted queues.

    ``true_vcores`` and ``counted_vcores``: of all nodes, as they are and as they are counted.

    ``types``: the resource types beside memory and vcores, in the order of vectors; only a tree has some.
    """

    types: tuple[str, ...] = ()
    make_leaf: type[LeafQueue] = LeafQueue

    def __init__(self, queues: tuple[QueueConfig, ...]) -> None:
        self.queues = {config.name: self.make_leaf(config) for config in queues}
        self.demanding: list[LeafQueue] = []
        self.version = 0
        self.granted = 0
        self.live: dict[int, Container] = {}
        self.gone: list[LeafQueue] = []
        self.true_vcores = self.counted_vcores = 0

    def shown(self, capacity_resources: Resources) -> Resources:
        """Return a capacity as answers show it: with its part of the vcores that the nodes really have."""
        if self.true_vcores == self.counted_vcores:
            return capacity_resources
        memory_mib, vcores, *others = capacity_resources
        return Resources(memory_mib, vcores * self.true_vcores // self.counted_vcores, *others)

    def resize(self, total_mib: int, total_vcores: int) -> None:
        """Set every queue's share of the cluster's size of now."""
        for queue in self.queues.values():
            queue.resize(total_mib, total_vcores)
            self.activate(queue)
        self.version += 1

    def leaf_for(self, path: str) -> LeafQueue | None:
        """Return the queue of a name; None: there is none."""
        return self.queues.get(path)

    def add_application(self, app: Application) -> None:
        """Add a new application; its AM is served once the queue's AM limit allows it."""
        insort(app.queue.waiting, app, key=_order)
        self.activate(app.queue)

    def activate(self, queue: LeafQueue) -> None:
        """Activate waiting applications in order while the AM limit has room (the first always has)."""
        while queue.waiting:
            app = queue.waiting[0]
            if queue.am_used_mib and queue.am_used_mib + app.am_mib > queue.am_mib:
                return
            queue.waiting.pop(0)
            app.activated = True
            insort(queue.active, app, key=_order)
            app.version += 1
            queue.am_used_mib += app.am_mib
            self.version += 1
            if app.asks:
                self._enlist(app)

    def remove_application(self, app: Application) -> None:
        """Drop all asks of an ended application and give back its share of the AM limit."""
        self.clear_asks(app)
        app.version += 1
        if app.activated:
            app.activated = False
            app.queue.active.remove(app)
            app.queue.am_used_mib -= app.am_mib
            self.activate(app.queue)
        elif app in app.queue.waiting:
            app.queue.waiting.remove(app)
        self.version += 1

    def clear_asks(self, app: Application) -> None:
        """Withdraw everything the application asks for."""
        if app.asks and app.activated:
            self._delist(app)
        app.asks.clear()
        app.pending = 0
        app.version += 1
        self.version += 1

    def ask(self, app: Application, new_ask: Ask, count: int) -> None:
        """Ask for ``count`` more (or fewer) containers like ``new_ask``."""
        had = bool(app.asks)
        for ask in app.asks:
            if ask.priority == new_ask.priority:
                break
        else:
            ask = new_ask
            if ask.label is None:
                ask.label = app.label
            app.asks.append(ask)
            app.asks.sort(key=attrgetter("priority"))
        count = max(count, -ask.count)
        ask.count += count
        app.pending += count
        app.version += 1
        if ask.count == 0:
            app.asks.remove(ask)
        if app.activated and bool(app.asks) != had:
            if had:
                self._delist(app)
            else:
                self._enlist(app)
        self.version += 1

    def reprioritise(self, app: Application, priority: int) -> None:
        """Give an application another priority inside its queue."""
        listed = app.activated and bool(app.asks)
        if listed:
            self._delist(app)
        waits = app in app.queue.waiting
        if waits:
            app.queue.waiting.remove(app)
        if app.activated:
            app.queue.active.remove(app)
        app.set_priority(priority)
        if app.activated:
            insort(app.queue.active, app, key=_order)
        app.version += 1
        if waits:
            insort(app.queue.waiting, app, key=_order)
        if listed:
            self._enlist(app)
        self.version += 1

    def _enlist(self, app: Application) -> None:
        queue = app.queue
        insort(queue.demand, app, key=_order)
        if queue not in self.demanding:
            self.demanding = [each for each in self.queues.values() if each.demand]

    def _delist(self, app: Application) -> None:
        queue = app.queue
        queue.demand.remove(app)
        if not queue.demand:
            self.demanding = [each for each in self.demanding if each.demand]

    def _note_labels(self, app: Application) -> None:
        """Note which labels an application requests; only a tree has labels."""

    def servable(self) -> bool:
        """Say whether any queue that wants containers is below its maximum: else no offer can help."""
        for queue in self.demanding:
            if queue.used_mib < queue.maximum_mib and queue.used_vcores < queue.maximum_vcores:
                return True
        return False

    def offer(self, node: Node, now_ms: int, number: int) -> list[Container]:
        """Offer a node's free room; return the new containers, numbered from ``number`` on."""
        granted: list[Container] = []
        while node.free_mib > 0 and node.free_vcores > 0:
            found = self._next(node) if node.reserved is None else self._reserved(node)
            if found is None:
                break
            app, ask = found
            memory_mib, vcores, priority = ask.memory_mib, ask.vcores, ask.priority
            container = Container(number, app, node, memory_mib, vcores, priority, now_ms)
            granted.append(container)
            self.live[number] = container
            number += 1
            if ask.others is not NOTHING:
                container.others = ask.others
                node.free_others = minus(node.free_others, ask.others)
            node.free_mib -= memory_mib
            node.free_vcores -= vcores
            app.used_mib += memory_mib
            app.used_vcores += vcores
            app.containers += 1
            app.version += 1
            app.pending -= 1
            queue = app.queue
            queue.used_mib += memory_mib
            queue.used_vcores += vcores
            if queue.user_mib is not None and not node.label:
                queue.users[app.user] = queue.users.get(app.user, 0) + memory_mib
            self.version += 1
            ask.count -= 1
            if ask.count == 0:
                app.asks.remove(ask)
                if not app.asks:
                    self._delist(app)
                else:
                    self._note_labels(app)
            if ask.off_switch:
                break
        return granted

    def _next(self, node: Node) -> tuple[Application, Ask] | None:
        demanding = self.demanding
        if len(demanding) > 1:
            demanding = sorted(demanding, key=LeafQueue.ratio)
        for queue in demanding:
            room_mib = queue.maximum_mib - queue.used_mib
            room_vcores = queue.maximum_vcores - queue.used_vcores
            for app in queue.demand:
                if node.name in app.blacklist:
                    continue
                for ask in app.asks:
                    if ask.memory_mib > room_mib or ask.vcores > room_vcores:
                        break
                    if queue.user_mib is not None and self._over_user_limit(app):
                        break
                    if ask.memory_mib <= node.free_mib and ask.vcores <= node.free_vcores:
                        return app, ask
                    if self._reserve(app, ask, node):
                        return None
                    break
        return None

    def _over_user_limit(self, app: Application) -> bool:
        # As in YARN, the container that crosses the limit is still given.
        limit_mib = app.queue.user_mib
        return limit_mib is not None and app.queue.users.get(app.user, 0) > limit_mib

    def _reserve(self, app: Application, ask: Ask, node: Node) -> bool:
        if ask.memory_mib > node.total_mib or ask.vcores > node.total_vcores:
            return False
        held = app.reserved.get(ask.priority, 0)
        if held >= ask.count:
            return False
        app.reserved[ask.priority] = held + 1
        node.reserved = NodeReservation(app, ask)
        self.version += 1
        return True

    def unreserve(self, node: Node) -> None:
        """Drop a node's reservation, if it has one."""
        reservation = node.reserved
        if isinstance(reservation, NodeReservation):
            reservation.app.reserved[reservation.ask.priority] -= 1
            node.reserved = None
            self.version += 1

    def _reserved(self, node: Node) -> tuple[Application, Ask] | None:
        reservation = node.reserved
        assert isinstance(reservation, NodeReservation)
        app, ask = reservation.app, reservation.ask
        queue = app.queue
        if ask.count == 0 or not app.activated or ask not in app.asks:
            self.unreserve(node)
            return self._next(node)
        if (
            queue.used_mib + ask.memory_mib > queue.maximum_mib
            or queue.used_vcores + ask.vcores > queue.maximum_vcores
            or self._over_user_limit(app)
        ):
            self.unreserve(node)
            return self._next(node)
        if ask.memory_mib <= node.free_mib and ask.vcores <= node.free_vcores:
            self.unreserve(node)
            return app, ask
        return None

    def carry(self, app: Application, from_queue: LeafQueue, to_queue: LeafQueue) -> None:
        """Count what an application holds in another queue; its asks are withdrawn."""
        for queue, sign in ((from_queue, -1), (to_queue, 1)):
            queue.used_mib += sign * app.used_mib
            queue.used_vcores += sign * app.used_vcores
            if queue.user_mib is not None:
                queue.users[app.user] = queue.users.get(app.user, 0) + sign * app.used_mib

    def free(self, container: Container, now_ms: int) -> None:
        """A container is over: take back what it held."""
        container.state = RELEASED
        container.released_at_ms = now_ms
        app, node = container.app, container.node
        queue = app.queue
        memory_mib, vcores = container.memory_mib, container.vcores
        node.free_mib += memory_mib
        node.free_vcores += vcores
        if container.others is not NOTHING:
            node.free_others = plus(node.free_others, container.others)
        del self.live[container.number]
        used = queue.usage_mib_ms
        used[app.user] = used.get(app.user, 0) + memory_mib * (now_ms - container.granted_at_ms)
        queue.used_mib -= memory_mib
        queue.used_vcores -= vcores
        if queue.user_mib is not None and not node.label:
            queue.users[app.user] -= memory_mib
        app.used_mib -= memory_mib
        app.used_vcores -= vcores
        app.containers -= 1
        app.version += 1
        self.version += 1
