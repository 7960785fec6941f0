"""A long journal in a real HDFS: DuckDB and PySpark count its rows, and nothing else is pruned."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from tests.hadoop.artifacts import cache_folder
from tests.hadoop.configuration import Shape
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.needing import need_hadoop
from tests.journal.test_exporting import HOUR_MS, NOON_MS, shifted
from tests.journal.test_restart import played
from yarnctl.journal.file import JournalFile, read
from yarnctl.journal.segments import opened, segments

VERSION = "3.4.2"
HOURS, RUNS_AN_HOUR, RUN_MS = 16, 20, 150_000
DECISIONS_LEAST = 2_000
SEGMENT_BYTES = 500_000
ROOT = "/warehouse/yarnctl"
COUNTED = ("decisions", "orders", "transitions", "rejections")

SPARK = """
import json, sys
from pyspark.sql import SparkSession, functions
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
found = {}
for kind in sys.argv[2:]:
    table = session.read.parquet(f"{sys.argv[1]}/{kind}")
    lines = table.agg(functions.countDistinct("line"), functions.min("line"), functions.max("line")).first()
    found[kind] = [table.count(), *lines]
print(json.dumps(found))
"""


def long_journal(folder: Path) -> Path:
    """Write a journal of many runs of the emulator, one after the other; return its path."""
    played(folder / "run.jsonl", ())
    steps = [line.record for line in read(folder / "run.jsonl", closed=True)]
    (folder / "state").mkdir()
    path = folder / "state" / "journal.jsonl"
    journal = JournalFile(path, durable=False, segment_bytes=SEGMENT_BYTES)
    for run in range(HOURS * RUNS_AN_HOUR):
        hour, place = divmod(run, RUNS_AN_HOUR)
        journal.append(shifted(steps, NOON_MS + hour * HOUR_MS + place * RUN_MS))
    journal.close()
    return path


def rows_in(files: list[Path]) -> Counter[str]:
    """Count the rows that the lines of a journal's files say, without the program's records."""
    counts = Counter[str]()
    for file in files:
        with opened(file) as stream:
            for row in map(json.loads, stream):
                kind = row["type"]
                counts["decisions"] += kind == "decision"
                counts["orders"] += len(row["orders"]) if kind == "decision" else 0
                counts["transitions"] += kind == "transition"
                counts["rejections"] += kind == "refusal"
                if kind in ("decision", "refusal"):
                    counts["rejections"] += len(row.get("refused_jobs", ()))
                    counts["rejections"] += len(row.get("refused_tasks", ()))
    return counts


def journal_command(
    cluster: Cluster, verb: str, option: str, path: Path, status: int = 0
) -> dict[str, object]:
    """Run ``yarnctl journal`` as an administrator does; return its answer."""
    words = [YARNCTL, "journal", verb, str(path.parent), option, f"hdfs://{ROOT}", "--cluster", "blue"]
    done = subprocess.run(
        [*words, "--name-node", cluster.hdfs_url, "-o", "json"],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def spark_counts(cluster: Cluster) -> dict[str, list[int]]:
    """Return rows, lines, first and last line of each table, read by PySpark from HDFS."""
    run = subprocess.run(
        [sys.executable, "-c", SPARK, f"hdfs://{ROOT}", *COUNTED],
        env={
            **os.environ,
            **cluster.environment,
            "PYTHONPATH": str(cache_folder() / "pyspark-4.0.1"),
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    found: dict[str, list[int]] = json.loads(run.stdout.splitlines()[-1])
    return found


def test_export_in_hdfs_holds_the_journal_and_nothing_else_is_pruned(tmp_path: Path) -> None:
    need_hadoop(VERSION)
    if not (cache_folder() / "pyspark-4.0.1").is_dir():
        pytest.skip("PySpark 4.0.1 was not fetched (tests/hadoop)")
    path = long_journal(tmp_path)
    expected = rows_in(list(segments(path)))
    assert expected["decisions"] >= DECISIONS_LEAST
    with Cluster(Shape(VERSION, nodes=1), tmp_path / "hadoop") as cluster:
        hdfs = Hdfs(cluster.hdfs_url, getpass.getuser())
        hdfs.make(ROOT, owner="yarnctl")
        done = journal_command(cluster, "export", "--to", path)
        assert done["hours"] == HOURS
        by_spark = spark_counts(cluster)
        cluster.run("hadoop", "fs", "-get", ROOT, str(tmp_path / "copy"))
        with duckdb.connect() as session:
            by_duckdb = {
                kind: session.execute(
                    f"SELECT count(*) FROM read_parquet('{tmp_path}/copy/{kind}/*/*/*.parquet')"
                ).fetchall()[0][0]
                for kind in COUNTED
            }
        assert by_duckdb == {kind: expected[kind] for kind in COUNTED}
        assert {kind: found[0] for kind, found in by_spark.items()} == by_duckdb
        assert by_spark["decisions"][1] == expected["decisions"], "a line twice"

        # A file of an early hour is gone: no segment with rows of it is pruned, nor any later one.
        folder = f"{ROOT}/decisions/cluster=blue/date=2026-12-02"
        lost = next(name for name in hdfs.names(folder) if name.startswith("14-"))
        data = hdfs.read(f"{folder}/{lost}")
        hdfs.remove(f"{folder}/{lost}")
        pruned = journal_command(cluster, "prune", "--exported-to", path, status=1)
        assert lost in str(pruned["problem"])
        assert pruned["deleted"]
        held = rows_in(list(segments(path)))
        of_two_hours = 2 * expected["decisions"] // HOURS
        assert expected["decisions"] - held["decisions"] <= of_two_hours

        hdfs.write(f"{folder}/{lost}", data)
        assert journal_command(cluster, "prune", "--exported-to", path)["problem"] == ""
        again = journal_command(cluster, "prune", "--exported-to", path)
        assert again["deleted"] == []
        kept = rows_in(list(segments(path)))
        assert 0 < kept["decisions"] < held["decisions"]
        exported = f"read_parquet('{tmp_path}/copy/decisions/*/*/*.parquet')"
        with duckdb.connect() as session:
            query = f"SELECT count(*) FROM {exported} WHERE line < {again['first_line']}"
            (deleted,) = session.execute(query).fetchall()[0]
        assert deleted == expected["decisions"] - kept["decisions"]
        assert spark_counts(cluster) == by_spark
