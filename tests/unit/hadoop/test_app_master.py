"""The master's client: jobs and reduces in their shapes, Absent for whatever is no master, the kill."""

from __future__ import annotations

import json
import sys
import types

import msgspec
import pytest
from requests.auth import AuthBase

from tests.unit.hadoop.replaying import NEVER_S, PATIENT, Replay, Reply, closed_port, page, routes
from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce.master import MasterClient
from yarnctl.hadoop.http.answers import Rejected, Uncertain
from yarnctl.hadoop.http.auth import Identity
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent

APP = "application_1700000000000_0007"
JOB = "job_1700000000000_0007"
ROOT = f"/proxy/{APP}/ws/v1/mapreduce"
REDUCE = "task_1700000000000_0007_r_000000"
ATTEMPT = "attempt_1700000000000_0007_r_000000_1000"


def master(rm: Replay, limits: CallLimits = PATIENT) -> MasterClient:
    return MasterClient(Transport([rm.url], limits=limits), APP)


def serve(table) -> Replay:
    return Replay(routes({f"{key[0]}{ROOT}{key[1]}": reply for key, reply in table.items()}))


def test_the_job_and_its_running_reduces():
    tasks = [
        {"id": REDUCE, "type": "REDUCE", "state": "RUNNING"},
        {"id": REDUCE[:-1] + "1", "type": "REDUCE", "state": "SUCCEEDED"},
    ]
    attempts = [
        {"id": ATTEMPT, "state": "RUNNING", "type": "REDUCE", "assignedContainerId": "c",
         "mergeFinishTime": 7},
        {"id": ATTEMPT[:-4] + "0", "state": "KILLED"},
    ]  # fmt: skip
    table = {
        ("", f"/jobs/{JOB}/tasks"): json.dumps({"tasks": {"task": tasks}}),
        ("", f"/jobs/{JOB}/tasks/{REDUCE}/attempts"): json.dumps({"taskAttempts": {"taskAttempt": attempts}}),
    }
    with serve(table) as rm:
        am = master(rm)
        rows = am.attempts(REDUCE)
        assert not isinstance(rows, Absent)
        running = [one for one in rows if one.running]
        assert [(one.attempt, one.container, one.phase) for one in running] == [(ATTEMPT, "c", "reduce")]
        assert am.reduces() != ()
    assert rm.heard[-1].query == {"type": "r"}


@pytest.mark.parametrize(
    ("reply", "claim"),
    [(page(), "the RM's application page"),
     (Reply("", 302, headers=(("Location", "http://h:19888/jobhistory"),)), "gone to the history"),
     (Reply("", 404), "an application nobody knows"),
     (Reply("boom", 500, "text/plain"), "a proxy that cannot connect"),
     (Reply("{}", delay_s=NEVER_S), "a master that hangs"), (Reply('{"jobs":7}'), "JSON of something else"),
     (page("no", 401), "not allowed")],
)  # fmt: skip
def test_whatever_is_no_master_is_absent_with_a_reason(reply, claim):
    with Replay(reply) as rm:
        am = master(rm, reply.limits)
        answers = [am.maps(), am.reduces(), am.attempts(REDUCE), am.configuration()]
    assert all(isinstance(one, Absent) and one.why for one in answers), claim


def test_nothing_listens_is_absent():
    am = MasterClient(Transport([f"http://127.0.0.1:{closed_port()}"], limits=PATIENT), APP)
    assert isinstance(am.reduces(), Absent)


def test_counters_of_an_attempt():
    path = f"/jobs/{JOB}/tasks/{REDUCE}/attempts/{ATTEMPT}/counters"
    group = '[{"counterGroupName":"G","counter":[{"name":"N","value":3}]}]'
    with serve(
        {("", path): f'{{"jobTaskAttemptCounters":{{"id":"a","taskAttemptCounterGroup":{group}}}}}'}
    ) as rm:
        assert master(rm).attempt_counters(REDUCE, ATTEMPT) == {"G": {"N": 3}}


def test_the_job_s_configuration():
    body = '{"conf":{"path":"hdfs://x/job.xml","property":[{"name":"mapreduce.job.reduces","value":"4","source":["job.xml"]}]}}'
    with serve({("", f"/jobs/{JOB}/conf"): body}) as rm:
        assert master(rm).configuration() == {"mapreduce.job.reduces": "4"}


STATE = f"/jobs/{JOB}/tasks/{REDUCE}/attempts/{ATTEMPT}/state"


@pytest.mark.parametrize("echo", ['{"state":"KILLED"}', '{"jobTaskAttemptState":{"state":"KILLED"}}'])
def test_a_kill_is_a_put_of_the_state(echo):
    with serve({("PUT ", STATE): echo}) as rm:
        am = master(rm)
        assert am.kill(REDUCE, ATTEMPT) == "KILLED"
    one = rm.heard[0]
    assert (one.method, one.path, one.body) == ("PUT", ROOT + STATE, b'{"state":"KILLED"}')
    assert one.headers["Content-Type"] == "application/json"  # the proxy compares names with their case
    assert one.headers["Accept"] == "application/json"


@pytest.mark.parametrize(
    ("reply", "ending"),
    [(Reply("", 302, headers=(("Location", "http://h/app"),)), Absent), (page(), Absent),
     (Reply("", 404), Absent), (Reply('{"RemoteException":{"message":"null"}}', 500), Rejected),
     (Reply("", 403), Rejected), (Reply("", 504), Uncertain), (Reply("{}", delay_s=NEVER_S), Uncertain)],
)  # fmt: skip
def test_a_kill_that_did_not_work_says_whether_it_may_have(reply, ending):
    with Replay(reply) as rm:
        am = master(rm, reply.limits)
        if ending is Absent:
            assert isinstance(am.kill(REDUCE, ATTEMPT), Absent)
        else:
            with pytest.raises(ending):
                am.kill(REDUCE, ATTEMPT)
        assert len(rm.heard) == 1 or (reply.is_endless and not rm.heard), "asked once, heard in time or not"


OTHER = "/ws/v1/cluster/apps/application_1700000000000_0008/state"


@pytest.mark.parametrize("retries", [0, 2], ids=["once", "repeated"])
@pytest.mark.parametrize("status", [307, 308, 301, 302, 303])
@pytest.mark.parametrize("elsewhere", ["", "http://127.0.0.1:{port}"])
def test_no_master_sends_us_anywhere_else(status, elsewhere, retries):
    """It is its owner's program: sent on, our name would kill another's application."""
    where = elsewhere + OTHER

    def answer(heard):
        if heard.path.startswith("/proxy/"):
            return Reply("{}", status, headers=(("Location", where),))
        return Reply('{"state":"KILLED"}')

    limits = msgspec.structs.replace(PATIENT, retries=retries)
    with Replay(answer) as rm:
        where = where.replace("{port}", rm.url.rpartition(":")[2])
        am = MasterClient(Transport([rm.url], Identity("yarnctl"), limits), APP)
        answers = [am.kill(REDUCE, ATTEMPT), am.reduces(), am.attempts(REDUCE), am.configuration()]
    assert all(isinstance(one, Absent) and one.why for one in answers)
    assert {heard.path for heard in rm.heard if not heard.path.startswith("/proxy/")} == set()
    assert len(rm.heard) == 4


def test_no_master_gives_us_a_cookie():
    """Sent along to all others, it would be who we are there."""
    cookie = (("Set-Cookie", "hadoop.auth=u=ann&p=ann; Path=/"),)
    with Replay(Reply('{"state":"KILLED"}', headers=cookie)) as rm:
        to = Transport([rm.url], Identity("yarnctl"), PATIENT)
        MasterClient(to, APP).kill(REDUCE, ATTEMPT)
        MasterClient(to, APP).kill(REDUCE, ATTEMPT)
        to.change("PUT", OTHER, b"{}")
    assert len(rm.heard) == 3
    assert all("Cookie" not in heard.headers for heard in rm.heard)


def test_only_ids_get_into_a_path():
    with pytest.raises(BadInput):
        MasterClient(Transport(["http://rm:8088"]), "application_1_2/x")
    with pytest.raises(BadInput):
        MasterClient(Transport(["http://rm:8088"]), APP).kill("task_1/../x", ATTEMPT)


def test_with_kerberos_the_proxy_s_warning_is_answered_beforehand(monkeypatch):
    package = types.SimpleNamespace(OPTIONAL=2, HTTPSPNEGOAuth=lambda **_options: NoTicket())
    monkeypatch.setitem(sys.modules, "requests_gssapi", package)
    with serve({("", f"/jobs/{JOB}/conf"): '{"conf":{}}'}) as rm:
        to = Transport([rm.url], Identity("ann", "kerberos"), PATIENT)
        MasterClient(to, APP).configuration()
        rm.answer = routes({"/conf": "{}"})
        to.fetch("/conf")
    assert rm.heard[0].query == {"proxyapproved": "true"}
    assert rm.heard[0].headers["Cookie"] == f"checked_{APP}=true"
    assert "Cookie" not in rm.heard[1].headers


class NoTicket(AuthBase):
    """Stands for the ticket's signature."""

    def __call__(self, request):
        return request
