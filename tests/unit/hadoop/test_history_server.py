"""The history server's client: its questions, both dialects, and what it refuses."""

from __future__ import annotations

import json

import pytest

from tests.contract.recording import VERSIONS, load
from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port, page
from yarnctl.errors import BadInput, Unreachable
from yarnctl.frameworks.mapreduce.history_server import QUICK, HistoryServer, job_of
from yarnctl.hadoop.http.answers import BadAnswer, Missing
from yarnctl.hadoop.http.transport import Transport

APP, JOB = "application_1700000000000_0007", "job_1700000000000_0007"
ROOT = "/ws/v1/history/mapreduce/jobs"


def server(daemon: Replay) -> HistoryServer:
    return HistoryServer(Transport([daemon.url], limits=QUICK, daemon="history server"))


def row(job: str, finished_at_ms: int, user: str = "ann") -> dict:
    return {"id": job, "user": user, "finishTime": finished_at_ms, "state": "SUCCEEDED", "name": "daily"}


@pytest.mark.parametrize("version", list(VERSIONS))
def test_what_a_real_history_server_said_is_read(version):
    """Recorded: 3.4.2 writes a list of one as a list, 3.5.0 as its element."""
    said = load(version)

    def answer(heard: Heard) -> Reply:
        name = {
            ROOT: "history-jobs",
            f"{ROOT}/{JOB}": "history-job",
            f"{ROOT}/{JOB}/counters": "am-job-counters",
        }
        one = said[name.get(heard.path, "history-no-job")]
        return Reply(json.dumps(one["body"]), one["status"])

    with Replay(answer) as daemon:
        history = server(daemon)
        job, (listed,) = history.job(JOB), history.jobs(0)
        counters = history.counters(JOB)
        with pytest.raises(Missing):
            history.job("job_1_0001")
    assert (job.job, job.name, job.user, job.state) == (JOB, "quick", "alice", "SUCCEEDED")
    assert (job.maps_total, job.reduces_total, job.uberized) == (1, 1, False)
    assert 0 < job.submitted_at_ms <= job.started_at_ms <= job.finished_at_ms
    assert (listed.job, listed.maps_total, listed.finished_at_ms) == (JOB, 1, job.finished_at_ms)
    own = counters["org.apache.hadoop.mapreduce.JobCounter"]
    assert own["MILLIS_MAPS"] > 0 < own["MILLIS_REDUCES"]


def test_jobs_are_asked_for_by_time_and_user_and_come_latest_first():
    rows = [
        row("job_1_0001", 50),
        row("job_1_0002", 100),
        row("job_1_0003", 200),
        row("job_1_0004", 200, "bob"),
    ]
    with Replay(Reply(json.dumps({"jobs": {"job": rows}}))) as daemon:
        found = server(daemon).jobs(60, "ann")
    assert [one.job for one in found] == ["job_1_0003", "job_1_0002"]
    query = daemon.heard[0].query
    assert (query["finishedTimeBegin"], query["user"]) == ("60", "ann")
    assert int(query["limit"]) >= 20_000  # a small one would leave the oldest


@pytest.mark.parametrize("body", ['{"jobs":{}}', '{"jobs":null}', "{}"])
def test_an_empty_history_is_empty(body):
    with Replay(Reply(body)) as daemon:
        assert server(daemon).jobs(0) == ()


def test_the_settings_of_a_job():
    told = {"conf": {"path": "hdfs://x", "property": [{"name": "a.b", "value": "1", "source": ["job.xml"]}]}}
    with Replay(Reply(json.dumps(told))) as daemon:
        assert server(daemon).configuration(JOB) == {"a.b": "1"}


def test_settings_that_hadoop_3_5_tells_as_numbers_are_texts_again():
    told = {"none": "0", "half": "0.5", "off": "false", "text": "0.10", "long": "12345678901"}
    guessed = {"none": 0, "half": 0.5, "off": False, "text": "0.10", "long": 12345678901}
    rows = [{"name": name, "value": value, "source": ["job.xml"]} for name, value in guessed.items()]
    with Replay(Reply(json.dumps({"conf": {"path": "hdfs://x", "property": rows}}))) as daemon:
        assert server(daemon).configuration(JOB) == told


@pytest.mark.parametrize(
    ("reply", "claim"),
    [(page(), "a page"), (Reply('{"job":{"id":"job_1_0001"}}'), "another job"),
     (Reply('{"jobCounters":{"id":"job_1_0001"}}'), "another job's counters"),
     (Reply('{"job":7}'), "JSON of something else"),
     (Reply('{"job":' + "[" * 100_000), "nested without an end")],
)  # fmt: skip
def test_whatever_is_no_answer_names_the_address(reply, claim):
    with Replay(reply) as daemon:
        for ask in (HistoryServer.job, HistoryServer.counters):
            with pytest.raises(BadAnswer, match=f"{daemon.url}{ROOT}"):
                ask(server(daemon), JOB)


def test_nobody_there_is_unreachable_and_no_id_is_bad_input():
    with pytest.raises(Unreachable, match="a history server"):
        HistoryServer(
            Transport([f"http://127.0.0.1:{closed_port()}"], limits=QUICK, daemon="history server")
        ).jobs(0)
    assert job_of(APP) == JOB
    for name in ("application_x", "job_1_1", "application_1_0001/../x"):
        with pytest.raises(BadInput, match="not an application id"):
            job_of(name)
    with Replay(Reply("{}")) as daemon, pytest.raises(BadInput, match="not a job id"):
        server(daemon).job("job_1_1/../../conf")
    assert daemon.heard == []
