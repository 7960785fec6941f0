"""The virtual host: a whole emulated cluster in virtual time, asked without a socket.

Law: the wall clock is never read. The event loop's own clock jumps to what is due next, and only in ``wait``;
while a request is answered no time passes. Same questions, same answers.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote, urlsplit

from emulator.cluster.kernel import Kernel
from emulator.live.manager.service import LiveResourceManager, ManagerSettings
from emulator.live.node.launching import ProcessLauncher
from emulator.live.node.node_manager import LiveNode
from emulator.live.node.processes import Processes
from emulator.live.programs.all_in_one import ClusterPlan, LocalLauncher, node_sizes
from emulator.live.rest.dialect import Version
from emulator.live.rest.site import ManagerSite
from emulator.live.store.webhdfs_server import WebHdfsServer
from emulator.live.wire.messages import ContainerService
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.transports import DirectNodeTransport
from tests.contract.emulated import NODES, SETTINGS, SLOTS, Emulated, modelled
from tests.contract.host import Answer, JobPlan

T = TypeVar("T")

URL = "http://127.0.0.1:8088"
EPOCH_MS = 1_700_000_000_000


CLUSTER = ClusterPlan(nodes=NODES, memory_mib=1024 * SLOTS, vcores=SLOTS)


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing: what would be waited for has passed."""

    passed_s = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready and timeout is not None and timeout > 0:
            self.passed_s += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.passed_s


class VirtualHost(Emulated):
    """One process, one thread, no clock. ``folder`` holds its HDFS and staging."""

    def __init__(
        self,
        folder: Path,
        version: Version,
        settings: ManagerSettings = SETTINGS,
        plan: ClusterPlan = CLUSTER,
    ) -> None:
        super().__init__(f"virtual-{version}", version, URL)
        self._loop = _Loop()
        pace = RealTimeDriver(Kernel(), 1.0, lambda: EPOCH_MS + int(round(self._loop.time() * 1000, 6)))
        manager = LiveResourceManager(pace, settings)
        self._site = ManagerSite(manager, URL, dialect=version)
        WebHdfsServer(folder / "hdfs", URL, superuser=self.superuser).install(self._site.web)
        self._nodes: dict[str, LiveNode] = {}
        # No process is ever started: all jobs of this host are modelled.
        tasks = ProcessLauncher(folder, URL, cast(Processes, None), tasks=False)
        launcher = LocalLauncher(self._site, folder, tasks, self._node_at, {})
        own_pace, wire = pace.sibling(Kernel()), DirectNodeTransport(manager)
        for shape in node_sizes(plan):
            self._nodes[shape.address] = LiveNode(shape, wire, own_pace, launcher)
        self._do(self._start())

    def _node_at(self, address: str) -> ContainerService:
        return self._nodes[address]

    async def _start(self) -> None:
        for hook in self._site.web.on_start:
            hook()
        for node in self._nodes.values():
            node.join()
        silent = list(self._nodes.values())[-1]
        self.silent_node = silent.name
        silent.leave()

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(what)

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> Answer:
        """Hand a request over."""
        parts = urlsplit(url)
        scope: MutableMapping[str, Any] = {
            "type": "http",
            "method": method,
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "headers": [
                (b"host", parts.netloc.encode()),
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
            ],
        }
        sent: list[MutableMapping[str, Any]] = []

        async def receive() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        self._do(self._site.web(scope, receive, send))
        told = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], told, b"".join(one.get("body", b"") for one in sent[1:]))

    def now_s(self) -> float:
        return self._loop.time()

    def wait(self, span_s: float) -> None:
        """Let virtual time pass."""
        self._do(asyncio.sleep(span_s))

    def job(self, plan: JobPlan) -> str:
        return modelled(plan)

    def close(self) -> None:
        for node in self._nodes.values():
            node.leave()
        for hook in self._site.web.on_stop:
            hook()
        self._loop.close()
