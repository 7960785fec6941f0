"""The folder of an export: its names, its manifest, and tables as bytes of Parquet.

``decisions/cluster=C/date=2026-11-29/13-3fa9c1d2.parquet`` has an hour (UTC) of one journal, whose first
digest begins with ``3fa9c1d2``: the journals of two daemons of a cluster stand beside each other. The
manifest, ``_yarnctl/C/3fa9c1d2.json``, is written after the files that it names.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from yarnctl.errors import BadInput
from yarnctl.journal.exporting.export_rows import COLUMNS, KINDS, Kind, Row
from yarnctl.journal.segments import sync_folder
from yarnctl.traces.parquet import arrow

FORMAT = 1
HOUR_MS = 3_600_000


class ExportFolder(Protocol):
    """Where an export is written. ``where`` names it in messages; names have ``/`` between their parts."""

    where: str

    def put(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all, in place of the one before."""

    def get(self, name: str) -> bytes | None:
        """Return a file; None: there is none."""


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path, self.where = path, str(path)

    def put(self, name: str, data: bytes) -> None:
        """Write a file beside, wait for the disk, and rename it. Raises BadInput."""
        place = self.path / name
        beside = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                with beside.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, place)
                sync_folder(place.parent)
            finally:
                beside.unlink(missing_ok=True)
        except OSError as error:
            problem = f"cannot be written: {error.strerror or error}"
            raise BadInput(str(place), problem, "check the folder, and run the command again") from None

    def get(self, name: str) -> bytes | None:
        """Return a file; None: there is none. Raises BadInput."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise BadInput(str(self.path / name), str(error.strerror or error), "check the folder") from None


class ExportedHour(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of a journal: its lines, the digest of the last, and the rows of each table."""

    hour_at_ms: int
    first_line: int
    last_line: int
    chain: str
    rows: Mapping[Kind, int]


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The hours of one journal in an export, in the order of its lines without a gap."""

    format: int = FORMAT
    journal: str
    cluster: str
    hours: tuple[ExportedHour, ...] = ()


class JournalName(NamedTuple):
    """A journal in an export: the name of its cluster, and the digest of its first line."""

    cluster: str
    journal: str

    @property
    def manifest(self) -> str:
        """Return the name of the manifest."""
        return f"_yarnctl/{self.cluster}/{self.journal[:8]}.json"

    def table(self, kind: Kind, hour_at_ms: int) -> str:
        """Return the name of the file of an hour."""
        at = datetime.fromtimestamp(hour_at_ms / 1000, UTC)
        return f"{kind}/cluster={self.cluster}/date={at:%Y-%m-%d}/{at:%H}-{self.journal[:8]}.parquet"


def manifest_in(folder: ExportFolder, name: JournalName) -> ExportManifest:
    """Return the manifest, an empty one if there is none. Raises BadInput."""
    data = folder.get(name.manifest)
    if data is None:
        return ExportManifest(journal=name.journal, cluster=name.cluster)
    where = f"{folder.where}/{name.manifest}"
    try:
        manifest = msgspec.json.decode(data, type=ExportManifest)
    except msgspec.DecodeError as error:
        problem = f"is not a manifest of an export ({error})"
        raise BadInput(where, problem, "export to another folder") from None
    if manifest.format != FORMAT or manifest.journal != name.journal:
        problem = f"is of format {manifest.format} and journal {manifest.journal}"
        raise BadInput(where, problem, f"give another folder or cluster for journal {name.journal}")
    return manifest


def tables_of(rows: Iterable[Row]) -> dict[Kind, Any]:
    """Return the Arrow tables of rows, one of each kind."""
    pa, _ = arrow()
    values: dict[Kind, list[tuple[Any, ...]]] = {kind: [] for kind in KINDS}
    for kind, row in rows:
        values[kind].append(row)
    found = {}
    for kind, table in values.items():
        schema = schema_of(kind)
        columns = zip(*table, strict=True) if table else ((),) * len(schema)
        arrays = [pa.array(column, one.type) for one, column in zip(schema, columns, strict=True)]
        found[kind] = pa.Table.from_arrays(arrays, schema=schema)
    return found


def schema_of(kind: Kind) -> Any:
    """Return the Arrow schema of a table."""
    pa, _ = arrow()
    instant = pa.timestamp("us", "UTC")
    types = {"int64": pa.int64(), "string": pa.string(), "bool": pa.bool_(), "instant": instant}
    return pa.schema([(name, types[kind_of]) for name, kind_of in COLUMNS[kind].items()])


def packed(table: Any) -> bytes:
    """Return a table as a file of Parquet."""
    _, pq = arrow()
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def unpacked(data: bytes, where: str) -> Any:
    """Return the table of a file of Parquet; raises BadInput."""
    pa, pq = arrow()
    try:
        return pq.read_table(io.BytesIO(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(where, f"cannot be read: {error}", "delete the file, and export again") from None
