"""The record: what a scenario may say, and nothing of how it is read, checked or run.

Law: plain frozen data; ratios are parts of the cluster, instants and spans ms. An entry of ``[[queues]]`` or
``[[workloads]]`` has what it changes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import msgspec

from emulator.cluster.entities import NodeLabel
from emulator.cluster.faults import Fault
from emulator.cluster.timing import HADOOP3, PAPER, Timing
from emulator.virtual.schemes import BY_DEFAULT
from yarnctl.traces.job import DAY_MS, Job, JobClass, SparkShape


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[queues]]``: a further leaf under root, or limits for production or research.

    ``guaranteed_ratio`` and ``maximum_ratio`` are parts of the cluster, ``am_ratio`` the part of the maximum
    that masters may hold (None: the scenario's). One user may hold ``user_limit_factor`` times the guarantee
    (None: up to the maximum). ``role``: yarnctl makes room for a *preempting* queue, takes from a
    *preemptable* one, and leaves an *unmanaged* one alone; YARN's own preemption has no roles.
    """

    name: str
    guaranteed_ratio: float | None = None
    maximum_ratio: float | None = None
    am_ratio: float | None = None
    user_limit_factor: float | None = None
    role: Literal["preempting", "preemptable", "unmanaged"] | None = None


class WorkloadEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One ``[[workloads]]``: a SPEC, beside production and research.

    ``job_class`` is how its jobs are counted. They go to ``queue`` (None: as the source says, else their
    class's own), and take turns among ``users`` in the order of submission (none given: as the source says).
    ``peak`` scales task counts as a scenario's production peak. ``spark``: they run as applications of Spark.
    ``map_label`` and ``reduce_label``: the node labels that their maps (or executors) and reduces request
    ("": nodes without a label; None: the queue's default).
    """

    spec: str
    job_class: JobClass = "research"
    queue: str | None = None
    users: tuple[str, ...] = ()
    peak: float | None = None
    spark: SparkShape | None = None
    map_label: str | None = None
    reduce_label: str | None = None


TIMINGS: dict[str, Timing] = {"hadoop3": HADOOP3, "paper": PAPER}

MAX_NODES = 100_000
MAX_SLOTS = 1000
MAX_SEED = 2**63 - 1
MAX_RATIO = 1000
MAX_COUNT = 10**9
MAX_SPAN_MS = 10 * 366 * DAY_MS

Where = Callable[[str], str]
"""Returns where a field of the scenario was given: a file with its line, or an option.

A field is named as in ``nodes``, ``tuning.tick_ms`` or ``faults[2].at_ms``.
"""


class Tuning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the controller that differ from the profile's (None: as the profile has it)."""

    tick_ms: int | None = None
    open_tick_ms: int | None = None
    kill_timeout_ms: int | None = None
    on_timeout: Literal["give-up", "kill"] | None = None
    expire_ms: int | None = None
    utilisation_tolerance_ratio: float | None = None
    kill_maps: bool | None = None
    model_scheduler: bool | None = None
    cost_guard: bool | None = None
    settle_ms: int | None = None
    task_suspensions_max: int | None = None
    job_open_ratio_max: float | None = None
    refused_shown: int | None = None


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A cluster, a workload and the rules.

    ``production`` and ``research`` are SPECs (see ``emulator.workload.spec``); ``workloads`` are further ones
    that may name a queue; at least one is given. ``queues`` are queues beyond those two, and limits for them.
    A node has ``slots`` containers of one slot, or ``node_memory_mib`` and ``node_vcores``. ``*_peak`` scales
    task counts until the peak offered load is that (None: as recorded), as section 6 of the paper does with
    1.0 and 1.5; ``load`` then multiplies arrival rates. ``shares`` and ``caps`` are (production, research)
    parts of the cluster: guarantees, and the partitions of the capped schemes.

    ``am_ratio`` is the part of a queue's maximum that its masters may hold (YARN's
    maximum-am-resource-percent). Every master takes a whole container, as in the paper: at 1.0
    the masters of waiting jobs can take every container, and then no task runs. At 0.5 half of
    the room is always left to tasks.

    ``may_lose`` and ``room_within_ms`` are the scheme mix's: the part of research's container time of the
    last hour whose work may be lost, and how soon a lever must give room (None: as a suspension does).
    ``second_worth``: its price of a second (0: none), with which a task may be killed more than once.

    ``scheduler_xml`` is a capacity-scheduler.xml with all queues, in the place of shares, caps, AM shares and
    ``queues``. Jobs without a queue of their own go to its leaves ``production_queue`` and ``research_queue``
    by class; yarnctl makes room for the first and takes from the second. ``node_labels`` go to its first
    nodes, in this order; a leaf's jobs request its default-node-label-expression.

    ``measured``: the times of a cluster of the user's own, in the place of ``timing``.
    """

    nodes: int
    slots: int | None = None
    node_memory_mib: int | None = None
    node_vcores: int | None = None
    production: str | None = None
    research: str | None = None
    production_peak: float | None = None
    research_peak: float | None = None
    load: float = 1.0
    schemes: tuple[str, ...] = BY_DEFAULT
    job_policy: str = "MR"
    task_policy: str = "SRT"
    profile: str = "default"
    timing: str = "hadoop3"
    mode: Literal["queues", "guarantees", "deadlines"] = "queues"
    shares: tuple[float, float] = (0.95, 0.05)
    caps: tuple[float, float] = (0.8, 0.2)
    am_ratio: float = 0.5
    seed: int = 0
    faults: tuple[Fault, ...] = ()
    tuning: Tuning = Tuning()
    queues: tuple[QueueEntry, ...] = ()
    workloads: tuple[WorkloadEntry, ...] = ()
    may_lose: float = 0.0
    room_within_ms: int | None = None
    second_worth: float = 0.0
    scheduler_xml: str | None = None
    production_queue: str = "production"
    research_queue: str = "research"
    node_labels: tuple[NodeLabel, ...] = ()
    measured: Timing | None = None

    @property
    def times(self) -> Timing:
        """The times of the emulated cluster."""
        return self.measured or TIMINGS[self.timing]


class Prepared(NamedTuple):
    """A checked scenario with its jobs, what was noted about them, and its identity.

    ``validate``: every invariant is checked after every event; it decides no result.
    """

    scenario: Scenario
    jobs: tuple[Job, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...]
    identity: str
    validate: bool = False
