"""Masters: from a node's launch command to a master that runs, here or in a process of its own.

A job that cannot be read raises BadInput in ``open_master``; everything else that is wrong with a job fails
it (state FAILED with diagnostics). A process (``yarn-emulator am``) exits when its job is over (status 0 if
the ResourceManager has recorded it) or its node stops it; a ResourceManager that does not answer is waited
for.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from emulator.cluster.kernel import Kernel
from emulator.cluster.timing import HADOOP3, Timing
from emulator.live.master.driver_rest import DriverRest
from emulator.live.master.live_master import LiveMaster, Tasks
from emulator.live.master.master_rest import MasterRest
from emulator.live.tasks.executor_tasks import ExecutorTasks
from emulator.live.tasks.modelled_tasks import ModelledTasks
from emulator.live.tasks.process_tasks import PROCESS_TIMING, ProcessTasks
from emulator.live.wire.http_server import name_in
from emulator.live.wire.messages import MasterLaunch
from emulator.live.wire.real_time_driver import RealTimeDriver
from emulator.live.wire.submitted_job import ModelledJob, StreamingJob, number_setting, read_job
from emulator.live.wire.transports import HttpMasterTransport, MasterTransport
from emulator.live.wire.web import Web

HEARTBEAT = "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms"


def open_master(
    launch: MasterLaunch,
    *,
    transport: MasterTransport,
    driver: RealTimeDriver,
    work: Path,
    gone: Callable[[int, str], object],
    timing: Timing = HADOOP3,
    host: str = "127.0.0.1",
    bind: str = "",
    poll_ms: int = 0,
) -> LiveMaster:
    """Return the master of one launch, not started yet (``start(tracking_url)`` does that).

    ``driver`` is its own, with a kernel of its own (``RealTimeDriver.sibling``). ``timing`` is for modelled
    jobs only. Task processes reach their master at ``host``; it listens at ``bind`` if that is another.
    ``poll_ms``: modelled runners poll for requests so often, where ``LiveMaster.ring`` cannot be
    called. ``gone`` is called once with its exit status and diagnostics. Raises BadInput if the job is
    unreadable.
    """
    job = read_job(launch.job)
    tasks: Tasks
    if isinstance(job, StreamingJob):
        tasks, spans = ProcessTasks(launch, job, work, host, bind), own_beat(PROCESS_TIMING, job)
    elif job.job.spark:
        tasks, spans = ExecutorTasks(launch, job, work), own_spans(timing, job)
    else:
        tasks, spans = ModelledTasks(launch, job, work, poll_ms), own_spans(timing, job)
    return LiveMaster(launch, job, tasks, transport=transport, driver=driver, timing=spans, gone=gone)


def serve_master(live: LiveMaster, web: Web) -> Web:
    """Add a master's REST to what is served: that of its framework."""
    return (DriverRest if live.tasks.job.spark else MasterRest)(live, web).web


def own_beat(timing: Timing, job: StreamingJob) -> Timing:
    """Return the spans with the master's own heartbeat, as Hadoop's setting names it."""
    interval_ms = int(number_setting(job.settings, HEARTBEAT, timing.am_heartbeat_ms))
    return msgspec.structs.replace(timing, am_heartbeat_ms=max(1, interval_ms))


def own_spans(timing: Timing, job: ModelledJob) -> Timing:
    """Return the spans with those that the job itself names (``emulator.timing.launch_ms`` ...)."""
    found: dict[str, int] = {}
    for name in Timing.__struct_fields__:
        key = f"emulator.timing.{name}"
        if name.endswith("_ms") and key in job.settings:
            found[name] = int(number_setting(job.settings, key, 0))
    return msgspec.structs.replace(timing, **found)


@dataclass
class MasterProgram:
    """The process of one attempt at one application. ``host`` is the name others reach it under."""

    launch: MasterLaunch
    rm: str
    work: Path
    host: str
    bind: str
    url: str
    log: Callable[[str], None]
    status: int = 1
    _live: LiveMaster | None = None
    _terminal_state: bool = False

    def web(self) -> Web:
        """Return what to serve; serving it starts the master."""
        web = Web()
        web.names.add(name_in(self.url))
        web.on_start.append(lambda: self._start(web))
        web.on_stop.append(self._stop)
        return web

    def _start(self, web: Web) -> None:
        live = self._live = open_master(
            self.launch,
            transport=HttpMasterTransport(self.rm, lambda heard: live.around(heard)),
            driver=RealTimeDriver(Kernel()),
            work=self.work,
            gone=self._gone,
            host=self.host,
            bind=self.bind,
            poll_ms=1000,
        )
        serve_master(live, web)
        live.start(self.url)

    def _gone(self, status: int, why: str) -> None:
        self.status = status
        if why:
            self.log(why)
        if not self._terminal_state:
            self._terminal_state = True
            os.kill(os.getpid(), signal.SIGTERM)  # the server's own way to end

    def _stop(self) -> None:
        self._terminal_state = True
        if self._live is not None:
            self._live.end()


def run_master(program: MasterProgram, listener: socket.socket) -> int:
    """Run the master until its job is over; return the exit status."""
    from emulator.live.wire.http_server import serve

    serve(program.web(), listener)
    return program.status
