"""The ResourceManager's client: every read in its shapes, every change by method, path, type and echo."""

from __future__ import annotations

import json

import pytest

from tests.unit.hadoop.replaying import PATIENT, Heard, Replay, Reply, page, routes
from yarnctl.errors import BadInput
from yarnctl.hadoop.http.answers import Altered, BadAnswer, Missing, Rejected, Standby, Uncertain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager, scheduler_change

ROOT = "/ws/v1/cluster"
APP = "application_1700000000000_0007"
ATTEMPT = "appattempt_1700000000000_0007_000002"
CONTAINER = "container_e17_1700000000000_0007_02_000004"


def client(*replays: Replay) -> ResourceManager:
    ticks = iter(range(10_000))
    to = Transport([one.url for one in replays], limits=PATIENT)
    return ResourceManager(to, pause=lambda _s: None, clock=lambda: next(ticks) / 10)


def serve(table) -> Replay:
    return Replay(routes({f"{method}{ROOT}{path}": reply for (method, path), reply in table.items()}))


def get(path: str) -> tuple[str, str]:
    return "", path


def put(path: str) -> tuple[str, str]:
    return "PUT ", path


INFO = '{"clusterInfo":{"id":%d,"startedOn":%d,"state":"STARTED","haState":"%s","hadoopVersion":"3.4.2"}}'


def test_identify_finds_the_active_one_although_a_standby_answers_info():
    with (
        serve({get("/info"): INFO % (5, 5, "STANDBY")}) as first,
        serve({get("/info"): INFO % (9, 9, "ACTIVE")}) as second,
    ):
        info = client(first, second).identify()
        assert (info.epoch, info.version) == (9, "3.4.2")
        second.answer = routes({f"{ROOT}/info": INFO % (9, 9, "STANDBY")})
        with pytest.raises(Standby, match="is STANDBY"):
            client(first, second).identify()


def test_whoami():
    with serve(
        {get("/userinfo"): '{"clusterUserInfo":{"rmLoginUser":"yarn","requestedUser":"dr.who"}}'}
    ) as rm:
        assert client(rm).whoami().user == "dr.who"


def test_metrics_of_an_old_version_do_not_know_what_is_pending():
    with serve({get("/metrics"): '{"clusterMetrics":{"totalMB":"9216","activeNodes":"3"}}'}) as rm:
        metrics = client(rm).metrics()
        assert (metrics.total_mib, metrics.nodes_active, metrics.pending_mib) == (9216, 3, None)


def test_applications_are_asked_for_lightly_and_filtered_again():
    rows = [
        {"id": "application_1_0001", "queue": "root.research", "state": "RUNNING"},
        {"id": "application_1_0002", "queue": "research", "state": "ACCEPTED", "runningContainers": -1},
        {"id": "application_1_0003", "queue": "production", "state": "RUNNING"},
        {"id": "application_1_0004", "queue": "research", "state": "FINISHED"},
    ]
    with serve({get("/apps"): json.dumps({"apps": {"app": rows}})}) as rm:
        found = client(rm).applications()
    assert [row.application for row in found] == [f"application_1_000{number}" for number in (1, 2, 3)]
    assert rm.heard[0].query == {"states": "ACCEPTED,RUNNING", "deSelects": "resourceRequests,timeouts"}


def test_nodes_that_cannot_run_containers_are_left_out():
    rows = [
        {"id": f"n{at}:1", "state": state} for at, state in enumerate(["RUNNING", "LOST", "DECOMMISSIONING"])
    ]
    with serve({get("/nodes"): json.dumps({"nodes": {"node": rows}})}) as rm:
        assert [row.node for row in client(rm).nodes()] == ["n0:1", "n2:1"]


def test_an_unknown_application_is_missing():
    with serve({}) as rm, pytest.raises(Missing):
        client(rm).application(APP)


def test_attempts_are_named_where_the_version_does_not_and_come_in_order():
    body = '{"appAttempts":{"appAttempt":[{"id":2},{"id":"1"}]}}'
    with serve({get(f"/apps/{APP}/appattempts"): body}) as rm:
        assert [row.attempt for row in client(rm).app_attempts(APP)] == [ATTEMPT[:-1] + "1", ATTEMPT]


def test_containers_that_ended_are_left_out():
    rows = {
        "container": [
            {"containerId": "c1", "containerState": "RUNNING"},
            {"containerId": "c2", "containerState": "COMPLETE"},
        ]
    }
    with serve({get(f"/apps/{APP}/appattempts/{ATTEMPT}/containers"): json.dumps(rows)}) as rm:
        assert [row.container for row in client(rm).containers(APP, ATTEMPT)] == ["c1"]


def test_configurations():
    conf = '{"properties":[{"key":"yarn.acl.enable","value":"true","isFinal":false,"resource":"x"}]}'
    mapped = '{"property":{"name":"a","value":"b"}}'
    with serve({get("/scheduler-conf"): mapped}) as rm:
        assert client(rm).scheduler_configuration() == {"a": "b"}
        rm.answer = routes({"/conf": conf})
        assert client(rm).configuration() == {"yarn.acl.enable": "true"}


def test_an_immutable_scheduler_store_says_so():
    with serve(
        {get("/scheduler-conf"): Reply("Configuration change only supported by mutable", 400, "text/plain")}
    ) as rm:
        with pytest.raises(Rejected, match="mutable") as caught:
            client(rm).scheduler_configuration()
        assert caught.value.status == 400


# --- changes ----------------------------------------------------------------------------------


def heard(rm: Replay, method: str) -> Heard:
    (one,) = [each for each in rm.heard if each.method == method]
    return one


@pytest.mark.parametrize(
    "reply", [Reply(b"", kind=""), Reply("signal success"), Reply("signal success", kind="text/plain")]
)
def test_a_signal_succeeds_without_json(reply):
    path = f"{ROOT}/containers/{CONTAINER}/signal/OUTPUT_THREAD_DUMP"
    with Replay(routes({f"POST {path}": reply})) as rm:
        client(rm).signal(CONTAINER, "OUTPUT_THREAD_DUMP")
    assert (rm.heard[0].method, rm.heard[0].path, rm.heard[0].body) == ("POST", path, b"")
    assert rm.heard[0].headers["Content-Type"] == "application/json"


def test_a_signal_to_an_unknown_container_is_rejected():
    with Replay(Reply("Trying to signal an absent container", 500, "text/plain")) as rm:
        with pytest.raises(Rejected, match="absent container") as caught:
            client(rm).signal(CONTAINER, "OUTPUT_THREAD_DUMP")
        assert caught.value.status == 500


@pytest.mark.parametrize(
    ("reply", "kind"),
    [(page(), Uncertain), (Reply("", 302, headers=(("Location", "http://x/cluster"),)), BadAnswer)],
)
def test_a_page_is_no_success_of_a_change(reply, kind):
    with Replay(reply) as rm, pytest.raises(kind):
        client(rm).signal(CONTAINER, "OUTPUT_THREAD_DUMP")


def test_a_kill_is_polled_until_it_is_done():
    states = iter(["KILLING", "FINAL_SAVING", "KILLED"])
    path = f"{ROOT}/apps/{APP}/state"

    def answer(one: Heard) -> Reply:
        if one.method == "PUT":
            return Reply('{"state":"ACCEPTED"}', 202, headers=(("Location", path),))
        return Reply(json.dumps({"state": next(states)}))

    with Replay(answer) as rm:
        assert client(rm).kill(APP, "taken back", wait_ms=5000) == "KILLED"
    change = heard(rm, "PUT")
    assert (change.path, json.loads(change.body)) == (path, {"state": "KILLED", "diagnostics": "taken back"})
    assert change.headers["Content-Type"] == "application/json"
    assert len(rm.heard) == 4


def test_a_kill_that_does_not_end_returns_what_it_saw():
    with Replay(lambda one: Reply('{"state":"KILLING"}', 202 if one.method == "PUT" else 200)) as rm:
        assert client(rm).kill(APP, wait_ms=500) == "KILLING"
        assert json.loads(rm.heard[0].body) == {"state": "KILLED"}


@pytest.mark.parametrize(
    "echo", ['{"priority":8}', '{"priority":"8"}', '{"applicationpriority":{"priority":8}}']
)
def test_a_priority_is_set_and_compared(echo):
    with serve({put(f"/apps/{APP}/priority"): echo}) as rm:
        client(rm).set_priority(APP, 8)
    assert json.loads(heard(rm, "PUT").body) == {"priority": 8}


def test_a_priority_that_is_capped_is_no_success():
    with serve({put(f"/apps/{APP}/priority"): '{"priority":0}'}) as rm:
        with pytest.raises(Altered, match="max-application-priority") as caught:
            client(rm).set_priority(APP, 8)
        assert (caught.value.asked, caught.value.got) == ("8", "0")


def test_a_priority_accepted_with_202_is_looked_at_until_it_holds():
    values = iter([0, 0, 8])

    def answer(one: Heard) -> Reply:
        return Reply(b"", 202) if one.method == "PUT" else Reply(json.dumps({"priority": next(values)}))

    with Replay(answer) as rm:
        client(rm).set_priority(APP, 8)
        assert len(rm.heard) == 4
        values = iter([0] * 100)
        with pytest.raises(Altered):
            client(rm).set_priority(APP, 8, wait_ms=300)


def test_a_move_is_compared_by_queue_and_not_by_spelling():
    with serve({put(f"/apps/{APP}/queue"): '{"queue":"root.research"}'}) as rm:
        client(rm).move(APP, "research")
        assert json.loads(heard(rm, "PUT").body) == {"queue": "research"}
        with pytest.raises(Altered):
            client(rm).move(APP, "production")


def test_a_scheduler_change_is_xml_and_escaped():
    with serve(
        {put("/scheduler-conf"): Reply("Configuration change successfully applied.", kind="text/plain")}
    ) as rm:
        client(rm).set_scheduler({"root.research": {"maximum-capacity": "50"}}, {"a<b": "&"})
    change = heard(rm, "PUT")
    assert change.headers["Content-Type"] == "application/xml"
    assert change.body == (
        b"<sched-conf><update-queue><queue-name>root.research</queue-name><params><entry><key>maximum-capacity</key>"
        b"<value>50</value></entry></params></update-queue><global-updates><entry><key>a&lt;b</key>"
        b"<value>&amp;</value></entry></global-updates></sched-conf>"
    )
    assert scheduler_change({}, {}) == b"<sched-conf></sched-conf>"


@pytest.mark.parametrize(
    "call",
    [lambda rm: rm.application("application_1_2/../../conf"), lambda rm: rm.containers(APP, "x"),
     lambda rm: rm.signal("container_1?x", "OUTPUT_THREAD_DUMP"), lambda rm: rm.kill("../kill")],
)  # fmt: skip
def test_only_ids_get_into_a_path(call):
    with Replay(Reply("{}")) as rm:
        with pytest.raises(BadInput):
            call(client(rm))
        assert rm.heard == []
