"""The job: what one MapReduce job asks of a cluster, with no word on where it came from.

Law: a workload is a tuple of jobs ordered by (submitted_at_ms, name); readers produce it,
the emulator's actors consume it, and neither knows the other.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from yarnctl.units import Resources

JobClass = Literal["production", "research"]

ONE_SLOT = Resources(1024, 1)
"""The container of the Natjam paper (section 5): 1 GiB, every entity takes one."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    ``map_ms`` holds the running time of each map, ``reduce_ms`` the time each reduce spends in
    its reduce phase (shuffle excluded), ``reduce_keys`` how many key groups each reduce has
    (at least 1 each, same length as ``reduce_ms``). ``shuffle_ms`` is the copy and merge time of
    one reduce once the last map is done. ``replay_ms`` is the time to copy a whole reduce's
    saved output back when it resumes. A job without reduces is map-only. ``queue`` is the queue it
    is submitted to if that is not its class's own.
    """

    name: str
    job_class: JobClass
    submitted_at_ms: int
    map_ms: tuple[int, ...]
    reduce_ms: tuple[int, ...] = ()
    reduce_keys: tuple[int, ...] = ()
    shuffle_ms: int = 2000
    replay_ms: int = 0
    deadline_at_ms: int | None = None
    user: str = "hadoop"
    queue: str | None = None
    am_size: Resources = ONE_SLOT
    map_size: Resources = ONE_SLOT
    reduce_size: Resources = ONE_SLOT
