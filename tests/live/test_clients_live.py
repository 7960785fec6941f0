"""The own client and a generated one on the live emulator: every operation of the document."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import http_client
from tests.live.test_settings_live import until
from tests.service.generated_client import PACKAGE, generate, modules, operations
from tests.soak.virtual_live_sides import program
from yarnctl.client.daemon_client import DaemonClient
from yarnctl.client.requesting import DaemonAddress
from yarnctl.errors import Different

SECRET = "the secret of the operator"
JOB = {"name": "daily", "user": "ann", "queue": "default", "containers": 4,
       "estimate": {"mean_ms": 20_000}}  # fmt: skip
MARKET = ("--mode", "deadlines", "--preempting", "default", "--preemptable", "default", "--admission", "mrm",
          "--allow-priority", "--enforce", "--admission-container-mib", "1024")  # fmt: skip
OBSERVING = ("--preemptable", "research", "--eviction", "mix", "--may-lose", "100%")
QUESTION = {"application": {"queue": "root.production", "containers": 1}}
IN_QUEUES = {"decision", "reclaims_of", "explanation", "resume_queue", "continue_loop", "what_if"}
"""The operations that need the observing daemon, which has made a decision; the others need the market."""


def _has(log: Path, text: str) -> bool:
    return text in log.read_text()


class Daemons:
    """Two daemons: one sells deadlines, one observes queues where production waits. ``urls``: by name."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.token = folder / "token"
        self.token.touch(mode=0o600)
        self.token.write_text(SECRET)
        market = self._emulator("market", "default=100")
        queues = self._emulator("queues", "production=50,research=50")
        for queue, state, tasks in (("research", "RUNNING", "20x600"), ("production", "ACCEPTED", "6x600")):
            words = ("submit", "--rm", queues, "--queue", queue, "--user", "ann", "--name", queue)
            stack.enter_context(
                program("emulator.cli", *words, "--modelled", tasks, log=folder / f"{queue}.log")
            )
            log = folder / f"{queue}.log"
            until(partial(_has, log, state), log)
        self.urls = {
            "market": self._daemon("market", market, *MARKET),
            "queues": self._daemon("queues", queues, *OBSERVING),
        }
        until(lambda: self.client("queues").decisions().items, folder / "queues.log")
        until(lambda: self.client("market").admissions().gate, folder / "market.log")

    def _emulator(self, name: str, queues: str) -> str:
        words = ("serve", "--nodes", "2", "--slots", "4", "--port", "0", "--json", "--queues", queues)
        how = ("--containers", "modelled", "--work", str(self.folder / f"{name}-work"))
        log = self.folder / f"{name}-serve.log"
        serve = self.stack.enter_context(program("emulator.cli", *words, *how, log=log))
        assert serve.stdout is not None
        return str(json.loads(serve.stdout.readline())["url"])

    def _daemon(self, name: str, rm: str, *words: str) -> str:
        log = self.folder / f"{name}.log"
        given = ("--listen", "127.0.0.1:0", "--token-file", str(self.token), "--rm", rm)
        state = ("--state-dir", str(self.folder / f"{name}-state"))
        self.stack.enter_context(program("yarnctl.cli", "run", *given, *state, *words, log=log))
        until(lambda: "page and API at " in log.read_text(), log)
        return log.read_text().partition("page and API at ")[2].split()[0]

    def client(self, name: str) -> DaemonClient:
        return DaemonClient(DaemonAddress(self.urls[name], SECRET))


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemons]:
    with ExitStack() as stack:
        yield Daemons(tmp_path_factory.mktemp("daemons"), stack)


pytestmark = pytest.mark.xdist_group("clients-live")


def test_the_own_client_does_every_operation(daemons: Daemons) -> None:
    market, queues = daemons.client("market"), daemons.client("queues")
    decided = queues.decisions(limit=1).items[0]
    done: dict[str, Callable[[], Any]] = {
        "healthz": market.healthz, "readyz": market.readyz, "get_metrics": market.get_metrics,
        "snapshot": queues.snapshot, "applications": queues.applications, "reclaims": queues.reclaims,
        "reclaims_of": lambda: queues.reclaims_of(decided.application), "decisions": queues.decisions,
        "decision": lambda: queues.decision(decided.id), "refusals": queues.refusals,
        "explanation": lambda: queues.explanation(decided.application), "checkpoints": queues.checkpoints,
        "budgets": queues.budgets, "time_lost": queues.time_lost, "report": queues.report,
        "occupancy": queues.occupancy, "events": lambda: list(queues.events("0", limit=3)),
        "pause_loop": lambda: queues.pause_loop("a test"), "continue_loop": queues.continue_loop,
        "resume_queue": lambda: queues.resume_queue("production"), "status": queues.status,
        "what_if": lambda: queues.what_if(QUESTION),
        "open_account": lambda: market.open_account("own"), "accounts": market.accounts,
        "credit_account": lambda: market.credit_account("own", 10**9),
        "get_account": lambda: market.get_account("own"),
        "quote": lambda: market.quote({**JOB, "account": "own"}),
        "request_admission": lambda: market.request_admission(
            {**JOB, "account": "own", "budget_mtokens": 10**8, "request_key": "own"}
        ),
        "admissions": market.admissions, "runs": market.runs,
    }  # fmt: skip
    answers = {name: call() for name, call in done.items()}
    admission = answers["request_admission"].id
    answers["get_admission"] = market.get_admission(admission, wait_ms=1)
    answers["renew_admission"] = market.renew_admission(admission)
    answers["withdraw_admission"] = market.withdraw_admission(admission)
    assert answers.keys() == operations().keys()
    assert answers["withdraw_admission"].state == "withdrawn"
    assert answers["get_account"].balance_mtokens == 10**9
    assert answers["decision"].id == decided.id
    assert [each.cursor.rpartition("-")[2] for each in answers["events"]] == ["1", "2", "3"]
    assert len({each.cursor for each in answers["events"]}) == 3
    with pytest.raises(Different, match="does not exist"):
        market.get_account("none")


def test_the_own_client_waits_for_a_version_and_for_events(daemons: Daemons) -> None:
    client = daemons.client("queues")
    seen = client.snapshot().version
    assert client.snapshot(since=seen, wait_ms=30_000).version > seen
    heard: list[str] = []

    def hear() -> None:
        heard.extend(each.text for each in client.events(cursor, limit=1))

    cursor = next(client.events("0", limit=1)).cursor
    cursor = list(client.events(cursor, limit=client_events(daemons) - 1))[-1].cursor
    thread = threading.Thread(target=hear, daemon=True)
    thread.start()
    client.pause_loop("a listener")
    thread.join()
    assert len(heard) == 1
    client.continue_loop()


def client_events(daemons: Daemons) -> int:
    """Return how many events the observing daemon keeps."""
    text = http_client.get(f"{daemons.urls['queues']}/v1/events?cursor=0&wait_ms=0").text
    return sum(line.startswith("id: ") for line in text.splitlines())


def test_a_generated_client_does_every_operation(daemons: Daemons, tmp_path: Path) -> None:
    generate(tmp_path)
    found = modules(tmp_path)
    package = found["snapshot"].__name__.split(".")[0]
    assert package == PACKAGE
    from generated_yarnctl import AuthenticatedClient  # type: ignore[import-not-found]
    from generated_yarnctl.models import (  # type: ignore[import-not-found]
        AccountIn,
        AdmissionRequest,
        CreditIn,
        PauseRequest,
        QuoteIn,
        WhatIfQuestion,
    )

    clients = {
        name: AuthenticatedClient(base_url=url, token=SECRET, raise_on_unexpected_status=True)
        for name, url in daemons.urls.items()
    }
    decided = daemons.client("queues").decisions(limit=1).items[0]
    request = {**JOB, "account": "made", "budget_mtokens": 10**8, "request_key": "made"}
    given: dict[str, dict[str, Any]] = {
        "open_account": {"body": AccountIn.from_dict({"name": "made"})},
        "credit_account": {"account": "made", "body": CreditIn.from_dict({"mtokens": 10**9})},
        "get_account": {"account": "made"},
        "quote": {"body": QuoteIn.from_dict({**JOB, "account": "made"})},
        "request_admission": {"body": AdmissionRequest.from_dict(request)},
        "reclaims_of": {"application_id": decided.application},
        "decision": {"decision_id": decided.id},
        "explanation": {"any_id": decided.application},
        "resume_queue": {"queue": "production"},
        "events": {"cursor": "0", "wait_ms": 0},
        "pause_loop": {"body": PauseRequest.from_dict({"why": "a test"})},
        "what_if": {"body": WhatIfQuestion.from_dict(QUESTION)},
    }
    last = ("get_admission", "renew_admission", "withdraw_admission")
    order = [*given, *(name for name in found if name not in given and name not in last), *last]
    assert set(order) == set(operations())
    for name in order:
        answer = called(
            found[name], clients["queues" if name in IN_QUEUES else "market"], given.get(name, {})
        )
        assert answer.status_code in (HTTPStatus.OK, HTTPStatus.ACCEPTED), (name, answer.content)
        assert answer.parsed is not None, name
        assert type(answer.parsed).__name__ != "ErrorBody", name
        if name == "request_admission":
            given |= {each: {"admission_id": answer.parsed.id} for each in last}


def called(module: ModuleType, client: Any, arguments: dict[str, Any]) -> Any:
    """Call one operation of a generated client."""
    return module.sync_detailed(client=client, **arguments)
