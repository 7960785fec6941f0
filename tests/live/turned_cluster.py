"""A whole modelled cluster by a clock that the test turns: manager, nodes and masters of the live emulator.

Law: what happens is a function of the test's own steps; nothing waits, nothing runs by itself. A turn of the
clock may be long, as when the machine was busy: then everything that was due happens late, in one go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import Timing
from emulator.live.manager.service import LiveResourceManager, ManagerSettings
from emulator.live.manager.state import AppRecord, Submission
from emulator.live.master.live_master import LiveMaster
from emulator.live.node.launching import refuse
from emulator.live.node.node_manager import Gone, LiveNode, StartedContainer
from emulator.live.programs.all_in_one import LocalMaster
from emulator.live.programs.master_program import open_master
from emulator.live.wire.messages import Doorbell, MasterLaunch, NodeRegistration, TaskLaunch
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.submitted_job import ModelledJob, write_job
from emulator.live.wire.transports import DirectMasterTransport, DirectNodeTransport
from yarnctl.traces.job import Job

EPOCH = 1_700_000_000_000
TURN_MS = 10
TIMING = Timing(
    nm_heartbeat_ms=100, am_heartbeat_ms=100, am_start_ms=100, am_retry_ms=200, launch_ms=150,
    task_commit_ms=50, job_commit_ms=50, exit_ms=50, node_expiry_ms=1000,
)  # fmt: skip
SETTINGS = ManagerSettings(timing=TIMING, max_attempts=20, am_expiry_ms=5000)


class Turned:
    """The cluster: ``nodes`` of ``slots`` containers. Make it on an event loop (``on_a_loop``)."""

    def __init__(
        self, work: Path, nodes: int = 2, slots: int = 3, settings: ManagerSettings = SETTINGS
    ) -> None:
        self.wall_ms = EPOCH
        self.work = work
        self.pace = RealTimeDriver(Kernel(), 1.0, lambda: self.wall_ms)
        self.yarn = LiveResourceManager(self.pace, settings)
        self.node_pace = self.pace.sibling(Kernel())
        self.masters: dict[str, LiveMaster] = {}
        self.nodes: dict[str, LiveNode] = {}
        for index in range(nodes):
            shape = NodeRegistration(
                node=f"n{index}:1", address=f"http://n{index}:1", memory_mib=1024 * slots, vcores=slots
            )
            self.nodes[shape.address] = LiveNode(shape, DirectNodeTransport(self.yarn), self.node_pace, self)
        for node in self.nodes.values():
            node.join()

    # --- launcher -------------------------------------------------------------------------

    def launch_task(self, node: str, launch: TaskLaunch, gone: Gone) -> StartedContainer:
        return refuse("modelled only", gone)

    def launch_master(self, node: str, launch: MasterLaunch, gone: Gone) -> StartedContainer:
        def over(status: int, why: str) -> None:
            self.masters.pop(launch.container, None)
            gone(status, why)

        live = open_master(
            launch, transport=DirectMasterTransport(self.yarn, self.nodes.__getitem__),
            driver=self.pace.sibling(Kernel()), work=self.work, gone=over, timing=self.yarn.settings.timing,
        )  # fmt: skip
        self.masters[launch.container] = live
        live.start("http://master")
        return LocalMaster(live)

    def notify_modelled(self, bell: Doorbell) -> None:
        for live in list(self.masters.values()):
            live.notify(bell.container, bell.signal)

    # --- time -----------------------------------------------------------------------------

    def turn(self, span_ms: int) -> None:
        """Let a span pass of which nobody had a moment to act before its end."""
        self.wall_ms += span_ms
        self.yarn.now_ms()
        self.node_pace.catch_up()
        for live in list(self.masters.values()):
            live.driver.catch_up()

    def pass_ms(self, span_ms: int) -> None:
        for _ in range(0, span_ms, TURN_MS):
            self.turn(TURN_MS)

    def until(self, condition: Callable[[], object], within_ms: int) -> bool:
        """Let time pass until something holds; say whether it came to that."""
        end_ms = self.wall_ms + within_ms
        while not condition() and self.wall_ms < end_ms:
            self.turn(TURN_MS)
        return bool(condition())

    # --- jobs -----------------------------------------------------------------------------

    def submit(self, name: str, queue: str, maps: int, reduces: int, reduce_ms: int = 1000) -> AppRecord:
        job = Job(
            name=name, job_class="production" if queue == "production" else "research", submitted_at_ms=0,
            map_ms=(200,) * maps, reduce_ms=(reduce_ms,) * reduces, reduce_keys=(10,) * reduces,
            shuffle_ms=100, queue=queue,
        )  # fmt: skip
        raw = msgspec.Raw(write_job(ModelledJob(job=job, runner=False)).encode())
        application = self.yarn.new_application()
        submission = Submission(application=application, queue=queue, user=queue, job=raw)
        return self.yarn.submit(submission)

    def master_of(self, app: AppRecord) -> LiveMaster | None:
        mine = (live for live in self.masters.values() if live.launch.application == app.id)
        return next((live for live in mine if live.state == "RUNNING"), None)

    def close(self) -> None:
        for node in self.nodes.values():
            node.leave()
        self.node_pace.stop()
        self.yarn.stop()


def on_a_loop(work: Callable[[], object]) -> None:
    """Run work that needs an event loop to be there; timers on it never fire."""

    async def run() -> None:
        work()

    asyncio.run(run())
