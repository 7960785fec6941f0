"""Timing: every span that a cluster spends on itself rather than on keys.

Law: each number has a source. Two sets: ``PAPER`` is the Natjam test
cluster (Hadoop 0.23, fitted on the paper's Fig 3 and its stated overheads only), ``HADOOP3`` an
unmodified Hadoop 3 driven from outside, as measured by hand on 3.4.2.
"""

from __future__ import annotations

from typing import Literal

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
