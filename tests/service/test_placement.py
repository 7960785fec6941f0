"""Placement over the API: options or an application's name in, the plan with what it refused out; runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests import http_client
from tests.service.test_admissions import BEARER, Daemon
from tests.unit.daemon.at_the_desk import MINUTE, AtTheDesk, Past
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.deciding.admission.records import Finished
from yarnctl.service.security.tokens import Caller, Tokens

POOLS = (
    PoolSettings(name="fast", queue="root.fast", kinds=("spark", "flink"), capacity=4, cost_mtokens=2000),
    PoolSettings(name="slow", queue="root.slow", kinds=("mapreduce",), capacity=6),
)
SPARK = {
    "kind": "spark",
    "containers": 3,
    "upper_ms": 3 * MINUTE,
    "settings": {"spark.executor.memory": "640m"},
}
HADOOP = {"kind": "mapreduce", "containers": 4, "upper_ms": 6 * MINUTE, "predicted_ms": 5 * MINUTE}
OPERATOR, ANN = "an operator's token", "the token of ann's"
WANTED: dict[str, Any] = {"name": "wordcount", "user": "ann", "deadline_ms": 20 * MINUTE}


def runs_at(daemon: Daemon) -> list[dict[str, Any]]:
    answer = http_client.get(f"{daemon.url}/v1/runs?application=wordcount", timeout=30)
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def until(done: Callable[[], bool], what: str) -> None:
    for _ in range(500):
        if done():
            return
        time.sleep(0.02)
    raise AssertionError(what)


@pytest.fixture
def placing() -> Iterator[Daemon]:
    past = Past()
    served = Daemon(there=AtTheDesk("orion", pools=POOLS, past=past))
    yield served
    served.stop()


def decided(daemon: Daemon, name: str) -> dict[str, Any]:
    return daemon.ask("GET", f"/{name}?wait_ms=5000", 200)


def test_ready_options_are_placed_and_the_plan_says_why(placing: Daemon) -> None:
    asked = placing.ask("POST", "", 202, json={**WANTED, "options": [SPARK, HADOOP]})
    found = decided(placing, asked["id"])
    plan = found["placement"]
    assert {name: plan[name] for name in ("verdict", "kind", "pool", "containers", "cost_mtokens")} == {
        "verdict": "admit",
        "kind": "spark",
        "pool": "fast",
        "containers": 3,
        "cost_mtokens": 1_080_000,
    }
    assert plan["finish_at_ms"] - plan["start_at_ms"] == 3 * MINUTE
    assert (plan["late_ratio"], plan["settings"]) == (None, {"spark.executor.memory": "640m"})
    assert plan["reason"] == {
        "code": "cheapest-in-time",
        "text": "spark with 3 containers is the cheapest option that meets the deadline: 1080 tokens",
    }
    (refused,) = plan["refused"]
    assert (refused["kind"], refused["containers"]) == ("mapreduce", 4)
    assert refused["reason"]["code"] == "costs-more-than-chosen"
    assert found["settings"] == {
        "spark.executor.instances": "2",
        "spark.dynamicAllocation.enabled": "false",
        "spark.yarn.queue": "root.fast",
        "spark.executor.memory": "640m",
    }
    assert (found["request"]["kind"], found["request"]["queue"]) == ("spark", "root.fast")
    (fast, slow) = placing.ask("GET", "", 200)["gate"]["pools"]
    assert [(each["name"], each["capacity"]) for each in (fast, slow)] == [("fast", 4), ("slow", 6)]
    assert [(held["admission"], held["containers"]) for held in fast["reserved"]] == [(asked["id"], 3)]


def test_an_application_by_its_name_is_predicted_from_the_runs_of_the_journal(placing: Daemon) -> None:
    there = placing.there
    for number in range(3):
        there.past.jobs[f"application_1_{number:04}"] = Finished(
            1, 3, 1, 3, 4, 1.0, met=True, elapsed_ms=60_000 + 1_000 * number
        )
        body = {**WANTED, "application": "wordcount", "features": {"input_mib": 64}, "options": [SPARK]}
        name = placing.ask("POST", "", 202, json=body)["id"]
        assert decided(placing, name)["state"] == "admitted"
        placing.held = True
        there.submit(there.book.admissions[name], f"application_1_{number:04}", queue="root.fast")
        there.go(3_000)
        there.yarn.end(f"application_1_{number:04}")
        there.go(30_000)
        placing.held = False
    until(lambda: len(runs_at(placing)) == 3, "the runs are published")
    by_name = {**WANTED, "application": "wordcount", "features": {"input_mib": 64}}
    found = decided(placing, placing.ask("POST", "", 202, json=by_name)["id"])
    assert (found["placement"]["kind"], found["placement"]["containers"]) == ("spark", 3)
    assert 60_000 <= found["placement"]["predicted_ms"] <= 66_000
    assert [run["kind"] for run in runs_at(placing)] == ["spark"] * 3
    placing.ask("POST", "", 409, json={**by_name, "features": {}})
    placing.ask("POST", "", 409, json={**by_name, "application": "grep"})


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [({}, 422, "set queue and containers, or options"), ({"options": []}, 422, "options"),
     ({"options": [SPARK] * 65}, 422, "options"), ({"options": [{**SPARK, "upper_ms": -1}]}, 422, "upper_ms"),
     ({"options": [{**SPARK, "upper_ms": True}]}, 422, "upper_ms"),
     ({"options": [{**SPARK, "color": "red"}]}, 422, "color"),
     ({"options": [{**SPARK, "kind": "tez"}]}, 422, "no pool accepts tez"),
     ({"options": [{**SPARK, "pool": "slow"}]}, 422, "pool slow does not exist or does not accept spark"),
     ({"application": "wordcount", "features": {"input_mib": "many"}}, 422, "input_mib"),
     ({"application": "wordcount", "features": {"input_mib": 1}}, 409, "no run is known")],
)  # fmt: skip
def test_what_is_no_request_to_be_placed_is_refused_by_name(
    placing: Daemon, more: dict[str, Any], status: int, said: str
) -> None:
    answer = http_client.post(
        f"{placing.url}/v1/admissions", json={**WANTED, **more}, headers=BEARER, timeout=30
    )
    assert answer.status_code == status, answer.text
    assert said in answer.text
    assert placing.there.book.admissions == {}


def test_a_budget_pays_nothing_where_deadlines_have_no_price(placing: Daemon) -> None:
    until(lambda: placing.view.admission is not None, "the gate is shown")
    asked = placing.ask("POST", "", 202, json={**WANTED, "options": [SPARK], "budget_mtokens": 5_000})
    found = decided(placing, asked["id"])
    assert (found["state"], found["request"]["budget_mtokens"]) == ("admitted", None)
    assert found["plan"]["price_mtokens"] is None


def test_a_quote_where_deadlines_have_no_price_is_refused_by_what_the_gate_decides(placing: Daemon) -> None:
    until(lambda: placing.view.admission is not None, "the gate is shown")
    wanted = {"name": "wordcount", "user": "ann", "queue": "root.fast", "containers": 3}
    answer = http_client.post(f"{placing.url}/v1/quotes", json=wanted, headers=BEARER, timeout=30)
    assert answer.status_code == 409
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == (
        "no-account",
        "deadlines have no price with --admission orion",
    )


def test_a_gate_that_places_nothing_says_so() -> None:
    served = Daemon()
    try:
        answer = served.ask("POST", "", 409, json={**WANTED, "options": [SPARK]})
        assert answer["error"]["code"] == "no-placement"
    finally:
        served.stop()


def test_a_submit_token_reads_amounts_and_no_names_of_what_others_reserve() -> None:
    tokens = Tokens(
        [
            (Caller("operator", "", frozenset({"operate"})), OPERATOR),
            (Caller("ann", "ann", frozenset({"submit"})), ANN),
        ]
    )
    served = Daemon(token=tokens, there=AtTheDesk("orion", pools=POOLS, past=Past()), open_reads=False)
    try:
        made = {}
        for user in ("ann", "bob"):
            body = {**WANTED, "user": user, "options": [{**HADOOP, "containers": 2}]}
            asked = http_client.post(
                f"{served.url}/v1/admissions", json=body, headers=bearer(OPERATOR), timeout=30
            ).json()
            made[user] = asked["id"]
        until(lambda: len(reserved(served, OPERATOR)) == 2, "both are placed")
        assert {each["admission"] for each in reserved(served, OPERATOR)} == set(made.values())
        shown = reserved(served, ANN)
        assert [each["containers"] for each in shown] == [2, 2]
        assert {each["admission"] for each in shown} == {made["ann"], None}
    finally:
        served.stop()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def reserved(daemon: Daemon, token: str) -> list[dict[str, Any]]:
    """Return what is reserved in the pool ``slow``, as a token reads it."""
    page = http_client.get(f"{daemon.url}/v1/admissions", headers=bearer(token), timeout=30).json()
    found: list[dict[str, Any]] = page["gate"]["pools"][1]["reserved"]
    return found
