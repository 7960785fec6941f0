"""The paper's own workloads, and steady ones for benchmarks, under plain names.

Law: a name is a key of one dict (``WORKLOADS``), its value a pure function of (job class, calibration, seed);
the class comes from the caller, so that every name can be given to production and to research. Sources of the
paper's: its sections 5 and 7, the constants of its workload generator, and Fig. 3 for every length. In steady
ones, research fills a cluster and production comes in bursts; all chance comes from one integer seed through
numpy's PCG64, and every length is drawn as an integer number of milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.job import KEY_GROUP_MS, Job, JobClass, key_groups
from yarnctl.traces.lengths import TABLE_LENGTH, length_table

if TYPE_CHECKING:
    import numpy as np


RESEARCH_LOAD = 1.1
PRODUCTION_LOAD = 0.15
BURST_GAP_MS = 300_000
DURATION_MS, MEAN_TASK_MS = 3_600_000, 120_000
_STREAM: dict[JobClass, int] = {"production": 1, "research": 2}


def steady_jobs(
    job_class: JobClass,
    *,
    nodes: int,
    slots_per_node: int,
    load: float | None = None,
    tasks_per_job: int | None = None,
    seed: int = 0,
) -> tuple[Job, ...]:
    """Return the jobs of one class that offer ``load`` x capacity in an hour.

    ``load`` is container time wanted / (nodes x slots x duration): 1.1 for research, 0.15 for
    production unless given. Research: one task in five a map of half the mean length,
    the rest long reduces (9/8 of the mean); jobs worth a full cluster are there at t = 0, the
    rest arrive evenly at random. Production: as many maps as reduces, in a burst every five minutes.
    Lengths are uniform in [1/2, 3/2) of the mean. ``tasks_per_job``: by default a fortieth of
    the slots, at least 5. Raises BadInput for numbers that are not positive.
    """
    import numpy as np

    wanted = load if load is not None else RESEARCH_LOAD if job_class == "research" else PRODUCTION_LOAD
    slots = nodes * slots_per_node
    tasks = tasks_per_job if tasks_per_job is not None else max(5, slots // 40)
    if min(nodes, slots_per_node, tasks) < 1 or not 0 < wanted < 1000:
        raise BadInput("steady workload", "nodes, slots, tasks and load must be positive")
    if seed < 0:
        raise BadInput("steady workload, seed", f"must not be negative, not {seed}")
    chance = np.random.Generator(np.random.PCG64([seed, _STREAM[job_class]]))
    count = max(1, round(wanted * slots * DURATION_MS / (tasks * MEAN_TASK_MS)))
    if job_class == "research":
        arrivals = _research_arrivals(chance, count, -(-slots // tasks))
    else:
        arrivals = _production_arrivals(chance, count)
    maps = max(1, tasks // 5) if job_class == "research" else max(1, tasks // 2)
    means = (MEAN_TASK_MS // 2, MEAN_TASK_MS * 9 // 8) if job_class == "research" else (MEAN_TASK_MS,) * 2
    return tuple(
        _job(f"steady-{i:05d}", job_class, at_ms, _lengths(chance, maps, means[0]),
             _lengths(chance, max(1, tasks - maps), means[1]))
        for i, at_ms in enumerate(arrivals)
    )  # fmt: skip


def _research_arrivals(chance: np.random.Generator, count: int, filling: int) -> list[int]:
    """Return sorted instants: ``filling`` jobs at 0, the others uniform in [0, duration)."""
    late = chance.integers(0, DURATION_MS, size=max(0, count - filling)).tolist()
    return [0] * min(count, filling) + sorted(late)


def _production_arrivals(chance: np.random.Generator, count: int) -> list[int]:
    """Return sorted instants: bursts ``BURST_GAP_MS`` apart, the first after 120 s, each within 10 s."""
    first_ms = min(120_000, DURATION_MS // 2)
    bursts = max(1, -(-(DURATION_MS - first_ms) // BURST_GAP_MS))
    jitter = chance.integers(0, 10_000, size=count).tolist()
    return sorted(first_ms + (i % bursts) * BURST_GAP_MS + jitter[i] for i in range(count))


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


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The constants of the paper's jobs, all in ms unless a count.

    Submission: research at 0, production at 50 s (section 5), by the class the caller gives. ``lmax_*`` is
    the longest reduce of a job, calibrated on Fig. 3 alone: such that the job by itself takes the time that
    the figure gives (to 0.2 s; ``yarn-research paper natjam`` shows both). ``maps`` per job is not in the
    paper (2-6 fit); map and shuffle times are the split of the fixed overhead of an empty job.
    ``key_group_ms``: the generator sleeps 8 ms per key; here a key group is ten keys. Emulab (section 7): 8
    maps and 50 reduces, deadlines counted from t = 0; lengths such that one job takes about 87 s on 21 slots.
    """

    submit_research_ms: int = 0
    submit_production_ms: int = 50_000
    lmax_research_xl_ms: int = 173_400
    lmax_research_l_ms: int = 174_900
    lmax_research_m_ms: int = 176_700
    lmax_research_s_ms: int = 185_600
    lmax_production_xl_ms: int = 46_100
    lmax_production_l_ms: int = 46_000
    lmax_production_m_ms: int = 48_700
    lmax_production_s_ms: int = 53_400
    maps: int = 2
    map_ms: int = 2000
    shuffle_ms: int = 2000
    key_group_ms: int = KEY_GROUP_MS
    emulab_maps: int = 8
    emulab_reduces: int = 50
    emulab_map_ms: int = 36_000
    emulab_lmax_ms: int = 10_000
    emulab_gap_ms: int = 5000
    emulab_clean_ms: int = 87_000
    emulab_epsilon: float = 0.8

    def submitted_at_ms(self, job_class: JobClass) -> int:
        """Return when a microbenchmark job of this class is submitted."""
        return self.submit_production_ms if job_class == "production" else self.submit_research_ms


REDUCES = {"xl": 47, "l": 35, "m": 23, "s": 11}
"""Reduces of each size (Fig. 3)."""

FIG10_DEADLINES_MS = (200_000, 190_000, 180_000)
"""Deadlines of Job 1 to Job 3 of Fig. 10, since t = 0."""


def table_lengths(longest_ms: int, count: int) -> tuple[int, ...]:
    """Return ``count`` task lengths (ms): round(longest x table[i mod 100]), the first the longest."""
    table = length_table()
    return tuple(max(1, round(longest_ms * table[i % TABLE_LENGTH])) for i in range(count))


def microbenchmark(
    like: JobClass, size: str, job_class: JobClass, calibration: Calibration, seed: int = 0
) -> tuple[Job, ...]:
    """Return the one job ``like``-``size`` of Fig. 3 (the seed is not used: nothing is drawn)."""
    longest_ms: int = getattr(calibration, f"lmax_{like}_{size}_ms")
    reduce_ms = table_lengths(longest_ms, REDUCES[size])
    job = Job(
        name=f"{like}-{size}",
        job_class=job_class,
        submitted_at_ms=calibration.submitted_at_ms(job_class),
        map_ms=(calibration.map_ms,) * calibration.maps,
        reduce_ms=reduce_ms,
        reduce_keys=key_groups(reduce_ms, calibration.key_group_ms),
        shuffle_ms=calibration.shuffle_ms,
    )
    return (job,)


def emulab_jobs(
    job_class: JobClass,
    calibration: Calibration,
    deadlines_at_ms: Sequence[int],
    size_ratios: Sequence[float] = (),
) -> tuple[Job, ...]:
    """Return one Natjam-R job per deadline, submitted ``emulab_gap_ms`` apart from 0.

    ``size_ratios`` multiplies the reduces of each job (default: all 1.0).
    """
    jobs = []
    for i, deadline_at_ms in enumerate(deadlines_at_ms):
        ratio = size_ratios[i] if i < len(size_ratios) else 1.0
        reduce_ms = table_lengths(
            calibration.emulab_lmax_ms, max(1, round(calibration.emulab_reduces * ratio))
        )
        jobs.append(
            Job(
                name=f"emulab-{i + 1}",
                job_class=job_class,
                submitted_at_ms=i * calibration.emulab_gap_ms,
                map_ms=(calibration.emulab_map_ms,) * calibration.emulab_maps,
                reduce_ms=reduce_ms,
                reduce_keys=key_groups(reduce_ms, calibration.key_group_ms),
                shuffle_ms=calibration.shuffle_ms,
                deadline_at_ms=deadline_at_ms,
            )
        )
    return tuple(jobs)


def emulab_pair(
    job_class: JobClass, calibration: Calibration, epsilon: float, size_ratio: float = 1.0
) -> tuple[Job, ...]:
    """Return the two jobs of Fig. 11: deadline = clean x (1 + epsilon), the second's 1 s earlier."""
    deadline_at_ms = round(calibration.emulab_clean_ms * (1.0 + epsilon))
    return emulab_jobs(job_class, calibration, (deadline_at_ms, deadline_at_ms - 1000), (1.0, size_ratio))


def _fig10(job_class: JobClass, calibration: Calibration, seed: int) -> tuple[Job, ...]:
    return emulab_jobs(job_class, calibration, FIG10_DEADLINES_MS)


def _fig11(job_class: JobClass, calibration: Calibration, seed: int) -> tuple[Job, ...]:
    return emulab_pair(job_class, calibration, calibration.emulab_epsilon)


def _steady(nodes: int, job_class: JobClass, calibration: Calibration, seed: int) -> tuple[Job, ...]:
    return steady_jobs(job_class, nodes=nodes, slots_per_node=8, seed=seed)


Workload = Callable[[JobClass, Calibration, int], tuple[Job, ...]]
"""A name's meaning: (class, calibration, seed) -> jobs by (submission, name)."""

_CLASSES: tuple[JobClass, ...] = ("research", "production")

WORKLOADS: dict[str, Workload] = {
    **{f"{like}-{size}": partial(microbenchmark, like, size) for like in _CLASSES for size in REDUCES},
    "emulab": _fig10,
    "emulab-pair": _fig11,
    **{f"steady-{nodes}": partial(_steady, nodes) for nodes in (10, 50, 250, 5000)},
}


def synthetic(
    name: str, job_class: JobClass, calibration: Calibration | None = None, seed: int = 0
) -> tuple[Job, ...]:
    """Return the jobs of a named workload; raises BadInput with the known names for another."""
    workload = WORKLOADS.get(name)
    if workload is None:
        raise BadInput(f"synthetic:{name[:80]}", "unknown workload", f"use one of {', '.join(WORKLOADS)}")
    return workload(job_class, calibration or Calibration(), seed)
