"""Every address of the API, on the view of a virtual run in the midst of its suspensions."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.unit.service.conftest import TOKEN
from tests.unit.service.played import busy, last, views, whole
from yarnctl.daemon.view.published import LoopStatus, View
from yarnctl.deciding.lifecycle import OPEN
from yarnctl.deciding.loss_budget import BudgetStanding
from yarnctl.deciding.model import Change
from yarnctl.deciding.reasons.demand import NotModelled
from yarnctl.deciding.reasons.eligibility import NoStreamingReducer, RunnerSays
from yarnctl.deciding.reasons.modes import (
    AskedToStop,
    ClusterFault,
    HdfsUnwritable,
    LockHeldElsewhere,
    LoopFailed,
    ManagerSettling,
    Paused,
)
from yarnctl.deciding.records import Decision
from yarnctl.journal.explaining.explain import explain, in_words
from yarnctl.journal.rendering import text
from yarnctl.service.answers import from_view
from yarnctl.service.answers.foretold import UNKNOWN
from yarnctl.service.answers.from_view import VERSION
from yarnctl.service.routes import lists

RESEARCH, PRODUCTION = "application_1_000001", "application_1_000002"


def test_the_run_is_worth_looking_at():
    view = busy()
    assert len({entry.state for entry in view.entries}) > 1
    assert any(entry.keys_done for entry in view.entries)
    assert len(view.decisions) > 1
    assert view.refusals


# --- reclaim lists ------------------------------------------------------------------------------------


def test_reclaim_lists_are_the_ledgers(served):
    page = served.get("/v1/reclaims")
    [each] = page["items"]
    shown = [(entry["order"], entry["state"]) for entry in each["entries"]]
    assert shown == [(entry.order, entry.state) for entry in busy().entries]
    assert (each["application"], each["queue"], each["role"]) == (PRODUCTION, "production", "preempting")
    assert each["expected"] == sum(e.serves for e in busy().entries if e.state in OPEN)
    assert page["now_ms"] == busy().now_ms


def test_an_entry_tells_its_work_and_its_instants(served):
    [each] = served.get("/v1/reclaims?state=checkpointed")["items"]
    assert {entry["state"] for entry in each["entries"]} == {"checkpointed"}
    entry = each["entries"][0]
    assert entry["keys_done"] > 0
    assert entry["remaining_ms"] > 0
    assert entry["ordered_at_ms"] < entry["checkpointed_at_ms"] <= busy().now_ms
    assert (entry["freed_at_ms"], entry["settled_at_ms"]) == (None, None)


def test_filters_of_reclaim_lists(served):
    asked = {entry.ordered_at_ms for entry in busy().entries}
    assert served.get(f"/v1/reclaims?victim={RESEARCH}")["total"] == 1
    assert served.get(f"/v1/reclaims?victim={PRODUCTION}")["total"] == 0
    assert served.get("/v1/reclaims?queue=production")["total"] == 1
    assert served.get("/v1/reclaims?queue=research")["total"] == 0
    assert served.get(f"/v1/reclaims?since_ms={max(asked) + 1}")["total"] == 0
    assert served.get(f"/v1/reclaims?until_ms={min(asked)}")["total"] == 0
    assert served.get(f"/v1/reclaims?since_ms={min(asked)}&until_ms={max(asked) + 1}")["total"] == 1


def test_who_waits_in_vain_has_an_empty_list(served):
    waiting = next(view for view in views() if view.snapshot is not None and not view.decisions)
    served.view = waiting
    [each] = served.get("/v1/reclaims")["items"]
    assert (each["application"], each["entries"]) == (PRODUCTION, [])
    assert each["pending"] > 0


def test_what_has_retired_is_shown_on_request(served):
    served.view = last()
    assert served.get("/v1/reclaims")["total"] == 0
    [each] = served.get("/v1/reclaims?retired=true")["items"]
    assert {entry["state"] for entry in each["entries"]} == {"granted"}
    assert all(entry["retired"] and entry["keys_done"] for entry in each["entries"])
    assert all(entry["receiver_application"] == PRODUCTION for entry in each["entries"])
    one = served.get(f"/v1/reclaims/{PRODUCTION}")
    assert one["entries"] == each["entries"]


def test_one_reclaim_list(served):
    one = served.get(f"/v1/reclaims/{PRODUCTION}?retired=false")
    assert one == served.get("/v1/reclaims")["items"][0]
    assert served.get(f"/v1/reclaims/{RESEARCH}")["entries"] == []
    error = served.get("/v1/reclaims/application_9", 404)["error"]
    assert error["code"] == "not-found"
    assert "/v1/reclaims" in error["next"]


# --- decisions ----------------------------------------------------------------------------------------


def test_decisions_newest_first(served):
    page = served.get("/v1/decisions")
    numbers = [each["id"] for each in page["items"]]
    assert numbers == sorted(numbers, reverse=True) == [d.record.number for d in busy().decisions]
    assert page["total"] == len(numbers)
    newest = page["items"][0]
    assert newest["victims"] == [RESEARCH]
    assert sum(newest["states"].values()) == newest["chosen"] <= newest["shortfall"]


def test_a_decision_tells_all_that_was_written_about_it(served):
    decided = busy().decisions[0]
    detail = served.get(f"/v1/decisions/{decided.record.number}")
    assert [pick["order"] for pick in detail["chosen"]] == list(decided.record.orders)
    assert [pick["state"] for pick in detail["chosen"]] == [story.state for story in decided.orders]
    assert [each["why"] for each in detail["refused_tasks"]] == [r.why for r in decided.record.refused_tasks]
    assert all(each["meaning"] for each in detail["refused_tasks"])
    assert (detail["job_policy"], detail["task_policy"]) == ("MR", "SRT")
    told = detail["explanation"]["orders"]
    assert {each["state"] for each in told} == {"suspending", "checkpointed"}
    assert [(each["order_verb"], each["sent"]) for each in told] == [("suspend", "accepted")] * len(told)


def test_the_explanation_is_the_journals(served):
    decided = busy().decisions[0]
    told = served.get(f"/v1/decisions/{decided.record.number}")["explanation"]
    records, number = whole()[1], decided.record.number
    begin = next(i for i, one in enumerate(records) if isinstance(one, Decision) and one.number == number)
    opened = [story.order for story in decided.orders]
    about = [one for one in records[begin:] if getattr(one, "order", "") in opened]
    seen = [one for one in about if getattr(one, "at_ms", 0) <= busy().now_ms]
    found = explain([records[0], decided.record, *seen], PRODUCTION)
    assert told["text"] == in_words(found)
    assert {name: value for name, value in told.items() if name != "text"} == json.loads(
        msgspec.json.encode(found)
    )
    assert any("chosen   job first by MR" in line for line in told["text"])


@pytest.mark.parametrize(
    ("query", "found"),
    [(f"application={PRODUCTION}", True), (f"application={RESEARCH}", False), ("queue=production", True),
     (f"victim={RESEARCH}", True), ("victim=x", False), ("state=suspending", True), ("state=lost", False)],
)  # fmt: skip
def test_filters_of_decisions(served, query, found):
    assert bool(served.get(f"/v1/decisions?{query}")["total"]) is found


def test_a_decision_that_is_not_known_is_in_the_journal(served):
    error = served.get("/v1/decisions/4711", 404)["error"]
    assert "explain --journal" in error["next"]


def test_an_explanation_of_any_id(served):
    order = busy().entries[0]
    for name in (order.order, order.attempt, order.container, order.victim, order.requester):
        told = served.get(f"/v1/explanations/{name}")
        assert told["id"] == name
        assert order.order in "\n".join(told["text"])
    served.get("/v1/explanations/nothing", 404)


def test_refusals_say_why_nothing_is_done(served):
    [each] = served.get("/v1/refusals")["items"]
    assert each["refused_jobs"][0]["meaning"] == "the job has the highest allowed number of open orders"
    assert served.get("/v1/refusals?queue=research")["total"] == 0


@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/checkpoints", "/v1/applications", "/v1/occupancy"])
def test_pages_together_are_the_whole_list(served, path):
    served.view = next(view for view in reversed(views()) if view.now_ms >= busy().now_ms)
    whole = served.get(path)["items"]
    if path == "/v1/applications" and not whole:
        served.view = busy()
        whole = served.get(path)["items"]
    found, cursor = [], ""
    for _ in range(len(whole) + 1):
        page = served.get(f"{path}?limit=1{cursor}")
        found += page["items"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert found == whole
    assert len(whole) > 1


def test_a_new_decision_neither_repeats_nor_hides_one_between_two_pages(served):
    served.view = first = next(view for view in views() if len(view.decisions) == 1)
    newest = served.get("/v1/decisions?limit=1")["items"][0]["id"]
    served.view = last()
    assert len(last().decisions) > len(first.decisions)
    assert served.get(f"/v1/decisions?cursor={newest}")["items"] == []


def test_the_snapshot_adds_up(served):
    seen = served.get("/v1/snapshot")
    assert seen["cluster"] == {"epoch": "virtual-1", "node_count": 3, "capabilities": []}
    used = sum(seen[name]["used"]["memory_mib"] for name in ("preempting", "preemptable", "other"))
    assert used + seen["free"]["memory_mib"] == seen["total"]["memory_mib"]
    assert {queue["queue"]: queue["role"] for queue in seen["queues"]} == {
        "production": "preempting",
        "research": "preemptable",
    }
    assert seen["open_orders"] == sum(1 for entry in busy().entries if entry.state in OPEN)


def test_applications(served):
    by_name = {each["application"]: each for each in served.get("/v1/applications")["items"]}
    assert by_name[RESEARCH]["suspending"] == by_name[PRODUCTION]["expected"] > 0
    assert [a["application"] for a in served.get("/v1/applications?waiting=true")["items"]] == [PRODUCTION]
    assert [a["application"] for a in served.get("/v1/applications?queue=research")["items"]] == [RESEARCH]
    assert served.get("/v1/applications?user=nobody")["total"] == 0


def test_checkpoints(served):
    served.view = last()
    items = served.get("/v1/checkpoints")["items"]
    assert len(items) == len(last().ended)
    assert all(each["application"] == RESEARCH and each["keys_done"] for each in items)
    first = items[0]
    assert served.get(f"/v1/checkpoints?attempt={first['attempt']}")["items"][-1]["generation"] == 1
    assert served.get(f"/v1/checkpoints?application={PRODUCTION}")["total"] == 0


def test_before_the_first_tick_there_is_nothing_and_that_is_said(served):
    served.view = View(version=0, now_ms=0, loop=LoopStatus())
    for path in ("reclaims", "decisions", "checkpoints", "applications", "refusals", "occupancy"):
        assert served.get(f"/v1/{path}")["items"] == []
    seen = served.get("/v1/snapshot")
    assert (seen["cluster"], seen["total"], seen["loop"]["loop_state"]) == (None, None, "starting")
    assert "yarnctl_ticks_total 0.0" in served.answer("/metrics").text
    assert served.get("/readyz", 503)["error"]["code"] == "no-tick-yet"
    assert served.get("/healthz")["status"] == "ok"


# --- watchers -----------------------------------------------------------------------------------------


def with_loop(view, **changes):
    return msgspec.structs.replace(view, loop=msgspec.structs.replace(view.loop, **changes))


def test_healthy_until_the_loop_is_stuck_or_has_stopped(served):
    assert served.get("/healthz")["age_ms"] == 0
    served.late_ms = 60_001
    assert served.get("/healthz", 503)["error"]["code"] == "stuck"
    served.late_ms = 0
    served.view = with_loop(busy(), state="stopped", why=(AskedToStop(),))
    assert "on request" in served.get("/healthz", 503)["error"]["message"]
    served.view = with_loop(busy(), reachable=False)
    assert served.get("/healthz")["status"] == "ok"


def test_why_the_loop_does_not_run_is_told_by_code_and_in_words(served):
    away = ClusterFault("connection refused")
    served.view = with_loop(busy(), state="waiting", reachable=False, why=(LockHeldElsewhere(), away))
    told = served.get("/v1/snapshot")["loop"]
    assert told["why"] == "another yarnctl holds the lock; connection refused"
    assert told["reason"] == {"code": "lock-held-elsewhere", "text": "another yarnctl holds the lock"}
    served.view = with_loop(busy(), state="running", why=())
    assert served.get("/v1/snapshot")["loop"]["reason"] is None


def test_ready_while_the_cluster_answers(served):
    assert served.get("/readyz")["status"] == "ready"
    secret = "/user/alice/secret refused"
    away, store = ClusterFault(secret), HdfsUnwritable(secret)
    for loop, found, message in (
        ({"reachable": False, "problem": away}, "cluster-unreachable", ": cluster-fault"),
        ({"reachable": False, "why": (Paused(secret),)}, "cluster-unreachable", ": paused"),
        ({"reachable": False, "problem": ManagerSettling()}, "cluster-unreachable", "nodes still changes"),
        ({"store_problem": store}, "store-unavailable", "HDFS cannot be written"),
        ({"ticks": 0, "why": (away,)}, "no-tick-yet", ": running: cluster-fault"),
    ):
        served.view = with_loop(busy(), last_error=secret, **loop)
        error = served.get("/readyz", 503)["error"]
        assert (error["code"], error["message"].endswith(message)) == (found, True), error
        assert "alice" not in served.answer("/readyz").text
    served.view = with_loop(busy(), state="stopped", why=(LoopFailed("KeyError", secret),))
    assert served.get("/healthz", 503)["error"]["message"] == "the loop has stopped: loop-failed"


def test_why_single_tasks_are_left_alone_is_shown(served):
    number = RESEARCH.removeprefix("application_")
    attempt = f"attempt_{number}_r_000077_0"
    served.view = msgspec.structs.replace(busy(), left_alone={attempt: RunnerSays("it writes side files")})
    items = served.get("/v1/applications")["items"]
    (reasons,) = (each["left_alone_reasons"] for each in items if each["application"] == RESEARCH)
    assert reasons == {attempt: {"code": "runner-says", "text": "it writes side files"}}
    rows = {each["application"]: each["left_alone"] for each in items}
    assert rows[RESEARCH] == {attempt: "it writes side files"}
    assert not any(told for name, told in rows.items() if name != RESEARCH)
    line = f"now: {attempt} cannot be suspended: its task runner reports: 'it writes side files'"
    for wanted in (RESEARCH, attempt):
        assert line in served.get(f"/v1/explanations/{wanted}")["rendered"]
    assert line not in served.get(f"/v1/explanations/{PRODUCTION}")["rendered"]


def test_metrics_can_be_parsed_and_agree_with_the_view(served):
    from prometheus_client.parser import text_string_to_metric_families

    served.view = last()
    answer = served.answer("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    values = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert values["yarnctl_decisions_total",] == len(last().decisions)
    assert values["yarnctl_orders_ended_total", ("state", "granted")] == len(last().ended)
    assert values["yarnctl_orders_ended_total", ("state", "given_up")] == 0
    assert values["yarnctl_actions_total", ("action", "suspend"), ("outcome", "accepted")] == 6
    assert values["yarnctl_checkpoint_seconds_count",] == len(last().checkpoints)
    assert values["yarnctl_loop_state", ("state", "running")] == 1
    assert values["yarnctl_build_info", ("version", VERSION)] == 1
    seen = from_view.snapshot(last()).queues
    for each in seen:
        labels = ("queue", each.queue), ("role", each.role)
        assert values["yarnctl_queue_pending_containers", *labels] == each.pending
    reporting = last().reporting
    assert reporting is not None
    (loss,) = reporting.report(0).losses
    for name, mib_ms in (("kept", loss.kept_mib_ms), ("lost", loss.lost_mib_ms)):
        assert (
            values[f"yarnctl_{name}_work_byte_seconds_total", ("queue", loss.queue)] == mib_ms * 2**20 / 1000
        )
    assert values["yarnctl_production_wait_seconds_count", ("queue", "production")] == 1
    assert RESEARCH not in answer.text


def test_metrics_have_budgets_of_queues_and_never_of_users(served):
    queue = BudgetStanding(
        "queue", "root.research", "ann", 0.02, 3_600_000, 1, 1_024 * 9_000, 72_000, 3, 4_000
    )
    budgets = [queue, queue._replace(kind="user", name="ann"), queue._replace(kind="job", name=RESEARCH)]
    status = msgspec.structs.replace(
        last().loop, leads=True, changes=(Change("queue", "root.research", "1", "0.3"),)
    )
    served.view = msgspec.structs.replace(last(), budgets=tuple(budgets), loop=status)
    lines = served.answer("/metrics").text.splitlines()
    assert [each for each in lines if each.startswith("yarnctl_budget_")] == [
        'yarnctl_budget_may_lose_ratio{queue="root.research"} 0.02',
        'yarnctl_budget_lost_seconds{queue="root.research"} 72.0',
        'yarnctl_budget_left_seconds{queue="root.research"} 9.0',
    ]
    assert 'yarnctl_lowered_settings{kind="queue"} 1.0' in lines
    assert "yarnctl_leader 1.0" in lines


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [("/v1/decisions?quue=x", 422, "unknown-parameter"), ("/v1/snapshot?x=1", 422, "unknown-parameter"),
     ("/v1/decisions?limit=0", 422, "invalid-parameter"),
     ("/v1/decisions?limit=501", 422, "invalid-parameter"),
     ("/v1/decisions?cursor=x", 422, "invalid-parameter"),
     ("/v1/decisions?state=nice", 422, "invalid-parameter"), ("/v1/decisions/x", 422, "invalid-parameter"),
     ("/v1/nothing", 404, "not-found")],
)  # fmt: skip
def test_bad_requests_have_one_body(served, path, status, code):
    body = served.get(path, status)
    assert list(body) == ["error"]
    assert sorted(body["error"]) == ["code", "message", "next"]
    assert body["error"]["code"] == code
    assert body["error"]["next"]


def test_other_methods(served):
    answer = served.answer("/v1/decisions", "DELETE")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method-not-allowed")
    assert answer.headers["allow"] == "GET"
    answer = served.answer("/v1/admissions/adm-a-1", "PUT")
    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET")


def test_a_fault_of_ours_is_told_in_the_same_body(served):
    served.view = None  # what a bug might do
    error = served.get("/v1/snapshot", 500)["error"]
    assert error["code"] == "internal"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8188", "[::2]", ""])
def test_foreign_host_names_see_nothing(served, host):
    answer = served.answer("/v1/snapshot", headers={"Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "bad-host")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:8188"])
def test_loopback_names_are_answered(served, host):
    assert served.answer("/v1/snapshot", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", [{}, {"Origin": "http://evil.example"}], ids=["answered", "rejected"])
@pytest.mark.parametrize("path", ["/", "/page.js", "/v1/snapshot", "/nothing", "/openapi.json"])
def test_headers_of_every_answer(served, path, origin):
    headers = served.answer(path, headers=origin).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert not [name for name in headers if name.lower().startswith("access-control")]


# --- writes -------------------------------------------------------------------------------------------

BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_with_the_token_the_loop_is_paused_and_continued(served):
    answer = served.answer("/v1/loop/pause", "POST", headers=BEARER, json={"why": "maintenance"})
    assert (answer.status_code, answer.json()["accepted"]) == (202, "pause")
    assert served.answer("/v1/loop/continue", "POST", headers=BEARER).status_code == 202
    assert served.answer("/v1/loop/pause", "POST", headers=BEARER).status_code == 202
    assert served.control.orders == ["pause: maintenance", "continue", "pause: paused by request"]


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}",
     TOKEN],
)  # fmt: skip
@pytest.mark.parametrize("path", ["pause", "continue"])
def test_without_the_token_nothing_happens(served, path, header):
    answer = served.answer(f"/v1/loop/{path}", "POST", headers={"Authorization": header})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text
    assert served.control.orders == []


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer None", f"Bearer {TOKEN}"])
def test_a_daemon_without_token_takes_no_orders_at_all(served_without_token, header):
    for path in ("pause", "continue"):
        answer = served_without_token.answer(f"/v1/loop/{path}", "POST", headers={"Authorization": header})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "writes-off")
    assert served_without_token.control.orders == []


@pytest.mark.parametrize(
    "body", [b"{", b"\xff", b'{"why": 1}', b'{"x": 1}', b'{"why": "' + b"x" * 201 + b'"}']
)
def test_a_body_that_is_none_changes_nothing(served, body):
    headers = {**BEARER, "Content-Type": "application/json"}
    answer = served.answer("/v1/loop/pause", "POST", headers=headers, data=body)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["next"]
    assert served.control.orders == []


def test_a_body_without_end_is_not_read(served):
    def pieces():
        for _ in range(64):
            yield b"x" * 1024

    answer = served.answer("/v1/loop/pause", "POST", headers=BEARER, data=pieces())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body-too-large")
    assert served.control.orders == []


def test_an_id_may_be_given_by_its_end(served):
    entry = busy().entries[0]
    for full in (entry.attempt, entry.container, entry.victim, entry.requester):
        end = full.partition("_")[2].partition("_")[2]
        for short in (f"1_{end}", f"…1_{end}", f"...1_{end}"):
            assert served.get(f"/v1/explanations/{short}") == served.get(f"/v1/explanations/{full}")
    short = entry.requester.removeprefix("application_")
    assert served.get(f"/v1/reclaims/{short}") == served.get(f"/v1/reclaims/{entry.requester}")
    for path, name in (
        ("reclaims", "victim"),
        ("decisions", "application"),
        ("decisions", "victim"),
        ("refusals", "application"),
        ("checkpoints", "application"),
    ):
        whole = (
            entry.requester if path in ("refusals", "decisions") and name == "application" else entry.victim
        )
        short = whole.removeprefix("application_")
        assert served.get(f"/v1/{path}?{name}={short}") == served.get(f"/v1/{path}?{name}={whole}")


def test_an_end_that_many_ids_have_is_refused(served, monkeypatch):
    known = [f"attempt_1_000001_{kind}_000001_0" for kind in "rm"]
    monkeypatch.setattr(lists, "known_ids", lambda view: iter(known))
    error = served.get("/v1/explanations/000001_0", 404)["error"]
    assert error["message"] == f"000001_0 is ambiguous: {known[1]}, {known[0]}"
    assert error["next"] == "give the whole id"
    assert (
        served.get("/v1/explanations/r_000001_0", 404)["error"]["message"]
        == "r_000001_0 does not exist or is no longer kept"
    )
    assert (
        served.get("/v1/explanations/7_000001_0", 404)["error"]["message"]
        == "7_000001_0 does not exist or is no longer kept"
    )


def test_an_application_that_is_left_alone_says_why(served):
    view = busy()
    assert view.snapshot is not None
    java_job = NoStreamingReducer(is_streaming=False, key="stream.reduce.streamprocessor")
    why = text(java_job)
    java = msgspec.structs.replace(
        view.snapshot.applications[0], application="application_1_000777", queue="research", user="carol",
        runner=False, why_not=java_job, requests=(),
    )  # fmt: skip
    listed = msgspec.structs.replace(view.snapshot, applications=(*view.snapshot.applications, java))
    served.view = msgspec.structs.replace(view, snapshot=listed)
    (shown,) = [each for each in served.get("/v1/applications")["items"] if each["user"] == "carol"]
    assert (shown["why_not"], shown["reason"]) == (why, {"code": "no-streaming-reducer", "text": why})
    for name in ("application_1_000777", "job_1_000777", "1_000777"):
        told = served.get(f"/v1/explanations/{name}")
        assert (told["id"], told["roles"]) == ("application_1_000777", ["application"])
        held = f"holds {java.containers} containers"
        assert told["rendered"] == [
            f"now: user carol, queue research (preemptable), {held}; cannot be suspended: {why}",
            f"now: why: {UNKNOWN}",
        ]
        lines = [f"  {line}" for line in told["rendered"]]
        assert told["text"] == ["application_1_000777 (application)", *lines]


def test_applications_left_out_requests_are_explained(served):
    view = busy()
    assert view.snapshot is not None
    listed = msgspec.structs.replace(view.snapshot, left_out={RESEARCH: NotModelled(resources=("gpu",))})
    served.view = msgspec.structs.replace(view, snapshot=listed)
    shown = {each["application"]: each["left_out"] for each in served.get("/v1/applications")["items"]}
    sentence = "no container is freed for some requests; yarnctl does not model resource types: gpu"
    assert shown == {RESEARCH: {"code": "not-modelled", "text": sentence}, PRODUCTION: None}


def test_a_decisions_number_is_explained(served):
    decided = busy().decisions[0]
    told = served.get(f"/v1/explanations/{decided.record.number}")
    assert told["roles"] == ["decision"]
    assert {each["order"] for each in told["orders"]} == set(decided.record.orders)
    served.get("/v1/explanations/4711", 404)
