"""Random scenarios: small clusters, small workloads, every knob.

Law: a scenario that comes out of here can be finished. Whatever is drawn, some node without a
master (or room beside all masters) is left for the largest task, on the nodes that survive and
inside every queue's maximum; so a job that does not finish is a bug, never bad luck.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from emulator.cluster.entities import QueueConfig
from emulator.cluster.faults import Fault, HeartbeatLost, MasterDead, NodeLost, NodeSlow, StoreDown, TaskDead
from emulator.cluster.timing import HADOOP3, PAPER, Timing
from emulator.virtual.run import Setup
from emulator.virtual.schemes import SCHEMES, queues_of
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES, Settings
from yarnctl.traces.job import Job, SparkShape
from yarnctl.units import Resources

SIZES = (Resources(1024, 1), Resources(2048, 1), Resources(1024, 2), Resources(3072, 2))


class Scenario(NamedTuple):
    """A run of one scheme."""

    setup: Setup
    jobs: tuple[Job, ...]
    scheme: str


class Bare(NamedTuple):
    """A cluster without a controller, and what is done to its containers: (at_ms, what, pick)."""

    nodes: int
    node_size: Resources
    queues: tuple[QueueConfig, ...]
    jobs: tuple[Job, ...]
    timing: Timing
    seed: int
    faults: tuple[Fault, ...]
    meddling: tuple[tuple[int, str, int], ...]


numbers = st.integers
job_rows = st.tuples(
    st.booleans(),  # production
    numbers(0, 20),  # submitted, s
    numbers(0, 4),  # maps
    numbers(1, 40),  # map, 100 ms
    numbers(0, 9),  # reduces
    numbers(5, 200),  # reduce, 100 ms
    numbers(1, 40),  # keys
    numbers(0, len(SIZES) - 1),  # reduce size
    numbers(0, 3),  # map size, user
    numbers(0, 90),  # deadline, s after submission; 0: none
)


def job_of(place: int, row: tuple[int, ...], uniform_size: bool) -> Job:
    """Make a job of a row of small numbers; its tasks differ a little from each other."""
    production, begin_s, maps, map_ds, reduces, reduce_ds, keys, size, other, due_s = row
    at_s = begin_s + 8 if production else begin_s // 2  # the hurried ones find the cluster taken
    return Job(
        name=f"j{place:02d}", job_class="production" if production else "research",
        submitted_at_ms=at_s * 1000 + place * 37,
        map_ms=tuple(map_ds * 100 + task * 331 for task in range(maps)),
        reduce_ms=tuple(reduce_ds * 100 + task * 777 for task in range(reduces)),
        reduce_keys=tuple(keys + task for task in range(reduces)),
        shuffle_ms=(0, 700, 2000)[(keys + size) % 3], replay_ms=(0, 500)[place % 2],
        deadline_at_ms=(at_s + due_s) * 1000 if due_s else None, user=("ann", "ben")[other % 2],
        map_size=SIZES[0 if uniform_size else other], reduce_size=SIZES[0 if uniform_size else size],
    )  # fmt: skip


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Job, ...]:
    uniform_size = draw(st.booleans())
    rows = draw(st.lists(job_rows, min_size=draw(numbers(1, 4)), max_size=5))
    jobs = [job_of(place, row, uniform_size) for place, row in enumerate(rows)]
    return tuple(sorted(jobs, key=lambda job: (job.submitted_at_ms, job.name)))


# --- clusters ---------------------------------------------------------------------------------

times = st.sampled_from


@st.composite
def timings(draw: st.DrawFn) -> Timing:
    """Return one of the two documented timings, or a random one."""
    known = draw(st.sampled_from((PAPER, HADOOP3, None)))
    if known is not None:
        return known
    return Timing(
        nm_heartbeat_ms=draw(times((1000, 300, 97))), am_heartbeat_ms=draw(times((1000, 250, 97))),
        am_start_ms=draw(times((0, 500, 4500))), launch_ms=draw(times((0, 1200))),
        task_commit_ms=draw(times((0, 1000))), exit_ms=draw(times((0, 350))),
        slow_start_ratio=draw(times((0.0, 0.05, 1.0))), trigger=draw(times(("umbilical", "signal"))),
        suspend_poll_ms=draw(times((1, 3000))), drain_ms=draw(times((0, 700))),
        upload_ms=draw(times((0, 450, 3000))), release_wait_ms=draw(times((0, 300, 30_000))),
        reshuffle=draw(st.booleans()), resume_priority=draw(times((3, 10))),
        releases_itself=draw(st.booleans()), kill_at_rm=draw(st.booleans()),
        node_expiry_ms=draw(times((500, 10_000))), am_retry_ms=draw(times((0, 3000))),
    )  # fmt: skip


fault_rows = st.tuples(numbers(0, 5), numbers(0, 60), numbers(0, 12), numbers(0, 5))


def fault_of(row: tuple[int, int, int, int], nodes: int) -> Fault:
    """Make a fault of a row of small numbers; node 0 is never lost."""
    kind, at_s, span_s, pick = row
    at_ms = at_s * 1000 + pick * 113
    until_ms = at_ms + span_s * 1000 + 500
    if kind == 0 and nodes > 1:
        return NodeLost(at_ms, 1 + pick % (nodes - 1))
    if kind == 1:
        return NodeSlow(at_ms, until_ms, pick, 1.5)
    if kind == 2:
        return HeartbeatLost(at_ms, until_ms, pick)
    if kind == 3:
        return TaskDead(at_ms, pick, span_s)
    if kind == 4:
        return MasterDead(at_ms, pick)
    return StoreDown(at_ms, until_ms)


def surviving(nodes: int, faults: tuple[Fault, ...]) -> int:
    """Return how many nodes are never lost."""
    return nodes - len({fault.node % nodes for fault in faults if isinstance(fault, NodeLost)})


def large_enough(nodes: int, node_size: Resources, jobs: tuple[Job, ...]) -> Resources:
    """Return ``node_size``, or what it takes for the largest task to fit whatever masters do."""
    biggest_mib = max(max(job.map_size[0], job.reduce_size[0]) for job in jobs)
    biggest_vcores = max(max(job.map_size[1], job.reduce_size[1]) for job in jobs)
    masters = len(jobs) if len(jobs) >= nodes else 0
    return Resources(
        max(node_size[0], biggest_mib + 1024 * masters), max(node_size[1], biggest_vcores + masters)
    )


def roomy(queue: QueueConfig, total: Resources, jobs: list[Job]) -> bool:
    """Say whether a queue may grow to hold all its masters and its largest task."""
    if not jobs:
        return True
    masters = len(jobs)
    mib = 1024 * masters + max(max(job.map_size[0], job.reduce_size[0]) for job in jobs)
    vcores = masters + max(max(job.map_size[1], job.reduce_size[1]) for job in jobs)
    return round(total[0] * queue.maximum_ratio) >= mib and round(total[1] * queue.maximum_ratio) >= vcores


@st.composite
def hardware(
    draw: st.DrawFn, jobs: tuple[Job, ...], faulty: bool
) -> tuple[int, Resources, tuple[Fault, ...], Resources]:
    """Return nodes, node size, faults, and what is left of the cluster after all faults."""
    nodes = draw(st.sampled_from((1, 2, 3, 3, 4, 5)))
    slots, extra = draw(numbers(1, 3)), draw(numbers(0, 2))
    rows = draw(st.lists(fault_rows, max_size=4)) if faulty else []
    faults = tuple(sorted((fault_of(row, nodes) for row in rows), key=lambda fault: fault.at_ms))
    left = surviving(nodes, faults)
    size = large_enough(left, Resources(1024 * slots, slots + extra), jobs)
    return nodes, size, faults, Resources(size[0] * left, size[1] * left)


@st.composite
def settings(draw: st.DrawFn, mode: str) -> Settings:
    profile = PROFILES[draw(st.sampled_from(sorted(PROFILES)))]
    return msgspec.structs.replace(
        profile,
        mode=mode,
        job_policy=draw(st.sampled_from(sorted(JOB_POLICIES))),
        task_policy=draw(st.sampled_from(sorted(TASK_POLICIES))),
        # Under least laxity a kill makes its victim the next to be urgent: they would kill each other.
        on_timeout="give-up" if mode == "deadlines" else draw(st.sampled_from(("give-up", "kill"))),
        kill_timeout_ms=draw(st.sampled_from((12_000, 3000))),
        kill_maps=draw(st.booleans()),
        settle_ms=draw(st.sampled_from((0, 5000))),
        cost_guard=draw(st.booleans()),
    )


@st.composite
def scenarios(
    draw: st.DrawFn, schemes: tuple[str, ...], mode: str = "queues", faulty: bool = False
) -> Scenario:
    """Return a scenario of one of ``schemes``; a partition that is too small is made elastic."""
    jobs = draw(workloads())
    nodes, node_size, faults, left = draw(hardware(jobs, faulty))
    scheme = draw(st.sampled_from(schemes))
    shares = draw(st.sampled_from(((0.95, 0.05), (0.5, 0.5), (0.8, 0.2))))
    rules = draw(settings(mode))
    if rules.kill_maps or rules.on_timeout == "kill" or SCHEMES[scheme].eviction != "suspend":
        # What is killed starts over. Where the victim's queue may come first again (equal shares, a
        # victim larger than the ask; YARN-3849), it takes the room back and is killed for ever.
        shares = (0.95, 0.05)
    am_ratio = draw(st.sampled_from((1.0, 0.5, 0.1)))
    if mode == "deadlines" and not rules.model_scheduler:
        # With the guard off, a job that the AM limit keeps waiting takes containers for ever.
        am_ratio = 1.0
    for queue in queues_of(SCHEMES[scheme], shares, (0.6, 0.4), am_ratio):
        own = [job for job in jobs if job.job_class == queue.name]
        if not roomy(queue, left, own):
            scheme = "soft-cap"
    setup = Setup(
        nodes=nodes, node_size=node_size, timing=draw(timings()), settings=rules, shares=shares,
        caps=(0.6, 0.4), am_ratio=am_ratio, seed=draw(numbers(0, 999)), faults=faults,
    )  # fmt: skip
    return Scenario(setup, jobs, scheme)


def _with_maps(job: Job, more: int, longer: int) -> Job:
    """Return a job with ``more`` times as many maps, each ``longer`` times as long."""
    return msgspec.structs.replace(job, map_ms=tuple(ms * longer for ms in job.map_ms) * more)


@st.composite
def mix_scenarios(draw: st.DrawFn, faulty: bool = False) -> Scenario:
    """Return a scenario of the mix: what may be lost, and within which time levers must give room.

    A killed map starts over: as with the other schemes that kill, the victim's queue never comes first.
    """
    setup, jobs, scheme = draw(scenarios(("mix",), faulty=faulty))
    more, longer = draw(st.sampled_from(((1, 1), (3, 10), (6, 6))))
    jobs = tuple(_with_maps(job, more, longer) if job.job_class == "research" else job for job in jobs)
    setup = msgspec.structs.replace(
        setup,
        shares=(0.95, 0.05),
        may_lose_ratio=draw(st.sampled_from((0.0, 0.005, 0.02, 0.2, 0.2))),
        room_within_ms=draw(st.sampled_from((None, None, 1500, 3000, 20_000))),
        hold=draw(st.booleans()),
    )
    return Scenario(setup, jobs, scheme)


def _with_spark(job: Job, shape: SparkShape) -> Job:
    """Return a job as an application of Spark: from the start on, the same work in more and shorter tasks."""
    return msgspec.structs.replace(
        job, submitted_at_ms=0, map_ms=tuple(ms // 4 for ms in job.map_ms) * 4,
        reduce_ms=tuple(ms // 4 for ms in job.reduce_ms) * 4, reduce_keys=job.reduce_keys * 4, spark=shape,
    )  # fmt: skip


@st.composite
def spark_scenarios(draw: st.DrawFn, faulty: bool = False) -> Scenario:
    """Return a scenario of the mix whose research is, in part or wholly, applications of Spark."""
    setup, jobs, scheme = draw(mix_scenarios(faulty))
    shape = SparkShape(
        executors=draw(numbers(1, 6)), cores=draw(st.sampled_from((1, 1, 2))),
        block_mib=draw(st.sampled_from((0, 1, 40))), start_ms=draw(st.sampled_from((0, 2000))),
        route=draw(st.sampled_from(("signal", "plugin"))), min_executors=draw(st.sampled_from((1, 1, 0, 3))),
    )  # fmt: skip
    every = draw(st.sampled_from((1, 1, 2)))
    jobs = tuple(
        _with_spark(job, shape) if job.job_class == "research" and place % every == 0 else job
        for place, job in enumerate(jobs)
    )
    setup = msgspec.structs.replace(
        setup,
        may_lose_ratio=draw(st.sampled_from((0.0, 0.2, 1.0, 1.0))),
        room_within_ms=draw(st.sampled_from((None, 20_000, 60_000))),
    )
    return Scenario(setup, tuple(sorted(jobs, key=lambda job: (job.submitted_at_ms, job.name))), scheme)


MEDDLING = ("suspend", "suspend", "suspend", "withdraw", "release", "kill", "preempt", "prioritise")


@st.composite
def bare_clusters(draw: st.DrawFn, faulty: bool) -> Bare:
    """Return a cluster with three queues and odd limits, and what to do to its containers."""
    jobs = draw(workloads())
    nodes, node_size, faults, left = draw(hardware(jobs, faulty))
    factor = draw(st.sampled_from((None, 1.0, 2.0)))
    am_ratio = draw(st.sampled_from((1.0, 0.5, 0.1)))
    maximum = draw(st.sampled_from((1.0, 0.8, 0.5)))
    queues = []
    for name, ratio in (("production", 0.5), ("research", 0.3), ("third", 0.2)):
        own = [job for job in jobs if job.job_class == name]
        limited = factor is not None and int(left[0] * ratio) * factor >= 1024 * len(own)
        queue = QueueConfig(
            name=name, capacity_ratio=ratio, maximum_ratio=maximum, am_ratio=am_ratio,
            user_limit_factor=factor if limited else None, preempting=name == "production",
        )  # fmt: skip
        queues.append(queue if roomy(queue, left, own) else msgspec.structs.replace(queue, maximum_ratio=1.0))
    deeds = st.tuples(numbers(50, 400), st.sampled_from(MEDDLING), numbers(0, 9))
    meddling = draw(st.lists(deeds, min_size=draw(numbers(0, 12)), max_size=16))
    return Bare(
        nodes, node_size, tuple(queues), jobs, draw(timings()), draw(numbers(0, 999)), faults,
        tuple(sorted((deci_s * 100, what, pick) for deci_s, what, pick in meddling)),
    )  # fmt: skip
