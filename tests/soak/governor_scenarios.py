"""Eleven scenarios in which levers help production little, or not at all: what the governor is for.

The rule, written before the runs: with ``--eviction mix`` the jobs of production take at most 2 % longer in
sum than in the same cluster in which yarnctl only observes (it sends no order).

Three nodes of four slots; research fills them first. Virtual time plays them in
``tests/unit/test_governor_scenarios.py``, the live emulator in ``governor_live``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from emulator.cluster.entities import QueueConfig
from emulator.cluster.faults import Fault, NodeLost, StoreDown
from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Result, Run, Setup
from emulator.virtual.schemes import SCHEMES, LeafLimits
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job, SparkShape
from yarnctl.units import Resources

NODES, SLOTS = 3, 4
MARGIN = 1.02
OBSERVING = msgspec.structs.replace(SCHEMES["mix"], name="observing", eviction=None, mix=False)
LARGE = Resources(3 * 1024, 3)


class Adversarial(NamedTuple):
    """One scenario: its jobs, and what is unusual about its cluster."""

    name: str
    jobs: tuple[Job, ...]
    faults: tuple[Fault, ...] = ()
    limits: tuple[LeafLimits, ...] = ()
    queues: tuple[QueueConfig, ...] = ()
    am_ratio: float = 0.5
    may_lose_ratio: float = 0.1
    room_within_ms: int | None = None

    def setup(self, *, governed: bool = True) -> Setup:
        """Return its cluster in virtual time."""
        return Setup(
            nodes=NODES,
            node_size=Resources(1024 * SLOTS, SLOTS),
            timing=HADOOP3,
            settings=msgspec.structs.replace(  # as the command line's defaults
                DEFAULT, in_flight_ratio_max=0.1, in_flight_least=4, kill_timeout_ms=25_000
            ),
            am_ratio=self.am_ratio,
            seed=3,
            faults=self.faults,
            limits=self.limits,
            more_queues=self.queues,
            may_lose_ratio=self.may_lose_ratio,
            room_within_ms=self.room_within_ms,
            governed=governed,
        )


class Played(NamedTuple):
    """How long production's jobs took in sum, in ms: observing, without and with the governor.

    ``journal``: of the last.
    """

    observing_ms: int
    free_ms: int
    governed_ms: int
    journal: MemoryJournal


def play(scenario: Adversarial) -> Played:
    """Play a scenario three times in virtual time."""
    journal = MemoryJournal()
    observing = Run(scenario.setup(), scenario.jobs, OBSERVING).go()
    free = Run(scenario.setup(governed=False), scenario.jobs, SCHEMES["mix"], MemoryJournal()).go()
    governed = Run(scenario.setup(), scenario.jobs, SCHEMES["mix"], journal).go()
    return Played(took_ms(observing), took_ms(free), took_ms(governed), journal)


def took_ms(result: Result) -> int:
    """Return how long production's jobs took in sum."""
    return sum(each.completion_ms for each in result.jobs if each.job_class == "production")


# --- jobs -----------------------------------------------------------------------------------------------


def job(name: str, at_s: float, maps_s: Sequence[float], reduces_s: Sequence[float] = (), **more: Any) -> Job:
    """Return a job of production; its reduces have a key group each 100 ms."""
    plain = Job(
        name=name,
        job_class="production",
        submitted_at_ms=int(at_s * 1000),
        map_ms=tuple(int(each * 1000) for each in maps_s),
        reduce_ms=tuple(int(each * 1000) for each in reduces_s),
        reduce_keys=tuple(max(1, int(each * 10)) for each in reduces_s),
    )
    return msgspec.structs.replace(plain, **more)


def research(name: str = "nightly", maps_s: Sequence[float] = (), reduces: int = 10, **more: Any) -> Job:
    """Return research of ``reduces`` long reduces, or of maps."""
    return job(
        name, 0, maps_s or (2, 2), [150 + each for each in range(reduces)], job_class="research", **more
    )


def every(
    each_s: float, count: int, maps_s: Sequence[float], begin_s: float = 40, **more: Any
) -> tuple[Job, ...]:
    """Return production's jobs, one each ``each_s``."""
    return tuple(job(f"p{at}", begin_s + at * each_s, maps_s, **more) for at in range(count))


SPARK = job(
    "spark", 0, [2] * 30, [2, 2.5] * 300, job_class="research", spark=SparkShape(executors=10, block_mib=2)
)

SCENARIOS: tuple[Adversarial, ...] = (
    # Requests of three slots on nodes of four: YARN reserves nodes for them.
    Adversarial("reservations", (research(), *every(30, 8, [8, 8], map_size=LARGE))),
    # Executors drain for maps of a second.
    Adversarial("short-tasks", (SPARK, *every(12, 15, [1] * 5)), room_within_ms=12_000),
    # Masters wait for the queue's limit, which no lever changes.
    Adversarial("full-masters", (research(), *every(4, 20, [10, 10])), am_ratio=0.17),
    # A third queue below its guarantee receives what is freed.
    Adversarial(
        "rival",
        (
            research(),
            *every(15, 12, [6] * 3),
            *(job(f"a{at}", 38 + at * 6, [10] * 3, job_class="research", queue="adhoc") for at in range(20)),
        ),
        queues=(QueueConfig(name="adhoc", capacity_ratio=0.5, am_ratio=0.5),),
    ),
    # Requests are served, or gone, before a lever is: jobs of one map beside a job that turns over.
    Adversarial("gone", (research(reduces=6), *every(2, 90, [0.5]))),
    # A key group takes ten seconds: a suspension is late, and a task of research would have ended before it.
    Adversarial(
        "slow-levers",
        (
            *(
                research(f"r{at}", reduces=0, reduce_ms=(20_000,) * 40, reduce_keys=(2,) * 40)
                for at in range(2)
            ),
            *every(20, 10, [5] * 4),
        ),
    ),
    # No checkpoint can be written.
    Adversarial("no-store", (research(), *every(20, 10, [5] * 4)), faults=(StoreDown(35_000, 400_000),)),
    # The queue's maximum binds.
    Adversarial(
        "queue-limit",
        (research(), *every(10, 16, [6] * 5)),
        limits=(LeafLimits(name="production", maximum_ratio=0.34),),
    ),
    # Demand comes and goes.
    Adversarial("flapping", (research(maps_s=[20] * 60, reduces=0), *every(9, 25, [2] * 3))),
    # Tiny tasks in waves.
    Adversarial("waves", (research(), *every(25, 8, [0.5] * 60))),
    # A node is lost under production and its levers.
    Adversarial("node-lost", (research(), *every(15, 12, [8] * 4)), faults=(NodeLost(62_000, 1),)),
)
