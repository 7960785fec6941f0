"""The tick: how fast victims are picked, beside re-sorting all applications for every victim.

``make_case(nodes, applications, containers)`` builds a full cluster whose job sizes are heavy
tailed, as those of the traces are; the naive selector is the paper's rule word for word. Both must
pick the same victims in the same order.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from yarnctl.deciding.case import Case, Need
from yarnctl.deciding.controller import Controller
from yarnctl.deciding.draws import uniform
from yarnctl.deciding.ledger import Ledger
from yarnctl.deciding.model import ApplicationView, ContainerAsk, Observation, QueueView, Snapshot, TaskView
from yarnctl.deciding.preemptor import Look, candidates
from yarnctl.deciding.records import encode
from yarnctl.deciding.selector import Selection, choose
from yarnctl.deciding.settings import DEFAULT, Settings
from yarnctl.units import NOTHING, Resources, dominant, minus, times

SLOT = Resources(1024, 1)
NOW_MS = 10_000_000


def job_sizes(applications: int, containers: int, tail: float = 1.0) -> list[int]:
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
        asks=(ContainerAsk(10, SLOT, 5),),
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
        asks=(ContainerAsk(10, SLOT, wanted),),
    )


def naive(case: Case, settings: Settings) -> list[str]:
    """MR + SRT as the paper words it: for each container sort all jobs, then take the shortest task."""
    used = {job.usage.application: job.used for job in case.jobs}
    left = {
        name: sorted(
            (task for task in tasks if task.checkpointable and task.remaining_ms > task.return_cost_ms),
            key=lambda task: (task.remaining_ms, task.attempt),
        )
        for name, tasks in case.tasks.items()
    }
    picked: list[str] = []
    for _ in range(case.needs[0].containers):
        ranked = sorted(used, key=lambda name: (-dominant(used[name], case.total), name))
        for name in ranked:
            if left[name]:
                task = left[name].pop(0)
                used[name] = minus(used[name], task.size)
                picked.append(task.attempt)
                break
    return picked


def best_ms(work: Callable[[], object], runs: int) -> float:
    """Return the shortest of ``runs`` runs in ms, garbage collection off."""
    best = float("inf")
    gc.collect()
    gc.disable()
    try:
        for _ in range(runs):
            start = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - start)
    finally:
        gc.enable()
    return best * 1000


def measure(
    nodes: int = 10_000,
    applications: int = 5_000,
    containers: int = 100_000,
    wanted: int = 1_000,
    tail: float = 1.0,
) -> dict[str, float]:
    """Return ms of the pick alone, the whole choice, the whole tick with encoding, and the naive pick."""
    snapshot, tasks = make_case(nodes, applications, containers, wanted, tail)
    look = Look(snapshot, NOW_MS, NOW_MS)
    jobs = candidates(look, Ledger(), DEFAULT, ("research",))
    case = Case(
        number=1,
        now_ms=NOW_MS,
        total=snapshot.total,
        needs=(Need(SLOT, wanted),),
        room={},
        jobs=tuple(jobs),
        tasks=tasks,
    )

    def pick() -> Selection:
        selection = Selection(case, DEFAULT)
        selection.meet(case.needs[0])
        return selection

    steps: list[float] = []

    def tick() -> bytes:
        controller = Controller(DEFAULT)
        seen = Observation(now_ms=NOW_MS, as_of_ms=NOW_MS, snapshot=snapshot, tasks=tasks)
        step = controller.step(seen)
        assert len(step.actions) == wanted
        return b"".join(map(encode, step.records))

    result = {
        "pick_ms": best_ms(pick, 15),
        "choose_ms": best_ms(lambda: choose(case, DEFAULT), 9),
        "tick_ms": best_ms(tick, 7),
        "naive_ms": best_ms(lambda: steps.append(len(naive(case, DEFAULT))), 1),
    }
    ours = [item[1].attempt for item in pick().picks]
    assert ours == naive(case, DEFAULT)
    assert NOTHING not in {item[1].size for item in pick().picks}
    result["ratio"] = result["naive_ms"] / result["pick_ms"]
    result["jobs_hit"] = len({item[0] for item in pick().picks})
    return result


if __name__ == "__main__":
    for tail in (1.0, 0.5, 0.0):
        print(tail, {name: round(value, 2) for name, value in measure(tail=tail).items()})
