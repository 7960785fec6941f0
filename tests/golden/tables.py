"""The language of the golden tables: clusters in slots, jobs by short names.

A size of n stands for n GiB and n vcores. Tasks of job ``r1`` are ``r1.1``, ``r1.2``, ... and their
containers ``r1.1c``; the master is not among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from yarnctl.deciding.case import Candidate, Case, Choice, Need
from yarnctl.deciding.model import (
    ApplicationView,
    ContainerRequest,
    Observation,
    QueueView,
    Snapshot,
    TaskKind,
    TaskView,
)
from yarnctl.deciding.policies import FOREVER_MS, JobUsage
from yarnctl.deciding.releaser import Reason
from yarnctl.deciding.selector import choose
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import NOTHING, Resources, dominant, plus, times

HOUR_MS = 3_600_000
GUARD_FREE = msgspec.structs.replace(DEFAULT, cost_guard=False, settle_ms=0, job_open_ratio_max=1.0)


def size(slots: int) -> Resources:
    return Resources(1024 * slots, slots)


def with_(settings: Settings = DEFAULT, **changes: object) -> Settings:
    return msgspec.structs.replace(settings, **changes)


def task(
    attempt: str,
    remaining_ms: int = HOUR_MS,
    *,
    node: str = "n1",
    slots: int = 1,
    kind: TaskKind = "reduce",
    cost_ms: int = 9000,
    since_ms: int = 0,
    generation: int = 0,
    able: bool = True,
    resumed: bool = False,
) -> TaskView:
    return TaskView(
        attempt, attempt + "c", node, size(slots), kind, remaining_ms, cost_ms, since_ms, generation, able,
        resumed,
    )  # fmt: skip


def candidate(
    name: str,
    containers: int,
    *,
    total: int = 100,
    slots: int = 1,
    submitted: int = 0,
    deadline: int | None = None,
    laxity: int = FOREVER_MS,
    budget: int = 1000,
) -> Candidate:
    used = size(containers * slots)
    share = dominant(used, size(total))
    usage = JobUsage(name, share, containers, containers - 1, submitted, deadline, laxity, 0)
    return Candidate(usage, used, budget, size(slots))


def case(
    jobs: Sequence[Candidate],
    wanted: int | Sequence[tuple[int, int]],
    tasks: Mapping[str, Sequence[TaskView]] | None = None,
    *,
    number: int = 1,
    now_ms: int = 0,
    total: int = 100,
    room: Mapping[str, int] | None = None,
    barred: Mapping[str, Reason] | None = None,
    closed: Mapping[str, Reason] | None = None,
) -> Case:
    """Make a case; ``wanted`` is a number of 1-slot asks, or (slots, count) rows."""
    rows = [(1, wanted)] if isinstance(wanted, int) else wanted
    if tasks is None:
        tasks = {
            job.usage.application: [
                task(f"{job.usage.application}.{number + 1}", HOUR_MS + number)
                for number in range(job.usage.releasable)
            ]
            for job in jobs
        }
    return Case(
        number=number, now_ms=now_ms, total=size(total),
        needs=tuple(Need(size(slots), count) for slots, count in rows),
        free={node: size(slots) for node, slots in (room or {}).items()}, jobs=tuple(jobs),
        tasks={name: tuple(row) for name, row in tasks.items()}, barred=dict(barred or {}),
        closed=dict(closed or {}),
    )  # fmt: skip


def picked(choice: Choice) -> list[str]:
    return [pick.task.attempt for pick in choice.picks]


def picked_jobs(jobs: Sequence[Candidate], wanted: int, **changes: object) -> str:
    choice = choose(case(jobs, wanted), with_(GUARD_FREE, **changes))
    return " ".join(pick.application for pick in choice.picks)


# --- clusters ---------------------------------------------------------------------------------


def app(
    name: str,
    queue: str,
    containers: int = 0,
    pending: int = 0,
    *,
    rank: int = 0,
    ask: int = 1,
    slots: int = 1,
    request: int = 10,
    user: str = "u",
    activated: bool = True,
    runner: bool = True,
    submitted: int = 0,
    deadline: int | None = None,
    progress: float = 0.0,
    priority: int = 0,
) -> ApplicationView:
    return ApplicationView(
        application=name, queue=queue, user=user, submitted_at_ms=submitted, rank=rank, containers=containers,
        used=size(containers * slots), am_size=size(1), task_size=size(slots),
        requests=(ContainerRequest(request, size(ask), pending),) if pending else (), activated=activated,
        runner=runner, priority=priority, deadline_at_ms=deadline, progress_ratio=progress,
    )  # fmt: skip


def cluster(
    *applications: ApplicationView,
    guaranteed: Mapping[str, int] | None = None,
    maximum: Mapping[str, int] | None = None,
    user_limit: Mapping[str, int] | None = None,
    am: Mapping[str, tuple[int, int]] | None = None,
    free: Mapping[str, int] | None = None,
    total: int | None = None,
    largest_node: int = 8,
) -> Snapshot:
    """Make a snapshot: queue use is the sum of its applications; ``am`` is (used, limit)."""
    guaranteed = guaranteed or {"production": 95, "research": 5}
    used: dict[str, Resources] = dict.fromkeys(guaranteed, NOTHING)
    for view in applications:
        used[view.queue] = plus(used[view.queue], view.used)
    if total is None:
        total = sum(part.vcores for part in used.values()) + sum((free or {}).values())
    whole = size(total)
    return Snapshot(
        total=whole,
        largest_node=size(largest_node),
        queues=tuple(
            QueueView(queue=name, guaranteed=times(size(1), part),
                maximum=size((maximum or {}).get(name, total)), used=used[name],
                user_limit=size((user_limit or {})[name]) if name in (user_limit or {}) else None,
                am_used=size((am or {})[name][0]) if name in (am or {}) else NOTHING,
                am_limit=size((am or {})[name][1]) if name in (am or {}) else None)
            for name, part in guaranteed.items()
        ),
        applications=applications,
        free_by_node={node: size(slots) for node, slots in (free or {}).items()},
    )  # fmt: skip


def seen(
    snapshot: Snapshot | None,
    tasks: Mapping[str, Sequence[TaskView]] | None = None,
    *,
    now_ms: int = 0,
    as_of_ms: int | None = None,
    facts: tuple[object, ...] = (),
    unreachable: tuple[str, ...] = (),
) -> Observation:
    return Observation(
        now_ms=now_ms,
        as_of_ms=now_ms if as_of_ms is None else as_of_ms,
        snapshot=snapshot,
        tasks={name: tuple(row) for name, row in (tasks or {}).items()},
        facts=facts,  # type: ignore[arg-type]
        unreachable=unreachable,
    )


def row(name: str, count: int, **more: object) -> list[TaskView]:
    """Return ``count`` tasks of a job with growing remaining time."""
    return [task(f"{name}.{n + 1}", HOUR_MS + n, **more) for n in range(count)]  # type: ignore[arg-type]
