"""The model that turns the bytes of a SWIM row into tasks and milliseconds.

Law: SWIM records bytes, not tasks; all that is assumed stands in ``TaskModel`` with its
source, and the same row gives the same tasks on every machine, in every slice. A task's
length varies by the paper's table (0.5 to 1.0 of the longest), entered at an offset that
depends on the job's name alone.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from emulator.workload.java_random import TABLE_LENGTH, length_table
from emulator.workload.job import Job, JobClass
from emulator.workload.key_groups import KEY_GROUP_MS, key_groups
from emulator.workload.swim import SwimRows
from emulator.workload.trace_file import Counted
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TaskModel(msgspec.Struct, frozen=True, kw_only=True):
    """Every assumption of the model (bytes are bytes, rates bytes per second, spans ms).

    ``block_bytes``: 128 MiB, one map each (the HDFS block of these clusters; zero input still
    takes one map). ``reduce_bytes``: one reduce per GiB of shuffle, a usual assumption; no
    shuffle means map-only, as SWIM itself replays it.

    Rates are those of the *longest* task; the table's mean is 0.76, so the mean is a third
    faster. They are measured on the Rumen traces of Yahoo! (2009). Maps: 1.0 MB/s, mean 1.3;
    3,839 recorded maps of a whole block ran at a median of 1.35 (1.1 to 1.6 for the middle
    80 %). Reduces: 1.4 MB/s, mean 1.8; 106 recorded reduces with more than 10 MB of shuffle
    ran, from the end of their sort, at a median of 1.8 (1.3 to 2.1).

    ``map_fixed_ms`` 2000 and ``reduce_fixed_ms`` 1200 are floors: what recorded attempts take
    on no data (1.1-1.5 s for a reduce). ``shuffle_fixed_ms`` 2000 is the paper's calibration,
    ``shuffle_rate`` 20 MB/s per reduce is assumed: the tail left once the last map is done,
    since the rest is copied while maps run. A saved output is read back at ``replay_rate``
    50 MB/s, never longer than a tenth of the longest reduce.

    ``max_maps`` and ``max_reduces`` cap the tasks of one job: FB-2009 holds one of 7 TB (56,000
    maps) and one of 8 TB shuffle. A capped job loses tasks; the ones left keep their lengths.
    The output of map-only jobs costs no time.
    """

    block_bytes: int = 128 * 2**20
    reduce_bytes: int = 2**30
    map_rate: int = 1_000_000
    map_fixed_ms: int = 2000
    reduce_rate: int = 1_400_000
    reduce_fixed_ms: int = 1200
    shuffle_rate: int = 20_000_000
    shuffle_fixed_ms: int = 2000
    replay_rate: int = 50_000_000
    max_maps: int = 5000
    max_reduces: int = 1000
    key_group_ms: int = KEY_GROUP_MS

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            least = 0 if name.endswith("_fixed_ms") else 1
            if getattr(self, name) < least:
                raise BadInput(f"task model, field {name}", f"must be at least {least}")


def jobs_from_swim(
    rows: SwimRows, job_class: JobClass, model: TaskModel, counted: Counted = iter
) -> tuple[tuple[Job, ...], list[str]]:
    """Return one Job per row, in the rows' order, and notes on what was cut or renamed."""
    import numpy as np

    maps = np.maximum(1, -(-rows.input_bytes // model.block_bytes))
    reduces = -(-rows.shuffle_bytes // model.reduce_bytes)
    each = np.maximum(reduces, 1)
    map_longest = rows.input_bytes / maps * 1000.0 / model.map_rate
    reduce_longest = rows.shuffle_bytes / each * 1000.0 / model.reduce_rate
    shuffle = model.shuffle_fixed_ms + np.rint(rows.shuffle_bytes / each * 1000.0 / model.shuffle_rate)
    replay = np.minimum(rows.output_bytes / each * 1000.0 / model.replay_rate, reduce_longest / 10.0)
    digests = np.array([zlib.crc32(name.encode()) for name in rows.names], dtype=np.int64)
    map_tuples = _lengths(np.minimum(maps, model.max_maps), map_longest, model.map_fixed_ms, digests)
    reduce_tuples = _lengths(
        np.minimum(reduces, model.max_reduces), reduce_longest, model.reduce_fixed_ms, digests // TABLE_LENGTH
    )
    jobs = tuple(
        Job(
            name=name,
            job_class=job_class,
            submitted_at_ms=at_ms,
            map_ms=map_ms,
            reduce_ms=reduce_ms,
            reduce_keys=_keys(reduce_ms, model.key_group_ms),
            shuffle_ms=shuffle_ms,
            replay_ms=replay_ms if reduce_ms else 0,
        )
        for name, at_ms, map_ms, reduce_ms, shuffle_ms, replay_ms in zip(
            counted(rows.names),
            rows.submitted_at_ms.tolist(),
            map_tuples,
            reduce_tuples,
            shuffle.astype(np.int64).tolist(),
            np.rint(replay).astype(np.int64).tolist(),
            strict=True,
        )
    )
    return jobs, _notes(rows, maps, reduces, model)


def _lengths(
    counts: NDArray[np.int64], longest_ms: NDArray[np.float64], fixed_ms: int, digests: NDArray[np.int64]
) -> list[tuple[int, ...]]:
    """Return the task lengths of each job: fixed + longest x table, from the job's offset on."""
    import numpy as np

    table = np.array(length_table())
    distinct = np.minimum(counts, TABLE_LENGTH)
    ends = np.cumsum(distinct)
    job = np.repeat(np.arange(len(counts)), distinct)
    task = np.arange(len(job)) - np.repeat(ends - distinct, distinct)
    factor = table[(digests[job] + task) % TABLE_LENGTH]
    flat = np.maximum(1, fixed_ms + np.rint(longest_ms[job] * factor).astype(np.int64)).tolist()
    result: list[tuple[int, ...]] = []
    for count, end, kept in zip(counts.tolist(), ends.tolist(), distinct.tolist(), strict=True):
        cycle = tuple(flat[end - kept : end])
        whole, rest = divmod(count, TABLE_LENGTH)
        result.append(cycle if count <= TABLE_LENGTH else cycle * whole + cycle[:rest])
    return result


def _keys(reduce_ms: tuple[int, ...], key_group_ms: int) -> tuple[int, ...]:
    """Return ``key_groups`` of the lengths, using that they repeat after one cycle of the table."""
    cycle = key_groups(reduce_ms[:TABLE_LENGTH], key_group_ms)
    whole, rest = divmod(len(reduce_ms), TABLE_LENGTH)
    return cycle if len(reduce_ms) <= TABLE_LENGTH else cycle * whole + cycle[:rest]


def _notes(
    rows: SwimRows, maps: NDArray[np.int64], reduces: NDArray[np.int64], model: TaskModel
) -> list[str]:
    facts = (
        (rows.repeated_names, "rows repeat a job id and were given names of their own"),
        (rows.out_of_order, "rows were submitted before the row above them; sorted"),
        (int((maps > model.max_maps).sum()), f"jobs were cut to {model.max_maps} maps"),
        (int((reduces > model.max_reduces).sum()), f"jobs were cut to {model.max_reduces} reduces"),
    )
    return [f"{count} {what}" for count, what in facts if count]
