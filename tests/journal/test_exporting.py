"""A journal as Parquet: whole, repeatable, readable by others; and the segments that an export replaces."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.hadoop.artifacts import cache_folder
from tests.journal.test_restart import played
from tests.journal.test_segments import written
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.records import Header, Record, State
from yarnctl.errors import BadInput, Different
from yarnctl.journal.exporting.export import export
from yarnctl.journal.exporting.export_folder import LocalFolder, packed
from yarnctl.journal.exporting.export_rows import COLUMNS, KINDS
from yarnctl.journal.exporting.pruning import prune
from yarnctl.journal.file import read
from yarnctl.journal.pruned import left_of
from yarnctl.journal.rebuild import rebuild
from yarnctl.journal.replay import replay
from yarnctl.journal.segments import segments

HOUR_MS = 3_600_000
NOON_MS = 1_796_212_800_000
PAGE = Path(__file__).parents[2] / "docs" / "worth.md"


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    played(path, ())
    return [line.record for line in read(path, closed=True)]


def shifted(steps: list[Record], by_ms: int) -> list[Record]:
    """Return a run at another time."""
    return [
        msgspec.structs.replace(each, at_ms=each.at_ms + by_ms) if hasattr(each, "at_ms") else each
        for each in steps
    ]


def of_hours(path: Path, steps: list[Record], hours: range) -> None:
    for hour in hours:
        written(path, shifted(steps, NOON_MS + hour * HOUR_MS))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def told_by(path: Path) -> Counter[str]:
    """Count what the lines of a journal say, without the program's records."""
    counts: Counter[str] = Counter()
    for file in segments(path):
        for line in file.read_bytes().splitlines():
            row = json.loads(line)
            kind = row["type"]
            counts["decisions"] += kind == "decision"
            counts["orders"] += len(row["orders"]) if kind == "decision" else 0
            counts["transitions"] += kind == "transition"
            counts["looks"] += kind == "observed"
            if kind in ("decision", "refusal"):
                counts["rejections"] += len(row.get("refused_jobs", ())) + len(row.get("refused_tasks", ()))
                counts["rejections"] += kind == "refusal"
    return counts


def test_export_holds_each_row_of_the_journal_once(tmp_path: Path, steps: list[Record]) -> None:
    path, folder = tmp_path / "journal.jsonl", tmp_path / "out"
    of_hours(path, steps, range(3))
    done = export(path, LocalFolder(folder), "blue")
    assert (done.hours, done.written_hours) == (3, 3)
    told = told_by(path)
    assert told["orders"] > 3
    for kind in KINDS:
        table = pq.read_table(folder / kind)
        assert table.num_rows == done.rows[kind]
        columns = set(table.column_names)
        assert columns == {*COLUMNS[kind], "cluster", "date"}
        assert str(table.schema.field("at").type) == "timestamp[us, tz=UTC]"
        if kind == "looks":
            assert sum(table.column("looks").to_pylist()) == told["looks"]
        elif kind != "charges":
            assert table.num_rows == told[kind]
    days = sorted(str(each.relative_to(folder)) for each in folder.glob("decisions/*/*/*"))
    assert [re.sub("-[0-9a-f]{8}.parquet", "", each) for each in days] == [
        f"decisions/cluster=blue/date=2026-12-02/{hour}" for hour in (12, 13, 14)
    ]


def test_export_again_writes_only_what_is_new(tmp_path: Path, steps: list[Record]) -> None:
    path, folder, whole = tmp_path / "journal.jsonl", tmp_path / "out", tmp_path / "whole"
    of_hours(path, steps, range(2))
    export(path, LocalFolder(folder), "blue")
    before = files_of(folder)
    again = export(path, LocalFolder(folder), "blue")
    assert again.written_hours == 0
    assert files_of(folder) == before
    written(path, shifted(steps, NOON_MS + HOUR_MS + 600_000))  # the last hour grows
    of_hours(path, steps, range(2, 4))
    assert export(path, LocalFolder(folder), "blue").written_hours == 3
    export(path, LocalFolder(whole), "blue")
    assert files_of(folder) == files_of(whole)


class Failing(LocalFolder):
    """Fails at the ``fatal``-th file."""

    def __init__(self, path: Path, fatal: int) -> None:
        super().__init__(path)
        self.left = fatal

    def put(self, name: str, data: bytes) -> None:
        self.left -= 1
        if self.left < 0:
            raise BadInput(name, "the disk is full")
        super().put(name, data)


def test_export_that_was_interrupted_is_completed_by_the_next(tmp_path: Path, steps: list[Record]) -> None:
    path, whole = tmp_path / "journal.jsonl", tmp_path / "whole"
    of_hours(path, steps, range(2))
    export(path, LocalFolder(whole), "blue")
    for fatal in range(0, len(files_of(whole)) - 1, 3):
        folder = tmp_path / f"out-{fatal}"
        with pytest.raises(BadInput, match="disk is full"):
            export(path, Failing(folder, fatal), "blue")
        export(path, LocalFolder(folder), "blue")
        assert files_of(folder) == files_of(whole)


class Losing(LocalFolder):
    """Writes an empty table in place of what it is given."""

    def put(self, name: str, data: bytes) -> None:
        if name.startswith("orders"):
            super().put(name, data)
            table = pq.read_table(self.path / name, partitioning=None)
            data = packed(table.slice(0, table.num_rows - 1))
        super().put(name, data)


def test_export_reads_back_what_it_wrote(tmp_path: Path, steps: list[Record]) -> None:
    path = tmp_path / "journal.jsonl"
    of_hours(path, steps, range(1))
    with pytest.raises(Different, match="does not hold what was written"):
        export(path, Losing(tmp_path / "out"), "blue")


def test_export_refuses_another_or_a_changed_journal(tmp_path: Path, steps: list[Record]) -> None:
    path, folder = tmp_path / "journal.jsonl", LocalFolder(tmp_path / "out")
    of_hours(path, steps, range(1))
    held = path.read_bytes()
    export(path, folder, "blue")
    path.write_bytes(b"".join(held.splitlines(keepends=True)[:-3]))
    with pytest.raises(Different, match="was exported"):
        export(path, folder, "blue")
    with pytest.raises(BadInput, match="no journal begins here"):
        export(tmp_path / "absent.jsonl", folder, "blue")


def pruned(path: Path, folder: Path, *, dry_run: bool = False) -> Any:
    return prune(path, LocalFolder(folder), "blue", dry_run=dry_run)


def test_prune_deletes_what_the_export_holds(
    tmp_path: Path, steps: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = tmp_path / "journal.jsonl", tmp_path / "out"
    of_hours(path, steps, range(3))
    files, last = segments(path), [line.number for line in read(path)][-1]
    assert len(files) > 5
    nothing = pruned(path, folder)
    assert (nothing.deleted, segments(path)) == ((), files)
    assert "line 1 is not exported" in nothing.problem
    export(path, LocalFolder(folder), "blue")
    planned = pruned(path, folder, dry_run=True)
    assert segments(path) == files
    done = pruned(path, folder)
    assert done == planned
    assert (segments(path), done.problem) == (files[len(done.deleted) :], "")
    assert len(done.deleted) > len(files) // 2
    lines = [line.number for line in read(path, closed=True)]
    assert (lines[0], lines[-1]) == (done.first_line, last)
    assert pruned(path, folder).deleted == ()
    # What is left: chain and states are checked; the next run is replayed.
    left = replay(read(path, closed=True), str(path))
    assert left.not_replayed > 0
    written(path, steps)
    again = replay(read(path, closed=True), str(path))
    assert again.not_replayed == left.not_replayed
    assert again.decisions > 0
    assert exit_status_of(PROGRAM, ["replay", str(path)]) == 0
    assert "records were not replayed" in capsys.readouterr().out
    of_hours(path, steps, range(3, 5))
    assert export(path, LocalFolder(folder), "blue").hours == 5
    assert rebuild(path) is not None
    assert pruned(path, folder).deleted


def test_prune_keeps_a_segment_whose_rows_differ(tmp_path: Path, steps: list[Record]) -> None:
    path, folder = tmp_path / "journal.jsonl", tmp_path / "out"
    of_hours(path, steps, range(3))
    export(path, LocalFolder(folder), "blue")
    files = segments(path)
    for kind in ("orders", "looks", "rejections"):
        file = sorted(folder.glob(f"{kind}/*/*/*"))[1]
        held, table = file.read_bytes(), pq.read_table(file, partitioning=None)
        file.write_bytes(packed(table.slice(1)))
        stopped = pruned(path, folder, dry_run=True)
        assert f"{file} does not hold its rows" in stopped.problem
        assert 0 < len(stopped.deleted) < len(files) // 2
        file.unlink()
        assert pruned(path, folder, dry_run=True).problem == stopped.problem
        file.write_bytes(held)
    assert pruned(path, folder).problem == ""


def test_prune_that_was_interrupted_is_completed(
    tmp_path: Path, steps: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = tmp_path / "journal.jsonl", tmp_path / "out"
    of_hours(path, steps, range(3))
    export(path, LocalFolder(folder), "blue")
    files, count = segments(path), 0

    def unlink(self: Path, missing_ok: bool = False) -> None:
        nonlocal count
        count += 1
        if count > 2:
            raise OSError(28, "the disk fails")
        os.unlink(self)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", unlink)
        with pytest.raises(OSError, match="disk fails"):
            pruned(path, folder)
    assert len(segments(path)) == len(files) - 2
    first = next(iter(read(path, closed=True)))
    assert isinstance(first.record, State)  # the files that are left over are not read
    left = left_of(path).files
    assert len(left) < len(segments(path))
    pruned(path, folder)
    assert segments(path) == left
    (tmp_path / "journal.pruned.json").unlink()
    with pytest.raises((BadInput, Different)):
        list(read(path))


def commands_of(language: str, folder: Path) -> list[str]:
    """Return the documented statements for a program, on this folder."""
    section = PAGE.read_text().partition(f"### {language}\n")[2]
    text = re.sub(r"--[^\n]*", "", section.partition("```sql\n")[2].partition("```")[0])
    return [each.strip() for each in text.replace("/data/yarnctl", str(folder)).split(";") if each.strip()]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory, steps: list[Record]) -> tuple[Path, Any]:
    path = tmp_path_factory.mktemp("tables") / "journal.jsonl"
    of_hours(path, steps, range(2))
    return path.parent / "out", export(path, LocalFolder(path.parent / "out"), "blue")


def test_duckdb_reads_the_documented_queries(exported: tuple[Path, Any]) -> None:
    import duckdb

    folder, done = exported
    with duckdb.connect() as session:
        answers = [session.execute(each).fetchall() for each in commands_of("DuckDB", folder)]
    by_queue, by_verb, by_payer = answers[-3:]
    assert sum(row[3] for row in by_queue) == done.rows["decisions"]
    assert sum(row[4] for row in by_queue) == done.rows["orders"]
    assert all(row[0] == "blue" for row in by_queue)
    assert sum(row[1] for row in by_verb) > 0
    assert all(row[2] > 0 for row in by_verb)
    assert all(row[2] >= 0 for row in by_payer)


SPARK = """
import json, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
answers = [[list(row) for row in session.sql(each).collect()] for each in json.load(sys.stdin)]
print(json.dumps(answers, default=str))
"""


def test_spark_reads_the_documented_queries(exported: tuple[Path, Any]) -> None:
    kept = cache_folder() / "pyspark-4.0.1"
    if not kept.is_dir():
        pytest.skip("PySpark 4.0.1 was not fetched (tests/hadoop)")
    folder, done = exported
    run = subprocess.run(
        [sys.executable, "-c", SPARK],
        input=json.dumps(commands_of("Spark SQL", folder)),
        env={**os.environ, "PYTHONPATH": str(kept), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    rejected, taken = json.loads(run.stdout.splitlines()[-1])[-2:]
    assert sum(row[3] for row in rejected) == done.rows["rejections"]
    assert sum(row[3] for row in taken) == done.rows["orders"]


def test_hive_table_has_the_columns_of_the_files() -> None:
    create = commands_of("Hive", Path("/data/yarnctl"))[0].replace("`", "")
    names = {"int64": "BIGINT", "string": "STRING", "instant": "TIMESTAMP", "bool": "BOOLEAN"}
    shown = re.sub(r"\s+", " ", create.partition("(")[2].partition(")")[0]).strip()
    assert shown == ", ".join(f"{name} {names[kind]}" for name, kind in COLUMNS["decisions"].items())


def test_commands_export_and_prune(
    tmp_path: Path, steps: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    path, to = tmp_path / "journal.jsonl", str(tmp_path / "out")
    of_hours(path, steps, range(2))
    assert isinstance(steps[0], Header)
    assert exit_status_of(PROGRAM, ["journal", "export", str(tmp_path), "--to", to, "-o", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["rows"]["orders"] == told_by(path)["orders"]
    assert exit_status_of(PROGRAM, ["journal", "prune", str(tmp_path), "--exported-to", f"{to}-else"]) == 1
    assert "is not exported" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, ["journal", "prune", str(tmp_path), "--exported-to", to]) == 0
    assert "deleted" in capsys.readouterr().out
    for wrong in (["--to", "s3://a/b"], ["--to", "hdfs://nn:8020/a"], ["--to", to, "--cluster", "a/b"]):
        assert exit_status_of(PROGRAM, ["journal", "export", str(tmp_path), *wrong]) == 2
