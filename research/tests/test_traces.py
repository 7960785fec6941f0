"""Where jobs and deadlines come from: the generator's marginals, readers, Parquet, multiples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from yarn_research.admission.replays import load_trace
from yarn_research.admission.traces.generator import DAYS, HOUR_MS, TR1, TR2, Marginals, generate, in_flight
from yarn_research.admission.traces.trace import DEADLINES, Trace, checked, deadlines_ms
from yarn_research.admission.traces.trace_files import read_alibaba, read_trace, write_trace
from yarnctl.errors import BadInput
from yarnctl.traces.job import DAY_MS

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tr1() -> Trace:
    return generate(TR1, 0)


def columns_of(trace: Trace) -> tuple[list[int], ...]:
    return (trace.submitted_at_ms.tolist(), trace.tasks.tolist(), trace.work_ms.tolist())


def require_table_1(trace: Trace, published: Marginals, one_task: float, one_task_work: float) -> None:
    """Table I, and what both papers say in section 4 of small and large jobs."""
    work, tasks = trace.work_ms, trace.tasks
    assert len(trace) == published.jobs
    assert round(work.sum() / HOUR_MS) == published.work_hours
    assert round((tasks == 1).mean(), 4) == one_task
    assert work[tasks == 1].sum() / work.sum() == pytest.approx(one_task_work, rel=1e-3)
    assert in_flight(trace.submitted_at_ms, tasks, work).max() == published.peak_cpus
    assert (work[tasks == 1] < 100_000).mean() == pytest.approx(0.80, abs=0.001)
    few = (tasks > 1) & (tasks < 10)
    assert (work[few] < 100_000).mean() == pytest.approx(0.60, abs=0.001)
    assert work[tasks < 10].sum() / work.sum() < 0.01
    assert trace.submitted_at_ms[-1] <= DAYS * DAY_MS
    assert (work % tasks == 0).all()


def test_tr1_has_the_published_marginals(tr1):
    require_table_1(tr1, TR1, 0.58, 0.001)
    work, tasks = tr1.work_ms, tr1.tasks
    assert (tasks > 1000).mean() == pytest.approx(0.13, abs=1e-4)
    assert work[tasks > 1000].sum() / work.sum() == pytest.approx(0.98, abs=1e-4)
    assert (tasks < 10).mean() == pytest.approx(0.70, abs=1e-3)
    assert (tasks < 100).mean() == pytest.approx(0.80, abs=1e-3)
    assert (work < 500_000).mean() == pytest.approx(0.60, abs=1e-3)
    assert (work < 1_000_000).mean() == pytest.approx(0.70, abs=1e-3)
    assert (work < 100_000).mean() == pytest.approx(0.54, abs=0.01), "5.4 says 0.40, section 4 does not"


@pytest.mark.thorough
def test_tr2_has_the_published_marginals():
    tr2 = generate(TR2, 0)
    require_table_1(tr2, TR2, 0.62, 0.003)
    work, tasks = tr2.work_ms, tr2.tasks
    assert (tasks > 1000).mean() == pytest.approx(0.03, abs=1e-4)
    assert work[tasks > 1000].sum() / work.sum() == pytest.approx(0.94, abs=1e-4)
    assert (tasks < 10).mean() == pytest.approx(0.80, abs=1e-3)
    assert (work < 1_000_000).mean() == pytest.approx(0.80, abs=1e-3)


def test_a_seed_gives_one_trace(tr1):
    assert columns_of(generate(TR1, 0)) == columns_of(tr1)
    assert columns_of(generate(TR1, 1)) != columns_of(tr1)


# --- deadlines --------------------------------------------------------------------------------


def test_multiples_of_the_optimal_time():
    trace = Trace("t", np.zeros(4000, np.int64), np.full(4000, 10), np.full(4000, 10_000))
    multiples = {name: deadlines_ms(trace, name, 100) / 1000 for name in DEADLINES}
    assert set(multiples["Fixed1x"]) == {1.0}
    assert set(multiples["Fixed2x"]) == {2.0}
    assert set(multiples["Jockey1x2x"]) == {1.0, 2.0}
    assert set(multiples["Jockey2x4x"]) == {2.0, 4.0}
    assert multiples["Jockey1x2x"].mean() == pytest.approx(1.5, abs=0.05)
    assert multiples["90loose"].mean() == pytest.approx(1.9, abs=0.02)
    for name, least, most in (("Aria1x3x", 1, 3), ("Aria2x4x", 2, 4)):
        assert least <= multiples[name].min() < least + 0.01
        assert most - 0.01 < multiples[name].max() <= most
        assert multiples[name].mean() == pytest.approx((least + most) / 2, abs=0.05)


def test_the_optimal_time_is_what_the_capacity_allows_or_what_the_trace_had():
    trace = Trace("t", np.zeros(1, np.int64), np.array([10]), np.array([1001]))
    assert deadlines_ms(trace, "Fixed2x", 4).tolist() == [502], "1001 / 4 = 250.25, rounded up, twice"
    assert deadlines_ms(trace, "Fixed2x", 4, optimal="requested").tolist() == [202]


# --- readers ----------------------------------------------------------------------------------


def test_parquet_and_back(tr1, tmp_path):
    path = tmp_path / "tr1.parquet"
    write_trace(tr1.head(1000), path)
    back = read_trace(path)
    assert columns_of(back) == columns_of(tr1.head(1000))
    assert back.source == "tr1"
    assert load_trace(f"parquet:{path}").source == "tr1"
    write_trace(tr1.head(10), path)
    assert len(read_trace(path)) == 10
    assert [each.name for each in tmp_path.iterdir()] == ["tr1.parquet"]


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: b"", lambda data: b"PAR1" * 9])
def test_a_torn_file_is_refused(tr1, tmp_path, damage):
    path = tmp_path / "tr1.parquet"
    write_trace(tr1.head(1000), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BadInput, match=r"tr1\.parquet: the Parquet data is torn or foreign"):
        read_trace(path)


def test_what_is_no_trace_is_not_overwritten(tr1, tmp_path):
    path = tmp_path / "thesis.tex"
    path.write_text("ten years of work")
    with pytest.raises(BadInput, match="exists, and holds no trace"):
        write_trace(tr1.head(10), path)
    assert path.read_text() == "ten years of work"


HEADER = ",submit_time,duration,cpu,memory,job_id,task_id,instances_num,disk\n"


def test_alibaba_s_batch_tasks_become_jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(HEADER + "0,20,2.5,1.0,0.1,7,1,4,0\n1,10,1.0,1.0,0.1,8,2,1,0\n2,15,1.0,0.5,0.1,7,3,2,0\n")
    found = read_alibaba(path)
    assert columns_of(found) == ([10_000, 15_000], [1, 6], [1000, 4 * 2500 + 2 * 1000])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,when\n", "jobs.csv:1: not the header"),
        (HEADER + "0,20\n", "jobs.csv:2: 2 columns instead of 9"),
        (HEADER + "0,soon,2.5,1.0,0.1,7,1,4,0\n", "jobs.csv:2: field submit_time: 'soon'"),
        (HEADER + "0,20,nan,1.0,0.1,7,1,4,0\n", "jobs.csv:2: field duration: 'nan'"),
        (HEADER + "0,20,2.5,1.0,0.1,7,1,1e99,0\n", "jobs.csv:2: field instances_num: '1e99'"),
    ],
)
def test_a_row_that_cannot_be_is_refused_by_line_and_field(tmp_path, text, said):
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_alibaba(path)


def test_swim_jobs_count_with_their_maps():
    found = load_trace("packaged:fb2009")
    assert len(found) > 100
    assert found.tasks.min() >= 1


@pytest.mark.parametrize("spec", ["tr3", "swim:", "", "synthetic:production-s"])
def test_what_is_no_trace_is_said(spec):
    with pytest.raises(BadInput, match=r"not a trace.*one of tr1, tr2"):
        load_trace(spec)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([0, 5], [1, 0], [1, 1]), "field tasks, job 2: 0"),
        (([0, 5], [1, 1], [0, 1]), "field work_ms, job 1: 0"),
        (([5, 0], [1, 1], [1, 1]), "not in order"),
        (([0, 10**12], [1, 1], [1, 1]), "field submitted_at_ms, job 2"),
        (([], [], []), "holds no jobs"),
        (([0] * 1001, [1] * 1001, [10**15] * 1001), "field work_ms: more than 10+ in all"),
    ],
)
def test_jobs_that_cannot_be_are_refused(columns, said):
    with pytest.raises(BadInput, match=said):
        checked(Trace("t", *(np.array(values, dtype=np.int64) for values in columns)))
