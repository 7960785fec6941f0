"""The tick: how fast victims are picked, beside re-sorting all applications for every victim.

``make_case(nodes, applications, containers)`` builds a full cluster whose job sizes are heavy
tailed, as those of the traces are; the naive selector is the paper's rule word for word. Both must
pick the same victims in the same order, and the whole tick must ask exactly these, in the order of
leaving (``in_leaving_order`` here: written plainly, on its own).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from yarn_research.bench.row import Row, cpu_ms, spread
from yarnctl.deciding.case import Case, Need
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.draws import uniform
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import (
    ApplicationView,
    ContainerRequest,
    Observation,
    QueueView,
    Snapshot,
    Suspend,
    TaskView,
)
from yarnctl.deciding.preemptor import DemandInput, candidates, preemptable
from yarnctl.deciding.records import Step, encode
from yarnctl.deciding.selector import Selection
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import Resources, dominant, minus, times

SLOT = Resources(1024, 1)
RULES = msgspec.structs.replace(DEFAULT, job_open_ratio_max=1.0)
"""The default profile without the budget per job, which the naive rule does not know."""

NOW_MS = 10_000_000


def job_sizes(applications: int, containers: int, tail: float) -> list[int]:
    """Split ``containers`` over ``applications``, at least 2 each, by rank**-tail (0: evenly)."""
    weights = [(place + 1) ** -tail for place in range(applications)]
    spare, total = containers - 2 * applications, sum(weights)
    sizes = [2 + int(spare * weight / total) for weight in weights]
    for place in range(containers - sum(sizes)):
        sizes[place % applications] += 1
    return sizes


def make_case(
    nodes: int, applications: int, containers: int, wanted: int = 1000, tail: float = 1.0
) -> tuple[Snapshot, dict[str, tuple[TaskView, ...]]]:
    """Build a full cluster: research holds all, one production job waits for ``wanted`` slots."""
    total = times(SLOT, containers)
    views: list[ApplicationView] = []
    tasks: dict[str, tuple[TaskView, ...]] = {}
    number = 0
    sizes = job_sizes(applications, containers, tail)
    sizes = [sizes[place] for place in sorted(range(applications), key=lambda place: uniform(3, place))]
    for place, size in enumerate(sizes):
        name = f"application_1700000000000_{place:05d}"
        rows = []
        for task in range(1, size):
            number += 1
            draw = uniform(7, place, task)
            rows.append(
                TaskView(
                    f"attempt_1700000000000_{place:05d}_r_{task:06d}_0",
                    f"container_1700000000000_{place:05d}_01_{task:06d}",
                    f"node{number % nodes:05d}",
                    SLOT,
                    "reduce",
                    30_000 + draw % 600_000,
                    9_000,
                    NOW_MS - 100_000,
                    0,
                    draw % 11 != 0,
                    False,
                )
            )
        tasks[name] = tuple(rows)
        views.append(_running(name, place, size))
    views.append(_waiting("application_1700000000001_00000", applications, wanted))
    queues = (
        QueueView(
            queue="production", guaranteed=times(SLOT, containers * 95 // 100), maximum=total, used=SLOT
        ),
        QueueView(queue="research", guaranteed=times(SLOT, containers * 5 // 100), maximum=total, used=total),
    )
    snapshot = Snapshot(
        total=total,
        largest_node=times(SLOT, max(1, containers // nodes)),
        queues=queues,
        applications=tuple(views),
        free_by_node={},
    )
    return snapshot, tasks


def _running(name: str, place: int, size: int) -> ApplicationView:
    return ApplicationView(
        application=name,
        queue="research",
        user="u",
        submitted_at_ms=place,
        rank=place,
        containers=size,
        used=times(SLOT, size),
        am_size=SLOT,
        task_size=SLOT,
        requests=(ContainerRequest(10, SLOT, 5),),
    )


def _waiting(name: str, place: int, wanted: int) -> ApplicationView:
    return ApplicationView(
        application=name,
        queue="production",
        user="p",
        submitted_at_ms=place,
        rank=0,
        containers=1,
        used=SLOT,
        am_size=SLOT,
        task_size=SLOT,
        requests=(ContainerRequest(10, SLOT, wanted),),
    )


def naive(case: Case, settings: Settings) -> list[str]:
    """MR + SRT as the paper words it: for each container sort all jobs, then take the shortest task.

    A job's tasks are sorted once, when it is first hit: what would be sorted again is the same.
    """
    used = {job.usage.application: job.used for job in case.jobs}
    left: dict[str, list[TaskView]] = {}
    picked: list[str] = []
    for _ in range(case.needs[0].containers):
        for name in sorted(used, key=lambda name: (-dominant(used[name], case.total), name)):
            if name not in left:
                left[name] = in_taking_order(case.tasks[name])
            if left[name]:
                task = left[name].pop(0)
                used[name] = minus(used[name], task.size)
                picked.append(task.attempt)
                break
    return picked


def in_taking_order(tasks: tuple[TaskView, ...]) -> list[TaskView]:
    """Return the tasks that may be stopped, shortest first."""
    eligible = [task for task in tasks if task.checkpointable and task.remaining_ms > task.resume_cost_ms]
    return sorted(eligible, key=lambda task: (task.remaining_ms, task.attempt))


def in_leaving_order(attempts: list[str], case: Case) -> list[str]:
    """Return the picked attempts as the step asks them: most remaining time first, then as picked."""
    remaining_ms = {task.attempt: task.remaining_ms for tasks in case.tasks.values() for task in tasks}
    return sorted(attempts, key=lambda attempt: -remaining_ms[attempt])


class Size(NamedTuple):
    """How large the measured cluster is."""

    nodes: int
    applications: int
    containers: int
    wanted: int


FULL = Size(nodes=10_000, applications=5_000, containers=100_000, wanted=1_000)
SMALL = Size(nodes=1_000, applications=500, containers=10_000, wanted=100)


def measure(tail: float, size: Size = FULL) -> dict[str, dict[str, float]]:
    """Measure pick alone, whole tick with reasons and encoded records, and the naive pick, interleaved.

    All three must name the same victims.
    """
    wanted = size.wanted
    snapshot, tasks = make_case(size.nodes, size.applications, size.containers, wanted, tail)
    look = DemandInput(snapshot, NOW_MS, NOW_MS)
    jobs = candidates(look, Ledger(), RULES, preemptable(look, RULES, ("research",)))
    needs = (Need(SLOT, wanted),)
    case = Case(
        number=1, now_ms=NOW_MS, total=snapshot.total, needs=needs, free={}, jobs=tuple(jobs), tasks=tasks
    )
    seen = Observation(now_ms=NOW_MS, as_of_ms=NOW_MS, snapshot=snapshot, tasks=tasks)

    def pick() -> Selection:
        selection = Selection(case, RULES)
        selection.meet(case.needs[0])
        return selection

    def tick() -> tuple[Step, bytes]:
        step = Controller(RULES).step(seen)
        return step, b"".join(map(encode, step.records))

    times: dict[str, list[float]] = {"pick_ms": [], "tick_ms": [], "naive_ms": []}
    for _ in range(3):
        times["naive_ms"] += [cpu_ms(lambda: naive(case, RULES))]
        times["pick_ms"] += [cpu_ms(pick) for _ in range(5)]
        times["tick_ms"] += [cpu_ms(tick) for _ in range(3)]
    expected = naive(case, RULES)
    assert [item[1].attempt for item in pick().picks] == expected
    asked = [action.attempt for action in tick()[0].actions if isinstance(action, Suspend)]
    assert asked == in_leaving_order(expected, case)
    seen_too: dict[str, float] = {
        "jobs_hit": len({item[0] for item in pick().picks}),
        "record_bytes": len(tick()[1]),
    }
    return {name: spread(each) for name, each in times.items()} | {"seen": seen_too}


def tick_row(size: Size = FULL) -> Row:
    """Job sizes by rank**-0.3: 1,000 victims come from some fifty jobs; in the details also others.

    The steeper the sizes, the fewer jobs are hit (rank**-1: one); with equal sizes every victim is
    another job's, and that job's tasks must be put in order for it alone.
    """
    cases = {
        "tail_0.3": measure(0.3, size),
        "tail_1": measure(1.0, size),
        "equal_sizes": measure(0.0, size),
    }
    ours, baseline = (cases["tail_0.3"][side]["median"] for side in ("pick_ms", "naive_ms"))
    return Row(
        name="tick",
        what=f"{size.nodes:,} nodes, {size.applications:,} applications, {size.containers:,} containers:"
        f" {size.wanted:,} victims, beside re-sorting each",
        ours=ours,
        baseline=baseline,
        ratio=baseline / ours,
        target=">= 400",
        holds=baseline / ours >= 400 and ours <= 3,
        unit="ms",
        details=cases,
    )
