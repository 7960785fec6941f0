"""Memory that MapReduce jobs requested and never used, by name, with the setting that frees it. Pure.

The peak of a job is that of its largest task attempt (``MAP_PHYSICAL_MEMORY_BYTES_MAX`` and the reduces', of
Hadoop 3: MAPREDUCE-6829). The advice is the largest peak of the known runs and a margin. If runs are alike,
the next peak exceeds the largest of n with a chance of 1 in n + 1; the margin makes it less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

TASK_COUNTERS = "org.apache.hadoop.mapreduce.TaskCounter"
JOB_COUNTERS = "org.apache.hadoop.mapreduce.JobCounter"
KINDS: tuple[Literal["map", "reduce"], ...] = ("map", "reduce")
MARGIN_RATIO = 1.2
FEW_RUNS, FEW_MARGIN_RATIO = 3, 1.5
"""The margin of fewer runs than ``FEW_RUNS``."""


class MemoryUse(NamedTuple):
    """What the tasks of one kind of one run requested and used; ``work_mib_ms``: container time x memory."""

    queue: str
    user: str
    name: str
    kind: Literal["map", "reduce"]
    requested_mib: int
    peak_mib: int
    work_mib_ms: int


class Oversized(msgspec.Struct, frozen=True, kw_only=True):
    """Advice for one job name and kind of task. ``exceeds_ratio``: the chance bound of 1 in runs + 1.

    ``slack_mib_s``: what the known runs would have freed with ``advised_mib``.
    """

    queue: str
    user: str
    name: str
    kind: str
    runs: int
    requested_mib: int
    peak_mib: int
    advised_mib: int
    slack_mib_s: int
    exceeds_ratio: float
    setting: str


def uses(
    whose: tuple[str, str, str], counters: Mapping[str, Mapping[str, int]], requested_mib: Mapping[str, int]
) -> list[MemoryUse]:
    """Return what a job's counters say of its maps and reduces; none where Hadoop does not count peaks.

    ``whose``: queue, user and name. ``requested_mib``: by kind, as the scheduler rounds it.
    """
    tasks, job = counters.get(TASK_COUNTERS, {}), counters.get(JOB_COUNTERS, {})
    found = []
    for kind in KINDS:
        peak_bytes = tasks.get(f"{kind.upper()}_PHYSICAL_MEMORY_BYTES_MAX", 0)
        spent_ms = job.get(f"MILLIS_{kind.upper()}S", 0)
        if peak_bytes > 0 and spent_ms > 0:
            requested = requested_mib[kind]
            found.append(MemoryUse(*whose, kind, requested, -(-peak_bytes >> 20), spent_ms * requested))
    return found


def oversized(known: Iterable[MemoryUse], least_mib: int) -> list[Oversized]:
    """Return advice where a smaller container suffices, the most slack first; ``least_mib``: YARN's step."""
    groups: dict[tuple[str, ...], list[MemoryUse]] = {}
    for use in known:
        groups.setdefault(use[:4], []).append(use)
    found = []
    for (queue, user, name, kind), runs in groups.items():
        peak = max(use.peak_mib for use in runs)
        margin = MARGIN_RATIO if len(runs) >= FEW_RUNS else FEW_MARGIN_RATIO
        advised = -(-int(peak * margin) // least_mib) * least_mib
        latest = runs[-1].requested_mib
        if advised >= latest:
            continue
        slack = sum(
            use.work_mib_ms * (use.requested_mib - advised) // use.requested_mib
            for use in runs
            if use.requested_mib > advised
        )
        found.append(
            Oversized(
                queue=queue,
                user=user,
                name=name,
                kind=kind,
                runs=len(runs),
                requested_mib=latest,
                peak_mib=peak,
                advised_mib=advised,
                slack_mib_s=slack // 1000,
                exceeds_ratio=1 / (len(runs) + 1),
                setting=f"-Dmapreduce.{kind}.memory.mb={advised}",
            )
        )
    return sorted(found, key=lambda one: (-one.slack_mib_s, one.name, one.kind))
