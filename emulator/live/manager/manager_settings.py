"""Settings of a live ResourceManager, as data.

Law: spans are ms of kernel time unless a name says wall time; defaults are those of an unmodified Hadoop 3
with the two queues of ``hadoop-conf/dual-queue``.
"""

from __future__ import annotations

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.timing import HADOOP3, Timing

QUEUES: tuple[QueueConfig, ...] = (
    QueueConfig(name="production", capacity_ratio=0.95, am_ratio=0.5, hurried=True),
    QueueConfig(name="research", capacity_ratio=0.05, am_ratio=0.5),
)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a live ResourceManager behaves.

    ``silence_floor_ms``: no silence shorter than this in *wall* time counts as a loss, whatever the speed.
    ``linger_ms``: how long an AM may go on after its farewell. ``finished_kept``: as YARN's
    max-completed-applications. ``seed`` draws the phases of nodes that name none.
    """

    queues: tuple[QueueConfig, ...] = QUEUES
    timing: Timing = HADOOP3
    locality_delay: int = 0
    max_attempts: int = 2
    am_expiry_ms: int = 60_000
    silence_floor_ms: int = 3000
    linger_ms: int = 10_000
    finished_kept: int = 1000
    max_priority: int = 10
    seed: int = 1
