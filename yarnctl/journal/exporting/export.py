"""Export: a journal as tables of an hour each.

* Hours follow the journal's lines: a record whose clock was set back stays in the hour before it.
* A run begins with the last hour of the manifest, which may have grown, and writes whole hours. Each file is
  read back and compared, and the manifest follows. A run that was interrupted is repeated from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from yarnctl.deciding.records import Record
from yarnctl.errors import BadInput, Different
from yarnctl.journal.chain import Chain, last_link
from yarnctl.journal.exporting.export_folder import (
    HOUR_MS,
    ExportedHour,
    ExportFolder,
    ExportManifest,
    JournalName,
    manifest_in,
    packed,
    tables_of,
    unpacked,
)
from yarnctl.journal.exporting.export_rows import KINDS, ExportRows, Kind, Row, counted
from yarnctl.journal.file import Interrupted, Line, chain_at, journal_at, read_files
from yarnctl.journal.pruned import Left, left_of
from yarnctl.journal.segments import opened


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What an export holds after a run: its hours, those written now, and the rows of each table."""

    where: str
    cluster: str
    journal: str
    hours: int
    written_hours: int
    first_line: int
    last_line: int
    rows: dict[Kind, int]


def journal_name(left: Left, cluster: str) -> JournalName:
    """Return the name of a journal in an export; raises BadInput if there is none."""
    if left.pruned is not None:
        return JournalName(cluster, left.pruned.journal)
    first = _first_link(left.files[0]) if left.files and left.files[0].exists() else None
    if first is None or first.number != 1:
        raise BadInput(str(left.files[0]), "no journal begins here", "give a state directory or a journal")
    return JournalName(cluster, first.digest)


def _first_link(file: Path) -> Chain | None:
    with opened(file) as stream:
        return last_link(stream.readline())


def begin_at(left: Left, number: int) -> tuple[tuple[Path, ...], Chain]:
    """Return the files from the one with line ``number`` on, and the chain before it."""
    begin = 0
    for place in range(1, len(left.files)):
        link = _first_link(left.files[place])
        if link is not None and link.number <= number:
            begin = place
    return left.files[begin:], chain_at(left.files[begin - 1]) if begin else left.chain


def export(
    path: Path, folder: ExportFolder, cluster: str, seen: Callable[[Line], object] = lambda line: None
) -> Exported:
    """Write what is new, and check it. ``seen`` is called with each line that is read.

    Raises BadInput and Different as :func:`yarnctl.journal.file.read` does, and Different if the export
    is of another journal, or if a file does not hold what was written.
    """
    path = journal_at(path)
    left = left_of(path)
    name = journal_name(left, cluster)
    manifest = manifest_in(folder, name)
    first = manifest.hours[-1].first_line if manifest.hours else left.chain.number + 1
    if first <= left.chain.number:
        raise Different(f"{path}: line {first} was pruned, and the export at {folder.where} does not hold it")
    files, chain = begin_at(left, first)
    written = 0
    for hour, rows, records in _hours(path, files, chain, manifest, seen):
        manifest = _write(folder, name, manifest, hour, rows, records)
        written += 1
    totals = {kind: sum(hour.rows[kind] for hour in manifest.hours) for kind in KINDS}
    return Exported(
        where=folder.where,
        cluster=cluster,
        journal=name.journal,
        hours=len(manifest.hours),
        written_hours=written,
        first_line=manifest.hours[0].first_line,
        last_line=manifest.hours[-1].last_line,
        rows=totals,
    )


def _hours(
    path: Path,
    files: tuple[Path, ...],
    chain: Chain,
    manifest: ExportManifest,
    seen: Callable[[Line], object],
) -> Iterator[tuple[ExportedHour, list[Row], list[Record]]]:
    """Yield the hours that are new or have grown, with their rows and records."""
    last = manifest.hours[-1] if manifest.hours else None
    begin, hour_at_ms = (1, None) if last is None else (last.first_line, last.hour_at_ms)
    maker, rows, kept, first, number, digest = ExportRows(), list[Row](), list[Record](), begin, 0, ""
    for line in _whole(read_files(path, files, chain)):
        seen(line)
        at_ms = getattr(line.record, "at_ms", None)
        if line.number < begin:
            list(maker.of(line))
            continue
        if number < begin:
            list(maker.rest())  # of the hour before
            first = line.number
        if at_ms is not None:
            at_hour_ms = at_ms // HOUR_MS * HOUR_MS
            if hour_at_ms is not None and at_hour_ms > hour_at_ms:
                rows += maker.rest()
                yield _hour(hour_at_ms, first, number, digest, rows), rows, kept
                rows, kept, first = [], [], line.number
            hour_at_ms = at_hour_ms if hour_at_ms is None else max(hour_at_ms, at_hour_ms)
        rows += maker.of(line)
        kept.append(line.record)
        number, digest = line.number, chain.digest
        if last is not None and number == last.last_line and digest != last.chain:
            raise Different(f"{path}: line {number} is not the one that was exported")
    if last is not None and number < last.last_line:
        raise Different(f"{path}: ends at line {number}; line {last.last_line} was exported")
    if hour_at_ms is not None and (last is None or number > last.last_line):
        rows += maker.rest()
        yield _hour(hour_at_ms, first, number, digest, rows), rows, kept


def _whole(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the whole lines: the last of a journal that is being written may be torn."""
    try:
        yield from lines
    except Interrupted:
        return


def _hour(hour_at_ms: int, first: int, last: int, digest: str, rows: list[Row]) -> ExportedHour:
    counts = Counter(row.kind for row in rows)
    return ExportedHour(
        hour_at_ms=hour_at_ms,
        first_line=first,
        last_line=last,
        chain=digest,
        rows={kind: counts[kind] for kind in KINDS},
    )


def _write(
    folder: ExportFolder,
    name: JournalName,
    manifest: ExportManifest,
    hour: ExportedHour,
    rows: list[Row],
    records: list[Record],
) -> ExportManifest:
    """Write an hour's files, read them back, compare them with the journal, and write the manifest."""
    held = dict.fromkeys(KINDS, 0)
    for kind, table in tables_of(rows).items():
        file = name.table(kind, hour.hour_at_ms)
        folder.put(file, packed(table))
        back = unpacked(folder.get(file) or b"", f"{folder.where}/{file}")
        if not back.equals(table):
            raise Different(f"{folder.where}/{file}: does not hold what was written; export again")
        held[kind] = sum(back.column("looks").to_pylist()) if kind == "looks" else back.num_rows
    for kind, count in counted(records).items():
        if kind != "charges" and held[kind] != count:
            place = f"{folder.where}/{name.table(kind, hour.hour_at_ms)}"
            raise Different(f"{place}: holds {held[kind]} of the journal's {count}")
    before = manifest.hours
    if before and before[-1].first_line == hour.first_line:
        before = before[:-1]
    manifest = msgspec.structs.replace(manifest, hours=(*before, hour))
    folder.put(name.manifest, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest
