"""The ResourceManager's REST: what each path answers, in both dialects, and what it refuses.

Requests are put to the web directly; ``test_rest_clients`` goes through sockets.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.live.manager.service import ManagerSettings
from emulator.live.rest.site import ManagerSite
from emulator.live.wire.web import Reply, Web, WebRequest
from tests.live.rm_playing import EPOCH, Played
from tests.thoroughness import examples

URL = "http://127.0.0.1:8088"
ROOT = "/ws/v1/cluster"
APP = f"application_{EPOCH}_0001"
JSON_TYPE = [(b"content-type", b"application/json")]


class Asked:
    """A played manager with its site; ``get`` and its like return the reply."""

    def __init__(self, dialect: Any = "3.4", settings: ManagerSettings | None = None, **more: Any) -> None:
        self.played = Played(settings)
        self.site = ManagerSite(self.played.manager, URL, dialect=dialect, **more)

    def ask(self, method: str, path: str, body: Any = b"", headers: Any = None) -> Reply:
        path, _, query = path.partition("?")
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if headers is None:
            headers = [(b"accept", b"application/json"), *(JSON_TYPE if method in ("PUT", "POST") else [])]
        request = WebRequest(method, path, query.encode(), headers, data)
        return asyncio.run(self.site.web.answer(request))

    def get(self, path: str) -> Any:
        reply = self.ask("GET", path)
        assert reply.status == 200, reply
        return json.loads(reply.body)


def refused(reply: Reply) -> tuple[int, str, str]:
    said = json.loads(reply.body)["RemoteException"]
    assert said["javaClassName"].endswith(said["exception"])
    return reply.status, said["exception"], said.get("message", "")


# --- the cluster ------------------------------------------------------------------------------


def test_who_asks_is_user_name_or_dr_who():
    asked = Asked()
    assert asked.get(f"{ROOT}/userinfo")["requestedUser"] == "dr.who"
    assert asked.get(f"{ROOT}/userinfo?user.name=ann")["requestedUser"] == "ann"
    assert refused(asked.ask("GET", f"{ROOT}/userinfo?user.name=a%0ab"))[0] == 403


def test_metrics_count_what_is_held_and_what_is_waited_for():
    asked = Asked()
    asked.played.node()
    app, _ = asked.played.running(maps=2)
    asked.played.call(app, (10, 3))
    asked.played.submit("production")
    metrics = asked.get(f"{ROOT}/metrics")["clusterMetrics"]
    held = {key: metrics[key] for key in ("totalMB", "allocatedMB", "availableMB", "pendingMB", "reservedMB")}
    assert held == {
        "totalMB": 4096,
        "allocatedMB": 3072,
        "availableMB": 1024,
        "pendingMB": 4096,
        "reservedMB": 0,
    }
    counts = [metrics[key] for key in ("appsRunning", "appsPending", "activeNodes", "containersAllocated")]
    assert counts == [1, 1, 1, 3]


def test_a_reservation_is_seen_at_the_application_and_in_the_metrics():
    asked = Asked()
    asked.played.node()
    asked.played.running("production", maps=2)
    app = asked.played.submit("research", mib=2048)
    asked.played.beat()
    assert asked.get(f"{ROOT}/apps/{app.id}")["app"]["reservedMB"] == 2048
    assert asked.get(f"{ROOT}/metrics")["clusterMetrics"]["reservedMB"] == 2048


def test_the_tree_of_queues():
    asked = Asked()
    asked.played.node(slots=20)
    app, _ = asked.played.running("research", maps=2)
    asked.played.call(app, (10, 3))
    root = asked.get(f"{ROOT}/scheduler")["scheduler"]["schedulerInfo"]
    production, research = root["queues"]["queue"]
    assert (root["type"], production["queuePath"]) == ("capacityScheduler", "root.production")
    assert research["type"] == "capacitySchedulerLeafQueueInfo"
    assert (research["minEffectiveCapacity"]["memory"], research["maxEffectiveCapacity"]["memory"]) == (
        1024,
        20480,
    )
    assert (research["resourcesUsed"]["memory"], research["pendingContainers"]) == (3072, 3)
    assert (research["usedCapacity"], research["absoluteUsedCapacity"]) == (300.0, 15.0)
    (row,) = research["resources"]["resourceUsagesByPartition"]
    assert (row["used"]["memory"], row["pending"]["memory"], row["amLimit"]["memory"]) == (3072, 3072, 10240)
    (user,) = research["users"]["user"]
    assert (user["username"], user["resourcesUsed"]["vCores"]) == ("ann", 3)


def test_nodes_by_state_a_lost_one_is_listed():
    asked = Asked()
    asked.played.node("n1:1")
    asked.played.node("n2:1")
    for _ in range(10):
        asked.played.pass_ms(1000)
        asked.played.beat("n1:1")
    assert [(row["id"], row["state"]) for row in asked.get(f"{ROOT}/nodes")["nodes"]["node"]] == [
        ("n1:1", "RUNNING"),
        ("n2:1", "LOST"),
    ]
    assert [row["id"] for row in asked.get(f"{ROOT}/nodes?states=lost")["nodes"]["node"]] == ["n2:1"]
    assert asked.get(f"{ROOT}/nodes?states=UNHEALTHY") == {"nodes": {}}
    assert asked.get(f"{ROOT}/nodes/n1:1")["node"]["availMemoryMB"] == 4096
    assert refused(asked.ask("GET", f"{ROOT}/nodes?states=HAPPY"))[0] == 400
    assert refused(asked.ask("GET", f"{ROOT}/nodes/x:1"))[:2] == (404, "NotFoundException")


# --- applications -----------------------------------------------------------------------------


def test_an_application_just_accepted_in_both_dialects():
    old, new = Asked("3.4"), Asked("3.5")
    rows = []
    for asked in (old, new):
        asked.played.node()
        asked.played.submit()
        (row,) = asked.get(f"{ROOT}/apps")["apps"]["app"]
        rows.append(row)
    assert [("resourceInfo" in row, row["runningContainers"]) for row in rows] == [(False, 0), (True, -1)]
    assert {row["queue"] for row in rows} == {"root.research"}


def test_an_application_that_runs_and_one_that_is_over():
    asked = Asked()
    asked.played.node()
    app, _ = asked.played.running()
    asked.played.call(app, (10, 2))
    row = asked.get(f"{ROOT}/apps/{APP}")["app"]
    assert (row["state"], row["allocatedMB"], row["runningContainers"]) == ("RUNNING", 3072, 3)
    assert row["resourceInfo"]["resourceUsagesByPartition"][0]["pending"]["vCores"] == 2
    assert row["trackingUrl"] == f"{URL}/proxy/{APP}/"
    asked.played.bye(app)
    row = asked.get(f"{ROOT}/apps/{APP}")["app"]
    assert (row["state"], row["allocatedMB"], row["runningContainers"]) == ("FINISHED", 1024, 1)  # its AM
    asked.played.beat("n1:1", app.attempts[0].container)
    row = asked.get(f"{ROOT}/apps/{APP}")["app"]
    assert (row["state"], row["finalStatus"], row["progress"]) == ("FINISHED", "SUCCEEDED", 100.0)
    assert (row["allocatedMB"], row["runningContainers"], "resourceRequests" in row) == (-1, -1, False)


def test_maps_are_asked_for_in_rows_that_repeat_each_other_reduces_are_not():
    asked = Asked()
    asked.played.node("n1:1", slots=1)
    app = asked.played.submit()
    asked.played.beat()
    asked.played.up(app)
    asked.played.call(app, (20, 3), (10, 2))
    rows = asked.get(f"{ROOT}/apps/{APP}")["app"]["resourceRequests"]
    found = [(row["priority"], row["resourceName"], row["numContainers"]) for row in rows]
    assert found == [(10, "*", 2), (20, "*", 3), (20, "/default-rack", 3), (20, "n1", 3)]
    asked.played.node("n2:1", slots=2)
    asked.played.call(app, (20, -3))
    asked.played.beat("n2:1")
    asked.played.beat("n2:1")
    assert "resourceRequests" not in asked.get(f"{ROOT}/apps/{APP}")["app"]  # all is met or withdrawn


@pytest.mark.parametrize(
    ("query", "numbers"),
    [("", [1, 2, 3]), ("states=ACCEPTED,RUNNING", [2, 3]), ("states=running", [2]), ("state=KILLED", [1]),
     ("finalStatus=KILLED", [1]), ("finalStatus=UNDEFINED", [2, 3]), ("user=bob", [3]),
     ("queue=production", [3]), ("queue=root.production", [3]), ("limit=2", [1, 2]),
     ("applicationTypes=mapreduce", [3]), ("applicationTags=x,deadline:7", [3]), ("name=wordcount", [3]),
     (f"startedTimeBegin={EPOCH + 1}", [2, 3]), (f"startedTimeEnd={EPOCH}", [1]),
     (f"finishedTimeBegin={EPOCH}", [1]), (f"finishedTimeEnd={EPOCH - 1}", [2, 3])],
)  # fmt: skip
def test_the_query_of_apps(query, numbers):
    asked = Asked()
    asked.played.node()
    asked.played.manager.kill(asked.played.submit(), "")
    asked.played.pass_ms(10)
    asked.played.running()
    asked.played.submit("production", "bob", name="wordcount", kind="MAPREDUCE", tags=("deadline:7",))
    rows = asked.get(f"{ROOT}/apps?{query}")["apps"]["app"]
    assert [int(row["id"][-4:]) for row in rows] == numbers


def test_the_am_limit_is_told_by_its_words():
    asked = Asked()
    asked.played.node(slots=2)
    asked.played.submit()
    waiting = asked.played.submit()
    row = asked.get(f"{ROOT}/apps/{waiting.id}")["app"]
    assert "not yet activated" in row["diagnostics"]
    assert "AM Resource Request = <memory:1024, vCores:1>" in row["diagnostics"]
    root = asked.get(f"{ROOT}/scheduler")["scheduler"]["schedulerInfo"]
    assert root["queues"]["queue"][1]["numPendingApplications"] == 1


# --- changes ----------------------------------------------------------------------------------


def test_a_finished_application_whose_master_goes_is_finishing():
    asked = Asked()
    asked.played.node()
    app, _ = asked.played.running()
    asked.played.bye(app)
    assert asked.get(f"{ROOT}/apps/{APP}/state") == {"state": "FINISHING"}
    assert asked.get(f"{ROOT}/apps/{APP}")["app"]["state"] == "FINISHED"
    asked.played.beat("n1:1", app.attempts[0].container)
    assert asked.get(f"{ROOT}/apps/{APP}/state") == {"state": "FINISHED"}


@pytest.mark.parametrize("then", [None, 0])
def test_a_priority_changes_who_is_served_first_and_that_of_the_submission_is_only_shown(then):
    asked = Asked()
    asked.played.node(slots=2)
    _first, second = asked.played.submit("production"), asked.played.submit("production")
    asked.ask("PUT", f"{ROOT}/apps/{second.id}/priority", {"priority": 3})
    if then is not None:
        asked.ask("PUT", f"{ROOT}/apps/{second.id}/priority", {"priority": then})
        assert asked.get(f"{ROOT}/apps/{second.id}/priority") == {"priority": then}
    asked.played.manager.actor.scheduler.queues["production"].am_mib = 4096
    asked.played.manager.actor.scheduler.activate(asked.played.manager.actor.scheduler.queues["production"])
    (launch,) = asked.played.beat().masters
    assert launch.application == second.id


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [("state", {"state": "RUNNING"}, None, 400), ("state", b"{", None, 400),
     ("state", b"\xff\xfe", None, 400), ("state", {}, None, 400), ("state", {"state": "KILLED"}, [], 503),
     ("state", {"state": "KILLED"}, [(b"content-type", b"text/plain")], 503),
     ("priority", b"[" * 100_000, None, 400), ("queue", {"queue": 7}, None, 400),
     ("state", b'{"state":"' + b"K" * (2 << 20) + b'"}', None, 413)],
)  # fmt: skip
def test_what_a_change_refuses(path, body, headers, status):
    asked = Asked()
    app = asked.played.submit()
    assert refused(asked.ask("PUT", f"{ROOT}/apps/{APP}/{path}", body, headers))[0] == status
    assert (app.state, app.queue, app.actor.priority) == ("ACCEPTED", "research", 0)


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", f"/apps/{APP}"), ("POST", f"/apps/{APP}/state"), ("PUT", "/metrics"),
     ("GET", "/apps/new-application")],
)  # fmt: skip
def test_methods_that_are_not_offered(method, path):
    asked = Asked()
    asked.played.submit()
    assert refused(asked.ask(method, ROOT + path))[:2] == (503, "WebApplicationException")
    asked = Asked("3.5")
    asked.played.submit()
    assert refused(asked.ask(method, ROOT + path))[:2] == (503, "NotAllowedException")


# --- submission -------------------------------------------------------------------------------


def context(application: str, **more: Any) -> dict[str, Any]:
    return {
        "application-id": application,
        "application-name": "wordcount",
        "application-type": "MAPREDUCE",
        "queue": "research",
        "priority": 1,
        "application-tags": {"tag": ["Deadline:7", "a"]},
        "resource": {"memory": 1024, "vCores": 1},
        "am-container-spec": {
            "commands": {"command": "run"},
            "environment": {"entry": [{"key": "X"}, {"key": "YARN_EMULATOR_JOB", "value": '{"k":1}'}]},
        },
    } | more


def submitted(asked: Asked, **more: Any) -> Reply:
    given = json.loads(asked.ask("POST", f"{ROOT}/apps/new-application?user.name=ann").body)
    return asked.ask("POST", f"{ROOT}/apps?user.name=ann", context(given["application-id"], **more))


def test_forms_that_mean_the_same():
    asked = Asked()
    one = {"environment": {"entry": {"key": "YARN_EMULATOR_JOB", "value": '{"k":2}'}}}
    assert submitted(asked, **{"am-container-spec": one, "application-tags": "b, C"}).status == 202
    app = asked.played.manager.applications[APP]
    assert (bytes(app.submission.job), app.submission.tags) == (b'{"k":2}', ("b", "c"))


@pytest.mark.parametrize(
    "more",
    [{"application-id": ""}, {"application-id": "application_1_1"}, {"application-id": 5},
     {"queue": "nobody"}, {"resource": {"memory": 0, "vCores": 1}},
     {"resource": {"memory": 1 << 40, "vCores": 1}}, {"application-tags": [f"t{at}" for at in range(11)]},
     {"application-tags": ["x" * 101]}, {"application-tags": ["ü"]},
     {"am-container-spec": {"environment": {"entry": [{"key": "YARN_EMULATOR_JOB", "value": "{"}]}}}],
)  # fmt: skip
def test_what_a_submission_refuses(more):
    asked = Asked()
    asked.played.node()
    assert refused(submitted(asked, **more))[:2] == (400, "BadRequestException")
    assert asked.played.manager.applications == {}


# --- configuration ----------------------------------------------------------------------------


def change(asked: Asked, queue: str, *pairs: tuple[str, str], kind: str = "xml") -> Reply:
    if kind == "json":
        rows = [{"key": key, "value": value} for key, value in pairs]
        body = json.dumps({"update-queue": {"queue-name": queue, "params": {"entry": rows}}})
    else:
        entries = "".join(f"<entry><key>{key}</key><value>{value}</value></entry>" for key, value in pairs)
        body = (
            f"<sched-conf><update-queue><queue-name>{queue}</queue-name><params>{entries}</params>"
            "</update-queue></sched-conf>"
        )
    headers = [(b"content-type", f"application/{kind}".encode())]
    return asked.ask("PUT", f"{ROOT}/scheduler-conf", body.encode(), headers)


@pytest.mark.parametrize(
    ("queue", "pairs"),
    [("root.nobody", [("maximum-capacity", "5")]), ("research", [("maximum-capacity", "5")]),
     ("root.research", [("maximum-capacity", "4")]), ("root.research", [("maximum-capacity", "101")]),
     ("root.research", [("maximum-capacity", "much")]), ("root.research", [("maximum-capacity", "nan")]),
     ("root.research", [("capacity", "6")]),
     ("root.research", [("maximum-capacity", "50"), ("capacity", "x")]), ("root.research", [])],
)  # fmt: skip
def test_a_change_is_made_wholly_or_not_at_all(queue, pairs):
    asked = Asked()
    before = dict(asked.site.scheduler_conf.keys)
    assert refused(change(asked, queue, *pairs))[0] == 400
    assert asked.site.scheduler_conf.keys == before
    assert asked.played.manager.actor.scheduler.queues["research"].config.maximum_ratio == 1.0


DOCTYPE = (
    b'<!DOCTYPE x [<!ENTITY a "50">]><sched-conf><update-queue><queue-name>root.research</queue-name><params>'
    b"<entry><key>maximum-capacity</key><value>&a;</value></entry></params></update-queue></sched-conf>"
)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (DOCTYPE, "application/xml", 400),
        (b"<sched-conf>", "application/xml", 400),
        (b"<sched-conf><remove-queue>root.research</remove-queue></sched-conf>", "application/xml", 400),
        (b"<other/>", "application/xml", 400),
        (b"", "application/xml", 400),
        (b"[]", "application/json", 400),
        (b'{"update-queue":7}', "application/json", 400),
        (b'{"update-queue":{"queue-name":"root.research","params":{"entry":[{"key":1}]}}}',
         "application/json", 400),
        (b'{"update-queue":{"queue-name":"root.research","params":7}}', "application/json", 400),
        (b"x", "text/plain", 503),
    ],
)  # fmt: skip
def test_a_change_that_cannot_be_read(body, kind, status):
    asked = Asked()
    headers = [(b"content-type", kind.encode())]
    assert refused(asked.ask("PUT", f"{ROOT}/scheduler-conf", body, headers))[0] == status


def test_an_immutable_store_says_so():
    asked = Asked(mutable=False)
    assert refused(asked.ask("GET", f"{ROOT}/scheduler-conf"))[0] == 400
    assert refused(change(asked, "root.research", ("maximum-capacity", "20")))[0] == 400


def master_web() -> Web:
    web = Web()

    def echo(request: WebRequest) -> Reply:
        names = sorted(key.decode() for key, _ in request.headers)
        told = [request.method, request.path, request.raw_query.decode(), request.header("cookie"), names]
        return Reply(200, json.dumps([*told, request.body.decode()]).encode())

    web.add("GET PUT", "/ws/{rest:path}", echo)
    return web


def test_the_proxy_calls_a_master_of_this_process_directly():
    asked = Asked()
    asked.played.node()
    asked.played.running()
    asked.site.proxy.local["http://am"] = master_web()
    headers = [(b"accept", b"application/json"), (b"content-type", b"application/json"), (b"x-secret", b"1")]
    reply = asked.ask("PUT", f"/proxy/{APP}/ws/v1/a%2Fb?user.name=ann&x=1", b"{}", headers)
    method, path, query, cookie, names, body = json.loads(reply.body)
    assert (method, path, query) == ("PUT", "/ws/v1/a%2Fb", "user.name=ann&x=1")
    assert (cookie, names, body) == ("proxy-user=ann", ["accept", "content-type", "cookie"], "{}")


def test_the_proxy_redirects_where_no_master_runs():
    asked = Asked()
    app = asked.played.submit()
    reply = asked.ask("GET", f"/proxy/{app.id}/ws/v1/mapreduce/info")
    assert (reply.status, dict(reply.headers)["Location"]) == (302, f"{URL}/cluster/app/{app.id}")
    assert b"ACCEPTED" in asked.ask("GET", f"/cluster/app/{app.id}").body
    assert asked.ask("POST", f"/proxy/{app.id}/ws").status == 405
    assert asked.ask("DELETE", f"/proxy/{app.id}/ws").status == 405
    assert asked.ask("GET", "/proxy/application_1_1/ws").status == 404


def test_a_page_shows_what_was_submitted_as_text():
    asked = Asked()
    app = asked.played.submit(name="<script>x</script>")
    assert b"<script>" not in asked.ask("GET", f"/cluster/app/{app.id}").body


PARTS = st.one_of(
    st.sampled_from(
        ["ws", "v1", "cluster", "apps", APP, "state", "appattempts", "proxy", "conf", "nodes", "..", ""]
    ),
    st.text(max_size=12),
)


@given(
    st.sampled_from(["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH"]),
    st.lists(PARTS, max_size=8),
    st.text(max_size=30),
    st.binary(max_size=60),
    st.booleans(),
)
@settings(max_examples=examples(400))
def test_no_request_ends_in_a_failure(method, parts, query, body, rooted):
    asked = Asked()
    asked.played.submit()
    path = (ROOT if rooted else "") + "/" + "/".join(parts)
    reply = asked.site.web.answer(
        WebRequest(method, path, query.encode("utf-8", "replace"), [*JSON_TYPE], body, path)
    )
    assert asyncio.run(reply).status in (200, 202, 302, 400, 403, 404, 405, 413, 503)  # 503: a wrong method
