"""Replays as results: one trace under several allocators, or over many capacities at once.

Law: results follow from trace, seed and choices alone; only ``wall_s`` is a measured time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.admission.engines import run
from emulator.admission.metrics import Scores, scores
from emulator.admission.options import Asked
from emulator.admission.traces.columns import write_trace
from emulator.admission.traces.sources import load_trace
from emulator.admission.traces.trace import Trace
from emulator.admission.traces.trace_deadlines import deadlines_ms
from yarnctl.command_line import ProgressBar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def admission(spec: str, asked: Asked, save: Path | None = None) -> dict[str, Any]:
    """Load the trace, replay it under each allocator; return what ``--json`` prints."""
    trace = load_trace(spec, asked.seed)
    if save is not None:
        write_trace(trace, save)
    deadline_ms = deadlines_ms(trace, asked.deadlines, asked.capacity, asked.seed, asked.optimal)
    told, bars = {}, {}
    with ProgressBar("replaying", len(asked.allocators)) as progress:
        for name in progress.counted(asked.allocators):
            _warm(trace, deadline_ms, name, asked)
            begun = time.perf_counter()
            outcome = run(trace, deadline_ms, asked.capacity, name, asked.choices, asked.engine)
            wall_s = time.perf_counter() - begun
            found = scores(trace, outcome)
            told[name] = as_told(found, wall_s)
            bars[name] = {"fairness": found.fairness.bar, "equality": found.equality.bar}
    return {
        "trace": trace.source,
        "jobs": len(trace),
        "capacity": asked.capacity,
        "deadlines": asked.deadlines,
        "engine": asked.engine,
        "seed": asked.seed,
        "allocators": told,
        "bars_95": bars,
    }


def _warm(trace: Trace, deadline_ms: NDArray[np.int64], name: str, asked: Asked) -> None:
    """Replay the first job alone, so that what has to be compiled is compiled before time is taken."""
    if asked.engine == "compiled":
        run(trace.head(1), deadline_ms[:1], asked.capacity, name, asked.choices, asked.engine)


def as_told(found: Scores, wall_s: float) -> dict[str, Any]:
    """Return one allocator's metrics under the names that other tools read."""
    return {
        "sdr": found.sdr,
        "ptr": found.ptr,
        "wtr": found.wtr,
        "fairness": found.fairness.mean,
        "equality": found.equality.mean,
        "utilisation": found.utilisation,
        "jobs": found.jobs,
        "met": found.met,
        "missed": found.missed,
        "dropped": found.dropped,
        "wall_s": round(wall_s, 4),
    }


def one(trace: Trace, name: str, asked: Asked) -> Scores:
    """Return the metrics of one replay of a trace that is loaded."""
    deadline_ms = deadlines_ms(trace, asked.deadlines, asked.capacity, asked.seed, asked.optimal)
    return scores(trace, run(trace, deadline_ms, asked.capacity, name, asked.choices, asked.engine))


def sweep(trace: Trace, name: str, asked: Asked, capacities: Sequence[int], workers: int) -> list[Scores]:
    """Return the metrics at each capacity; compiled replays run on ``workers`` threads at once."""
    orders = [asked._replace(capacity=capacity) for capacity in capacities]
    if workers <= 1 or asked.engine == "python":
        return [one(trace, name, order) for order in orders]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda order: one(trace, name, order), orders))
