"""Steady workloads for benchmarks: research that fills a cluster, production in bursts.

Law: all chance comes from one integer seed through numpy's PCG64; every length is an integer
number of milliseconds, drawn as an integer. Both classes have a mean task of 120 s by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.workload.job import Job, JobClass
from emulator.workload.key_groups import key_groups
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

RESEARCH_LOAD = 1.1
PRODUCTION_LOAD = 0.15
BURST_GAP_MS = 300_000
_STREAM: dict[JobClass, int] = {"production": 1, "research": 2}


def steady_jobs(
    job_class: JobClass,
    *,
    nodes: int,
    slots_per_node: int,
    load: float | None = None,
    duration_ms: int = 3_600_000,
    mean_task_ms: int = 120_000,
    tasks_per_job: int | None = None,
    burst_gap_ms: int = BURST_GAP_MS,
    seed: int = 0,
) -> tuple[Job, ...]:
    """Return the jobs of one class that offer ``load`` x capacity over ``duration_ms``.

    ``load`` is container time wanted / (nodes x slots x duration): 1.1 for research, 0.15 for
    production unless given. Research: one task in five a map of half the mean length,
    the rest long reduces (9/8 of the mean); jobs worth a full cluster are there at t = 0, the
    rest arrive evenly at random. Production: as many maps as reduces, in a burst every ``burst_gap_ms``.
    Lengths are uniform in [1/2, 3/2) of the mean. ``tasks_per_job``: by default a fortieth of
    the slots, at least 5. Raises BadInput for numbers that are not positive.
    """
    import numpy as np

    wanted = load if load is not None else RESEARCH_LOAD if job_class == "research" else PRODUCTION_LOAD
    slots = nodes * slots_per_node
    tasks = tasks_per_job if tasks_per_job is not None else max(5, slots // 40)
    if (
        min(nodes, slots_per_node, duration_ms, mean_task_ms, tasks, burst_gap_ms) < 1
        or not 0 < wanted < 1000
    ):
        raise BadInput("steady workload", "nodes, slots, times, tasks and load must be positive")
    if seed < 0:
        raise BadInput("steady workload, seed", f"must not be negative, not {seed}")
    chance = np.random.Generator(np.random.PCG64([seed, _STREAM[job_class]]))
    count = max(1, round(wanted * slots * duration_ms / (tasks * mean_task_ms)))
    if job_class == "research":
        arrivals = _research_arrivals(chance, count, duration_ms, -(-slots // tasks))
    else:
        arrivals = _production_arrivals(chance, count, duration_ms, burst_gap_ms)
    maps = max(1, tasks // 5) if job_class == "research" else max(1, tasks // 2)
    means = (mean_task_ms // 2, mean_task_ms * 9 // 8) if job_class == "research" else (mean_task_ms,) * 2
    return tuple(
        _job(f"steady-{i:05d}", job_class, at_ms, _lengths(chance, maps, means[0]),
             _lengths(chance, max(1, tasks - maps), means[1]))
        for i, at_ms in enumerate(arrivals)
    )  # fmt: skip


def _research_arrivals(chance: np.random.Generator, count: int, duration_ms: int, filling: int) -> list[int]:
    """Return sorted instants: ``filling`` jobs at 0, the others uniform in [0, duration)."""
    late = chance.integers(0, duration_ms, size=max(0, count - filling)).tolist()
    return [0] * min(count, filling) + sorted(late)


def _production_arrivals(chance: np.random.Generator, count: int, duration_ms: int, gap_ms: int) -> list[int]:
    """Return sorted instants: bursts ``gap_ms`` apart, the first after 120 s, each within 10 s."""
    first_ms = min(120_000, duration_ms // 2)
    bursts = max(1, -(-(duration_ms - first_ms) // gap_ms))
    jitter = chance.integers(0, 10_000, size=count).tolist()
    return sorted(first_ms + (i % bursts) * gap_ms + jitter[i] for i in range(count))


def _lengths(chance: np.random.Generator, count: int, mean_ms: int) -> tuple[int, ...]:
    low_ms = max(1, mean_ms // 2)
    return tuple(chance.integers(low_ms, low_ms + max(1, mean_ms), size=count).tolist())


def _job(
    name: str, job_class: JobClass, at_ms: int, map_ms: tuple[int, ...], reduce_ms: tuple[int, ...]
) -> Job:
    return Job(
        name=name,
        job_class=job_class,
        submitted_at_ms=at_ms,
        map_ms=map_ms,
        reduce_ms=reduce_ms,
        reduce_keys=key_groups(reduce_ms),
    )
