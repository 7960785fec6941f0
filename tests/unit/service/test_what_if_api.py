"""``POST /v1/what-if`` and ``yarnctl what-if``: what the desk is asked, its answers, errors, and tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from fastapi import FastAPI

from tests import http_client
from tests.unit.service.played import busy
from yarnctl.api.what_if_answers import ChosenOut, FallenOut, SpanOut, WhatIfOut
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.questions.what_if_desk import Question, WhatIfDesk
from yarnctl.deciding.what_if.supposed import NewApplication
from yarnctl.errors import BadInput, Unreachable, YarnctlError
from yarnctl.service.answers.error_body import install
from yarnctl.service.app import make_app
from yarnctl.service.routes.questions import question_routes
from yarnctl.service.security.tokens import OPERATOR, Caller, Tokens
from yarnctl.service.serving import serve_in_thread
from yarnctl.units import Resources

ANSWER = WhatIfOut(
    at_ms=5,
    state_hash="ab" * 32,
    chosen=[
        ChosenOut(
            application="r1", attempt="a1", container="c1", node="n1", lever="suspend", requester="what-if",
            lost_ms=0, overhead_ms=5000,
        )
    ],
    starts=SpanOut(least_ms=1000, expected_ms=2000, most_ms=4000),
    complete=None,
    served=1,
    lost_ms=2500,
    overhead_ms=5000,
    deadlines=[
        FallenOut(application="r1", user="eve\x1b", deadline_at_ms=9, before_at_ms=8, after_at_ms=4009)
    ],
    waits="the queue is at its maximum",
)  # fmt: skip
NEW = NewApplication(
    queue="prod", user="what-if", containers=3, size=Resources(2048, 1), master_size=Resources(1024, 1)
)


class Desk(WhatIfDesk):
    """A desk that answers at once."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.problem: YarnctlError | None = None

    def ask(self, question: Question, wait_s: float = 0) -> WhatIfOut:
        self.asked.append(question)
        if self.problem is not None:
            raise self.problem
        return ANSWER


class Asked:
    """An app with this desk; ``url`` is its address."""

    def __init__(self, *, open_reads: bool) -> None:
        self.desk = Desk()
        operator = Caller(OPERATOR, "", frozenset({"operate"}))
        tokens = Tokens([(Caller("reads", "", frozenset({"read"})), "x" * 20), (operator, "y" * 20)])
        app = make_app(busy, token=tokens, open_reads=open_reads, what_if=self.desk)
        self.handle = serve_in_thread(app, token=tokens)
        self.url = self.handle.url

    def post(self, body: dict[str, Any], **headers: str) -> http_client.Response:
        return http_client.request(
            "POST", f"{self.url}/v1/what-if", data=json.dumps(body), timeout=30,
            headers={"Content-Type": "application/json", **headers},
        )  # fmt: skip


@pytest.fixture
def asked() -> Iterator[Asked]:
    served = Asked(open_reads=True)
    yield served
    served.handle.stop()


def test_question_reaches_the_desk_and_its_answer_comes_back(asked: Asked) -> None:
    body = {
        "application": {"queue": "prod", "containers": 3, "container_mib": 2048},
        "guarantees": {"etl": 0.4},
        "without_node": "n7:1",
    }
    answer = asked.post(body)
    assert answer.status_code == 200
    assert msgspec.json.decode(answer.content, type=WhatIfOut) == ANSWER
    assert asked.desk.asked == [Question(application=NEW, guarantees={"etl": 0.4}, node="n7:1")]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bad-question"),
        ({"guarantees": {"etl": 1.5}}, 422, "invalid-parameter"),
        ({"applications": {}}, 422, "unknown-parameter"),
        ({"application": {"queue": "prod", "containers": 0}}, 422, "invalid-parameter"),
        ({"application": {"queue": "prod", "containers": 20_001}}, 422, "invalid-parameter"),
    ],
)
def test_wrong_question_is_refused_before_the_loop(
    asked: Asked, body: dict[str, Any], status: int, code: str
) -> None:
    answer = asked.post(body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert not asked.desk.asked


@pytest.mark.parametrize(
    ("problem", "status", "words"),
    [
        (BadInput("queue", "no queue 'prud'", "did you mean prod?"), 400, "prod?"),
        (Unreachable("busy"), 503, "retry"),
    ],
)
def test_problems_of_the_desk_are_answers(
    asked: Asked, problem: YarnctlError, status: int, words: str
) -> None:
    asked.desk.problem = problem
    answer = asked.post({"guarantees": {"prud": 0.5}})
    assert answer.status_code == status
    assert words in answer.json()["error"]["next"]


def test_question_needs_a_token_where_reading_does() -> None:
    served = Asked(open_reads=False)
    try:
        assert served.post({"without_node": "n"}).status_code == 401
        assert not served.desk.asked
        assert served.post({"without_node": "n"}, Authorization=f"Bearer {'x' * 20}").status_code == 200
    finally:
        served.handle.stop()


def test_route_of_questions_itself_rejects_a_caller_without_a_token() -> None:
    app, desk = FastAPI(), Desk()
    install(app)
    app.include_router(question_routes(desk, Tokens([(Caller("reads", "", frozenset({"read"})), "x" * 20)])))
    served = serve_in_thread(app)
    try:
        answer = http_client.request(
            "POST", f"{served.url}/v1/what-if", json={"without_node": "n"}, timeout=30
        )
        assert answer.status_code == 401
        assert not desk.asked
    finally:
        served.stop()


def test_command_prints_tasks_times_and_deadlines(asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["what-if", "--queue", "prod", "--containers", "3", "--container-mib", "2048", "--url", asked.url]
    assert exit_status_of(PROGRAM, words) == 0
    said = capsys.readouterr().out
    assert "first container: in 2.0 s (1.0 to 4.0); all containers: not known" in said
    assert "waits: the queue is at its maximum" in said
    assert "lost 2.5 s, overhead 5.0 s" in said
    assert "deadline falls: r1 of eve\\x1b ends 4 s late" in said
    assert "state abababababab; nothing was changed" in said
    assert asked.desk.asked == [Question(application=NEW)]
    assert exit_status_of(PROGRAM, [*words, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["overhead_ms"] == 5000


@pytest.mark.parametrize("words", [["--queue", "prod"], ["--guarantee", "etl"], ["--guarantee", "etl=140%"]])
def test_command_refuses_half_a_question(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status_of(PROGRAM, ["what-if", *words, "--url", "http://127.0.0.1:1"]) == 2
    assert "use for example" in (error := capsys.readouterr().err) or "set both" in error
