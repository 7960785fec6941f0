"""A trace with the published marginals of TR1 or TR2, from a seed.

Law: shares of jobs are exact, those of computation to less than a minute, quantiles are those of
the table (the jobs of a class are spread evenly over its distribution, in random order). A job's
tasks are equal and last whole milliseconds, so that half the rate takes exactly twice the time.
Submissions are ours: by a day's rhythm over three months, then held back so that a cluster of the
published peak could start every job at full width when it is submitted; the peak is reached, and
never exceeded.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from emulator.admission.traces.marginals import DAYS, HOUR_MS, Marginals, TaskClass
from emulator.admission.traces.trace import Trace, checked
from emulator.workload.limits import DAY_MS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RHYTHM_RATIO = 0.5
"""Ours: how far arrivals swing around their mean in the course of a day."""
LIKENESS_RATIO = 0.5
"""Ours: noise in the order of computation by tasks within a class (Fig. 1 shows a loose correlation)."""
STEPS = 60


def generate(marginals: Marginals, seed: int = 0) -> Trace:
    """Return the trace that a seed gives."""
    import numpy as np

    chance = np.random.default_rng([seed, marginals.jobs])
    counts = _parts(marginals.jobs, [each.jobs_ratio for each in marginals.classes])
    works = _parts(marginals.work_hours * HOUR_MS, [each.work_ratio for each in marginals.classes])
    made = [
        _one_class(each, count, work_ms, chance)
        for each, count, work_ms in zip(marginals.classes, counts, works, strict=True)
    ]
    order = chance.permutation(marginals.jobs)
    tasks = np.concatenate([each[0] for each in made])[order]
    work_ms = np.concatenate([each[1] for each in made])[order]
    wished_ms = _rhythm(marginals.jobs, chance)
    submitted_ms = _held_back(wished_ms, tasks, -(-work_ms // tasks), marginals.peak_cpus)
    _reach_peak(submitted_ms, tasks, work_ms, marginals.peak_cpus)
    return checked(Trace(marginals.name, submitted_ms, tasks, work_ms))


def in_flight(
    submitted_ms: NDArray[np.int64], tasks: NDArray[np.int64], work_ms: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the tasks in flight right after each job's submission, if each ran at full width at once."""
    import numpy as np

    begun = np.cumsum(tasks)
    ends_ms = submitted_ms - (-work_ms // tasks)
    order = np.argsort(ends_ms, kind="stable")
    ended = np.concatenate(([0], np.cumsum(tasks[order])))
    result: NDArray[np.int64] = begun - ended[np.searchsorted(ends_ms[order], submitted_ms, side="right")]
    return result


def _parts(total: int, ratios: list[float]) -> list[int]:
    """Part a total by ratios; the last part takes what rounding leaves."""
    parts = [round(total * ratio) for ratio in ratios[:-1]]
    return [*parts, total - sum(parts)]


def _one_class(
    each: TaskClass, count: int, work_ms: int, chance: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tasks and the computation (container-ms) of one class's jobs."""
    import numpy as np

    tasks = _tasks(each, count, chance)
    likeness = np.argsort(np.argsort(tasks, kind="stable"), kind="stable") / count
    if each.per_task:
        likeness = np.zeros(count)
    rank = np.argsort(np.argsort(likeness + LIKENESS_RATIO * chance.random(count)), kind="stable")
    places = (rank + 0.5) / count
    factor = tasks.astype(np.float64) if each.per_task else np.ones(count)
    exact = _stretched(each.knots, places, factor, work_ms)
    whole = np.maximum(1, np.rint(exact / tasks)).astype(np.int64) * tasks
    largest = int(np.argmax(whole))
    left = work_ms - int(whole.sum())
    whole[largest] += left - left % int(tasks[largest])
    return tasks, whole


def _tasks(each: TaskClass, count: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Draw numbers of tasks with density x^-decay on [least, most], evenly spread, in random order."""
    import numpy as np

    places = (chance.permutation(count) + 0.5) / count
    low, high = float(each.least), each.most + 1.0
    if each.decay == 1.0:
        drawn = low * (high / low) ** places
    else:
        power = 1.0 - each.decay
        drawn = (low**power + places * (high**power - low**power)) ** (1.0 / power)
    result: NDArray[np.int64] = np.clip(drawn.astype(np.int64), each.least, each.most)
    return result


def _stretched(
    knots: tuple[tuple[float, float], ...],
    places: NDArray[np.float64],
    factor: NDArray[np.float64],
    total_ms: int,
) -> NDArray[np.float64]:
    """Return ms at each place of the distribution, its last knot moved until they sum to ``total_ms``."""
    import numpy as np

    at = np.array([place for place, _ in knots])
    logs = np.log(np.array([seconds * 1000.0 for _, seconds in knots]))
    last = places > at[-2]
    fixed = float((np.exp(np.interp(places[~last], at, logs)) * factor[~last]).sum())
    along = (places[last] - at[-2]) / (at[-1] - at[-2])
    low, high = logs[-2], logs[-2] + 20.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        total = fixed + float((np.exp(logs[-2] + along * (middle - logs[-2])) * factor[last]).sum())
        low, high = (middle, high) if total < total_ms else (low, middle)
    logs[-1] = low
    result: NDArray[np.float64] = np.exp(np.interp(places, at, logs)) * factor
    return result


def _rhythm(jobs: int, chance: np.random.Generator) -> NDArray[np.int64]:
    """Return ascending instants over three months, denser by day than by night."""
    import numpy as np

    grid_ms = np.linspace(0, DAYS * DAY_MS, DAYS * 24 + 1)
    turn = 2 * np.pi / DAY_MS
    passed = grid_ms - RHYTHM_RATIO * (np.cos(turn * grid_ms) - 1) / turn
    drawn = np.sort(chance.random(jobs)) * passed[-1]
    result: NDArray[np.int64] = np.interp(drawn, passed, grid_ms).astype(np.int64)
    return result


def _held_back(
    wished_ms: NDArray[np.int64], tasks: NDArray[np.int64], run_ms: NDArray[np.int64], peak: int
) -> NDArray[np.int64]:
    """Return when a cluster of ``peak`` containers starts each job at full width, first come first."""
    import numpy as np

    free, now_ms = peak, 0
    running: list[tuple[int, int]] = []
    started = []
    rows = zip(wished_ms.tolist(), tasks.tolist(), run_ms.tolist(), strict=True)
    for at_ms, wide, long_ms in rows:
        now_ms = max(now_ms, at_ms)
        while running and (free < wide or running[0][0] <= now_ms):
            end_ms, held = heapq.heappop(running)
            now_ms, free = max(now_ms, end_ms), free + held
        free -= wide
        heapq.heappush(running, (now_ms + long_ms, wide))
        started.append(now_ms)
    return np.array(started, dtype=np.int64)


def _reach_peak(
    submitted_ms: NDArray[np.int64], tasks: NDArray[np.int64], work_ms: NDArray[np.int64], peak: int
) -> None:
    """Give the widest moment's large job the tasks that are missing to the peak (in place)."""
    import numpy as np

    busy = in_flight(submitted_ms, tasks, work_ms)
    large = np.flatnonzero(tasks > 1000)
    job = int(large[np.argmax(busy[large])])
    tasks[job] += peak - int(busy.max())
