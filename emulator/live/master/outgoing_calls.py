"""A master's messages: to its ResourceManager, and to the nodes of its containers.

Law: a message is repeated until it is answered, a heartbeat with its number, and one heartbeat is under way
at a time; what has changed meanwhile goes with the next one. A start is repeated until its attempt is over, a
stop until the ResourceManager has reported the container's end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from emulator.cluster.entities import Application, Ask, Container, Node
from emulator.live.master.attempts import Attempt
from emulator.live.wire.messages import (
    Allocate,
    Allocated,
    AskChange,
    Granted,
    MasterLaunch,
    MasterRegistered,
    MasterRegistration,
    MasterUnregistration,
    TaskLaunch,
    TaskStop,
)
from emulator.live.wire.transports import MANAGER, MasterTransport

RETRY_MS = 1000
"""A call without an answer is repeated after so long."""


class LinkedMaster(Protocol):
    """The master whose messages these are."""

    tracking_url: str

    def later(self, span_ms: int, handler: Callable[[Any], object], argument: Any = None) -> None:
        """Call a handler after a span of kernel time."""

    def progress_ratio(self) -> float:
        """Return the job's progress."""

    def registered(self) -> None:
        """The ResourceManager has registered the master; called again after its restart."""

    def refused(self, why: str) -> None:
        """The ResourceManager has refused this master."""

    def allocated(self, answer: Allocated) -> None:
        """Containers were granted, or have ended."""

    def unregistered(self) -> None:
        """The ResourceManager has recorded that the application is over."""


class ManagerLink:
    """The messages of one attempt at one application."""

    def __init__(self, launch: MasterLaunch, transport: MasterTransport, master: LinkedMaster) -> None:
        self.release: list[str] = []
        """Containers that are given back with the next heartbeat."""
        self._launch = launch
        self._transport = transport
        self._master = master
        self._unsent: list[AskChange] = []
        self._number = 0
        self._open: Allocate | None = None
        self._in_flight = False

    def register(self, _: object = None) -> None:
        """Register, until that is answered."""
        message = MasterRegistration(
            application=self._launch.application,
            attempt=self._launch.attempt,
            tracking_url=self._master.tracking_url,
        )
        again = lambda _: self._master.later(RETRY_MS, self.register)  # noqa: E731
        self._transport.carry(MANAGER, "register_master", message, self._registered, again)

    def _registered(self, welcome: MasterRegistered) -> None:
        if welcome.refused:
            self._master.refused(welcome.refused)
        else:
            self._master.registered()

    def exchange(self, asks: list[tuple[Ask, int]]) -> None:
        """Send a heartbeat: what changed, or what was not answered once more."""
        self._unsent += [AskChange(ask.priority, ask.memory_mib, ask.vcores, count) for ask, count in asks]
        if self._in_flight:
            return
        if self._open is None:
            self._open = Allocate(
                application=self._launch.application,
                attempt=self._launch.attempt,
                number=self._number + 1,
                asks=tuple(self._unsent),
                release=tuple(self.release),
                progress_ratio=self._master.progress_ratio(),
            )
            self._unsent, self.release = [], []
        self._in_flight = True
        self._transport.carry(MANAGER, "allocate", self._open, self._allocated, self._unanswered)

    def _unanswered(self, _: str) -> None:
        self._in_flight = False

    def _allocated(self, answer: Allocated) -> None:
        self._in_flight = False
        if answer.refused:
            self._master.refused(answer.refused)
        elif answer.resync:
            self._number, self._open = 0, None
            self.register()
        elif self._open is not None and answer.number == self._open.number:
            self._number, self._open = answer.number, None
            self._master.allocated(answer)

    def unregister(self, message: MasterUnregistration) -> None:
        """Report how the application ended, until that is answered."""
        self._transport.carry(
            MANAGER,
            "unregister",
            message,
            lambda _: self._master.unregistered(),
            lambda _: self._master.later(RETRY_MS, lambda _: self.unregister(message)),
        )


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

    def _stop(self, granted: Granted, message: TaskStop) -> None:
        if granted.container not in self.mirrors:
            return
        again = lambda _: self._later(RETRY_MS, lambda _: self._stop(granted, message))  # noqa: E731
        self._transport.carry(granted.node_address, "stop", message, lambda _: None, again)
