"""One or many NodeManagers in a process of their own (``yarn-emulator nm``).

On SIGTERM it ends its containers and sends nothing more: the ResourceManager finds out as it would of a lost
node.
"""

from __future__ import annotations

import gc
import random
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emulator.cluster.kernel import Kernel
from emulator.live.node.launching import ProcessLauncher
from emulator.live.node.node_manager import LiveNode
from emulator.live.node.processes import Processes, open_processes
from emulator.live.wire.http_client import Address, HttpPool
from emulator.live.wire.http_server import name_in
from emulator.live.wire.messages import NodeRegistration
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.transports import HttpNodeTransport, NodeTransport, container_web
from emulator.live.wire.web import Web


@dataclass(frozen=True, kw_only=True)
class NodePlan:
    """What the nodes of one process are. ``host`` is the name under which masters reach it.

    ``connections``: at most so many to the ResourceManager; by default each node has its own.
    """

    rm: str
    work: Path
    count: int
    memory_mib: int
    vcores: int
    host: str
    rack: str = "/default-rack"
    processes: bool = True
    connections: int = 20_000
    seed: int | None = None
    allow_hosts: tuple[str, ...] = ()


@dataclass
class NodeProcess:
    """The nodes of this process, from the first registration to the last container's end."""

    plan: NodePlan
    port: int
    log: Callable[[str], None]
    ready: Callable[[list[LiveNode]], None]
    watch: Callable[[NodeTransport, RealTimeDriver], NodeTransport] = lambda wire, _: wire
    """What is put between nodes and wire (a benchmark's clock)."""
    nodes: list[LiveNode] = field(default_factory=list)
    driver: RealTimeDriver = field(default_factory=lambda: RealTimeDriver(Kernel()))
    _processes: Processes | None = None
    _wire: HttpNodeTransport | None = None
    _web: Web = field(default_factory=Web)
    _joined: set[str] = field(default_factory=set)

    def web(self) -> Web:
        """Return the application that masters call; serving it starts the nodes."""
        self._web.names |= {name_in(each.address) for each in registrations(self.plan, self.port)}
        self._web.names |= set(self.plan.allow_hosts)
        self._web.on_start.append(self._start)
        self._web.on_stop.append(self._stop)
        return self._web

    async def _start(self) -> None:
        plan = self.plan
        address = Address(plan.rm)
        self._processes = await open_processes()
        pool = HttpPool(address, connections=min(plan.connections, plan.count, allowed_connections()))
        self._wire = HttpNodeTransport(pool, random.Random(plan.seed).random, self.log)
        wire = self.watch(self._wire, self.driver)
        launcher = ProcessLauncher(plan.work, address.url, self._processes, tasks=plan.processes)
        for registration in registrations(plan, self.port):
            node = LiveNode(registration, wire, self.driver, launcher)
            node.on_joined = self._one_joined(node)
            self.nodes.append(node)
        container_web({prefix_of(plan, index): node for index, node in enumerate(self.nodes)}, self._web)
        for node in self.nodes:
            node.join()

    def _one_joined(self, node: LiveNode) -> Callable[[], None]:
        def joined() -> None:
            if node.name in self._joined:
                return
            self._joined.add(node.name)
            if len(self._joined) == len(self.nodes):
                gc.collect()
                gc.freeze()  # thousands of nodes stay: looking at them again would hold up heartbeats
                self.ready(self.nodes)

        return joined

    async def _stop(self) -> None:
        for node in self.nodes:
            node.leave()
        self.driver.stop()
        if self._processes is not None:
            await self._processes.close()
        if self._wire is not None:
            self._wire.close()


FILES_KEPT_BACK = 512
"""File descriptors for everything that is no connection to the ResourceManager."""


def allowed_connections() -> int:
    """Raise the limit of open files as far as it goes; return how many connections that allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 1 << 20 if hard == resource.RLIM_INFINITY else max(1, hard - FILES_KEPT_BACK)


def prefix_of(plan: NodePlan, index: int) -> str:
    """Return the path below which a node's containers are started: "" where there is but one node."""
    return "" if plan.count == 1 else f"/{index}"


def registrations(plan: NodePlan, port: int) -> list[NodeRegistration]:
    """Return what each node registers as. Many nodes of one process differ by a number in their host."""
    host = f"[{plan.host}]" if ":" in plan.host else plan.host
    return [
        NodeRegistration(
            node=f"{plan.host}:{port}" if plan.count == 1 else f"{plan.host}-{index:05d}:{port}",
            address=f"http://{host}:{port}{prefix_of(plan, index)}",
            memory_mib=plan.memory_mib,
            vcores=plan.vcores,
            rack=plan.rack,
        )
        for index in range(plan.count)
    ]


def run_nodes(
    plan: NodePlan,
    listener: socket.socket,
    say: Callable[[str], None],
    ready: Callable[[list[LiveNode]], None],
    watch: Callable[[NodeTransport, RealTimeDriver], NodeTransport] = lambda wire, _: wire,
) -> None:
    """Be the nodes until SIGTERM or SIGINT."""
    from emulator.live.wire.http_server import serve

    process = NodeProcess(plan, listener.getsockname()[1], say, ready, watch)
    serve(process.web(), listener)
