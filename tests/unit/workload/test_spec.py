"""One word names a workload; two are overlaid from t = 0."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.workload.spec import PACKAGED, load, merge, parse_spec, with_load
from emulator.workload.synthetic import synthetic
from tests.thoroughness import examples
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job
from yarnctl.traces.swim import Hours


@pytest.mark.parametrize(
    ("text", "kind", "name", "hours"),
    [
        ("swim:a/b.tsv", "swim", "a/b.tsv", None),
        ("swim:a/b.tsv@7-8", "swim", "a/b.tsv", Hours(25_200_000, 28_800_000)),
        ("swim:b.tsv@0.5-1.25", "swim", "b.tsv", Hours(1_800_000, 4_500_000)),
        ("swim:a@b/c.tsv", "swim", "a@b/c.tsv", None),  # an @ before the last / belongs to the path
        ("swim:a@b.tsv@0-24", "swim", "a@b.tsv", Hours(0, 86_400_000)),  # only the last @ counts
        ("rumen:a@7-8", "rumen", "a@7-8", None),  # only SWIM traces have hours
        ("synthetic:research-xl", "synthetic", "research-xl", None),
        ("packaged:fb2009@18-19", "packaged", "fb2009", Hours(64_800_000, 68_400_000)),
    ],
)
def test_a_spec_says_kind_name_and_hours(text, kind, name, hours):
    assert parse_spec(text)[:3] == (kind, name, hours)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a workload"),
        ("swim:", "not a workload"),
        ("trace.tsv", "not a workload"),
        ("hive:x", "not a workload; use one of swim:PATH"),
        ("swim:a@8-7", "the hours 8-7 are empty; FROM must be below TO"),
        ("swim:a@7-7", "the hours 7-7 are empty"),
        ("swim:a@7", "the hours '7' are not FROM-TO"),
        ("swim:a@-1-2", "the hours '-1-2' are not FROM-TO"),
        ("swim:@1-2", "no path before '@'"),
        ("packaged:none", "no such packaged trace; use one of fb2009"),
        ("synthetic:none", "unknown workload; use one of research-xl"),
        ("swim:no/such.tsv", "no/such.tsv: cannot be read"),
        ("rumen:no/such.json", "no/such.json: cannot be read"),
        ("parquet:no/such", "no/such: cannot be read"),
        ("packaged:fb2009@3-4", "no job is submitted in these hours"),
        (
            "packaged:fb2009@19-20",
            "hours; it holds hours 18 and 21 only; packaged:fb2009-day holds the whole day",
        ),
    ],
)
def test_a_bad_spec_is_one_clear_line(text, problem):
    with pytest.raises(BadInput) as caught:
        load(text, "research")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@settings(max_examples=examples(200))
@given(text=st.text(max_size=20) | st.from_regex(r"(swim|packaged):a@[0-9.\-]{0,8}", fullmatch=True))
def test_garbage_gives_a_spec_or_bad_input(text):
    try:
        spec = parse_spec(text)
    except BadInput:
        return
    assert spec.name
    assert spec.hours is None or 0 <= spec.hours.from_ms < spec.hours.to_ms


@pytest.mark.parametrize(("hour", "jobs", "with_reduces"), [("18-19", 297, 126), ("21-22", 291, 155)])
def test_the_packaged_hours_are_there(hour, jobs, with_reduces):
    loaded = load(f"packaged:fb2009@{hour}", "research")
    assert (len(loaded.jobs), sum(bool(job.reduce_ms) for job in loaded.jobs)) == (jobs, with_reduces)
    assert all(0 <= job.submitted_at_ms < 3_600_000 for job in loaded.jobs)
    assert loaded.source == f"packaged:fb2009@{hour}"
    assert set(PACKAGED) == {"fb2009", "fb2009-day"}


def test_a_source_names_no_folder(tmp_path):
    (tmp_path / "t.tsv").write_text("a\t1\t1\t1\t1\t1\n")
    assert load(f"swim:{tmp_path}/t.tsv@0-1", "research").source == "swim:t.tsv@0-1"


def test_two_sources_are_overlaid_from_zero_with_names_of_their_own():
    jobs = merge(synthetic("production-s", "production"), synthetic("production-s", "research"))
    assert [(job.name, job.job_class, job.submitted_at_ms) for job in jobs] == [
        ("r-production-s", "research", 0),
        ("p-production-s", "production", 50_000),
    ]
    with pytest.raises(BadInput, match="job p-production-s: two jobs"):
        merge(synthetic("production-s", "production") * 2, ())


def bare(name, at_ms, deadline_at_ms=None):
    return Job(
        name=name, job_class="research", submitted_at_ms=at_ms, map_ms=(1,), deadline_at_ms=deadline_at_ms
    )


def test_load_divides_the_time_between_arrivals_and_keeps_deadlines_at_their_distance():
    jobs = with_load((bare("a", 0), bare("b", 1000, 5000), bare("c", 3001)), 2.0)
    assert [(job.submitted_at_ms, job.deadline_at_ms) for job in jobs] == [
        (0, None),
        (500, 4500),
        (1500, None),
    ]
    assert with_load(jobs, 1.0) == jobs
    for factor in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadInput, match="--load"):
            with_load(jobs, factor)


def test_a_load_that_puts_off_a_job_for_years_is_refused():
    with pytest.raises(BadInput, match="--load: 1e-10 makes job b start more than 366 days after"):
        with_load((bare("a", 0), bare("b", 1000)), 1e-10)
    assert with_load((bare("a", 0),), 1e-300)[0].submitted_at_ms == 0


def test_jobs_that_fall_together_are_ordered_by_name():
    jobs = with_load((bare("b", 1), bare("a", 2)), 1000.0)
    assert [job.name for job in jobs] == ["a", "b"]
    assert msgspec.structs.asdict(jobs[0])["submitted_at_ms"] == 0
