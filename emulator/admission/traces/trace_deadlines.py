"""Deadlines: multiples of a job's optimal running time, seven ways (Justice section 3.1).

Law: D = x T in integer milliseconds, rounded up, x in thousandths; x comes from a seed and the
job's place, T from the trace. T is the running time with every container the job can use:
min(tasks, capacity), for both papers assume that each deadline is feasible (Justice 2: "there
is an optimal allocation that is sufficient"), which Fixed1x is only so. ``requested`` takes T
with all requested tasks, as the trace ran it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from emulator.admission.traces.trace import Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Optimal = Literal["reachable", "requested"]

Multiples = Callable[["np.random.Generator", int], "NDArray[np.int64]"]


def _fixed(milli: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        import numpy as np

        return np.full(jobs, milli, dtype=np.int64)

    return draw


def _either(first: int, second: int, second_percent: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        import numpy as np

        drawn = chance.integers(0, 100, jobs) < second_percent
        return np.where(drawn, second, first).astype(np.int64)

    return draw


def _uniform(least: int, most: int) -> Multiples:
    def draw(chance: np.random.Generator, jobs: int) -> NDArray[np.int64]:
        return chance.integers(least, most, jobs, endpoint=True)

    return draw


DEADLINES: dict[str, Multiples] = {
    "Fixed1x": _fixed(1000),
    "Fixed2x": _fixed(2000),
    "Jockey1x2x": _either(1000, 2000, 50),
    "Jockey2x4x": _either(2000, 4000, 50),
    "90loose": _either(1000, 2000, 90),
    "Aria1x3x": _uniform(1000, 3000),
    "Aria2x4x": _uniform(2000, 4000),
}
"""Name -> the multiples x, in thousandths. Sources: Jockey [15], ARIA [43, 44] as cited in Justice 3.1."""


def deadlines_ms(
    trace: Trace, name: str, capacity: int, seed: int = 0, optimal: Optimal = "reachable"
) -> NDArray[np.int64]:
    """Return each job's deadline as a span in ms, ceil(x T) with T = ceil(work / containers)."""
    import numpy as np

    containers = trace.tasks if optimal == "requested" else np.minimum(trace.tasks, capacity)
    optimal_ms = -(-trace.work_ms // containers)
    chance = np.random.default_rng([seed, len(name), *name.encode()])
    multiples = DEADLINES[name](chance, len(trace))
    return -(-optimal_ms * multiples // 1000)
