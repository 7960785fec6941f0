"""A trace to Parquet and back: three columns, read in one gulp.

Law: what is read back equals what was written; a file is complete or absent; a torn or foreign
one is a BadInput.

Reader for Alibaba's cluster trace of 2017, as extracted in CloudSimPy (``jobs.csv``, plain or gzip).

Law: a row is taken as it is or refused by line and field. A row is one batch task: so many
instances, each of a mean duration; a job is all tasks with its id. What depends on what is not
in the extract, so a job can use all of its instances at once: tasks = their sum, work = the sum
of instances x duration, submitted with its first task.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

from yarn_research.admission.traces.trace import MOST_TASKS, Trace, checked
from yarnctl.errors import BadInput
from yarnctl.traces.job import LONGEST_MS
from yarnctl.traces.parquet import arrow, holds, read_table, write_table
from yarnctl.traces.trace_file import read_text

VERSION_KEY, VERSION = b"yarnctl.admission.version", b"1"
SOURCE_KEY = b"yarnctl.admission.source"
COLUMNS = ("submitted_at_ms", "tasks", "work_ms")
REMEDY = "write it again with yarn-research admission --save"


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace, replacing only a file that holds one; raises BadInput if it cannot be written."""
    if path.exists() and not holds(path, VERSION_KEY):
        raise BadInput(str(path), "exists, and holds no trace", "give another file, or remove this one")
    pa, _ = arrow()
    metadata = {VERSION_KEY: VERSION, SOURCE_KEY: trace.source.encode()}
    schema = pa.schema([(name, pa.int64()) for name in COLUMNS], metadata=metadata)
    write_table(pa.table({name: getattr(trace, name) for name in COLUMNS}, schema=schema), path)


def read_trace(path: Path) -> Trace:
    """Return the trace of a file that ``write_trace`` wrote; raises BadInput for any other."""
    table = read_table(path, str(path), REMEDY, lambda schema: _require_trace(schema, path))
    if any(table.column(name).null_count for name in COLUMNS):
        raise BadInput(str(path), "values are missing", REMEDY)
    columns = [table.column(name).to_numpy().copy() for name in COLUMNS]  # Arrow's own are read-only
    source = table.schema.metadata.get(SOURCE_KEY, b"").decode(errors="replace")
    return checked(Trace(source or f"parquet:{path.name}", *columns))


def _require_trace(schema: Any, path: Path) -> None:
    if (schema.metadata or {}).get(VERSION_KEY) != VERSION or tuple(schema.names) != COLUMNS:
        raise BadInput(str(path), "holds no trace for admission, or one of another version", REMEDY)


FIELDS = ("", "submit_time", "duration", "cpu", "memory", "job_id", "task_id", "instances_num", "disk")
ALIBABA_REMEDY = f"expected columns {','.join(FIELDS)}, with a header"


def read_alibaba(path: Path) -> Trace:
    """Return the trace; raises BadInput at ``path:line`` for a torn row or a number that none can be."""
    lines = read_text(path, str(path)).splitlines()
    if not lines or tuple(lines[0].split(",")) != FIELDS:
        raise BadInput(f"{path}:1", "not the header of the Alibaba extract", ALIBABA_REMEDY)
    jobs: dict[str, list[int]] = {}
    for number, cells in enumerate(csv.reader(lines[1:]), 2):
        if len(cells) != len(FIELDS):
            raise BadInput(
                f"{path}:{number}", f"{len(cells)} columns instead of {len(FIELDS)}", ALIBABA_REMEDY
            )
        at_ms = _ms(cells[1], path, number, "submit_time", 0)
        instances = round(_number(cells[7], path, number, "instances_num", 1, MOST_TASKS))
        work_ms = instances * _ms(cells[2], path, number, "duration", 1)
        job = jobs.setdefault(cells[5], [at_ms, 0, 0])
        job[0], job[1], job[2] = min(job[0], at_ms), job[1] + instances, job[2] + work_ms
    rows = sorted(jobs.values(), key=lambda job: job[0])
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return checked(Trace(f"alibaba:{path.name}", *(column.copy() for column in columns)))


def _ms(cell: str, path: Path, line: int, field: str, least: int) -> int:
    seconds = _number(cell, path, line, field, 0, LONGEST_MS / 1000)
    return max(least, round(seconds * 1000))


def _number(cell: str, path: Path, line: int, field: str, least: float, most: float) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise BadInput(
            f"{path}:{line}", f"field {field}: {cell[:40]!r} is not a number of {least} to {most:g}"
        )
    return value
