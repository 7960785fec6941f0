"""The paper's workloads have the paper's numbers, under plain names."""

import hashlib

import msgspec
import pytest

from emulator.workload.synthetic import (
    FIG10_DEADLINES_MS,
    WORKLOADS,
    Calibration,
    emulab_jobs,
    emulab_pair,
    steady_jobs,
    synthetic,
)
from yarnctl.errors import BadInput

CALIBRATION = Calibration()


@pytest.mark.parametrize(
    ("name", "reduces", "longest_ms"),
    [("research-xl", 47, 173_400), ("research-l", 35, 174_900), ("research-m", 23, 176_700),
     ("research-s", 11, 185_600), ("production-xl", 47, 46_100), ("production-l", 35, 46_000),
     ("production-m", 23, 48_700), ("production-s", 11, 53_400)],
)  # fmt: skip
def test_a_microbenchmark_job_has_its_reduces_and_its_longest_comes_first(name, reduces, longest_ms):
    (job,) = synthetic(name, "research")
    assert len(job.reduce_ms) == len(job.reduce_keys) == reduces
    assert job.reduce_ms[0] == max(job.reduce_ms) == longest_ms
    assert job.map_ms == (2000,) * 2


def test_production_comes_fifty_seconds_after_research_whatever_the_job_is_called():
    assert synthetic("research-xl", "research")[0].submitted_at_ms == 0
    assert synthetic("production-s", "production")[0].submitted_at_ms == 50_000
    assert synthetic("research-s", "production")[0].submitted_at_ms == 50_000


def test_the_calibration_is_an_argument():
    moved = msgspec.structs.replace(CALIBRATION, lmax_research_s_ms=1000, maps=2, key_group_ms=8)
    (job,) = synthetic("research-s", "research", moved)
    assert (job.reduce_ms[0], job.reduce_keys[0], len(job.map_ms)) == (1000, 125, 2)


def test_fig_10_has_three_identical_jobs_whose_deadlines_run_backwards():
    jobs = emulab_jobs("research", CALIBRATION, FIG10_DEADLINES_MS)
    assert [(job.submitted_at_ms, job.deadline_at_ms) for job in jobs] == [
        (0, 200_000),
        (5000, 190_000),
        (10_000, 180_000),
    ]
    assert {(len(job.map_ms), len(job.reduce_ms)) for job in jobs} == {(8, 50)}


def test_fig_11_sets_the_second_deadline_a_second_earlier():
    first, second = emulab_pair("research", CALIBRATION, epsilon=0.8, size_ratio=0.4)
    assert (first.deadline_at_ms, second.deadline_at_ms) == (156_600, 155_600)
    assert (len(first.reduce_ms), len(second.reduce_ms)) == (50, 20)


def test_every_name_serves_both_classes_in_order():
    for name in WORKLOADS:
        if name == "steady-5000":
            continue  # the same function as steady-250, twenty times as long
        for job_class in ("production", "research"):
            jobs = synthetic(name, job_class)
            assert {job.job_class for job in jobs} == {job_class}
            keys = [(job.submitted_at_ms, job.name) for job in jobs]
            assert keys == sorted(set(keys))


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        BadInput, match=r"synthetic:nap: unknown workload; use one of research-xl, .*steady-5000"
    ):
        synthetic("nap", "research")


@pytest.mark.parametrize(("job_class", "load"), [("research", 1.1), ("production", 0.15), ("research", 3.0)])
def test_a_steady_workload_offers_its_load_in_tasks_of_two_minutes(job_class, load):
    jobs = steady_jobs(job_class, nodes=250, slots_per_node=8, load=load, seed=1)
    spans = [ms for job in jobs for ms in (*job.map_ms, *job.reduce_ms)]
    assert sum(spans) / (2000 * 3_600_000) == pytest.approx(load, rel=0.03)
    assert sum(spans) / len(spans) == pytest.approx(120_000, rel=0.02)
    assert all(type(ms) is int for ms in spans)


def test_research_fills_the_cluster_at_once_and_production_comes_in_bursts():
    research = steady_jobs("research", nodes=10, slots_per_node=8)
    assert sum(len(job.reduce_ms) + len(job.map_ms) for job in research if job.submitted_at_ms == 0) >= 80
    production = steady_jobs("production", nodes=10, slots_per_node=8)
    assert {(job.submitted_at_ms - 120_000) % 300_000 < 10_000 for job in production} == {True}


def test_the_seed_gives_the_jobs():
    def digest(seed):
        jobs = steady_jobs("research", nodes=10, slots_per_node=8, seed=seed)
        return hashlib.sha256(msgspec.json.encode(jobs)).hexdigest()[:16]

    assert digest(7) == digest(7) != digest(8)


def test_a_cluster_of_nothing_is_bad_input():
    with pytest.raises(BadInput, match="steady workload"):
        steady_jobs("research", nodes=0, slots_per_node=8)
    with pytest.raises(BadInput, match="steady workload, seed"):
        steady_jobs("research", nodes=1, slots_per_node=8, seed=-1)
