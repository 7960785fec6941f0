"""The ResourceManager: applications, nodes, and the two heartbeats that reach it.

Law: it acts only on a call (a node's heartbeat, an application's allocate call, a monitor of its own), and
answers at once. A message to an application is kept in its mailbox until its next heartbeat; ``host.wake``
notifies the host that there is one.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from emulator.cluster.entities import (
    AM,
    ENDED,
    EXECUTOR,
    RELEASED,
    Application,
    Ask,
    Container,
    Node,
    ParentConfig,
    QueueConfig,
)
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.scheduler import CapacityScheduler
from yarnctl.deciding.model import ApplicationEnded, ContainerEnded, ContainerGranted, Fact
from yarnctl.units import Resources


class MessageHost(Protocol):
    """What the ResourceManager needs of its message transport."""

    def wake(self, app: Application) -> None:
        """Something waits for the application: have its AM send a heartbeat."""

    def launch_master(self, container: Container) -> None:
        """Start the AM in its container."""


class ResourceManager:
    """Nodes and applications around one capacity scheduler: of a tree if there are ``parents``.

    ``total``: of the nodes without a label.
    """

    def __init__(
        self, queues: tuple[QueueConfig, ...], host: MessageHost, parents: tuple[ParentConfig, ...] = ()
    ) -> None:
        self.scheduler = TreeScheduler(queues, parents) if parents else CapacityScheduler(queues)
        self.host = host
        self.nodes: list[Node] = []
        self.applications: dict[int, Application] = {}
        self.containers_granted = 0
        self.total = Resources(0, 0)
        self._resizes = True
        self.open_nodes: list[tuple[int, int]] = []
        self.watching = False
        self.facts: list[Fact] = []

    def register_node(self, node: Node) -> None:
        """Add a node to the cluster."""
        self.nodes.append(node)
        node.live = self.scheduler.live
        self._count_node(node, 1)

    @contextmanager
    def many_nodes(self) -> Iterator[None]:
        """Set the queues' shares once, after all nodes of the block: in a large tree that takes a while."""
        self._resizes = False
        try:
            yield
        finally:
            self._resizes = True
            self.scheduler.resize(*self.total)

    def _count_node(self, node: Node, sign: int) -> None:
        if isinstance(self.scheduler, TreeScheduler):
            self.scheduler.count_node(node, sign)
        if not node.label:
            memory_mib, vcores = self.total
            self.total = Resources(memory_mib + sign * node.total_mib, vcores + sign * node.total_vcores)
        self.scheduler.true_vcores += sign * node.true_vcores
        self.scheduler.counted_vcores += sign * node.total_vcores
        if self._resizes:
            self.scheduler.resize(*self.total)
        self._mark_open(node)

    def _mark_open(self, node: Node) -> None:
        is_open = node.free_mib > 0 and node.free_vcores > 0 and not node.lost
        if is_open is not node.open:
            node.open = is_open
            place = (node.phase_ms, node.index)
            if is_open:
                insort(self.open_nodes, place)
            else:
                del self.open_nodes[bisect_left(self.open_nodes, place)]

    def node_heartbeat(self, node: Node, ended: Sequence[Container], now_ms: int) -> list[Container]:
        """Process a node's heartbeat: free what ended, offer its room. Return the new containers."""
        scheduler = self.scheduler
        for container in ended:
            if container.state != RELEASED:
                scheduler.free(container, now_ms)
                if not container.terminal_state:
                    container.terminal_state = "completed"
                if container.order:
                    self._report_ended(container)
        granted: list[Container] = []
        if scheduler.demanding:
            granted = scheduler.offer(node, now_ms, self.containers_granted + 1)
            for container in granted:
                self.containers_granted = container.number
                if container.priority:
                    mail = container.app.mail_granted
                    mail.append(container)
                    if mail[0] is container:
                        self.host.wake(container.app)
                else:
                    self._launch_master(container)
                if self.watching:
                    self._report_granted(container, now_ms)
        if (node.free_mib > 0 and node.free_vcores > 0) is not node.open:
            self._mark_open(node)
        return granted

    def _launch_master(self, container: Container) -> None:
        """Start an application's master in the container granted for it."""
        app = container.app
        container.kind = AM
        app.attempt += 1
        app.am_container = container
        self.host.launch_master(container)

    def _report_granted(self, container: Container, now_ms: int) -> None:
        """Record the grant of a container in a preempting queue or on a watched node."""
        app = container.app
        if app.queue.preempting or container.node.watched:
            self.facts.append(
                ContainerGranted(
                    container_id(container),
                    application_id(app),
                    node_id(container.node),
                    Resources(container.memory_mib, container.vcores),
                    now_ms,
                )
            )

    def lose_node(self, node: Node, now_ms: int) -> list[Container]:
        """A node has sent no heartbeat for too long: remove its containers. Return them."""
        node.lost = True
        self.scheduler.unreserve(node)
        lost = list(node.containers.values())
        for container in lost:
            container.state = ENDED
            self.release(container, "lost", now_ms)
            self.notify_ended(container)
        node.exited = ()
        self._count_node(node, -1)
        return lost

    def release(self, container: Container, ending: str, now_ms: int) -> None:
        """A container is over: its room is free again."""
        container.terminal_state = ending
        self.scheduler.free(container, now_ms)
        if container.order:
            self._report_ended(container)

    def _report_ended(self, container: Container) -> None:
        """Note that a container of an order is gone."""
        self.facts.append(
            ContainerEnded(
                container_id(container),
                application_id(container.app),
                node_id(container.node),
                container.terminal_state,  # type: ignore[arg-type]
                container.released_at_ms,
            )
        )

    def kill_now(self, container: Container, ending: str, now_ms: int) -> None:
        """End a container at once (Natjam's kill, YARN's preemption): free first, notify later."""
        if container.state == RELEASED:
            return
        container.state = ENDED
        self.release(container, ending, now_ms)
        self._mark_open(container.node)
        self.notify_ended(container)

    def notify_ended(self, container: Container) -> None:
        """Put the end of a container into its application's mailbox."""
        app = container.app
        app.mail_ended.append(container)
        self.host.wake(app)

    def submit(self, app: Application, am_size: Resources) -> None:
        """Accept an application; its first ask is for its master (request priority 0)."""
        self.applications[app.number] = app
        self.scheduler.ask(app, Ask(0, am_size.memory_mib, am_size.vcores, off_switch=True), 1)
        self.scheduler.add_application(app)

    def retry_master(self, app: Application, am_size: Resources) -> None:
        """The application's AM has ended: ask for a container for its next attempt."""
        self.scheduler.clear_asks(app)
        self.scheduler.ask(app, Ask(0, am_size.memory_mib, am_size.vcores, off_switch=True), 1)

    def allocate(
        self, app: Application, asks: list[tuple[Ask, int]]
    ) -> tuple[list[Container], list[Container]]:
        """An AM's heartbeat: changed asks in; granted and ended containers out."""
        for ask, count in asks:
            self.scheduler.ask(app, ask, count)
        granted, ended = app.mail_granted, app.mail_ended
        app.mail_granted, app.mail_ended = [], []
        return granted, ended

    def finish(self, app: Application, now_ms: int) -> None:
        """An application has unregistered: nothing more is owed to it."""
        app.finished_at_ms = now_ms
        self.scheduler.remove_application(app)
        del self.applications[app.number]
        if self.watching:
            self.facts.append(ApplicationEnded(application_id(app), now_ms))


def application_id(app: Application) -> str:
    """Return the application's id; the width keeps text order equal to submission order."""
    return f"application_1_{app.number:06d}"


def container_id(container: Container) -> str:
    """Return the container's id."""
    return f"container_1_{container.app.number:06d}_{container.number:09d}"


def attempt_id(container: Container) -> str:
    """Return the id of the task attempt, or executor, in the container (AMs have none of their own)."""
    if container.kind == EXECUTOR:
        return f"executor_1_{container.app.number:06d}_{container.number:09d}"
    kind = "m" if container.kind == 1 else "r"
    return f"attempt_1_{container.app.number:06d}_{kind}_{container.task:06d}_{container.attempt}"


def node_id(node: Node) -> str:
    """Return the node's id."""
    return node.name
