"""One measured ratio, and how repeated measurements are summed up."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

import msgspec


class Row(msgspec.Struct, kw_only=True):
    """``ours`` and ``baseline`` are in ``unit``; ``holds``: the ratio and what else was asked for."""

    name: str
    what: str
    ours: float
    baseline: float
    ratio: float
    target: str
    holds: bool
    unit: str
    details: dict[str, Any] = {}


@contextmanager
def without_gc():
    """Collect now, then not until the end: a collection in between would be measured by chance."""
    gc.collect()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cpu_ms(work: Callable[[], object]) -> float:
    """Return the processor time of one call in ms, garbage collection off."""
    with without_gc():
        start = time.process_time()
        work()
        return (time.process_time() - start) * 1000


def spread(times: Sequence[float]) -> dict[str, float]:
    """Return the median and what it was taken from."""
    return {"median": median(times), "min": min(times), "max": max(times), "runs": len(times)}
