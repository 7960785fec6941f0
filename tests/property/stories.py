"""Small stories with everything in them, for planting bugs: short, the same every time, crowded.

Law: without a planted bug every story ends well under all invariants (a test says so).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from emulator.cluster.entities import ParentConfig, QueueConfig, TreeLeafConfig
from emulator.cluster.faults import Fault, MasterDead, NodeLost
from emulator.cluster.timing import HADOOP3, PAPER, Timing
from emulator.invariants import RunWatch, check_all
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from tests.property.playing import UNTIL_MS, Meddled
from tests.property.scenarios import Bare
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job, JobClass, SparkShape
from yarnctl.units import Resources

Stage = Run | Meddled


def job(name: str, job_class: JobClass, at_ms: int, maps: int, reduces: int, **other: Any) -> Job:
    """Return a job of 2 s maps and 12 s reduces of 24 keys."""
    plain = Job(
        name=name, job_class=job_class, submitted_at_ms=at_ms, map_ms=(2000,) * maps,
        reduce_ms=tuple(12_000 + 500 * task for task in range(reduces)), reduce_keys=(24,) * reduces,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **other)


RESEARCH = (job("r1", "research", 0, 2, 6), job("r2", "research", 500, 2, 5))
PRODUCTION = job("p", "production", 14_000, 2, 6)


def three_nodes(**more: Any) -> Setup:
    """Return a cluster of three nodes of four slots, decided about at once."""
    return Setup(
        nodes=3, node_size=Resources(4096, 4), timing=HADOOP3,
        settings=msgspec.structs.replace(DEFAULT, cost_guard=False, settle_ms=0), seed=3, **more,
    )  # fmt: skip


def natjam() -> Run:
    """Two research jobs fill three nodes; a production job takes containers from them, twice."""
    setup = three_nodes()
    jobs = (*RESEARCH, PRODUCTION, job("q", "production", 24_000, 0, 4))
    return Run(setup, jobs, SCHEMES["natjam"], MemoryJournal())


def nested() -> Run:
    """The same below a parent that a third queue stands beside."""
    leaves = tuple(
        TreeLeafConfig(name=name, capacity_ratio=share, am_ratio=0.5)
        for name, share in (("all.production", 0.72), ("all.research", 0.08), ("other", 0.2))
    )
    settings = msgspec.structs.replace(
        DEFAULT,
        cost_guard=False,
        settle_ms=0,
        preempting_queues=("all.production",),
        preemptable_queues=("all.research",),
    )
    parents = (ParentConfig(), ParentConfig(name="all", capacity_ratio=0.8))
    setup = msgspec.structs.replace(three_nodes(leaves=leaves, parents=parents), settings=settings)
    played = (*RESEARCH, PRODUCTION, job("q", "production", 24_000, 0, 4))
    jobs = tuple(msgspec.structs.replace(each, queue=f"all.{each.job_class}") for each in played)
    return Run(setup, jobs, SCHEMES["natjam"], MemoryJournal())


def mix(**prices: Any) -> Run:
    """Two research jobs, one of long maps; for production tasks are awaited, suspended, ended and killed."""
    setup = three_nodes(hold=True, may_lose_ratio=0.3, **prices)
    maps = job("r3", "research", 700, 8, 0, map_ms=(40_000,) * 8)
    jobs = (RESEARCH[0], maps, PRODUCTION, job("q", "production", 24_000, 0, 6))
    return Run(setup, jobs, SCHEMES["mix"], MemoryJournal())


def sparks() -> Run:
    """An application of Spark fills three nodes; for production its executors leave, and they come back."""
    setup = three_nodes(may_lose_ratio=0.5, room_within_ms=12_000)
    shape = SparkShape(executors=10, block_mib=2)
    stages = {"map_ms": (2000,) * 30, "reduce_ms": (2000, 2500) * 150, "reduce_keys": (1,) * 300}
    jobs = (job("s", "research", 0, 0, 0, spark=shape, **stages), job("p", "production", 20_000, 2, 3))
    return Run(setup, jobs, SCHEMES["mix"], MemoryJournal())


def bare(
    *jobs: Job,
    meddling: tuple[tuple[int, str, int], ...] = (),
    faults: tuple[Fault, ...] = (),
    nodes: int = 2,
    timing: Timing = PAPER,
    **queue: Any,
) -> Meddled:
    """Return a cluster of 4 GiB nodes without a controller; ``queue`` changes both its queues."""
    shares = (("production", 0.6), ("research", 0.4))
    queues = tuple(QueueConfig(name=name, capacity_ratio=ratio, **queue) for name, ratio in shares)
    return Meddled(Bare(nodes, Resources(4096, 4), queues, jobs, timing, 3, faults, meddling))


def meddled() -> Meddled:
    """Attempts are killed, suspended and released too early."""
    meddling = ((16_000, "kill", 1), (18_000, "suspend", 0), (18_000, "release", 0), (30_000, "preempt", 0))
    return bare(*RESEARCH, PRODUCTION, meddling=meddling)


def limited() -> Meddled:
    """Users and masters are limited."""
    jobs = (*RESEARCH, PRODUCTION, job("r3", "research", 900, 3, 3, user="ann"))
    return bare(*jobs, nodes=3, user_limit_factor=1.0, am_ratio=0.15)


def capped() -> Meddled:
    """Neither queue may have more than half of the cluster."""
    return bare(*RESEARCH, PRODUCTION, nodes=3, maximum_ratio=0.5)


def faulty() -> Meddled:
    """A node dies under its containers, and a master."""
    return bare(*RESEARCH, PRODUCTION, nodes=4, faults=(MasterDead(13_000, 0), NodeLost(16_000, 1)))


STORIES: dict[str, Callable[[], Stage]] = {
    story.__name__: story for story in (natjam, nested, mix, sparks, meddled, limited, capped, faulty)
}


def tell(stage: Stage, after_each: Callable[[RunWatch], None] = lambda watch: None) -> RunWatch:
    """Play a story to its end under watch; ``after_each`` may meddle before each check."""
    watch = RunWatch(stage)

    def check() -> None:
        after_each(watch)
        check_all(watch)

    stage.cluster.kernel.run(UNTIL_MS, check)
    stage.cluster.require_done()
    return watch
