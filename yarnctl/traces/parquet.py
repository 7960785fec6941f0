"""Jobs to Parquet and back: a trace is converted once and then read in one gulp.

A file is complete or absent (written beside, then renamed). Columns carry their units, tasks are list
columns, and the schema's version is in the metadata.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

from yarnctl.errors import BadInput
from yarnctl.traces.job import LONGEST_MS, Job, JobClass
from yarnctl.traces.trace_file import CountedRows, is_name
from yarnctl.units import Resources

SCHEMA_VERSION = "2"  # It has the column ``queue``; files of version 1 are read, without queues
OLDER_VERSIONS = ("1",)
_VERSION_KEY = b"yarnctl.jobs.version"
_LISTS = ("map_ms", "reduce_ms", "reduce_keys")
_NUMBERS = ("submitted_at_ms", "shuffle_ms", "replay_ms")
_SIZES = ("am", "map", "reduce")
_OPTIONAL = ("queue", "deadline_at_ms")
_PLAIN = ("name", "job_class", "user", *_OPTIONAL, *_NUMBERS, *_LISTS)
_REMEDY = "convert the trace again"
_RANGES = {
    "submitted_at_ms": (0, LONGEST_MS),
    "deadline_at_ms": (0, LONGEST_MS),
    "shuffle_ms": (0, LONGEST_MS),
    "replay_ms": (0, LONGEST_MS),
    "map_ms": (1, LONGEST_MS),
    "reduce_ms": (1, LONGEST_MS),
    "reduce_keys": (1, 10**12),
    **{f"{size}_memory_mib": (1, 1 << 40) for size in _SIZES},
    **{f"{size}_vcores": (1, 1 << 20) for size in _SIZES},
}
"""What each number of a job may be."""


def write_parquet(jobs: Sequence[Job], path: Path) -> None:
    """Write jobs to ``path``, replacing it whole or not at all; raises BadInput if that is impossible."""
    require_replaceable(path)
    if found := next((job for job in jobs if job.spark), None):
        raise BadInput(f"job {found.name}", "is a Spark job, and a table of jobs has none", "remove it")
    for job in jobs:
        if isinstance(job.map_label, str) or isinstance(job.reduce_label, str):
            raise BadInput(f"job {job.name}", "requests labels, and a table of jobs has none", "remove them")
    pa, _ = arrow()
    columns: dict[str, list[Any]] = {
        "name": [job.name for job in jobs],
        "job_class": [job.job_class for job in jobs],
        "user": [job.user for job in jobs],
        "queue": [job.queue for job in jobs],
        "deadline_at_ms": [job.deadline_at_ms for job in jobs],
    }
    for field in (*_NUMBERS, *_LISTS):
        columns[field] = [getattr(job, field) for job in jobs]
    for size in _SIZES:
        vectors: list[Resources] = [getattr(job, f"{size}_size") for job in jobs]
        columns[f"{size}_memory_mib"] = [vector.memory_mib for vector in vectors]
        columns[f"{size}_vcores"] = [vector.vcores for vector in vectors]
    schema = _schema(pa)
    write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema), path)


def write_table(table: Any, path: Path) -> None:
    """Write a table of Arrow's, whole or not at all; raises BadInput if it cannot be written."""
    _, pq = arrow()
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(table, part, compression="zstd", write_page_checksum=True)
        os.replace(part, path)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else str(error).replace(str(part), str(path))
        raise BadInput(str(path), f"cannot be written: {problem}", "check the folder") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def require_replaceable(path: Path) -> None:
    """Raise BadInput unless nothing is at ``path``, or a file of jobs that was written before."""
    if "\0" in str(path):
        raise BadInput(str(path), "the name has a NUL character in it", "give another file")
    try:
        mode = path.lstat().st_mode
    except OSError:
        return  # absent; what else is wrong shows on writing
    if not stat.S_ISREG(mode) or not holds(path, _VERSION_KEY):
        raise BadInput(str(path), "exists and is not a file of jobs", "give another file, or remove this one")


def holds(path: Path, key: bytes) -> bool:
    """Say whether a file is Parquet with this key in its metadata."""
    pa, pq = arrow()
    try:
        return key in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def read_parquet(path: Path, where: str | None = None, counted: CountedRows = iter) -> tuple[Job, ...]:
    """Return the jobs of a file that ``write_parquet`` wrote, in its order.

    Raises BadInput for an unusable file or schema, or an impossible value, with column and row from 1.
    """
    place = where or str(path)
    table = read_table(path, place, _REMEDY, lambda schema: _require_schema(schema, place))
    if not table.num_rows:
        raise BadInput(place, "holds no jobs", _REMEDY)
    columns: dict[str, list[Any]] = {}
    for name in table.schema.names:
        column = table.column(name).combine_chunks()
        if column.null_count and name not in _OPTIONAL:
            raise BadInput(place, f"field {name}: {column.null_count} values are missing", _REMEDY)
        try:
            columns[name] = _lists(column) if name in _LISTS else column.to_pylist()
        except UnicodeDecodeError:
            raise BadInput(place, f"field {name}: not UTF-8 text", _REMEDY) from None
    columns.setdefault("queue", [None] * table.num_rows)
    _check(columns, place)
    return tuple(_job(columns, row) for row in counted(range(table.num_rows)))


def arrow() -> tuple[Any, Any]:
    """Import pyarrow only where it is needed: it costs more than most programs here take."""
    return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")


def _schema(pa: Any, version: str = SCHEMA_VERSION) -> Any:
    number, tasks = pa.int64(), pa.list_(pa.int64())
    fields = [("name", pa.string()), ("job_class", pa.string()), ("user", pa.string())]
    if version == SCHEMA_VERSION:
        fields += [("queue", pa.string())]
    fields += [("deadline_at_ms", number)]
    fields += [(name, number) for name in _NUMBERS] + [(name, tasks) for name in _LISTS]
    for size in _SIZES:
        fields += [(f"{size}_memory_mib", number), (f"{size}_vcores", number)]
    return pa.schema(fields, metadata={_VERSION_KEY: version.encode()})


def read_table(path: Path, place: str, remedy: str, require: Callable[[Any], None]) -> Any:
    """Read a table whose schema ``require`` lets pass; raises BadInput for a torn or foreign file."""
    pa, pq = arrow()
    if not path.is_file():
        raise BadInput(place, "cannot be read: no such file", "check the path")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            require(file.schema_arrow)
            return file.read()
    except (pa.ArrowException, OSError, ValueError) as error:
        first = (str(error).splitlines() or ["unreadable"])[0][:120]
        raise BadInput(place, f"the Parquet data is torn or foreign: {first}", remedy) from None


def _require_schema(found: Any, place: str) -> None:
    pa, _ = arrow()
    said = (found.metadata or {}).get(_VERSION_KEY)
    version = "" if said is None else said.decode(errors="replace")
    readable = (SCHEMA_VERSION, *OLDER_VERSIONS)
    if said is None or not any(found.equals(_schema(pa, each)) for each in readable):
        raise BadInput(place, "not a file of jobs: other columns or no version", _REMEDY)
    if version not in readable:
        raise BadInput(place, f"schema version {version[:20]}, not {SCHEMA_VERSION}", _REMEDY)
    if not found.equals(_schema(pa, version)):
        raise BadInput(place, f"not a file of jobs: columns of another version than {version}", _REMEDY)


def _lists(column: Any) -> list[tuple[int, ...]]:
    if column.flatten().null_count:
        return [tuple(values) for values in column.to_pylist()]
    offsets = column.offsets.to_pylist()
    values = column.values.to_numpy().tolist()
    return [tuple(values[start:end]) for start, end in pairwise(offsets)]


def _check(columns: dict[str, list[Any]], place: str) -> None:
    """Raise BadInput for the first value that no job can have."""
    classes = get_args(JobClass)
    for row, job_class in enumerate(columns["job_class"], 1):
        if job_class not in classes:
            raise BadInput(place, f"field job_class, row {row}: {job_class[:20]!r}", f"one of {classes}")
    for name in ("name", "user", "queue"):
        for row, text in enumerate(columns[name], 1):
            if text is not None and not is_name(text):
                problem = "empty, too long, or with blanks or control characters"
                raise BadInput(place, f"field {name}, row {row}: {problem}", _REMEDY)
    for name, (least, most) in _RANGES.items():
        for row, value in enumerate(columns[name], 1):
            _require_range(value, least, most, f"field {name}, row {row}", place)
    for row, maps in enumerate(columns["map_ms"], 1):
        if not maps:
            raise BadInput(place, f"field map_ms, row {row}: the job has no map", _REMEDY)
    for row, (lengths, keys) in enumerate(zip(columns["reduce_ms"], columns["reduce_keys"], strict=True), 1):
        if len(lengths) != len(keys):
            raise BadInput(place, f"field reduce_keys, row {row}: not one per reduce", _REMEDY)


def _require_range(value: Any, least: int, most: int, field: str, place: str) -> None:
    values = value if isinstance(value, tuple) else () if value is None else (value,)
    if None in values:
        raise BadInput(place, f"{field}: a value is missing", _REMEDY)
    if values and (min(values) < least or max(values) > most):
        bad = next(one for one in values if not least <= one <= most)
        raise BadInput(place, f"{field}: {bad} is not within {least} to {most}", _REMEDY)


def _job(columns: dict[str, list[Any]], row: int) -> Job:
    fields: dict[str, Any] = {name: columns[name][row] for name in _PLAIN}
    for size in _SIZES:
        fields[f"{size}_size"] = Resources(columns[f"{size}_memory_mib"][row], columns[f"{size}_vcores"][row])
    return Job(**fields)
