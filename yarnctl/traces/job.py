"""The job: what one MapReduce job asks of a cluster, whatever its source, ordered by submission and name.

Limits: what enters a workload is within a leap year, so that no run lasts for ever and no number overflows;
what is outside is a mistake in a unit, and is refused with its place.

Key groups of a reduce, when only its running time is known: the paper's generator spends 8 ms on a key; ten
of them are a group, so that a reduce can be suspended every 80 ms while a day's trace stays small.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from yarnctl.units import Resources

JobClass = Literal["production", "research"]

ONE_SLOT = Resources(1024, 1)  # The container of the Natjam paper (section 5): 1 GiB, every entity takes one


class SparkShape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job runs as an application of Spark: its maps are the first stage, its reduces the second.

    ``executors`` of ``cores`` tasks each, in containers of a map's size, up ``start_ms`` after their launch.
    ``task_ms``: its work is cut into tasks of at most this (0: as the source says).
    ``block_mib``: what a task of the first stage writes for the second; blocks move at ``move_mib_per_s``.
    ``route``: how executors are asked to leave; as many as ``min_executors`` stay.
    """

    executors: int = 4
    cores: int = 1
    task_ms: int = 0
    block_mib: int = 16
    move_mib_per_s: int = 20
    start_ms: int = 5000
    route: Literal["signal", "plugin"] = "plugin"
    min_executors: int = 1


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One job.

    ``map_ms`` holds the running time of each map, ``reduce_ms`` the time each reduce spends in
    its reduce phase (shuffle excluded), ``reduce_keys`` how many key groups each reduce has
    (at least 1 each, same length as ``reduce_ms``). ``shuffle_ms`` is the copy and merge time of
    one reduce once the last map is done. ``replay_ms`` is the time to copy a whole reduce's
    saved output back when it resumes. A job without reduces is map-only. ``queue`` is the queue it
    is submitted to if that is not its class's own. ``spark``: it runs as an application of Spark.
    ``map_label``, ``reduce_label``: of the nodes for its maps (or executors) and reduces ("": nodes without a
    label; UNSET: the queue's default).
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
    spark: SparkShape | msgspec.UnsetType = msgspec.UNSET  # identities of MapReduce jobs do not hold it
    map_label: str | msgspec.UnsetType = msgspec.UNSET
    reduce_label: str | msgspec.UnsetType = msgspec.UNSET


DAY_MS = 86_400_000
LONGEST_DAYS = 366
LONGEST_MS = LONGEST_DAYS * DAY_MS  # No instant of a workload is later, no task and no shuffle longer

LONGEST_SHOWN = f"{LONGEST_DAYS} days"


KEY_GROUP_MS = 80  # Time a reduce spends on one key group (ten of the generator's 8 ms keys)


def key_groups(reduce_ms: Iterable[int], key_group_ms: int = KEY_GROUP_MS) -> tuple[int, ...]:
    """Return the number of key groups of each reduce, at least 1 (same length as ``reduce_ms``)."""
    return tuple(max(1, length_ms // key_group_ms) for length_ms in reduce_ms)
