"""Reader for SWIM traces: tab-separated rows of bytes and seconds, plain or gzip.

Law: a row is taken as it is or refused by file, line and field; nothing is guessed and
nothing is dropped. Format: github.com/SWIMProjectUCB/SWIM, ``workloadSuite``, no header:
job id, submit time (s), gap to the job before (s), map input bytes, shuffle bytes, reduce
output bytes. Two or three more columns (paths of inputs) are not used.
Cite Chen, Ganapathi, Griffith, Katz (MASCOTS'11).

The model that turns the bytes of a SWIM row into tasks and milliseconds.

Law: SWIM records bytes, not tasks; all that is assumed is in ``TaskModel`` with its
source, and the same row gives the same tasks on every machine, in every slice. A task's
length varies by the paper's table (0.5 to 1.0 of the longest), entered at an offset that
depends on the job's name alone.
"""

from __future__ import annotations

import dataclasses
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.job import KEY_GROUP_MS, LONGEST_MS, LONGEST_SHOWN, Job, JobClass, key_groups
from yarnctl.traces.lengths import TABLE_LENGTH, length_table
from yarnctl.traces.trace_file import CountedRows, is_name, read_text, unique_names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FIELDS = ("job_id", "submitted_at_s", "gap_s", "input_bytes", "shuffle_bytes", "output_bytes")
HOUR_MS = 3_600_000

_COLUMNS = ("submitted_at_ms", "gap_s", "input_bytes", "shuffle_bytes", "output_bytes")

_ROW = re.compile(
    r"([^\x00-\x20\x7f\ud800-\udfff]{1,200}\t\d{1,15}\t-?\d{1,15}(?:\t\d{1,15}){3})"
    r"(?:(?:\t[^\t]*){2,3})?",
    re.ASCII,
)
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_REMEDY = "expected six columns: id, submit s, gap s, input, shuffle and output bytes"


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class SwimRows:
    """A trace's rows as columns by submission; ``names`` made unique where ``repeated_names``.

    ``has_paths``: columns beyond the sixth were there and not used.
    """

    names: list[str]
    submitted_at_ms: NDArray[np.int64]
    gap_s: NDArray[np.int64]
    input_bytes: NDArray[np.int64]
    shuffle_bytes: NDArray[np.int64]
    output_bytes: NDArray[np.int64]
    repeated_names: int = 0
    out_of_order: int = 0
    has_paths: bool = False


class Hours(NamedTuple):
    """A half-open window [from, to) of a trace, in milliseconds since its start."""

    from_ms: int
    to_ms: int


def read_swim(path: Path, where: str | None = None) -> SwimRows:
    """Read a SWIM trace, plain or gzip; ``where`` names it in errors (default: the path).

    Rows out of order are sorted stably. Raises BadInput at ``where:line`` for a torn row, a wrong number of
    columns, a negative size or time, or a number that is no integer below 10^15.
    """
    return parse_swim(read_text(path, where or str(path)), where or str(path))


def parse_swim(text: str, where: str) -> SwimRows:
    """Turn the text of a SWIM trace into columns; see ``read_swim`` for the checks."""
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    if lines == [""]:
        raise BadInput(where, "the trace has no rows", _REMEDY)
    used = []
    for number, line in enumerate(lines, 1):
        match = _ROW.fullmatch(line)
        if match is None:
            raise BadInput(f"{where}:{number}", _what_is_wrong(line), _REMEDY)
        used.append(match[1])
    rows = _columns("\t".join(used).split("\t"))
    if used != lines:
        rows = dataclasses.replace(rows, has_paths=True)
    if int(rows.submitted_at_ms[-1]) > LONGEST_MS:
        raise _too_late(lines, where)
    return rows


def slice_hours(rows: SwimRows, hours: Hours, where: str, held: str = "") -> SwimRows:
    """Return the rows submitted in [from, to), ``from`` being 0; BadInput names the hours that there are."""
    inside = (rows.submitted_at_ms >= hours.from_ms) & (rows.submitted_at_ms < hours.to_ms)
    if not inside.any():
        last_h = int(rows.submitted_at_ms[-1]) / HOUR_MS
        remedy = held or f"the trace ends at hour {last_h:.2f}"
        raise BadInput(where, "no job is submitted in these hours", remedy)
    columns = {name: getattr(rows, name)[inside] for name in _COLUMNS}
    columns["submitted_at_ms"] -= hours.from_ms
    names = [name for name, keep in zip(rows.names, inside.tolist(), strict=True) if keep]
    return dataclasses.replace(rows, names=names, **columns)


def _too_late(lines: list[str], where: str) -> BadInput:
    times = ((number, line.split("\t")[1]) for number, line in enumerate(lines, 1))
    number, text = next((number, text) for number, text in times if int(text) * 1000 > LONGEST_MS)
    problem = f"field submitted_at_s: {text} is more than {LONGEST_SHOWN} after the start"
    return BadInput(f"{where}:{number}", problem, "give seconds since the start of the trace")


def _columns(cells: list[str]) -> SwimRows:
    import numpy as np

    width = len(FIELDS)
    numbers = np.array([list(map(int, cells[i::width])) for i in range(1, width)], dtype=np.int64)
    order = np.argsort(numbers[0], kind="stable")
    out_of_order = int((np.diff(numbers[0]) < 0).sum())
    names, repeated = unique_names(cells[0::width])
    if out_of_order:
        names = [names[i] for i in order.tolist()]
        numbers = numbers[:, order]
    numbers[0] *= 1000  # s to ms
    columns = dict(zip(_COLUMNS, numbers, strict=True))
    return SwimRows(names=names, **columns, repeated_names=repeated, out_of_order=out_of_order)


def _what_is_wrong(line: str) -> str:
    cells = line.split("\t")
    if len(cells) not in (len(FIELDS), 8, 9):
        near = FIELDS[min(len(cells), len(FIELDS)) - 1]
        return f"field {near}: the row is torn, {len(cells)} columns instead of {len(FIELDS)}"
    if not is_name(cells[0]):
        return "field job_id: empty, too long, or with blanks or control characters"
    for field, cell in zip(FIELDS[1:], cells[1 : len(FIELDS)], strict=True):
        if _INTEGER.fullmatch(cell) is None:
            return f"field {field}: {cell[:40]!r} is not an integer"
        if cell.startswith("-") and field != "gap_s":
            return f"field {field}: {cell[:40]} is negative"
        if len(cell.lstrip("-")) > 15:
            return f"field {field}: {cell[:40]} is not below 10^15"
    return "field job_id: the row cannot be read"


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
    rows: SwimRows, job_class: JobClass, model: TaskModel, counted: CountedRows = iter
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
    facts = (
        (rows.repeated_names, "rows repeat a job id and were given names of their own"),
        (rows.out_of_order, "rows were submitted before the row above them; sorted"),
        (int((maps > model.max_maps).sum()), f"jobs were cut to {model.max_maps} maps"),
        (int((reduces > model.max_reduces).sum()), f"jobs were cut to {model.max_reduces} reduces"),
    )
    notes = [f"{count} {what}" for count, what in facts if count]
    return jobs, notes + (["columns beyond the sixth (paths) were not used"] if rows.has_paths else [])


def _lengths(
    counts: NDArray[np.int64], longest_ms: NDArray[np.float64], fixed_ms: int, digests: NDArray[np.int64]
) -> list[tuple[int, ...]]:
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
