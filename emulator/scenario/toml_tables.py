"""The tables ``[[queues]]`` and ``[[workloads]]`` of a scenario: queues beyond production and research,
limits of users, and workloads that name a queue.

Law: plain frozen data. An entry says what it changes and nothing else; without entries a scenario is what it
was before there were any.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from emulator.workload.job import JobClass


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[queues]]``: a further leaf under root, or limits for ``production`` or ``research``.

    ``guaranteed_ratio`` and ``maximum_ratio`` are parts of the cluster, ``am_ratio`` the part of the
    maximum that masters may hold (None: the scenario's). One user may hold ``user_limit_factor`` times
    the guarantee (None: up to the maximum). ``role``: yarnctl makes room for a *hurried* queue, takes
    from a *victim*, and leaves one *apart* alone; YARN's own preemption knows no roles.
    """

    name: str
    guaranteed_ratio: float | None = None
    maximum_ratio: float | None = None
    am_ratio: float | None = None
    user_limit_factor: float | None = None
    role: Literal["hurried", "victim", "apart"] | None = None


class WorkloadEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[workloads]]``: a SPEC, beside ``production`` and ``research``.

    ``job_class`` is how its jobs are counted. They go to ``queue`` (None: as the source says, else
    their class's own), and take turns among ``users`` in the order of submission (none given: as the
    source says). ``peak`` scales task counts as ``production_peak`` does.
    """

    spec: str
    job_class: JobClass = "research"
    queue: str | None = None
    users: tuple[str, ...] = ()
    peak: float | None = None
