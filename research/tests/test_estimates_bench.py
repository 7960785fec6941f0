"""Durations of small jobs: drawn, kept by line, gone on with, and judged on a table made by a known rule."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from functools import cache
from itertools import count
from math import exp

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from yarn_research.campaigns import estimates_bench, estimates_judging
from yarn_research.campaigns.estimates_bench import Unfinished, bench, run_all
from yarn_research.campaigns.estimates_judging import SPANS, durations, half, judge, kept, table
from yarn_research.campaigns.estimates_set import EstimateRow, RowsFile, Task, Terms, block_of, small_jobs
from yarn_research.papers.mrm_tables import MODELS, Durations, Judged, compared
from yarnctl.errors import BadInput

TERMS = Terms(jobs=32, at_once=2)
RATIOS = {"wordcount": (1.6, 0.8), "pi": (0.07, 7.7), "grep": (0.001, 1.0), "sort": (1.1, 0.97)}
SLOWNESS = {"wordcount": 3.0, "pi": 1.0, "grep": 1.5, "sort": 2.0}
COUNTERS = ("HDFS_BYTES_READ", "MAP_OUTPUT_BYTES", "REDUCE_SHUFFLE_BYTES", "HDFS_BYTES_WRITTEN")


def ran(job, lost=0):
    """Return a job whose durations follow from its features and 5 % of noise; Hadoop is not asked."""
    map_ratio, reduce_ratio = RATIOS[job.type]
    noise = exp(0.05 * np.random.default_rng(int(job.name[-3:]) + len(job.type)).normal())
    map_ms = round(2000 * job.maps**0.8 * SLOWNESS[job.type] * noise)
    reduce_ms = round(3000 * SLOWNESS[job.type] ** 0.5 / job.reduces**0.3 * noise)
    output = round(1e6 * job.maps * map_ratio)
    tasks = [Task("MAP", 5_000, 5_000 + map_ms)] * job.maps
    tasks += [Task("REDUCE", 6_000 + map_ms, 5_000 + map_ms + reduce_ms)] * job.reduces
    return EstimateRow(
        name=job.name,
        type=job.type,
        maps=job.maps,
        reduces=job.reduces,
        samples=job.samples,
        state="SUCCEEDED",
        application="application_1_0001",
        elapsed_ms=9_000 + map_ms + reduce_ms,
        started_at_ms=1_000,
        finished_at_ms=5_000 + map_ms + reduce_ms,
        attempts_lost=lost,
        tasks=tuple(tasks),
        counters=dict(
            zip(COUNTERS, (10**6 * job.maps, output, output, round(output * reduce_ratio)), strict=True)
        ),
        load_before=(0.1, 0.1, 0.1),
        load_after=(0.1, 0.1, 0.1),
    )


def table_of(terms=TERMS):
    return [ran(job) for job in small_jobs(terms)]


@contextmanager
def no_cluster(folder, terms):
    raise AssertionError("a cluster is started for jobs that are done")
    yield


# --- the set ---------------------------------------------------------------------------------------------


def test_each_kind_comes_as_often_with_each_number_of_maps_and_reduces():
    jobs = small_jobs(Terms())
    assert len(jobs) == len({job.name for job in jobs}) == 128
    assert jobs == small_jobs(Terms())
    assert jobs != small_jobs(Terms(seed=2))
    counted = Counter[tuple[str, int, int]]((job.type, job.maps, job.reduces) for job in jobs)
    assert {counted[kind, maps, 1] for kind in RATIOS if kind != "pi" for maps in (1, 2, 3, 4)} == {4}
    assert {counted["pi", maps, 1] for maps in (1, 2, 3, 4)} == {8}
    assert all(len(set(job.blocks)) == job.maps for job in jobs if job.type != "pi")


def test_a_block_of_text_is_whole_lines_of_its_size_but_the_last():
    terms = Terms(block_bytes=4000)
    text = block_of(terms, 0)
    assert len(text) == 4000
    assert text == block_of(terms, 0)
    assert text != block_of(terms, 1)
    assert {len(line.split()) for line in text.decode().split("\n")[:-1]} == {10}


def test_features_and_durations_are_read_off_counters_and_tasks():
    counters = dict(zip(COUNTERS, (1000, 1500, 600, 300), strict=True))
    tasks = (Task("MAP", 100, 400), Task("MAP", 150, 700), Task("REDUCE", 800, 900))
    row = msgspec.structs.replace(
        ran(small_jobs(TERMS)[0]), maps=2, reduces=1, counters=counters, tasks=tasks, finished_at_ms=1000
    )
    assert row.features == (2, 1, 1.5, 0.5)
    assert (row.map_ms, row.reduce_ms) == (600, 300)


# --- rows: a line for each, gone on with ------------------------------------------------------------------


def test_what_is_done_is_not_run_again(tmp_path):
    """The program ends at the tenth job; the next start runs the other 22, and the file has 32 lines."""
    path, ran_twice, done = tmp_path / "rows.jsonl", Counter[str](), count(1)

    def run(job):
        if next(done) == 10:
            raise Unfinished("the cluster is gone")
        ran_twice[job.name] += 1
        return ran(job)

    terms = Terms(jobs=32, at_once=1)
    with pytest.raises(Unfinished, match="the cluster is gone"):
        run_all(run, RowsFile(path, terms, {"commit": "first"}), terms, print)
    assert len(path.read_text().splitlines()) == 10
    second = RowsFile(path, terms, {"commit": "second"})
    assert second.head["commit"] == "first"
    run_all(run, second, terms, print)
    assert set(ran_twice.values()) == {1}
    assert {row.name for row in RowsFile(path, terms, {}).rows} == {job.name for job in small_jobs(terms)}


def test_several_at_once_are_each_a_line(tmp_path):
    path = tmp_path / "rows.jsonl"
    run_all(ran, RowsFile(path, TERMS, {}), TERMS, print)
    assert sorted(RowsFile(path, TERMS, {}).rows, key=lambda row: row.name) == sorted(
        table_of(), key=lambda row: row.name
    )


def test_a_line_that_was_cut_short_is_run_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    file = RowsFile(path, TERMS, {})
    for job in small_jobs(TERMS)[:3]:
        file.add(ran(job))
    path.write_bytes(path.read_bytes()[:-20])
    again = RowsFile(path, TERMS, {})
    assert [row.name for row in again.rows] == [job.name for job in small_jobs(TERMS)[:2]]
    again.add(ran(small_jobs(TERMS)[2]))
    assert len(RowsFile(path, TERMS, {}).rows) == 3


def lines(*rows, terms=TERMS):
    parts = [{"terms": msgspec.to_builtins(terms)}, *rows]
    return b"".join(msgspec.json.encode(each) + b"\n" for each in parts)


FIRST = ran(small_jobs(TERMS)[0])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines(terms=Terms(jobs=64)), "holds another set"),
        (b"[]\n", "line 1 is not a row of results"),
        (b"\xff\n", "line 1 is not a row of results"),
        (lines(FIRST, {"name": "x"}), "line 3 is not a row of results: .*missing required field"),
        (lines(FIRST, FIRST), "line 3: '.*' is not of this set, or stands here twice"),
        (lines(msgspec.structs.replace(FIRST, name="pi-999")), "'pi-999' is not of this set"),
        (lines(msgspec.structs.replace(FIRST, maps=5)), "is not of this set"),
    ],
    ids=["other terms", "no head", "no text", "no row", "twice", "other name", "other maps"],
)
def test_a_file_of_something_else_is_refused_and_stays_as_it_is(tmp_path, content, message):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        bench(path, None, None, TERMS, on=no_cluster)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs", "6"], "--jobs: 6 must be a multiple of 4, at least 8"),
        (["--jobs", "-4"], "--jobs: -4 must be a multiple"),
        (["--jobs", "10"], "--jobs: 10 must be a multiple"),
        (["--at-once", "0"], "--at-once: 0 is less than 1"),
    ],
)
def test_options_that_make_no_set_are_refused_by_name(tmp_path, words, message):
    path = tmp_path / "rows.jsonl"
    told = CliRunner().invoke(estimates_bench.main, ["--rows", str(path), *words])
    assert told.exit_code == 2
    assert message in told.stderr
    assert not path.exists()


def test_without_scikit_learn_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(estimates_bench, "find_spec", lambda _: None)
    with pytest.raises(BadInput, match="scikit-learn is not installed"):
        bench(tmp_path / "rows.jsonl", None, None, TERMS, on=no_cluster)
    assert not (tmp_path / "rows.jsonl").exists()


# --- judging ----------------------------------------------------------------------------------------------


def test_halves_are_disjoint_of_equal_size_and_independent_of_the_order_of_rows():
    rows = table_of()
    learned, asked = half(rows, 1)
    assert len(learned) == len(asked) == 16
    assert not {row.name for row in learned} & {row.name for row in asked}
    assert half(rows[::-1], 1) == (learned, asked)
    assert half(rows, 2) != (learned, asked)


def test_a_job_that_lost_an_attempt_is_not_learned_from_and_is_asked_for():
    rows = table_of()
    learned, asked = (each[0].name for each in half(rows, 1))
    marked = [
        msgspec.structs.replace(row, attempts_lost=1) if row.name in (learned, asked) else row for row in rows
    ]
    found = durations(marked, "whole", 1)
    assert (len(found.durations), len(found.observed)) == (15, 16)


def test_on_a_table_made_by_a_product_of_features_gp_fits_and_bin_does_not():
    """Durations are products of powers of the features: what `gp` has, least squares in part, bins not."""
    verdict = judge(table_of(Terms(jobs=96)), halves=0)
    assert set(verdict.spans) == set(SPANS)
    assert all(set(models) == set(MODELS) for models in verdict.spans.values())
    phase = verdict.spans["map"]
    assert phase["gp"].r2 > 0.97 > phase["ols"].r2 > phase["bin"].r2
    assert phase["gp"].length_ratio < min(phase["ols"].length_ratio, phase["bin"].length_ratio)
    assert [claim.holds for claim in verdict.claims[:3]] == [True, True, True]
    assert len(table(verdict)) == len(SPANS) * len(MODELS)


def test_durations_that_have_nothing_to_do_with_the_features_fit_nobody():
    """The planted bug of a judge that says yes to all: durations change hands, and `gp` is as bad as bins."""
    rows = table_of(Terms(jobs=96))
    order = np.random.default_rng(3).permutation(len(rows))
    mixed = [
        msgspec.structs.replace(row, tasks=rows[other].tasks, finished_at_ms=rows[other].finished_at_ms)
        for row, other in zip(rows, order, strict=True)
    ]
    verdict = judge(mixed, halves=0)
    assert verdict.spans["map"]["gp"].r2 < 0.2
    assert not all(claim.holds for claim in verdict.claims)


def judged(r2=0.9, outside=5.0, ratio=1.0):
    return Judged(r2, outside, 10.0, ratio)


@pytest.mark.parametrize(
    ("gp", "ols", "bins", "holds"),
    [
        (judged(0.90, 7.0, 1.0), judged(0.91, ratio=1.1), judged(0.8, ratio=1.1), [True, True, True, True]),
        (judged(0.89), judged(0.91, ratio=1.1), judged(0.8, ratio=1.1), [False, True, True, True]),
        (judged(0.80), judged(0.80, ratio=1.1), judged(0.8, ratio=1.1), [True, False, True, True]),
        (judged(ratio=1.1), judged(ratio=1.1), judged(0.8, ratio=1.2), [True, True, False, True]),
        (judged(ratio=1.1), judged(ratio=1.2), judged(0.8, ratio=1.1), [True, True, False, True]),
        (judged(outside=7.1), judged(ratio=1.1), judged(0.8, ratio=1.1), [True, True, True, False]),
    ],
)
def test_each_claim_is_the_rule_of_the_page(gp, ols, bins, holds):
    found = estimates_judging._claims("map", {"gp": gp, "ols": ols, "bin": bins})
    assert [each for _, _, each in found] == holds


def test_outside_and_length_are_those_of_the_two_sided_interval():
    """Four alike jobs of 10 s, sd 2 s: 10 +- 1.96 x 2; of 9, 10, 11 and 20 one is outside."""
    feature = np.ones((4, 4))
    learned = np.array([8.0, 12.0, 10 - 2**0.5, 10 + 2**0.5])  # sum of squares 12, three degrees of freedom
    told = compared("bin", Durations(feature, learned, feature, np.array([9.0, 10.0, 11.0, 20.0])))
    assert told.outside_percent == 25.0
    assert told.length_s == pytest.approx(2 * 1.959964 * 2.0)
    assert told.length_ratio == pytest.approx(told.length_s * (1 / 9 + 1 / 10 + 1 / 11 + 1 / 20) / 4)


def test_too_few_rows_are_refused():
    with pytest.raises(BadInput, match="15 are too few"):
        judge(table_of()[:15])


@cache
def judged_once():
    return judge(table_of(), halves=0)


def test_a_finished_set_is_judged_and_written_without_a_cluster(tmp_path, monkeypatch):
    """All that is kept is read again: the same rows, the same verdict."""
    monkeypatch.setattr(estimates_bench, "judge", lambda rows: judge(rows, halves=0))
    path, output = tmp_path / "rows.jsonl", tmp_path / "out.json"
    run_all(ran, RowsFile(path, TERMS, {"commit": "c"}), TERMS, print)
    verdict = bench(path, output, None, TERMS, on=no_cluster)
    document, rows = kept(output)
    assert sorted(rows, key=lambda row: row.name) == sorted(table_of(), key=lambda row: row.name)
    assert (document["commit"], document["clusters"]) == ("c", 1)
    assert document["holds"] == all(claim.holds for claim in verdict.claims)
    assert verdict == judged_once()
    assert len(output.read_text().splitlines()) > 32


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"rows": [{}]}', b"\xff"])
def test_a_kept_run_that_is_none_is_refused_by_name(tmp_path, content, capsys):
    path = tmp_path / "kept.json"
    path.write_bytes(content)
    assert estimates_judging.main([str(path)]) == 2
    assert "is not a results file of small jobs" in capsys.readouterr().err
    assert estimates_judging.main([str(tmp_path / "absent.json")]) == 2
    assert estimates_judging.main([]) == 2


def test_the_verdict_of_a_kept_run_is_json(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(estimates_judging, "judge", lambda rows, halves: judged_once())
    path = tmp_path / "kept.json"
    path.write_text(estimates_judging.written({"commit": "c"}, table_of(), judged_once()))
    assert estimates_judging.main([str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["campaign"], told["commit"]) == ("kept", "c")
    assert len(told["claims"]) == 12
