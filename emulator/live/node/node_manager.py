"""The NodeManager live: heartbeats on a grid, and the containers that masters start on it.

Law: it sends heartbeats at ``phase + k x interval`` and reports ends only there. A heartbeat whose answer was
lost is repeated, same number and same content, at the next instant of the grid; what ended is reported
again until an answer acknowledges it. To a ResourceManager that does not know it, it registers
again with the containers it holds. How a message travels is the wire's business (``NodeTransport``), how a
container runs is its launcher's part; the node has neither sockets nor processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from emulator.live.wire import messages
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.transports import NodeTransport

KEPT_MAX = 50_000
"""So many past containers are known by name: a late repetition of a start starts nothing."""

Gone = Callable[[int, str], None]
"""Called once when a container is over: exit status and diagnostics."""


class StartedContainer(Protocol):
    """A container that was started."""

    def notify(self, signal: messages.Signal) -> None:
        """Send it a signal."""

    def end(self) -> None:
        """Have it end; its ``Gone`` is called when it has."""


class Launcher(Protocol):
    """Runs the containers of a node. Both calls return at once and raise nothing."""

    def launch_task(self, node: str, launch: messages.TaskLaunch, gone: Gone) -> StartedContainer:
        """Start a task's container."""

    def launch_master(self, node: str, launch: messages.MasterLaunch, gone: Gone) -> StartedContainer:
        """Start an AM."""

    def notify_modelled(self, bell: messages.Doorbell) -> None:
        """A doorbell for a modelled container, which has no process to signal."""


class _Modelled:
    """A container without a process: kept until its end is reported."""

    __slots__ = ("_name", "_node", "_traps_term")

    def __init__(self, node: LiveNode, launch: messages.TaskLaunch) -> None:
        self._node = node
        self._name = launch.container
        self._traps_term = launch.traps_term

    def notify(self, signal: messages.Signal) -> None:
        """A doorbell, and a SIGTERM that it traps, go to the model of the container; others end it."""
        if signal == "OUTPUT_THREAD_DUMP" or (signal == "GRACEFUL_SHUTDOWN" and self._traps_term):
            self._node.launcher.notify_modelled(messages.Doorbell(self._name, signal))
        else:
            status = messages.EXIT_SIGTERM if signal == "GRACEFUL_SHUTDOWN" else messages.EXIT_SIGKILL
            self._node.end_modelled(self._name, status, self._node.now_ms())

    def end(self) -> None:
        """Be gone at once."""
        self._node.end_modelled(self._name, messages.EXIT_ABORTED, self._node.now_ms())


class LiveNode:
    """One NodeManager. ``shape`` describes it; its ``running`` is filled in here."""

    def __init__(
        self,
        registration: messages.NodeRegistration,
        transport: NodeTransport,
        driver: RealTimeDriver,
        launcher: Launcher,
    ) -> None:
        self.shape = registration
        self.launcher = launcher
        self.name = registration.node
        self.registration: messages.NodeRegistered | None = None
        self.on_joined: Callable[[], object] = lambda: None
        self.beats = 0
        self.late_beats = 0
        self._wire = transport
        self._driver = driver
        self._containers: dict[str, StartedContainer] = {}
        self._past: dict[str, None] = {}
        self._asked_to_end: dict[str, int] = {}
        self._ends_at: dict[str, tuple[int, int]] = {}
        self._ended: list[messages.EndedContainer] = []
        self._number = 0
        self._open: messages.NodeReport | None = None
        self._in_flight = False
        self._life = 0

    def now_ms(self) -> int:
        """Return now, in kernel time."""
        return self._driver.now_ms()

    @property
    def running(self) -> tuple[str, ...]:
        """The containers it holds."""
        return tuple(self._containers)

    def join(self) -> None:
        """Register; send heartbeats from then on."""
        self._life += 1
        life = self._life
        self.registration = None
        registration = msgspec.structs.replace(self.shape, running=self.running)
        self._wire.register_node(registration, lambda welcome: self._joined(life, welcome))

    def _joined(self, life: int, registered: messages.NodeRegistered | None) -> None:
        if life != self._life:
            return
        if registered is None:
            self.join()
            return
        self.registration = registered
        self._number = 0
        self._open = None
        self._in_flight = False
        self._next_beat(life)
        self._driver.wake()
        self.on_joined()

    def leave(self) -> None:
        """Send no further heartbeat and end every container, without unregistering."""
        self._life += 1
        self.registration = None
        for held in list(self._containers.values()):
            held.end()

    def _next_beat(self, life: int) -> None:
        """Schedule the first heartbeat on the grid after now, however late this one was."""
        assert self.registration is not None
        from_ms = max(self._driver.kernel.now_ms, self._driver.now_ms()) + 1
        interval_ms = self.registration.heartbeat_ms
        at_ms = from_ms + (self.registration.phase_ms - from_ms) % interval_ms
        self._driver.kernel.at(at_ms, self._beat, (life, at_ms))

    def _beat(self, due: tuple[int, int]) -> None:
        life, at_ms = due
        if life != self._life:
            return
        self._next_beat(life)
        if self._in_flight:  # the wire will say what became of the last one
            self.late_beats += 1
            return
        if self._open is None:
            self._end_modelled_until(at_ms)
            self._open = messages.NodeReport(
                node=self.name, number=self._number + 1, ended=tuple(self._ended), running=self.running
            )
        self._in_flight = True
        self.beats += 1
        report = self._open
        self._wire.node_heartbeat(report, lambda orders: self._answered(life, report, orders))

    def _answered(self, life: int, report: messages.NodeReport, orders: messages.NodeOrders | None) -> None:
        if life != self._life:
            return
        self._in_flight = False
        if orders is None or (not orders.resync and orders.number != report.number):
            return
        if orders.resync:
            self.join()
            return
        self._open = None
        self._number = report.number
        del self._ended[: len(report.ended)]
        self._apply_orders(orders)

    def _apply_orders(self, orders: messages.NodeOrders) -> None:
        for launch in orders.masters:
            if self._is_new(launch.container):
                self._add_container(launch)
        for bell in orders.signals:
            held = self._containers.get(bell.container)
            if held is not None:
                held.notify(bell.signal)
        for container in orders.stop:
            self._end(container, messages.EXIT_ABORTED)

    def start(self, launch: messages.TaskLaunch) -> messages.Acknowledged:
        """Start a container; once per container, a repeated start changes nothing."""
        if self._is_new(launch.container):
            self._add_container(launch)
        return messages.Acknowledged()

    def stop(self, message: messages.TaskStop) -> messages.Acknowledged:
        """End a container; fine if it is gone already. A modelled one ends at ``at_ms``."""
        held = self._containers.get(message.container)
        if isinstance(held, _Modelled):
            self.end_modelled(message.container, message.exit_status, message.at_ms or self.now_ms())
        else:
            self._end(message.container, message.exit_status)
        return messages.Acknowledged()

    def _is_new(self, container: str) -> bool:
        return container not in self._containers and container not in self._past

    def _add_container(self, launch: messages.TaskLaunch | messages.MasterLaunch) -> None:
        name = launch.container
        if isinstance(launch, messages.TaskLaunch) and launch.modelled:
            self._containers[name] = _Modelled(self, launch)
            return
        early: list[tuple[int, str]] = []

        def gone(status: int, diagnostics: str) -> None:
            if name in self._containers:
                self._apply_end(name, status, diagnostics)
            else:  # it was over before its launcher returned
                early.append((status, diagnostics))

        start = (
            self.launcher.launch_task
            if isinstance(launch, messages.TaskLaunch)
            else self.launcher.launch_master
        )
        self._containers[name] = start(self.name, launch, gone)  # type: ignore[arg-type]
        if early:
            self._apply_end(name, *early[0])

    def _apply_end(self, container: str, status: int, diagnostics: str) -> None:
        asked = self._asked_to_end.pop(container, None)
        if asked is not None:  # its own exit status does not matter
            status, diagnostics = asked, ""
        self._over(messages.EndedContainer(container, status, self.now_ms(), diagnostics))

    def _over(self, ended: messages.EndedContainer) -> None:
        self._containers.pop(ended.container, None)
        self._ended.append(ended)
        self._past[ended.container] = None
        if len(self._past) > KEPT_MAX:
            del self._past[next(iter(self._past))]

    def _end(self, container: str, exit_status: int) -> None:
        """End a container. One that was never started is over, and cannot be started any more."""
        held = self._containers.get(container)
        if held is not None:
            self._asked_to_end.setdefault(container, exit_status)
            held.end()
        elif container not in self._past:
            self._over(messages.EndedContainer(container, exit_status, self.now_ms(), "it was not started"))

    def end_modelled(self, container: str, exit_status: int, at_ms: int) -> None:
        """A modelled container ends at ``at_ms``; of two ends the earlier holds."""
        self._asked_to_end.pop(container, None)
        planned = self._ends_at.get(container)
        if container in self._containers and (planned is None or at_ms < planned[0]):
            self._ends_at[container] = (at_ms, exit_status)

    def _end_modelled_until(self, now_ms: int) -> None:
        if not self._ends_at:
            return
        due = [(at_ms, name, status) for name, (at_ms, status) in self._ends_at.items() if at_ms <= now_ms]
        for at_ms, name, status in sorted(due):
            del self._ends_at[name]
            self._over(messages.EndedContainer(name, status, at_ms))
