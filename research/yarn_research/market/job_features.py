"""The features of a job before it runs: MRM's four, from the counters of earlier runs.

Law: a feature is known at submission, or is taken from an earlier run of the same job (MRM section 3.2).
Runs with a preempted attempt are not used: their durations include waiting that the next run will not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ, SHUFFLED, WRITTEN = "HDFS_BYTES_READ", "REDUCE_SHUFFLE_BYTES", "HDFS_BYTES_WRITTEN"
MAP_OUTPUT = "MAP_OUTPUT_BYTES"


class JobFeatures(NamedTuple):
    """Tasks, and by how much each phase changes the size of its input (output over input)."""

    maps: int
    reduces: int
    map_ratio: float
    reduce_ratio: float


class RecordedRun(NamedTuple):
    """One finished run: features, the durations of its phases, and how many attempts were preempted."""

    features: JobFeatures
    map_ms: int
    reduce_ms: int
    preempted: int = 0


def features_of(maps: int, reduces: int, counters: Mapping[str, int]) -> JobFeatures:
    """Read the features from a finished job's counters; what was not counted has the ratio 1."""
    written = counters.get(WRITTEN, 0) if reduces else 0
    return JobFeatures(
        maps,
        reduces,
        _over(counters.get(MAP_OUTPUT, 0), counters.get(READ, 0)),
        _over(written, counters.get(SHUFFLED, 0)) if reduces else 0.0,
    )


def _over(output: int, given: int) -> float:
    return output / given if given > 0 else 1.0


def training(runs: Iterable[RecordedRun]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return features and (map, reduce) durations in ms of the runs that are used for fitting."""
    used = [run for run in runs if not run.preempted]
    features = np.array([run.features for run in used], dtype=np.float64).reshape(len(used), 4)
    return features, np.array([(run.map_ms, run.reduce_ms) for run in used], dtype=np.float64).reshape(-1, 2)
