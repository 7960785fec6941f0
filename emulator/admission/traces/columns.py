"""A trace to Parquet and back: three columns, read in one gulp.

Law: what is read back equals what was written; a file is complete or absent; a torn or foreign
one is a BadInput.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from pathlib import Path
from typing import Any

from emulator.admission.traces.trace import Trace, checked
from yarnctl.errors import BadInput

VERSION_KEY, VERSION = b"yarnctl.admission.version", b"1"
SOURCE_KEY = b"yarnctl.admission.source"
COLUMNS = ("submitted_at_ms", "tasks", "work_ms")
REMEDY = "write it again with yarn-emulator admission --save"


def write_trace(trace: Trace, path: Path) -> None:
    """Write a trace, replacing only a file that holds one; raises BadInput if it cannot be written."""
    pa, pq = _arrow()
    if path.exists() and not _holds_trace(path):
        raise BadInput(str(path), "exists, and holds no trace", "give another file, or remove this one")
    metadata = {VERSION_KEY: VERSION, SOURCE_KEY: trace.source.encode()}
    schema = pa.schema([(name, pa.int64()) for name in COLUMNS], metadata=metadata)
    table = pa.table({name: getattr(trace, name) for name in COLUMNS}, schema=schema)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        pq.write_table(table, part, compression="zstd", write_page_checksum=True)
        os.replace(part, path)
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else str(error)
        raise BadInput(str(path), f"cannot be written: {problem}", "check the folder") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def read_trace(path: Path) -> Trace:
    """Return the trace of a file that ``write_trace`` wrote; raises BadInput for any other."""
    pa, pq = _arrow()
    if not path.is_file():
        raise BadInput(str(path), "cannot be read: no such file", "check the path")
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            metadata = file.schema_arrow.metadata or {}
            if metadata.get(VERSION_KEY) != VERSION or tuple(file.schema_arrow.names) != COLUMNS:
                raise BadInput(str(path), "holds no trace for admission, or one of another version", REMEDY)
            table = file.read()
            if any(table.column(name).null_count for name in COLUMNS):
                raise BadInput(str(path), "values are missing", REMEDY)
            columns = [table.column(name).to_numpy().copy() for name in COLUMNS]  # Arrow's own are read-only
    except (pa.ArrowException, OSError, ValueError) as error:
        first = (str(error).splitlines() or ["unreadable"])[0][:120]
        raise BadInput(str(path), f"the Parquet data is torn or foreign: {first}", REMEDY) from None
    source = metadata.get(SOURCE_KEY, b"").decode(errors="replace")
    return checked(Trace(source or f"parquet:{path.name}", *columns))


def _holds_trace(path: Path) -> bool:
    pa, pq = _arrow()
    try:
        return VERSION_KEY in (pq.read_schema(path).metadata or {})
    except (pa.ArrowException, OSError, ValueError):
        return False


def _arrow() -> tuple[Any, Any]:
    """Import pyarrow only where it is needed: it costs more than most programs here take."""
    return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
