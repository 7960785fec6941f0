"""The nodes of a live ResourceManager (``ResourceTracker``): registration, numbered heartbeats, loss.

Law: a repeated heartbeat has no second effect: what ended counts once, and the answer is the same. A node
stops what the ResourceManager does not know.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.cluster.entities import Container, Node
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.held_containers import HeldContainers
from emulator.live.manager.state import ManagerState, NodeRecord
from emulator.live.wire import messages
from yarnctl.deciding.draws import uniform


class NodeTracker:
    """Handles the calls of nodes. ``watch`` is called when a node registers."""

    def __init__(self, state: ManagerState, held: HeldContainers, watch: Callable[[], None]) -> None:
        self._state = state
        self._held = held
        self._watch = watch

    def register_node(self, registration: messages.NodeRegistration) -> messages.NodeRegistered:
        """Register a node; a known one is registered anew, and keeps the containers it reports."""
        now_ms = self._state.driver.catch_up()
        known = self._state.nodes.get(registration.node)
        phase_ms = self._phase_ms(registration, len(self._state.actor.nodes))
        size = registration.memory_mib, registration.vcores
        if known is not None and (known.actor.total_mib, known.actor.true_vcores) == size:
            held = set(registration.running)
            for container in self._held.on(known):
                if container.id in self._state.containers and container.id not in held:
                    self._held.container_gone(
                        container,
                        messages.EndedContainer(
                            container.id, messages.EXIT_LOST, now_ms, "the node began anew"
                        ),
                        now_ms,
                    )
                    self._state.actor.release(container.actor, "lost", now_ms)
            known.address, known.rack = registration.address, registration.rack
            known.number, known.heartbeat_at_ms = None, now_ms
            phase_ms = known.actor.phase_ms
        else:
            if known is not None:
                self.lose(known, now_ms)
            number = len(self._state.actor.nodes)
            actor = Node(number, registration.memory_mib, registration.vcores, phase_ms)
            actor.name = registration.node
            if self._state.counts_memory_alone:
                actor.count_memory_alone()
            if isinstance(self._state.actor.scheduler, TreeScheduler):
                actor.label = self._state.label_of(registration.node)
                actor.others = actor.free_others = self._state.node_others
            self._state.actor.register_node(actor)
            self._state.lost.pop(registration.node, None)
            self._state.nodes[registration.node] = NodeRecord(
                registration.node, actor, registration.address, registration.rack, now_ms
            )
        self._watch()
        return messages.NodeRegistered(
            epoch=self._state.epoch,
            heartbeat_ms=self._state.settings.timing.nm_heartbeat_ms,
            phase_ms=phase_ms,
        )

    def _phase_ms(self, registration: messages.NodeRegistration, index: int) -> int:
        """Return the heartbeat's phase in each interval: the node's own, else drawn as in virtual time."""
        interval_ms = self._state.settings.timing.nm_heartbeat_ms
        if registration.phase_ms is not None:
            return registration.phase_ms % interval_ms
        return uniform(self._state.settings.seed, 2, index) * interval_ms >> 64

    def node_heartbeat(self, report: messages.NodeReport) -> messages.NodeOrders:
        """Take a heartbeat: what ended is freed, the room that is left is offered."""
        now_ms = self._state.driver.catch_up()
        node = self._state.nodes.get(report.node)
        number = report.number
        if node is None or (node.number is not None and number != node.number and number != node.number + 1):
            return messages.NodeOrders(number=number, resync=True)
        node.heartbeat_at_ms = now_ms
        ended: list[Container] = []
        for one in report.ended:
            container = self._state.containers.get(one.container)
            if container is not None and container.node is node:
                ended.append(container.actor)
                self._held.container_gone(container, one, now_ms)
            node.stop.pop(one.container, None)
        if number == node.number:  # the answer was lost: what ended counts once, the answer is the same
            self._state.actor.node_heartbeat(node.actor, ended, now_ms) if ended else None
            return node.answer
        node.number = number
        granted = self._state.actor.node_heartbeat(node.actor, ended, now_ms)
        if granted:
            self._held.grant(granted, node)
        if report.running or node.running:
            self._compare(node, report.running)
        node.answer = self._orders(node, number)
        return node.answer

    def _compare(self, node: NodeRecord, running: tuple[str, ...]) -> None:
        """Have stopped what runs on a node without holding room any more."""
        node.running = running
        for name in running:
            container = self._state.containers.get(name)
            if container is None or container.node is not node:
                node.stop[name] = None

    @staticmethod
    def _orders(node: NodeRecord, number: int) -> messages.NodeOrders:
        if not (node.masters or node.signals or node.stop):
            return messages.NodeOrders(number=number)
        orders = messages.NodeOrders(
            number=number, masters=tuple(node.masters), signals=tuple(node.signals), stop=tuple(node.stop)
        )
        node.masters.clear()
        node.signals.clear()
        node.stop.clear()
        return orders

    def lose(self, node: NodeRecord, now_ms: int) -> None:
        """A node has sent no heartbeat for too long: its containers are lost."""
        del self._state.nodes[node.id]
        self._state.lost[node.id] = node
        containers = self._held.on(node)
        for container in containers:
            container.app.count(now_ms)
        self._state.actor.lose_node(node.actor, now_ms)
        for container in sorted(containers, key=lambda one: one.is_master):
            self._held.container_gone(
                container,
                messages.EndedContainer(container.id, messages.EXIT_LOST, now_ms, "the node was lost"),
                now_ms,
            )
