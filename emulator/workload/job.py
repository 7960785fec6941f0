"""The job: what one MapReduce job asks of a cluster, whatever its source.

Law: a workload is a tuple of jobs ordered by (submitted_at_ms, name); readers produce it,
the emulator's actors consume it, and neither depends on the other.

Limits: how far a virtual clock may run.

Law: whatever enters a workload is within a leap year, so that no run lasts for ever and no
number overflows; what is outside is a mistake in a unit, and is refused with its place.

How many key groups a reduce has, when only its running time is known.

Law: one rule for every source. The paper's generator spends 8 ms on a key; we group ten of
them, so that a reduce can be suspended every 80 ms while a day's trace stays small.
"""

from __future__ import annotations

from collections.abc import Iterable
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


DAY_MS = 86_400_000
LONGEST_DAYS = 366
LONGEST_MS = LONGEST_DAYS * DAY_MS
"""No instant of a workload is later, no task and no shuffle longer."""

LONGEST_SHOWN = f"{LONGEST_DAYS} days"


KEY_GROUP_MS = 80
"""Time a reduce spends on one key group (ten of the generator's 8 ms keys)."""


def key_groups(reduce_ms: Iterable[int], key_group_ms: int = KEY_GROUP_MS) -> tuple[int, ...]:
    """Return the number of key groups of each reduce, at least 1 (same length as ``reduce_ms``)."""
    return tuple(max(1, length_ms // key_group_ms) for length_ms in reduce_ms)
