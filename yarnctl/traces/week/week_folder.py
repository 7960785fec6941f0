"""The folder of a week: parts of whole jobs, each with the tables jobs, tasks and containers.

``part-00001/jobs.parquet`` and its two neighbours are written into a hidden folder that is renamed once, so
that a part is there whole or not at all, whatever ends the import. A second import adds parts with the jobs
that no part holds. Instants are ``timestamp[us, UTC]``: Spark rejects nanoseconds.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, get_args, get_type_hints

import msgspec

from yarnctl.errors import BadInput
from yarnctl.traces.parquet import arrow, read_table
from yarnctl.traces.week.week_rows import TABLES, ImportedJob, WeekContainer, WeekJob, WeekTask

VERSION = "1"
_VERSION_KEY = b"yarnctl.week.version"
_PART = re.compile(r"part-([0-9]{5,})")
_UNFINISHED = re.compile(r"\.part-(?:[0-9]{5,}|nodes\.json)\.[0-9]+")
"""What an import that was killed leaves: the name of a part or of NODES, and the process's id."""
_REMEDY = "import the week again into another folder"
RowKind = TypeVar("RowKind", bound=msgspec.Struct)
NODES = "nodes.json"
PART_JOBS = 200
PART_ROWS = 50_000
"""A part is written when it holds this many jobs, or rows of tasks and containers."""


class WeekNodes(msgspec.Struct, frozen=True, kw_only=True):
    """How many nodes of one size the cluster had at the last import."""

    nodes: int
    memory_mib: int
    vcores: int


class WeekWriter:
    """Adds parts to a folder; leave it as a context manager, so that the last jobs are written, too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(str(folder), f"cannot be made: {error.strerror}", "give another folder") from None
        found = list(folder.iterdir())
        foreign = [each.name for each in found if not _is_ours(each)]
        if foreign:
            raise BadInput(
                str(folder), f"is not a folder of a week: it holds {foreign[0]}", "give another folder"
            )
        for left in (each for each in found if _UNFINISHED.fullmatch(each.name)):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(missing_ok=True)
        parts = parts_in(folder)
        self.known = {job.job for job in read_rows(folder, WeekJob)} if parts else set[str]()
        self._next = max((_number(part) for part in parts), default=0) + 1
        self._held: list[ImportedJob] = []
        self._rows = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()

    def add(self, job: ImportedJob) -> None:
        """Take one more job, which no part holds and which can be stored (:func:`why_not_stored`)."""
        self.known.add(job.job.job)
        self._held.append(job)
        self._rows += len(job.tasks) + len(job.containers)
        if len(self._held) >= PART_JOBS or self._rows >= PART_ROWS:
            self.flush()

    def write_nodes(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Write the sizes of the cluster's nodes, (MiB, vcores) each. Raises BadInput."""
        counts = sorted(Counter(sizes).items())
        groups = [WeekNodes(nodes=count, memory_mib=size[0], vcores=size[1]) for size, count in counts]
        beside = self._folder / f".part-{NODES}.{os.getpid()}"
        try:
            beside.write_bytes(msgspec.json.format(msgspec.json.encode(groups)) + b"\n")
            beside.replace(self._folder / NODES)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise BadInput(str(self._folder / NODES), problem, "check the folder") from None

    def flush(self) -> None:
        """Write the jobs taken so far as one part. Raises BadInput."""
        if not self._held:
            return
        part = self._folder / f"part-{self._next:05d}"
        beside = self._folder / f".{part.name}.{os.getpid()}"
        rows: dict[str, list[Any]] = {
            "jobs": [each.job for each in self._held],
            "tasks": [task for each in self._held for task in each.tasks],
            "containers": [one for each in self._held for one in each.containers],
        }
        try:
            beside.mkdir()
            for table, found in rows.items():
                _write(TABLES[table], found, beside / f"{table}.parquet")
            beside.rename(part)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise BadInput(str(part), problem, "check the folder, and that no other import runs") from None
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        self._next += 1
        self._held, self._rows = [], 0


def parts_in(folder: Path) -> list[Path]:
    """Return the parts of a week, in the order in which they were written."""
    found = [each for each in folder.iterdir() if _PART.fullmatch(each.name)] if folder.is_dir() else []
    return sorted(found, key=_number)


def read_nodes(folder: Path) -> list[WeekNodes]:
    """Return the cluster's nodes by size; none if no server was imported from. Raises BadInput."""
    path = folder / NODES
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[WeekNodes]) if path.exists() else []
    except (OSError, msgspec.MsgspecError) as error:
        raise BadInput(str(path), f"cannot be read: {error}", _REMEDY) from None


def read_week(folder: Path) -> list[ImportedJob]:
    """Return the jobs of a week by submission and id. Raises BadInput for a folder or table it cannot be."""
    if not parts_in(folder):
        raise BadInput(str(folder), "holds no week", "run yarnctl history import --out " + str(folder))
    tasks: dict[str, list[WeekTask]] = {}
    containers: dict[str, list[WeekContainer]] = {}
    for task in read_rows(folder, WeekTask):
        tasks.setdefault(task.job, []).append(task)
    for one in read_rows(folder, WeekContainer):
        containers.setdefault(one.job, []).append(one)
    jobs = sorted(read_rows(folder, WeekJob), key=lambda job: (job.submitted_at_ms, job.job))
    return [
        ImportedJob(job, tuple(tasks.get(job.job, ())), tuple(containers.get(job.job, ()))) for job in jobs
    ]


def read_rows(folder: Path, kind: type[RowKind]) -> list[RowKind]:
    """Return all rows of a table of a week. Raises BadInput."""
    name = next(table for table, row in TABLES.items() if row is kind)
    wanted = schema_of(kind)
    found: list[RowKind] = []
    for part in parts_in(folder):
        path = part / f"{name}.parquet"
        table = read_table(path, str(path), _REMEDY, partial(_require, wanted, path))
        columns = [_plain(column) for column in table.columns]
        fields = [field.name for field in msgspec.structs.fields(kind)]
        found += [kind(**dict(zip(fields, row, strict=True))) for row in zip(*columns, strict=True)]
    return found


def schema_of(kind: type[msgspec.Struct]) -> Any:
    """Return the Arrow schema of a table: an instant ``x_at_ms`` is the column ``x_at``."""
    pa, _ = arrow()
    hints = get_type_hints(kind)
    fields = []
    for name in kind.__struct_fields__:
        types = get_args(hints[name]) or (hints[name],)
        if name.endswith("_at_ms"):
            fields.append((name.removesuffix("_ms"), pa.timestamp("us", "UTC")))
        else:
            fields.append((name, pa.int64() if int in types else pa.string()))
    return pa.schema(fields, metadata={_VERSION_KEY: VERSION.encode()})


def _write(kind: type[msgspec.Struct], rows: Sequence[Any], path: Path) -> None:
    pa, pq = arrow()
    schema = schema_of(kind)
    arrays = []
    for name, column in zip(kind.__struct_fields__, schema, strict=True):
        values: Iterable[Any] = (getattr(row, name) for row in rows)
        if name.endswith("_at_ms"):
            values = (None if value is None else value * 1000 for value in values)
        arrays.append(pa.array(values, column.type))
    with path.open("wb") as file:
        table = pa.Table.from_arrays(arrays, schema=schema)
        pq.write_table(table, file, compression="zstd", write_page_checksum=True)
        file.flush()
        os.fsync(file.fileno())


def _plain(column: Any) -> list[Any]:
    """Return the values of a column; instants in ms."""
    pa, _ = arrow()
    if not pa.types.is_timestamp(column.type):
        return list(column.to_pylist())
    return [None if value is None else value // 1000 for value in column.cast(pa.int64()).to_pylist()]


def _require(wanted: Any, path: Path, found: Any) -> None:
    version = (found.metadata or {}).get(_VERSION_KEY)
    if version != VERSION.encode() or not found.equals(wanted):
        raise BadInput(str(path), f"is not a table of a week of version {VERSION}", _REMEDY)


def _is_ours(path: Path) -> bool:
    return path.name == NODES or any(kind.fullmatch(path.name) for kind in (_PART, _UNFINISHED))


def _number(part: Path) -> int:
    match = _PART.fullmatch(part.name)
    assert match is not None
    return int(match[1])
