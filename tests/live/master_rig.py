"""A whole small cluster in one event loop for tests of masters: the live ResourceManager and nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import HADOOP3, Timing
from emulator.live.manager.service import LiveResourceManager, ManagerSettings, Submission
from emulator.live.master.live_master import LiveMaster
from emulator.live.node.launching import ProcessLauncher
from emulator.live.node.node_manager import Gone, LiveNode, StartedContainer
from emulator.live.node.processes import Processes, open_processes
from emulator.live.programs.master_program import open_master
from emulator.live.wire.messages import Doorbell, MasterLaunch, NodeRegistration, Signal
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.submitted_job import ModelledJob, SubmittedJob, write_job
from emulator.live.wire.transports import DirectMasterTransport, DirectNodeTransport

PATIENCE_S = 120.0
QUICK = msgspec.structs.replace(
    HADOOP3, am_start_ms=10, nm_heartbeat_ms=100, am_heartbeat_ms=100, am_retry_ms=50
)


class InProcess:
    """A master held by its node."""

    def __init__(self, master: LiveMaster) -> None:
        self.master = master

    def notify(self, signal: Signal) -> None:
        if signal != "OUTPUT_THREAD_DUMP":
            self.end()

    def end(self) -> None:
        self.master.end()


class Rig(ProcessLauncher):
    """The cluster: ``nodes`` of ``slots`` containers. Use ``async with``."""

    def __init__(self, work: Path, nodes: int = 2, slots: int = 4, timing: Timing = QUICK) -> None:
        self.pace = RealTimeDriver(Kernel())
        self.timing = timing
        self.yarn = LiveResourceManager(self.pace.sibling(Kernel()), ManagerSettings(timing=timing))
        self.masters: list[LiveMaster] = []
        self.launches: list[MasterLaunch] = []
        self.shapes = [
            NodeRegistration(node=f"n{i}:1", address=f"http://n{i}:1", memory_mib=1024 * slots, vcores=slots)
            for i in range(nodes)
        ]
        self.nodes: dict[str, LiveNode] = {}
        self.work = work
        self.changed = asyncio.Event()

    async def __aenter__(self) -> Rig:
        self.processes: Processes = await open_processes()
        super().__init__(self.work, "http://127.0.0.1:1", self.processes, tasks=True)
        self.yarn.start()
        for shape in self.shapes:
            node = LiveNode(shape, DirectNodeTransport(self.yarn), self.pace.sibling(Kernel()), self)
            self.nodes[shape.address] = node
            node.join()
        return self

    async def __aexit__(self, *_: object) -> None:
        for master in self.masters:
            master.end()
        for node in self.nodes.values():
            node.leave()
            node._driver.stop()
        self.yarn.stop()
        await self.processes.close()

    def launch_master(self, node: str, launch: MasterLaunch, gone: Gone) -> StartedContainer:
        master = open_master(
            launch, transport=DirectMasterTransport(self.yarn, self.nodes.__getitem__),
            driver=self.pace.sibling(Kernel()), work=self.work, gone=gone, timing=self.timing,
        )  # fmt: skip
        self.masters.append(master)
        self.launches.append(launch)
        master.start("http://master")
        return InProcess(master)

    def notify_modelled(self, bell: Doorbell) -> None:
        for master in self.masters:
            master.notify(bell.container, bell.signal)

    def submit(self, job: SubmittedJob, queue: str = "research") -> str:
        name = self.yarn.new_application()
        user = job.job.user if isinstance(job, ModelledJob) else job.user
        raw = msgspec.Raw(write_job(job).encode())
        self.yarn.submit(Submission(application=name, queue=queue, user=user, name="job", job=raw))
        return name

    async def until(self, condition: Callable[[], bool], what: str = "") -> None:
        """Wait until something holds; fail if it does not come to that."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + PATIENCE_S
        while not condition():
            assert loop.time() < deadline_s, f"never: {what}"
            await asyncio.sleep(0.01)

    async def over(self, application: str) -> str:
        """Wait for an application's end; return its final status."""
        await self.until(lambda: application in self.yarn.finished, f"{application} over")
        return str(self.yarn.finished[application].final_status)
