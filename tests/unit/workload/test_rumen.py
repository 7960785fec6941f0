"""Rumen times are those of the attempts that succeeded."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.errors import BadInput
from yarnctl.traces.rumen import parse_rumen, read_rumen

T0 = 1_240_335_962_848


def attempt(start_s, finish_s, sort_s=None, result="SUCCESS"):
    at = {"startTime": start_s, "finishTime": finish_s, "sortFinished": sort_s}
    return {"result": result} | {key: -1 if s is None else T0 + s * 1000 for key, s in at.items()}


def logged(job_id="job_1", submit_s=0, maps=(), reduces=(), **fields):
    tasks = {"mapTasks": [{"attempts": a} for a in maps], "reduceTasks": [{"attempts": a} for a in reduces]}
    return {"jobID": job_id, "submitTime": T0 + submit_s * 1000, "user": "geek1", **tasks, **fields}


def parsed(*jobs):
    return parse_rumen("\n".join(json.dumps(job, indent=1) for job in jobs), "research", "t")


def test_the_successful_attempt_gives_the_time():
    failed, again = attempt(0, 3, result="FAILED"), attempt(4, 14)
    killed = attempt(2, 5, result="KILLED")
    (job,), notes = parsed(
        logged(maps=[[failed, again], [killed]], reduces=[[attempt(2, 40, 20)], [attempt(30, 60, 35)]])
    )
    assert job.map_ms == (10_000,)
    assert job.reduce_ms == (20_000, 25_000)  # finish - sortFinished
    assert job.shuffle_ms == 5000  # after the last map (14 s): 6 s, and 5 s for the one that started at 30 s
    assert (job.user, job.reduce_keys) == ("geek1", (250, 312))
    assert notes == ["1 tasks without a successful attempt were left out"]


def test_unknown_times_take_the_median_then_the_default():
    (job,), _ = parsed(logged(maps=[[attempt(0, 8)], [attempt(None, 9)], [attempt(0, 2)], [attempt(0, 6)]]))
    assert job.map_ms == (8000, 6000, 2000, 6000)
    (job,), _ = parsed(logged(maps=[[attempt(None, 9)]], reduces=[[attempt(None, None, None)]]))
    assert (job.map_ms, job.reduce_ms, job.shuffle_ms) == ((5000,), (12_000,), 16_000)


def test_a_span_that_goes_backwards_is_unknown():
    (job,), _ = parsed(logged(maps=[[attempt(9, 3)], [attempt(0, 7)]]))
    assert job.map_ms == (7000, 7000)


def test_the_shuffle_is_never_below_half_a_second():
    (job,), _ = parsed(logged(maps=[[attempt(0, 20)]], reduces=[[attempt(1, 40, 18)]]))
    assert job.shuffle_ms == 500  # it was done before the last map's end was written down


def test_submissions_start_at_zero_in_order_and_jobs_without_success_are_counted():
    lost = logged("job_0", -50, maps=[[attempt(0, 3, result="FAILED")], []])
    jobs, notes = parsed(
        lost, logged("job_2", 9, maps=[[attempt(0, 3)]]), logged("job_1", 4, maps=[[attempt(0, 3)]])
    )
    assert [(job.name, job.submitted_at_ms) for job in jobs] == [("job_1", 0), ("job_2", 5000)]
    assert notes[0] == "1 jobs without a successful task were skipped"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"jobID": "a",\n "submitTime": 1', "t:2: field job: torn JSON at column 17"),
        ('\n\n{"jobID": "a", "submitTime": "x"}', "t:3: field submitTime: Expected `int`, got `str`"),
        ('{"submitTime": 1}', "t:1: field job: Object missing required field `jobID`"),
        (
            '{"jobID": "a", "mapTasks": [{"attempts": [{"startTime": -7}]}]}',
            "t:1: field mapTasks[0].attempts[0].startTime: Expected `int` >= -1",
        ),
        ("17", "t:1: field job: Expected `object`"),
        ("", "t: no job in it has a successful task"),
        ("[" * 200_000, "t:1: field job: "),
        ("9" * 5000, "t:1: field job: "),
        ('{"jobID": "\\ud800", "submitTime": 1}', "t:1: field "),
        ('{"jobID": "a b", "submitTime": 1}', "t:1: field jobID: "),
    ],
)
def test_a_bad_trace_is_refused_by_file_line_and_field(text, message):
    with pytest.raises(BadInput) as caught:
        parse_rumen(text, "research", "t")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(message)


def test_a_job_without_any_time_of_submission_is_refused():
    job = logged(maps=[[attempt(0, 1)]], submitTime=-1)
    with pytest.raises(BadInput, match="t:1: field submitTime: unknown"):
        parsed(job)
    (job,), _ = parsed(job | {"launchTime": T0})
    assert job.submitted_at_ms == 0


@pytest.mark.parametrize(("submit_ms", "line"), [(0, 1), (1, 1), (10**13, 1)])
def test_a_submission_far_from_the_others_is_refused(submit_ms, line):
    odd = logged("odd", maps=[[attempt(0, 1)]], submitTime=submit_ms)
    others = [logged(f"job_{i}", i, maps=[[attempt(0, 1)]]) for i in range(3)]
    with pytest.raises(
        BadInput, match=f"t:{line}: field submitTime: {submit_ms} is [0-9]+ days (before|after)"
    ):
        parsed(odd, *others)
    with pytest.raises(BadInput, match="t:1: field submitTime: 0 is 14355 days before"):
        parsed(logged("odd", maps=[[attempt(0, 1)]], submitTime=-1, launchTime=0), others[0])


def test_plain_and_gzip_files_are_read_alike(tmp_path):
    text = json.dumps(logged(maps=[[attempt(0, 3)]])).encode()
    (tmp_path / "a").write_bytes(text)
    (tmp_path / "b").write_bytes(gzip.compress(text, mtime=0))
    assert read_rumen(tmp_path / "a", "research") == read_rumen(tmp_path / "b", "research")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jobID", "submitTime", "mapTasks", "reduceTasks", "attempts", "result", "user"]),
            inner,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(value=_JSON, cut=st.integers(0, 60))
def test_garbage_gives_jobs_or_bad_input_and_nothing_else(value, cut):
    whole = json.dumps(value)
    for text in (whole, whole[:cut], json.dumps(logged(mapTasks=value))):
        try:
            jobs, _ = parse_rumen(text, "research", "t")
        except BadInput as error:
            message = str(error)
        else:
            message = ""
            assert all(job.map_ms for job in jobs)
        assert "\n" not in message
