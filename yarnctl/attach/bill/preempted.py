"""What YARN's preemption took from each job, and the sums of a bill. Pure.

Work is container time times its memory, in MiB-ms. *Lost* is exact: the ResourceManager's own sum of a job
(``preemptedMemorySeconds``) while it lists the job, else the sum of the containers that a history shows.
*Kept* is an interval: what a checkpoint or a drain would have kept of it, with :data:`ASSUMPTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import msgspec

ASSUMPTIONS = (
    "kept: reduces of a program that can be resumed, and executors that leave by a drain; of a reduce the "
    "time after its last map, less (for the smaller number) its own fetching and 6 s to leave and return; "
    "maps keep nothing"
)
UNATTRIBUTED = "unattributed"


class PreemptedContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One container that YARN preempted. ``task``: whose attempt, or the executor; spans in ms.

    ``kept_least_ms`` and ``kept_most_ms``: how much of its time a checkpoint or a drain would have kept.
    """

    task: str
    attempt: str
    memory_mib: int
    began_at_ms: int
    ended_at_ms: int
    kept_least_ms: int = 0
    kept_most_ms: int = 0
    is_repeat: bool = False

    @property
    def lost_ms(self) -> int:
        """How long it ran."""
        return max(0, self.ended_at_ms - self.began_at_ms)


class BilledJob(msgspec.Struct, frozen=True, kw_only=True):
    """One application. ``held_mib_ms``: all that it used (-1: not known). ``day_at_ms``: its end, or now.

    ``listed_mib_ms``, ``listed_containers`` and ``masters`` are the ResourceManager's (-1: not listed, or not
    visible to this user). ``problem``: why no history tells more, "" if one does or none is needed.
    """

    application: str
    kind: str
    queue: str
    user: str
    name: str
    day_at_ms: int
    has_ended: bool
    tags: str = ""
    held_mib_ms: int = -1
    listed_mib_ms: int = -1
    listed_containers: int = -1
    masters: int = 0
    containers: tuple[PreemptedContainer, ...] = ()
    problem: str = ""

    @property
    def told_mib_ms(self) -> int:
        """What the containers that a history shows lost."""
        return sum(one.lost_ms * one.memory_mib for one in self.containers)

    @property
    def lost_mib_ms(self) -> int:
        """What the job lost."""
        return self.listed_mib_ms if self.listed_mib_ms >= 0 else self.told_mib_ms

    @property
    def count(self) -> int:
        """How many of its containers were preempted, masters included."""
        return max(0, self.listed_containers, len(self.containers)) + self.masters

    @property
    def unattributed(self) -> int:
        """How many of them no history explains."""
        return self.count - len(self.containers)


class BillRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a bill; work in MiB-seconds.

    ``lost_ratio``: of all that the row's jobs held (None: not known). ``again``: lost by attempts at a task
    that YARN had preempted before. ``unattributed``: containers of ``containers`` that no history explains;
    nothing of theirs counts in ``again`` and ``kept_least``, all of it in ``kept_most``.
    """

    keys: tuple[str, ...]
    jobs: int
    containers: int
    masters: int
    lost_mib_s: int
    lost_ratio: float | None
    again_mib_s: int
    kept_least_mib_s: int
    kept_most_mib_s: int
    unattributed: int


class Giving(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a queue's work jobs of one kind held, and by which lever they could give containers.

    It is an upper bound: no history is read of jobs that lost nothing, so that masters, maps without a budget
    and reduces that no program resumes count, too. ``enrolled_ratio``: the part of it whose jobs allow a
    drain or a loss by their tags.
    """

    queue: str
    kind: str
    held_mib_s: int
    held_ratio: float
    enrolled_ratio: float
    lever: str


def day_of(at_ms: int) -> str:
    """Return the day of an instant, by UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


KEYS: dict[str, Callable[[BilledJob], str]] = {
    "day": lambda job: day_of(job.day_at_ms),
    "queue": lambda job: job.queue,
    "user": lambda job: job.user,
    "name": lambda job: job.name,
    "kind": lambda job: job.kind,
    "application": lambda job: job.application,
}
"""What a bill can be grouped by."""


def bill(jobs: Iterable[BilledJob], by: Iterable[str]) -> list[BillRow]:
    """Return the rows of the jobs that lost containers, by these :data:`KEYS`, the most lost work first."""
    groups: dict[tuple[str, ...], list[BilledJob]] = {}
    functions = [KEYS[key] for key in by]
    for job in jobs:
        if job.count:
            groups.setdefault(tuple(key(job) for key in functions), []).append(job)
    rows = [_row(keys, members) for keys, members in groups.items()]
    return sorted(rows, key=lambda row: (-row.lost_mib_s, row.keys))


def _row(keys: tuple[str, ...], jobs: list[BilledJob]) -> BillRow:
    lost = sum(job.lost_mib_ms for job in jobs)
    held = sum(job.held_mib_ms for job in jobs) if all(job.held_mib_ms > 0 for job in jobs) else 0
    told = [one for job in jobs for one in job.containers]
    # What no history tells of may have been kept whole, or not at all.
    untold = sum(max(0, job.lost_mib_ms - job.told_mib_ms) for job in jobs if job.unattributed)
    return BillRow(
        keys=keys,
        jobs=len(jobs),
        containers=sum(job.count for job in jobs),
        masters=sum(job.masters for job in jobs),
        lost_mib_s=lost // 1000,
        lost_ratio=lost / held if held else None,
        again_mib_s=sum(one.lost_ms * one.memory_mib for one in told if one.is_repeat) // 1000,
        kept_least_mib_s=sum(one.kept_least_ms * one.memory_mib for one in told) // 1000,
        kept_most_mib_s=(sum(one.kept_most_ms * one.memory_mib for one in told) + untold) // 1000,
        unattributed=sum(job.unattributed for job in jobs),
    )


LEVERS = {
    "MAPREDUCE": "wrap: reduces are suspended, maps killed within a budget",
    "SPARK": "wrap, or the site's defaults: executors leave by a drain",
    "Apache Flink": "wrap: workers leave at a checkpoint",
}
"""By which lever jobs of a kind can give containers (docs/levers.md)."""


def giving(jobs: Iterable[BilledJob], is_enrolled: Callable[[BilledJob], bool]) -> list[Giving]:
    """Return for each queue and kind how much of the queue's work could give containers, at most."""
    held: dict[tuple[str, str], int] = {}
    enrolled: dict[tuple[str, str], int] = {}
    whole: dict[str, int] = {}
    for job in jobs:
        if job.held_mib_ms <= 0:
            continue
        key = job.queue, job.kind
        held[key] = held.get(key, 0) + job.held_mib_ms
        whole[job.queue] = whole.get(job.queue, 0) + job.held_mib_ms
        if is_enrolled(job):
            enrolled[key] = enrolled.get(key, 0) + job.held_mib_ms
    return [
        Giving(
            queue=queue,
            kind=kind,
            held_mib_s=amount // 1000,
            held_ratio=amount / whole[queue],
            enrolled_ratio=enrolled.get((queue, kind), 0) / amount,
            lever=LEVERS.get(kind, "none: left alone"),
        )
        for (queue, kind), amount in sorted(held.items(), key=lambda each: (each[0][0], -each[1]))
    ]
