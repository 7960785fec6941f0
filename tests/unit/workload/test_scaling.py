"""Scaling changes how many tasks there are, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.workload.scaling import MAX_TASKS, peak_offered_load, scale_to_load
from tests.thoroughness import examples
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job


def job(name, at_ms, maps, reduces, map_ms=60_000, reduce_ms=120_000):
    return Job(
        name=name, job_class="research", submitted_at_ms=at_ms, map_ms=tuple(map_ms - i for i in range(maps)),
        reduce_ms=tuple(reduce_ms - i for i in range(reduces)), reduce_keys=tuple(range(1, reduces + 1)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("jobs", "load"),
    [
        ([job("a", 0, 10, 0, map_ms=300_000)], 1.1),  # ten maps and an AM for a whole window of ten slots
        ([job("a", 0, 10, 0, map_ms=150_000)], 0.55),  # half the window
        ([job("a", 150_000, 10, 0, map_ms=300_000)], 0.55),  # across two windows: half in each
        ([job("a", 0, 10, 0, map_ms=150_000), job("b", 0, 10, 0, map_ms=150_000)], 1.1),
    ],
)
def test_offered_load_is_container_time_wanted_per_window(jobs, load):
    assert peak_offered_load(jobs, slots=10) == pytest.approx(load, abs=1e-3)


def test_the_peak_is_met_up_and_down():
    jobs = [job(f"j{i}", i * 20_000, 40 + i, 20) for i in range(60)]
    for wish in (0.3, 1.0, 1.5):
        scaled = scale_to_load(jobs, slots=200, peak_load=wish)
        assert scaled.achieved_load == pytest.approx(wish, rel=0.01)
        assert scaled.achieved_load == peak_offered_load(scaled.jobs, 200)


def test_every_job_keeps_a_map_and_a_reduce_if_it_had_one():
    scaled = scale_to_load([job("a", 0, 100, 50), job("b", 0, 100, 0)], slots=1, peak_load=0.01)
    assert [(len(j.map_ms), len(j.reduce_ms)) for j in scaled.jobs] == [(1, 1), (1, 0)]
    assert scaled.achieved_load > 0.01  # and says that the wish was too small


def test_nothing_explodes():
    scaled = scale_to_load([job("a", 0, 1000, 1)], slots=10**6, peak_load=1.0)
    assert (len(scaled.jobs[0].map_ms), scaled.factor) == (MAX_TASKS, 64.0)


@pytest.mark.parametrize(
    ("slots", "load"), [(0, 1.0), (8, 0.0), (8, -1.0), (8, float("nan")), (8, float("inf"))]
)
def test_sizes_that_make_no_sense_are_bad_input(slots, load):
    with pytest.raises(BadInput, match="scaling, "):
        scale_to_load([job("a", 0, 1, 1)], slots, load)


@settings(max_examples=examples(50))
@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=6
    ),
    wish=st.floats(0.01, 20),
)
def test_lengths_stay_the_jobs_own_and_keys_stay_with_their_reduce(sizes, wish):
    jobs = [job(f"j{i}", *size) for i, size in enumerate(sizes)]
    scaled = scale_to_load(jobs, slots=16, peak_load=wish)
    for before, after in zip(jobs, scaled.jobs, strict=True):
        keys = dict(zip(before.reduce_ms, before.reduce_keys, strict=True))
        assert set(after.map_ms) <= set(before.map_ms)
        assert [keys[ms] for ms in after.reduce_ms] == list(after.reduce_keys)
        assert (after.name, after.submitted_at_ms) == (before.name, before.submitted_at_ms)


def test_spans_that_cannot_be_cut_into_windows_are_bad_input():
    years = [job(f"j{i}", 0, 1, 0, map_ms=366 * 86_400_000) for i in range(200)]
    with pytest.raises(BadInput, match="too many or too long"):
        scale_to_load(years, slots=10, peak_load=1.0)
