"""``yarnctl history import --with-spark``: the same rows as one machine, read on PySpark's executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import shared_cases
from tests.hadoop.artifacts import cache_folder
from tests.unit.attach.week_samples import JHIST_WHOLE, READ
from yarnctl.attach.importing.spark_import import read_by_spark
from yarnctl.errors import BadInput
from yarnctl.traces.week.week_folder import read_week

ROOT = Path(__file__).resolve().parents[3]
PYSPARK = cache_folder() / "pyspark-4.0.1"


def imported(*words: str | Path) -> dict[str, Any]:
    """Import with PySpark at hand; return what the command prints."""
    if not PYSPARK.is_dir():
        pytest.skip("PySpark 4.0.1 was not fetched (tests/hadoop)")
    command = (sys.executable, "-c", "from yarnctl.cli import main; main()", "history", "import")
    done = subprocess.run(
        [*command, *map(str, words), "-o", "json"],
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{PYSPARK}",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell",
        },
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_pyspark_imports_the_rows_that_one_machine_imports(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number, sample in enumerate(READ.values()):
        path = folder / f"{number % 3}" / f"sample-{number:02d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sample.text)
    for path in sorted((shared_cases.FOLDER / "jobs").iterdir()):
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "0" / "again.jhist").write_text(JHIST_WHOLE.replace("daily", "weekly"))  # the first one counts
    (folder / "0" / "job_1_conf.xml").write_text("<configuration/>")
    alone = imported(folder, "--out", tmp_path / "alone")
    spark = imported("--with-spark", f"file://{folder}", "--out", tmp_path / "spark")
    jobs = read_week(tmp_path / "alone")
    assert len(jobs) > 30
    assert read_week(tmp_path / "spark") == jobs
    assert [line.removeprefix("file:") for line in spark["problems"]] == alone["problems"]
    again = imported("--with-spark", folder, "--out", tmp_path / "spark")
    assert (again["imported"], again["known_before"]) == (0, len(jobs))


def test_without_pyspark_the_error_says_how_to_install_it() -> None:
    with pytest.raises(BadInput, match=r"^--with-spark: PySpark is not installed; run pip install pyspark"):
        next(read_by_spark(["hdfs:///logs"]))
