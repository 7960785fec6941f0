"""The two jobs of Fig 4 on a small cluster: research fills it, production arrives late.

Twelve containers on three nodes; research has a reduce for all but its master, production asks for a quarter.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from emulator.cluster.timing import HADOOP3
from emulator.invariants import RunWatch, check_all, check_end
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from yarnctl.deciding.settings import DEFAULT
from yarnctl.journal.chain import MemoryJournal
from yarnctl.traces.job import Job, JobClass
from yarnctl.traces.lengths import length_table
from yarnctl.units import Resources

SLOT = Resources(256, 1)
GROUP_MS = 100
ARRIVES_MS = 46_000


def _job(name: JobClass, longest_ms: int, reduces: int, submitted_at_ms: int) -> Job:
    groups = tuple(round(longest_ms * ratio / GROUP_MS) for ratio in length_table()[:reduces])
    return Job(
        name=name, job_class=name, submitted_at_ms=submitted_at_ms, map_ms=(1000, 1000),
        reduce_ms=tuple(count * GROUP_MS for count in groups), reduce_keys=groups, shuffle_ms=0, am_size=SLOT,
        map_size=SLOT, reduce_size=SLOT,
    )  # fmt: skip


JOBS = (_job("research", 120_000, 11, 0), _job("production", 30_000, 3, ARRIVES_MS))


def play(
    seed: int = 3, *, hold: bool = True, ahead_max: int = 4, also: Callable[[Run], None] = lambda run: None
) -> tuple[Run, MemoryJournal]:
    """Run both jobs with every invariant checked after every event; return the run and its journal."""
    journal = MemoryJournal()
    settings = msgspec.structs.replace(DEFAULT, in_flight_ratio_max=0.1, in_flight_least=4, seed=seed)
    setup = Setup(
        nodes=3, node_size=Resources(1024, 8), timing=HADOOP3, settings=settings, shares=(0.95, 0.05),
        caps=(0.95, 0.05), am_ratio=0.5, seed=seed, hold=hold, ahead_max=ahead_max,
    )  # fmt: skip
    run = Run(setup, JOBS, SCHEMES["natjam"], journal)
    watch = RunWatch(run)

    def look() -> None:
        check_all(watch)
        also(run)

    run.go(look)
    check_end(watch)
    return run, journal
