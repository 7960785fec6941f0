"""The recorded traces, beside the project, are read whole: their known counts come out.

They are looked for at ``../shared/traces`` from the project's root. Where they are missing
these tests are skipped, but under CI (the variable CI is set) that is a failure.
"""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest

from emulator.workload.spec import load
from yarnctl.traces.parquet import read_parquet, write_parquet

ROOT = Path(__file__).parents[3]
TRACES = ROOT.parent / "shared" / "traces"


def trace(name):
    path = TRACES / name
    if not path.exists():
        message = f"the recorded trace ../shared/traces/{name} is missing beside the project"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return path


@pytest.mark.parametrize(
    ("name", "jobs", "map_only"),
    [
        ("swim-facebook/FB-2009_samples_24_times_1hr_0.tsv", 5_894, 0.75),
        ("swim-facebook/FB-2010_samples_24_times_1hr_0.tsv.gz", 24_442, 0.34),
    ],
)
def test_swim_traces_give_their_jobs_and_their_share_of_map_only_jobs(name, jobs, map_only):
    loaded = load(f"swim:{trace(name)}", "research")
    assert len(loaded.jobs) == jobs
    assert sum(not job.reduce_ms for job in loaded.jobs) / jobs == pytest.approx(map_only, abs=0.01)


@pytest.mark.parametrize(
    ("name", "jobs", "maps", "reduces"),
    [
        ("hadoop-rumen/mumak-19-jobs.trace.json.gz", 18, 5_650, 2_754),  # one of 19 had no success at all
        ("hadoop-rumen/rumen-folder-input-trace.json.gz", 59, 787, 321),
        ("hadoop-rumen/sls-2jobs2min-rumen-jh.json.gz", 2, 192, 0),
    ],
)
def test_rumen_traces_give_the_tasks_that_succeeded(name, jobs, maps, reduces):
    loaded = load(f"rumen:{trace(name)}", "production").jobs
    assert len(loaded) == jobs
    assert sum(len(job.map_ms) for job in loaded) == maps
    assert sum(len(job.reduce_ms) for job in loaded) == reduces
    assert loaded[0].submitted_at_ms == 0


def test_a_trace_converted_once_is_the_same_trace(tmp_path):
    jobs = load(f"rumen:{trace('hadoop-rumen/mumak-19-jobs.trace.json.gz')}", "research").jobs
    write_parquet(jobs, tmp_path / "jobs.parquet")
    assert read_parquet(tmp_path / "jobs.parquet") == jobs


def test_the_packaged_slice_is_rows_of_the_recorded_trace():
    whole = trace("swim-facebook/FB-2009_samples_24_times_1hr_0.tsv").read_text().splitlines()
    folder = ROOT / "emulator" / "data" / "fb2009"
    rows = (folder / "FB-2009_samples_24_times_1hr_0.hours-18-and-21.tsv").read_text().splitlines()
    hours = {18, 21}
    assert rows == [row for row in whole if int(row.split("\t")[1]) // 3600 in hours]
    assert (folder / "LICENSE").read_bytes() == trace("swim-facebook/LICENSE").read_bytes()


def test_the_packaged_jobs_are_the_same_bytes_on_every_machine():
    # Changes only when the model does: then say so in the changelog, for results move with it.
    jobs = load("packaged:fb2009", "research").jobs
    assert hashlib.sha256(msgspec.json.encode(jobs)).hexdigest()[:16] == "02e9609a61bf0b8c"
