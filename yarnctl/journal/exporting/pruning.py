"""Prune: delete the segments of a journal that an export holds, row by row.

Never deleted: the file that is written to, the segment before it, which a restart reads for display, and the
last hour that was exported, which the next export writes again.
Each segment's rows are made again and compared with what the files of the export hold for its lines. The
first segment that differs ends the deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from yarnctl.journal.chain import Chain
from yarnctl.journal.exporting.export import journal_name
from yarnctl.journal.exporting.export_folder import (
    ExportedHour,
    ExportFolder,
    JournalName,
    manifest_in,
    tables_of,
    unpacked,
)
from yarnctl.journal.exporting.export_rows import KINDS, ExportRows, Row
from yarnctl.journal.file import Line, journal_at, read_files
from yarnctl.journal.pruned import Pruned, left_of, record
from yarnctl.journal.segments import number_of, segments, sync_folder
from yarnctl.traces.parquet import arrow

KEPT_FILES = 2
"""The newest files of a journal, which are never deleted."""


class Pruning(msgspec.Struct, frozen=True, kw_only=True):
    """What was deleted, or would be; ``problem``: what the export lacks of the next segment ("": nothing)."""

    deleted: tuple[str, ...]
    bytes: int
    kept: tuple[str, ...]
    first_line: int
    problem: str


def prune(
    path: Path,
    folder: ExportFolder,
    cluster: str,
    *,
    dry_run: bool,
    seen: Callable[[Line], object] = lambda line: None,
) -> Pruning:
    """Delete the oldest segments that the export holds. Raises BadInput, Different and OSError."""
    path = journal_at(path)
    left = left_of(path)
    name = journal_name(left, cluster)
    hours = manifest_in(folder, name).hours
    chain, gone, problem = Chain(left.chain.number, left.chain.digest), list[Path](), ""
    for segment in left.files[:-KEPT_FILES]:
        after = Chain(chain.number, chain.digest)
        lines = read_files(path, [segment], after)
        problem = _missing(_counted(lines, seen), after, folder, name, hours)
        if problem:
            problem = f"{segment.name} stays: {problem}"
            break
        if after.number >= hours[-1].first_line:
            break  # the next export writes this hour again
        gone.append(segment)
        chain = after
    size = sum(each.stat().st_size for each in gone)
    if gone and not dry_run:
        number = number_of(path, gone[-1])
        entry = Pruned(
            journal=name.journal,
            segment=number,
            line=chain.number,
            chain=chain.digest,
            export=f"{folder.where} (cluster {cluster})",
        )
        record(path, entry)
    if not dry_run and (entry_now := left_of(path).pruned) is not None:
        for each in segments(path):  # also those that an interrupted run has left
            if each != path and number_of(path, each) <= entry_now.segment:
                each.unlink()
        sync_folder(path.parent)
    kept = left.files[len(gone) :]
    return Pruning(
        deleted=tuple(each.name for each in gone),
        bytes=size,
        kept=tuple(each.name for each in kept),
        first_line=chain.number + 1,
        problem=problem,
    )


def _counted(lines: Iterator[Line], seen: Callable[[Line], object]) -> Iterator[Line]:
    for line in lines:
        seen(line)
        yield line


def _missing(
    lines: Iterator[Line],
    chain: Chain,
    folder: ExportFolder,
    name: JournalName,
    hours: Collection[ExportedHour],
) -> str:
    """Return what the export lacks of a segment's lines, "" if it holds all."""
    maker, hour = ExportRows(), None
    found: list[tuple[ExportedHour, list[Row]]] = []
    first = last = 0
    for line in lines:
        first, last = first or line.number, line.number
        if hour is None or last > hour.last_line:
            if found:
                found[-1][1].extend(maker.rest())
            hour = next((each for each in hours if each.first_line <= last <= each.last_line), None)
            if hour is None:
                return f"line {last} is not exported to {folder.where}"
            found.append((hour, []))
        found[-1][1].extend(maker.of(line))
        if last == hour.last_line and chain.digest != hour.chain:
            return f"line {last} is not the line that was exported"
    found[-1][1].extend(maker.rest())
    for hour, rows in found:
        tables = tables_of(rows)
        for kind in KINDS:
            file = name.table(kind, hour.hour_at_ms)
            data = folder.get(file)
            place = f"{folder.where}/{file}"
            if data is None or not _holds(unpacked(data, place), tables[kind], first, last):
                return f"{place} does not hold its rows"
    return ""


def _holds(exported: Any, table: Any, first: int, last: int) -> bool:
    """Return whether the rows of these lines are just those of ``table``."""
    pa, _ = arrow()
    number = exported.column("line")
    inside = pa.compute.and_(pa.compute.greater_equal(number, first), pa.compute.less_equal(number, last))
    held = exported.filter(inside)
    return bool(held.equals(table))
