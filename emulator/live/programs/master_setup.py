"""Opening a master: from what a node was told to start, to a master that runs.

Law: a job that cannot be read raises BadInput here, before anything has begun; everything else that is wrong
with a job fails it by its own word (state FAILED with diagnostics).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from emulator.cluster.timing import HADOOP3, Timing
from emulator.live.master.live_master import LiveMaster, Tasks
from emulator.live.tasks.modelled_tasks import ModelledTasks
from emulator.live.tasks.process_tasks import PROCESS_TIMING, ProcessTasks
from emulator.live.wire.master_calls import Carrier
from emulator.live.wire.messages import ContainerService, MasterLaunch, MasterService
from emulator.live.wire.real_time_driver import Pace
from emulator.live.wire.submitted_job import ModelledJob, StreamingJob, number_setting, read_job

HEARTBEAT = "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms"


def open_master(
    launch: MasterLaunch,
    *,
    rm: MasterService,
    nodes: Callable[[str], ContainerService],
    carrier: Carrier,
    pace: Pace,
    work: Path,
    gone: Callable[[int, str], object],
    timing: Timing = HADOOP3,
    host: str = "127.0.0.1",
    bind: str = "",
    poll_ms: int = 0,
) -> LiveMaster:
    """Return the master of one launch, not started yet (``start(tracking_url)`` does that).

    ``pace`` is its own, with a kernel of its own (``Pace.sibling``). ``timing`` is for modelled jobs only.
    ``host`` is where task processes reach it, ``bind`` the address it listens at if that is another.
    ``poll_ms``: modelled runners look for requests so often, where ``LiveMaster.ring`` cannot be called.
    ``gone`` is called once with its exit status and diagnostics. Raises BadInput if the job is unreadable.
    """
    job = read_job(launch.job)
    tasks: Tasks
    if isinstance(job, StreamingJob):
        tasks, spans = ProcessTasks(launch, job, work, host, bind), own_beat(PROCESS_TIMING, job)
    else:
        tasks, spans = ModelledTasks(launch, job, work, poll_ms), own_spans(timing, job)
    return LiveMaster(
        launch, job, tasks, rm=rm, nodes=nodes, carrier=carrier, pace=pace, timing=spans, gone=gone
    )


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
