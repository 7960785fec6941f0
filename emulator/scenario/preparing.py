"""Preparing: the jobs, the rules and the identity of a checked scenario.

Law: ``identity`` is a hash over all that decides (the cluster, the rules, the jobs themselves) and over
nothing else: no path, no wall-clock, no version, and not which schemes are run, since none changes another's
result.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.scenario.checking import OWN, check_fault_jobs, names_of, require_leaf
from emulator.scenario.record import Prepared, Scenario, Where
from emulator.scenario.scheduler_file import SchedulerFile, read_scheduler_file
from emulator.virtual.schemes import SCHEMES, LeafLimits
from emulator.workload.scaling import scale_to_load
from emulator.workload.spec import Loaded, load, merge, with_load
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.deciding.waiting_worth import KILLS_MAX
from yarnctl.errors import BadInput
from yarnctl.traces.job import ONE_SLOT, Job, JobClass
from yarnctl.units import Resources, by_memory, times

if TYPE_CHECKING:
    from emulator.virtual.run import Setup


def prepare(scenario: Scenario, where: Where = "scenario, field {}".format) -> Prepared:
    """Load the jobs and compute the identity. Raises BadInput for a workload that cannot be used."""
    loaded = [_side(scenario, side, where) for side in OWN]
    more = [_further(scenario, index, where) for index in range(len(scenario.workloads))]
    merged = merge(loaded[0].jobs, loaded[1].jobs)
    if more:
        together = [*merged, *(job for one in more for job in one.jobs)]
        merged = tuple(sorted(together, key=lambda job: (job.submitted_at_ms, job.name)))
    if scenario.scheduler_xml is not None:
        merged = _in_leaves(scenario, merged)
    check_fault_jobs(scenario, merged, where)
    require_room(scenario, merged)
    return Prepared(
        scenario,
        merged,
        tuple(f"{one.source}: {note}" for one in (*loaded, *more) for note in one.notes) + notes_on(scenario),
        tuple(one.source for one in (*loaded, *more) if one.source),
        identity(scenario, merged),
    )


def _in_leaves(scenario: Scenario, found: Sequence[Job]) -> tuple[Job, ...]:
    """Return the jobs, each with the path of its leaf in the scheduler file."""
    own = {"production": scenario.production_queue, "research": scenario.research_queue}
    paths: dict[str, str] = {}
    placed = []
    file = scheduler_file(scenario)
    for job in found:
        name = file.placed(job.user, job.queue or own[job.job_class])
        if name not in paths:
            paths[name] = require_leaf(scenario, name, f"job {job.name}, queue")
        placed.append(msgspec.structs.replace(job, queue=paths[name]))
    return tuple(placed)


def scheduler_file(scenario: Scenario) -> SchedulerFile:
    """Return the queues of a scenario's scheduler file; none without one."""
    if scenario.scheduler_xml is None:
        return SchedulerFile((), (), {})
    return read_scheduler_file(Path(scenario.scheduler_xml))


def jobs(scenario: Scenario) -> tuple[Job, ...]:
    """Return the jobs of a scenario, by (submission, name)."""
    return prepare(scenario).jobs


def _side(scenario: Scenario, job_class: JobClass, where: Where) -> Loaded:
    """Load one class: the source, scaled to its peak, then at the wished arrival rate."""
    text: str | None = getattr(scenario, job_class)
    if text is None:
        return Loaded((), (), "")
    loaded = _loaded(scenario, text, job_class, getattr(scenario, f"{job_class}_peak"))
    _require_queues(scenario, loaded.jobs, where(job_class))
    return loaded


def _further(scenario: Scenario, index: int, where: Where) -> Loaded:
    """Load one of ``workloads``; its jobs' names begin with w and its number, counted from 1."""
    entry = scenario.workloads[index]
    loaded = _loaded(scenario, entry.spec, entry.job_class, entry.peak)
    found = []
    seen: dict[str, None] = {}
    for place, job in enumerate(loaded.jobs):
        if job.name in seen:
            raise BadInput(f"job {job.name}", "two jobs of one workload have this name", "rename one of them")
        seen[job.name] = None
        found.append(
            msgspec.structs.replace(
                job,
                name=f"w{index + 1}-{job.name}",
                queue=entry.queue if entry.queue is not None else job.queue,
                user=entry.users[place % len(entry.users)] if entry.users else job.user,
                spark=entry.spark or job.spark,
                map_label=job.map_label if entry.map_label is None else entry.map_label,
                reduce_label=job.reduce_label if entry.reduce_label is None else entry.reduce_label,
            )
        )
    _require_queues(scenario, found, where(f"workloads[{index}].spec"))
    return Loaded(tuple(found), loaded.notes, loaded.source)


def _require_queues(scenario: Scenario, found: Sequence[Job], place: str) -> None:
    """Raise BadInput for a job of a stored workload with a queue that does not exist."""
    if scenario.mode == "deadlines":  # one queue takes them all
        return
    if scenario.scheduler_xml is not None:  # each job's leaf is looked up when it is placed
        return
    names = names_of(scenario)
    for job in found:
        if job.queue is not None and job.queue not in names:
            remedy = "add a [[queues]] table for it, or load the file by [[workloads]] with a queue"
            raise BadInput(place, f"job {job.name} has the queue {job.queue!r}, which does not exist", remedy)


def _loaded(scenario: Scenario, text: str, job_class: JobClass, peak: float | None) -> Loaded:
    loaded = load(text, job_class, seed=scenario.seed)
    found, notes = loaded.jobs, list(loaded.notes)
    if peak is not None:
        scaled = scale_to_load(found, slots_of(scenario), peak)
        found = scaled.jobs
        notes.append(
            f"task counts x {scaled.factor:.4g}: peak load {scaled.achieved_load:.2f} (wanted {peak:g})"
        )
    if scenario.load != 1.0:
        found = with_load(found, scenario.load)
    return Loaded(found, tuple(notes), loaded.source)


def node_size(scenario: Scenario) -> Resources:
    """Return the size of one node."""
    if scenario.slots is not None:
        return times(ONE_SLOT, scenario.slots)
    return Resources(scenario.node_memory_mib or 0, scenario.node_vcores or 0)


def counted_size(scenario: Scenario) -> Resources:
    """Return the size of one node as the scheduler counts it."""
    size = node_size(scenario)
    return by_memory(size) if scheduler_file(scenario).counts_memory_alone else size


def slots_of(scenario: Scenario) -> int:
    """Return how many containers of one slot the cluster holds."""
    size = counted_size(scenario)
    each = min(size.memory_mib // ONE_SLOT.memory_mib, size.vcores // ONE_SLOT.vcores)
    return max(1, each * scenario.nodes)


def require_room(scenario: Scenario, jobs: tuple[Job, ...]) -> None:
    """Raise BadInput if a container of a job fits on no node: before anything is written."""
    from emulator.cluster.cluster import Cluster
    from emulator.virtual.schemes import queues_of

    Cluster(
        nodes=1,
        node_size=counted_size(scenario),
        queues=queues_of(SCHEMES["soft-cap"], scenario.shares, scenario.caps, scenario.am_ratio),
        jobs=jobs,
        timing=scenario.times,
        seed=scenario.seed,
    )


def settings(scenario: Scenario) -> Settings:
    """Return the controller's settings: the profile, the policies, and what is tuned."""
    tuned = {name: getattr(scenario.tuning, name) for name in scenario.tuning.__struct_fields__}
    profile = PROFILES[scenario.profile]
    if scenario.mode == "guarantees":  # every leaf, unless [[queues]] give roles
        profile = msgspec.structs.replace(profile, preempting_queues=(), preemptable_queues=())
    elif scenario.scheduler_xml is not None:
        profile = msgspec.structs.replace(
            profile,
            preempting_queues=(require_leaf(scenario, scenario.production_queue, "production_queue"),),
            preemptable_queues=(require_leaf(scenario, scenario.research_queue, "research_queue"),),
        )
    return msgspec.structs.replace(
        profile,
        preempting_queues=profile.preempting_queues + with_role(scenario, "preempting"),
        preemptable_queues=profile.preemptable_queues + with_role(scenario, "preemptable"),
        mode=scenario.mode,
        job_policy=scenario.job_policy,
        task_policy=scenario.task_policy,
        seed=scenario.seed,
        **{name: value for name, value in tuned.items() if value is not None},
    )


def setup(scenario: Scenario) -> Setup:
    """Return what stays the same between the schemes."""
    from emulator.virtual.run import Setup

    file = scheduler_file(scenario)
    return Setup(
        leaves=file.leaves,
        parents=file.parents,
        source=file if file.parents else None,
        labels=scenario.node_labels,
        nodes=scenario.nodes,
        node_size=counted_size(scenario),
        timing=scenario.times,
        settings=settings(scenario),
        shares=scenario.shares,
        caps=scenario.caps,
        am_ratio=scenario.am_ratio,
        seed=scenario.seed,
        faults=scenario.faults,
        more_queues=more_queues(scenario),
        limits=limits(scenario),
        may_lose_ratio=scenario.may_lose,
        room_within_ms=scenario.room_within_ms,
        second_worth_ratio=scenario.second_worth or msgspec.UNSET,
        kills_max=KILLS_MAX if scenario.second_worth else msgspec.UNSET,
    )


# --- queues beyond production and research -------------------------------------------------------


def more_queues(scenario: Scenario) -> tuple[QueueConfig, ...]:
    """Return the queues beyond production and research, as the scheduler has them."""
    return tuple(
        QueueConfig(
            name=entry.name,
            capacity_ratio=entry.guaranteed_ratio or 0.0,
            maximum_ratio=1.0 if entry.maximum_ratio is None else entry.maximum_ratio,
            am_ratio=scenario.am_ratio if entry.am_ratio is None else entry.am_ratio,
            user_limit_factor=entry.user_limit_factor,
            preempting=entry.role == "preempting",
        )
        for entry in scenario.queues
        if entry.name not in OWN
    )


def limits(scenario: Scenario) -> tuple[LeafLimits, ...]:
    """Return the limits given to production and research."""
    return tuple(
        LeafLimits(
            name=entry.name,
            maximum_ratio=entry.maximum_ratio,
            am_ratio=entry.am_ratio,
            user_limit_factor=entry.user_limit_factor,
        )
        for entry in scenario.queues
        if entry.name in OWN
    )


def with_role(scenario: Scenario, role: str) -> tuple[str, ...]:
    """Return the further queues of a role, in the order in which they are written."""
    return tuple(entry.name for entry in scenario.queues if entry.role == role)


def notes_on(scenario: Scenario) -> tuple[str, ...]:
    """Describe each queue of the scenario's own in a line."""
    notes = []
    for entry in scenario.queues:
        parts: list[str] = [] if entry.role is None else [entry.role]
        for field in ("guaranteed_ratio", "maximum_ratio", "am_ratio", "user_limit_factor"):
            value = getattr(entry, field)
            if value is not None:
                parts.append(f"{field} {value:g}")
        notes.append(f"queue {entry.name}: {', '.join(parts) or 'no limits'}")
    return tuple(notes)


# --- identity -------------------------------------------------------------------------------


def identity(scenario: Scenario, jobs: tuple[Job, ...]) -> str:
    """Return sha256 over the canonical JSON of all that decides, as hexadecimal digits."""
    decides: dict[str, object] = {
        "jobs": hashlib.sha256(msgspec.json.encode(jobs)).hexdigest(),
        "nodes": scenario.nodes,
        "node_size": node_size(scenario),
        "settings": _hashed(settings(scenario)),
        "timing": scenario.times,
        "shares": scenario.shares,
        "caps": scenario.caps,
        "am_ratio": scenario.am_ratio,
        "seed": scenario.seed,
        "faults": scenario.faults,
    }
    if scenario.queues:  # only then: what was hashed before there were queues keeps its identity
        decides["queues"] = (more_queues(scenario), limits(scenario))
    if scenario.scheduler_xml is not None:
        file = scheduler_file(scenario)
        decides["scheduler_xml"] = (file.leaves, file.parents)
        if file.counts_memory_alone:
            decides["calculator"] = "memory"
        if any(parent.depth_on_demand for parent in file.parents):
            decides["templates"] = file.keys
        if scenario.node_labels:
            decides["node_labels"] = scenario.node_labels
    if scenario.may_lose or scenario.room_within_ms is not None:
        decides["mix"] = (scenario.may_lose, scenario.room_within_ms)
    if scenario.second_worth:
        decides["second_worth"] = scenario.second_worth
    return hashlib.sha256(msgspec.json.encode(decides, order="sorted")).hexdigest()


LATER = (
    "observe_only",
    "in_flight_ratio_max",
    "in_flight_least",
    "rest_ms",
    "levers",
    "deadlines",
    "hours",
    "governed",
)
"""Settings that came after the first results were kept: at their defaults they change no identity."""


def _hashed(settings: Settings) -> dict[str, object]:
    """Return the settings by their names in journals, which stay when a field is renamed."""
    default = Settings()
    return {
        field.encode_name: getattr(settings, field.name)
        for field in msgspec.structs.fields(Settings)
        if field.name not in LATER or getattr(settings, field.name) != getattr(default, field.name)
    }
