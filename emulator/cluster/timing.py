"""Timing: every span that a cluster spends on itself rather than on keys.

Law: each number has a source. Two sets: ``PAPER`` is the Natjam test
cluster (Hadoop 0.23, fitted on the paper's Fig 3 and its stated overheads only), ``HADOOP3`` an
unmodified Hadoop 3 driven from outside, as measured by hand on 3.4.2. What is fitted on a recorded
run of a small cluster (``research/yarn_research/campaigns/spans.py``) is a ``SharedCpuTiming``.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Spans in ms.

    ``trigger`` is how a task receives a suspend request: "umbilical" (the AM sends it at the next
    progress report, as Natjam did) or "signal" (the node's next heartbeat rings the doorbell).
    ``kill_at_rm``: a kill frees the room in the ResourceManager at once (Natjam, and YARN's own
    preemption) instead of after the process is gone and its node has reported it.
    """

    nm_heartbeat_ms: int = 1000
    am_heartbeat_ms: int = 1000
    submit_ms: int = 1000
    am_start_ms: int = 4500
    launch_ms: int = 1200
    task_commit_ms: int = 1000
    job_commit_ms: int = 1000
    exit_ms: int = 350
    slow_start_ratio: float = 0.05
    trigger: Literal["umbilical", "signal"] = "signal"
    suspend_poll_ms: int = 3000
    drain_ms: int = 700
    upload_ms: int = 450
    release_wait_ms: int = msgspec.field(default=30_000, name="hold_ms")  # identities and results hold it
    restart_ms: int = 500
    resume_ms: int = 300
    reshuffle: bool = True
    skip_ratio: float = 0.02
    resume_priority: int = 10
    releases_itself: bool = False
    kill_at_rm: bool = False
    node_expiry_ms: int = 10_000
    am_retry_ms: int = 3000


class SharedCpuTiming(Timing, frozen=True, kw_only=True):
    """Spans of a small real cluster, where launches share cores and a heartbeat more or less counts.

    After ``launch_ms`` each launch needs ``launch_cpu_ms`` of CPU, for which all launches on the
    ``machine_nodes`` nodes of one machine share its ``machine_cores``, one using ``launch_width`` of them
    at most (``emulator/virtual/shared_cpu.py``); with 0 a launch is over then. ``asks_after_beat``:
    an ask for reduces leaves one AM heartbeat later (RMContainerAllocator.heartbeat allocates before it
    schedules reduces). ``beats_at_exit``: a node reports at once when a container ends (ContainerImpl calls
    sendOutofBandHeartBeat). ``am_linger_ms``: so much longer than ``exit_ms`` does a finished AM keep its
    container (MRAppMaster.shutDownJob sleeps 5 s after it has unregistered).
    """

    launch_cpu_ms: int = 0
    launch_width: int = 2
    machine_cores: int = 2
    machine_nodes: int = 1
    asks_after_beat: bool = False
    beats_at_exit: bool = False
    am_linger_ms: int = 0


def shared_cpu(timing: Timing, **spans: Any) -> SharedCpuTiming:
    """Return the same spans with those of a small cluster; ``spans`` are fields of ``SharedCpuTiming``."""
    return SharedCpuTiming(**{**msgspec.structs.asdict(timing), **spans})


PAPER = Timing(
    trigger="umbilical",
    suspend_poll_ms=2700,  # uniform poll with the paper's measured mean of 1.35 s (section 5)
    drain_ms=0,
    upload_ms=0,
    resume_ms=1700,  # 3.88 s to resume against 2.63 s to schedule, plus re-reading (facts 6)
    reshuffle=False,
    skip_ratio=0.0,
    resume_priority=3,
    releases_itself=True,
    kill_at_rm=True,
)

HADOOP3 = Timing(am_start_ms=5500, launch_ms=3100)
"""AM running 5-6 s after submission, 3.1 s from kill to the next attempt (facts, hadoop 11)."""
