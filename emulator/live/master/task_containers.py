"""The containers of a master's tasks, and its messages to their nodes.

Law: a start is repeated until its attempt is over, a stop until the ResourceManager has reported the
container's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from emulator.cluster.entities import Application, Container, Node
from emulator.live.master.attempts import Attempt
from emulator.live.wire.messages import Granted, TaskLaunch, TaskStop
from emulator.live.wire.transports import MasterTransport

RETRY_MS = 1000
"""The time after which a call without an answer is repeated."""


Later = Callable[[int, Callable[[object], object]], None]


class TaskContainers:
    """The containers of one master's tasks. ``later`` calls a handler after a span of kernel time in ms."""

    def __init__(self, app: Application, transport: MasterTransport, later: Later) -> None:
        self._app = app
        self._transport = transport
        self._later = later
        self.mirrors: dict[str, Container] = {}
        self._granted: dict[int, Granted] = {}
        self._nodes: dict[str, Node] = {}

    def mirror(self, granted: Granted, now_ms: int) -> Container:
        """Return the actor's container for one that was granted."""
        number = int(granted.container.rpartition("_")[2])
        node, size = self.node(granted.node), (granted.memory_mib, granted.vcores)
        container = Container(number, self._app, node, *size, granted.priority, now_ms)
        self.mirrors[granted.container] = container
        self._granted[number] = granted
        return container

    def held(self) -> Iterable[Container]:
        """Return the containers that have not been reported as ended."""
        return self.mirrors.values()

    def forget(self, name: str) -> Container | None:
        """Return the container that the ResourceManager reports as ended, None if it was reported before."""
        return self.mirrors.pop(name, None)

    def granted(self, container: Container) -> Granted:
        """Return what the ResourceManager said of a container."""
        return self._granted[container.number]

    def node(self, name: str) -> Node:
        """Return the actor's node of that name."""
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = Node(len(self._nodes), 0, 0, 0)
            node.name = name
        return node

    def start(self, attempt: Attempt, launch: TaskLaunch, granted: Granted) -> None:
        """Start an attempt's container at its node."""
        if attempt.over:
            return
        again = lambda _: self._later(RETRY_MS, lambda _: self.start(attempt, launch, granted))  # noqa: E731
        self._transport.carry(granted.node_address, "start", launch, lambda _: None, again)

    def stop(self, granted: Granted, exit_status: int, at_ms: int) -> None:
        """Stop a container at its node."""
        self._stop(granted, TaskStop(container=granted.container, exit_status=exit_status, at_ms=at_ms))

    def _stop(self, granted: Granted, stop: TaskStop) -> None:
        if granted.container not in self.mirrors:
            return
        again = lambda _: self._later(RETRY_MS, lambda _: self._stop(granted, stop))  # noqa: E731
        self._transport.carry(granted.node_address, "stop", stop, lambda _: None, again)
