"""MRM's report: its shape, the claims that cost little, and the readings' names."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from yarn_research.cli import PROGRAM
from yarn_research.market.recorded import repeated, tables
from yarn_research.papers import mrm_promises, mrm_tables, paper_mrm
from yarn_research.papers.paper_mrm import FIGURES, Shop
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job


def run(*arguments):
    return CliRunner().invoke(PROGRAM, ["paper", "mrm", *arguments])


@pytest.mark.parametrize("number", ["2", "3", "4", "7"])
def test_figures_of_theory_hold(number):
    told = run("--figure", number, "--json")
    assert told.exit_code == 0, told.output
    (figure,) = json.loads(told.stdout)["figures"]
    assert figure["figure"] == number
    assert [claim["claim"] for claim in figure["claims"] if not claim["holds"]] == []


def test_the_report_has_the_shape_of_the_other_papers():
    told = json.loads(run("--figure", "7", "--json").stdout)
    assert {"paper", "calibrated_on", "figures", "mean_abs_relative_error"} <= set(told)
    (figure,) = told["figures"]
    assert set(figure["claims"][0]) == {"claim", "paper", "ours", "holds", "profile"}
    assert {"label", "metric", "paper", "ours", "relative_error"} <= set(figure["rows"][0])


@pytest.mark.parametrize("number", ["t5", "t6", "t7", "t8", "9", "10"])
def test_every_table_is_made_from_few_jobs_too(number):
    """What they say is judged on 500,000 jobs, by the command; here each is made."""
    figure = paper_mrm.TABLES[number](Shop(jobs=300))
    assert figure.rows
    assert figure.claims


def test_a_cell_is_replayed_once():
    shop = Shop(jobs=200)
    assert shop.cell(1, 50, 2.0) is shop.cell(1, 50, 2.0)


def test_unknown_figures_are_refused_by_name():
    told = run("--figure", "8")
    assert isinstance(told.exception, BadInput)
    assert all(number in str(told.exception) for number in FIGURES)


def test_a_figure_is_made_under_the_reading_that_was_chosen(monkeypatch):
    monkeypatch.setattr(paper_mrm, "JOBS", 2_000)
    ours, other = (
        json.loads(run("--figure", "t6", *words, "--json").stdout)["figures"][0]["rows"]
        for words in ((), ("--choose", "queue=all"))
    )
    assert [row["label"] for row in ours] == [row["label"] for row in other]
    assert [row["ours"] for row in ours] != [row["ours"] for row in other]
    monkeypatch.setattr("yarn_research.papers.mrm_models.FIG_6_JOBS", 500)
    left, whole = (
        json.loads(run("--figure", "6", *words, "--json").stdout)["figures"][0]["rows"]
        for words in ((), ("--choose", "running=whole"))
    )
    assert [row["ours"] for row in left] != [row["ours"] for row in whole]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--figure", "2", "--choose", "queue=all"), "reads nothing of it"),
        (("--figure", "t5", "--choose", "running=whole"), "reads nothing of it"),
        (("--figure", "6", "--choose", "running=half"), "is not known"),
        (("--choose", "magic=yes"), "is not NAME=VALUE"),
        (("--alternatives", "--choose", "queue=all"), "leave one of the two out"),
    ],
)
def test_a_reading_where_nothing_is_read_is_refused(words, problem):
    told = run(*words)
    assert isinstance(told.exception, BadInput)
    assert problem in str(told.exception)


def test_run_times_come_with_the_program():
    known = tables(None)
    assert len(known) == 12
    assert {each.name.partition("/")[0] for each in known} == {"bell", "scout"}  # what licences allow


def test_trace_is_judged_without_naming_a_folder(monkeypatch):
    monkeypatch.setattr("yarn_research.papers.mrm_models.FIG_6_JOBS", 500)
    (figure,) = json.loads(run("--figure", "6", "--json").stdout)["figures"]
    assert [each["claim"] for each in figure["claims"]][4].startswith("Trace:")
    assert figure["notes"][0].startswith("Trace: 12 packaged tables")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Nodes,Time\n4,100\n", r"grep.csv:2: is not a row"),
        ("Nodes,Runtime\n4,many\n", r"grep.csv:2: is not a row"),
        ("Nodes,Runtime\n4,100\n4,nan\n", r"grep.csv:3: has a number that is not finite"),
        ("Nodes,Runtime\n4,-1\n", r"grep.csv:2: has a number"),
        ("Nodes,Runtime\n", r"grep.csv: has no run"),
        ("Nodes,Runtime\n\xff,1\n", r"grep.csv: cannot be read"),
    ],
)
def test_a_recorded_table_with_a_fault_is_refused_by_its_line(tmp_path, content, told):
    (tmp_path / "bell").mkdir()
    (tmp_path / "bell/grep.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(BadInput, match=told):
        tables(tmp_path)


@pytest.fixture
def recorded(tmp_path):
    """Two small tables in the form of Bell's and Scout's."""
    chance = np.random.default_rng(0)
    (tmp_path / "bell").mkdir()
    rows = [
        f"{nodes},{int(4e6 / nodes * chance.normal(1, 0.03))}" for nodes in range(4, 64, 4) for _ in range(7)
    ]
    (tmp_path / "bell/grep.csv").write_text("\n".join(["Nodes,Runtime", *rows]))
    (tmp_path / "scout").mkdir()
    head = "nodes,instance_type,framework,workload,size,input_bytes,elapsed_s,completed"
    rows = [
        f"{nodes},{kind},hadoop,sort,{size},-1,{9000 / nodes * chance.normal(1, 0.05)},{done}"
        for nodes in range(4, 44, 4)
        for kind in ("c4.large", "m4.xlarge", "r4.2xlarge")
        for size in ("huge", "bigdata")
        for done in ("true", "false")
    ]
    (tmp_path / "scout/sort.csv").write_text("\n".join([head, *rows]))
    return tmp_path


def test_recorded_run_times_are_read_and_bounded(recorded):
    bell, scout = tables(recorded)
    assert (len(bell.duration_s), bell.configuration.max() + 1) == (105, 15)
    assert (len(scout.duration_s), scout.configuration.max() + 1) == (60, 60)  # censored rows are left out
    assert scout.features[0].tolist() == [4, 2, 3.75, 2]
    assert len(repeated([bell, scout]).duration) == 105
    figure = paper_mrm.certified(recorded, splits=1)
    assert len(figure.rows) == 3
    assert len(figure.claims) == 3


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(BadInput, match="holds no recorded run times"):
        tables(tmp_path)


# --- Tables 2 and 3 -----------------------------------------------------------------------------------


def test_a_run_has_the_jobs_of_table_1_and_as_many_of_each_kind() -> None:
    jobs, features = mrm_tables.drawn_run(0, 50)
    maps = [len(job.map_ms) for job in jobs]
    for share, fewest, most, reduces in mrm_tables.BINS:
        alike = [job for job in jobs if fewest <= len(job.map_ms) <= most]
        assert len(alike) == share
        assert {len(job.reduce_ms) for job in alike} == {reduces}
    assert sum(maps) == sum(each.maps for each in features.values())
    ratios = [each.map_ratio for each in features.values()]
    assert {ratios.count(kind.map_ratio) for kind in mrm_tables.KINDS.values()} == {25}


def test_a_run_is_the_same_for_the_same_seed_and_the_phases_fill_the_job() -> None:
    first, again = (mrm_tables.observed_runs(3, 100) for _ in range(2))
    assert first == again
    assert first != mrm_tables.observed_runs(4, 100)
    jobs, _ = mrm_tables.drawn_run(3, 100)
    for job, found in zip(jobs, first, strict=True):
        assert found.map_ms >= max(job.map_ms)
        assert found.reduce_ms >= max(job.reduce_ms, default=0)


def test_tables_2_and_3_judge_every_model_on_both_phases(monkeypatch) -> None:
    monkeypatch.setattr(mrm_tables, "LOADS", (100,))
    two, three = mrm_tables.table_2(seed=90), mrm_tables.table_3(seed=90)
    assert len(two.rows) == 2 * len(mrm_tables.MODELS)
    assert len(three.rows) == 2 * 3 * len(mrm_tables.TABLE_3)
    assert len(two.claims) == len(three.claims) == 4
    better = {row.label: row.ours for row in two.rows}
    assert better["map phase, gp"] > better["map phase, bin"]


def test_without_scikit_learn_the_tables_say_what_to_install(monkeypatch) -> None:
    monkeypatch.setattr(mrm_tables, "find_spec", lambda name: None)
    monkeypatch.setattr(mrm_promises, "find_spec", lambda name: None)
    for table in (mrm_tables.table_2(), mrm_tables.table_3(), mrm_promises.table_4()):
        assert not table.rows
        assert "pip install" in table.notes[0]


# --- Table 4 ------------------------------------------------------------------------------------------


def job(at_s: int) -> Job:
    return Job(name=f"job-{at_s}", job_class="production", submitted_at_ms=1000 * at_s, map_ms=(1,))


PROMISES = (
    # arrivals, bounds, ends; deadlines
    ((0,), (10,), (7,), [10]),  # an idle cluster: its own bound
    ((0, 2), (10, 5), (7, 20), [10, 15]),  # 8 s are left of the first
    ((0, 9), (10, 5), (7, 20), [10, 14]),  # the first has ended: nothing is left of it
    ((0, 12), (10, 5), (20, 21), [10, 17]),  # the first is over its bound: nothing is left of it either
    ((0, 1, 9), (10, 5, 4), (8, 30, 31), [10, 15, 17]),  # the second could begin at 8 s: 4 s are left
)
"""A promise is what is left of the bounds before a job, and its own bound."""


@pytest.mark.parametrize(("arrived", "bounds", "ended", "deadlines"), PROMISES)
def test_a_promise_is_what_is_left_of_the_bounds_before_it(arrived, bounds, ended, deadlines) -> None:
    run = mrm_promises.PlayedRun(tuple(map(job, arrived)), [], [float(each) for each in ended])
    found = mrm_promises.promised(run, [float(each) for each in bounds])
    assert found.deadlines_s == deadlines
    assert found.margins_s == [due - end for due, end in zip(deadlines, ended, strict=True)]


def test_maps_that_are_executed_again_take_their_time_twice() -> None:
    jobs, _ = mrm_tables.drawn_run(0, 50)
    changed = mrm_promises.again(jobs, 8.0, random.Random(1))
    ratios = [
        after / before
        for old, new in zip(jobs, changed, strict=True)
        for before, after in zip(old.map_ms, new.map_ms, strict=True)
    ]
    assert set(ratios) == {1.0, 2.0}
    assert 600 <= ratios.count(2.0) <= 1000  # 8 a job of 100 jobs
    assert mrm_promises.again(jobs, 0.0, random.Random(1)) == jobs
