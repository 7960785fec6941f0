"""Shapes: every form of an answer named in the facts gives the same records, and nothing else does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thoroughness import examples
from yarnctl.frameworks.mapreduce import rest as mapreduce
from yarnctl.hadoop.wire import yarn
from yarnctl.hadoop.wire.decoders import Unreadable
from yarnctl.units import Resources

APP = {"id": "application_1_0001", "user": "ann", "queue": "research", "state": "RUNNING", "progress": 50.0}
CONTAINER = (
    '"containerId":"container_1_0001_01_000002","allocatedMB":"1536","allocatedVCores":"2","priority":"10"'
)


@pytest.mark.parametrize(
    ("body", "claim"),
    [({"apps": {"app": [APP]}}, "Jersey 1 natural: root, list, numbers"),
     ({"app": [APP]}, "mapped: the root is dropped"), ({"apps": {"app": APP}}, "a list of one as an object"),
     ({"app": APP}, "both"), ({"apps": [APP]}, "the list directly under its root"),
     ({"apps": {"app": [APP | {"progress": "50.0", "runningContainers": "0"}]}}, "numbers as strings"),
     ({"apps": {"app": [APP | {"runningContainers": 0.0}]}}, "a whole number as a float"),
     ({"apps": {"app": [APP | {"allocatedMB": None, "diagnostics": None}]}}, "null where a number stands"),
     ({"apps": {"app": [APP | {"resourceInfo": None}]}}, "no resourceInfo just after submission"),
     ({"apps": {"app": [APP | {"resourceInfo": ""}]}}, "an empty object as an empty text"),
     ({"apps": {"app": [APP | {"unknown": {"deep": [1, {"er": None}]}}]}}, "fields of a later version"),
     ({"apps": {"app": [APP, None]}}, "a null in the list")],
)  # fmt: skip
def test_one_application_in_every_form(body, claim):
    (row,) = yarn.APPLICATIONS.read(json.dumps(body).encode())
    assert (row.application, row.user, row.progress_percent) == ("application_1_0001", "ann", 50.0), claim
    assert (row.allocated_mib, row.containers) == (0, 0), claim


@pytest.mark.parametrize(
    "body", ['{"apps":{}}', '{"apps":null}', '{"apps":""}', '{"apps":{"app":[]}}', "{}", "null"]
)
def test_no_application_in_every_form(body):
    assert yarn.APPLICATIONS.read(body.encode()) == []


@pytest.mark.parametrize(
    ("body", "claim"),
    [("<html>standby</html>", "a page"),
     ('{"RemoteException":{"exception":"X","message":"no"}}', "an error body is no empty list"),
     ('{"clusterInfo":{"id":1}}', "the answer to another question"),
     ('{"apps":{"app":[{"user":"ann"}]}}', "a row without its id"),
     ('{"apps":{"app":7}}', "a number for a list"), ('{"apps":{"app":["x"]}}', "a text for a row"),
     ('{"apps":{"app":[{"id":"a","progress":"soon"}]}}', "a word for a number"),
     ('{"apps":{"app":[{"id":"a"}', "torn"), ("", "nothing at all"), ("[" * 60_000, "too deep"),
     ('{"apps":{"app":[{"id":"a","priority":' + "9" * 5000 + "}]}}", "an unterminated number"),
     ("\xff\xfe", "not UTF-8")],
)  # fmt: skip
def test_what_is_no_answer_is_refused(body, claim):
    with pytest.raises(Unreadable):
        print(claim, yarn.APPLICATIONS.read(body.encode("latin-1")))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"'])
def test_not_a_number_counts_as_not_told(word):
    body = b'{"apps":{"app":[{"id":"a","progress":%s,"priority":%s},{"id":"b","progress":7}]}}'
    first, second = yarn.APPLICATIONS.read(body % (word.encode(), word.encode()))
    assert (first.progress_percent, first.priority, second.progress_percent) == (0.0, 0, 7.0)


def test_one_odd_row_does_not_change_the_others():
    rows = yarn.APPLICATIONS.read(
        b'{"apps":{"app":[{"id":"a","priority":1},null,{"id":"b","priority":"2"}]}}'
    )
    assert [(row.application, row.priority) for row in rows] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize(
    ("body", "claim"),
    [
        ("{%s}", "mapped, root dropped, list of one as an object"),
        ('{"container":[{%s}]}', "mapped, root dropped"),
        ('{"containers":{"container":{%s}}}', "wrapped, list of one as an object"),
        ('{"containers":{"container":[{%s}]}}', "wrapped"),
    ],
)
def test_containers_come_mapped_in_jersey_1_and_either_way_in_3_5(body, claim):
    text = body % CONTAINER if "container" in body else '{"container":{%s}}' % CONTAINER  # noqa: UP031
    (row,) = yarn.CONTAINERS.read(text.encode())
    assert (row.size, row.priority) == (Resources(1536, 2), 10), claim


def test_a_request_priority_may_be_wrapped():
    row = yarn.APPLICATION.read(
        b'{"app":{"id":"a","resourceRequests":{"resourceName":"*","numContainers":"3",'
        b'"priority":{"priority":20},"capability":{"memory":"1024","vCores":"1"}}}}'
    )
    assert [(one.priority, one.count, one.size.resources) for one in row.requests] == [(20, 3, (1024, 1))]


@pytest.mark.parametrize("body", ['{"state":"KILLED"}', '{"appstate":{"state":"KILLED"}}'])
def test_a_state_comes_with_or_without_its_root(body):
    assert yarn.APPLICATION_STATE.read(body.encode()).state == "KILLED"


def test_old_attempts_carry_noise_of_their_java_type():
    row = '{"@xsi.type":"reduceTaskAttemptInfo","id":"attempt_1_0001_r_000000_0","mergeFinishTime":"5"}'
    for body in ('{"taskAttempts":{"taskAttempt":[%s]}}' % row, '{"taskAttempt":%s}' % row):  # noqa: UP031
        (attempt,) = mapreduce.ATTEMPTS.read(body.encode())
        assert attempt.merged_at_ms == 5


@pytest.mark.parametrize(
    ("started", "shuffled", "merged", "finished", "phase"),
    [(0, 0, 0, 0, "new"), (1000, 0, 0, 0, "shuffle"), (1000, 3000, 0, 0, "sort"),
     (1000, 3000, 4000, 0, "reduce"), (1000, 3000, 4000, 9000, "over"), (1000, -1, -1, 0, "shuffle")],
)  # fmt: skip
def test_the_phase_is_read_from_instants(started, shuffled, merged, finished, phase):
    attempt = mapreduce.TaskAttempt(
        attempt="a", state="RUNNING", started_at_ms=started, shuffled_at_ms=shuffled, merged_at_ms=merged,
        finished_at_ms=finished,
    )  # fmt: skip
    assert attempt.phase == phase


def test_elapsed_time_is_computed_because_hadoop_says_0_while_running():
    (attempt,) = mapreduce.ATTEMPTS.read(
        b'{"taskAttempts":{"taskAttempt":[{"id":"a","state":"RUNNING","startTime":1000,"shuffleFinishTime":2000,'
        b'"mergeFinishTime":2500,"elapsedTime":0,"elapsedReduceTime":0}]}}'
    )
    assert (attempt.elapsed_ms(9000), attempt.elapsed_ms(10)) == (8000, 0)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["apps", "app", "id", "queues", "queue", "queueName", "progress", "resourceInfo", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(derandomize=True, max_examples=examples(400))
@given(value=JSON_VALUES)
def test_any_json_gives_records_or_our_error(value):
    body = json.dumps(value).encode()
    for shape in (
        yarn.APPLICATIONS,
        yarn.SCHEDULER,
        yarn.CLUSTER_METRICS,
        mapreduce.TASKS,
        yarn.REMOTE_EXCEPTION,
    ):
        try:
            shape.read(body)
        except Unreadable as error:
            assert "\n" not in str(error)


@settings(derandomize=True, max_examples=examples(300))
@given(body=st.binary(max_size=60))
def test_any_bytes_give_records_or_our_error(body):
    for shape in (yarn.APPLICATIONS, yarn.SCHEDULER):
        try:
            shape.read(body)
        except Unreadable as error:
            assert "\n" not in str(error)


@settings(derandomize=True, max_examples=examples(200))
@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {"id": st.text(min_size=1, max_size=5), "priority": st.integers(0, 99),
             "progress": st.floats(0, 100)}
        ),
        min_size=1,
        max_size=4,
    )
)  # fmt: skip
def test_the_fast_and_the_tolerant_way_agree(rows):
    fast = yarn.APPLICATIONS.read(json.dumps({"apps": {"app": rows}}).encode())
    words = [{key: str(value) for key, value in row.items()} for row in rows]
    slow = yarn.APPLICATIONS.read(json.dumps({"app": words if len(words) > 1 else words[0]}).encode())
    assert slow == fast
