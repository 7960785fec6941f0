"""The market over the API and the command line: accounts, quotes, who may spend, refusals by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import http_client
from tests.service.test_admissions import Daemon
from tests.soak.rig import wait_until
from tests.unit.daemon.at_the_desk import AtTheDesk, Past
from tests.unit.gate_played import JOB as WORDS
from tests.unit.gate_played import OPTIONS
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.admission.records import Estimate
from yarnctl.service.security.tokens import Caller, Tokens

OPERATOR, ANN, BOB = "an operator's token", "the token of analytics", "the token of research"
POOR = "the token of no account"
TOKENS = Tokens(
    [
        (Caller("operator", "", frozenset({"operate"})), OPERATOR),
        (Caller("ann", "ann", frozenset({"submit"}), "analytics"), ANN),
        (Caller("bob", "bob", frozenset({"submit"}), "research"), BOB),
        (Caller("poor", "poor", frozenset({"submit"})), POOR),
    ]
)
JOB: dict[str, Any] = {"name": "job", "user": "ann", "queue": "root.production", "containers": 10}


class Market(Daemon):
    """A desk that sells deadlines, served."""

    def send(self, path: str, body: dict[str, Any], status: int, token: str = ANN) -> dict[str, Any]:
        answer = http_client.request(
            "POST",
            f"{self.handle.url}/v1/{path}",
            timeout=60,
            headers={"Authorization": f"Bearer {token}"},
            json=body,
        )
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found


def _desk(**given: Any) -> AtTheDesk:
    past = Past()
    past.estimates = {name: Estimate(600_000, 0, f"history:3 runs of {name}") for name in ("daily", "job")}
    return AtTheDesk("mrm", past=past)


@pytest.fixture
def market(monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    import tests.service.test_admissions as served

    monkeypatch.setattr(served, "AtTheDesk", _desk)
    found = Market(token=TOKENS)
    found.send("accounts", {"name": "analytics"}, 200, OPERATOR)
    found.send("accounts/analytics/credit", {"mtokens": 5_000_000}, 200, OPERATOR)
    yield found
    found.stop()


def balance(market: Market) -> int:
    return market.there.book.balances()["analytics"]


def test_a_refusal_for_its_price_or_its_time_has_the_curve_of_now(market: Market) -> None:
    asked = {**JOB, "budget_mtokens": 10**9}
    early = market.send("admissions", {**asked, "deadline_ms": 30_000}, 409)
    assert early["error"]["code"] == "too-early"
    first = early["quote"]["points"][0]
    assert first["deadline_at_ms"] == early["quote"]["earliest_at_ms"]
    moved = market.send("admissions", {**asked, "deadline_ms": 600_000, "quote": "quo-a1b2-7"}, 409)
    assert (moved["error"]["code"], len(moved["quote"]["points"])) == ("quote-moved", 8)
    known = market.send("admissions", {**asked, "deadline_ms": 600_000, "quote": moved["quote"]["id"]}, 202)
    assert known["request"]["deadline_ms"] == 600_000
    assert "quote" not in market.send("admissions", {**asked, "account": "research"}, 403)


def test_a_quote_tells_a_curve_in_the_form_that_was_agreed(market: Market) -> None:
    told = market.send("quotes", {**JOB, "points": 4}, 200)
    assert set(told) == {"id", "valid_until_ms", "earliest_at_ms", "account", "balance_mtokens", "points"}
    assert len(told["points"]) == 4
    first = told["points"][0]
    assert set(first) == {"deadline_at_ms", "price_mtokens", "slack_ms", "late_ratio", "because"}
    assert (first["price_mtokens"], first["because"]) == (600_000, [["itself", 600_000]])


def test_who_agrees_is_admitted_and_told_the_price(market: Market) -> None:
    body = {**JOB, "budget_mtokens": 300_000, "request_key": "k"}
    told = market.send("admissions", body, 202)
    again = market.send("admissions", body, 202)
    assert again["id"] == told["id"]
    assert told["state"] == "admitted"
    assert told["plan"]["price_mtokens"] <= 300_000
    assert told["tags"][0] == f"deadline:{told['plan']['deadline_at_ms']}"
    assert balance(market) == 5_000_000 - told["plan"]["price_mtokens"]


def test_an_entry_says_what_was_paid_back_so_far(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {**JOB, "budget_mtokens": 300_000}
    made = market.send("admissions", body, 202)
    price = made["plan"]["price_mtokens"]
    path = f"admissions/{made['id']}"
    assert read(market, path, ANN).json()["refunded_mtokens"] == 0
    assert run(market, tmp_path, monkeypatch, ANN, "admissions", made["id"], "--withdraw") == 0
    wait_until(lambda: read(market, path, ANN).json()["refunded_mtokens"] == price, "paid back", 20)
    assert [each["refunded_mtokens"] for each in read(market, "admissions", ANN).json()["items"]] == [price]
    capsys.readouterr()
    assert run(market, tmp_path, monkeypatch, ANN, "admissions", made["id"]) == 0
    rows = [row for row in capsys.readouterr().out.splitlines() if "refunded" in row or "plan.price" in row]
    assert len(rows) == 2
    assert all(f"{price / 1000:g} tokens" in row for row in rows), rows
    refused = market.send("admissions", {**body, "budget_mtokens": 1, "deadline_ms": 600_000}, 202)
    assert read(market, f"admissions/{refused['id']}", ANN).json()["refunded_mtokens"] is None


REFUSED = [
    ("quotes", {"account": "research"}, 403, "other-account", "another account"),
    ("admissions", {"account": "research", "budget_mtokens": 1}, 403, "other-account",
     "another account pays"),
    ("admissions", {"deadline_ms": 30_000, "budget_mtokens": 10**9}, 409, "too-early", "too early"),
    ("admissions", {"deadline_ms": 90_000}, 409, "no-account", "no budget"),
    ("admissions", {"name": "never-run", "budget_mtokens": 9}, 409, "no-estimate", "no estimate"),
    ("admissions", {"quote": "quo-a1b2-7", "budget_mtokens": 9}, 409, "quote-moved", "no such quote"),
    ("admissions", {"budget_mtokens": 0}, 422, "bad-parameter", "a budget of nothing"),
    ("admissions", {}, 422, "bad-parameter", "neither deadline nor budget"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "more", "status", "code", "_"), REFUSED, ids=[row[4] for row in REFUSED])
def test_what_is_refused_is_named_and_not_charged(
    market: Market, path: str, more: dict[str, Any], status: int, code: str, _: str
) -> None:
    told = market.send(path, {**JOB, **more}, status)
    if status != 422:
        assert told["error"]["code"] == code
    assert balance(market) == 5_000_000


@pytest.mark.parametrize("path", ["quotes", "admissions"])
def test_an_estimate_of_a_caller_needs_the_scope_operate(market: Market, path: str) -> None:
    """A user buys ten containers for 1 container-ms; an operator may say how much a job computes."""
    body = {**JOB, "estimate": {"mean_ms": 1, "source": "history"}, "account": "analytics"}
    body |= {"budget_mtokens": 5} if path == "admissions" else {}
    told = market.send(path, body, 403)
    assert told["error"]["code"] == "estimate-needs-operate"
    assert balance(market) == 5_000_000
    market.send(path, body, 202 if path == "admissions" else 200, OPERATOR)


def test_only_an_operator_opens_and_fills_accounts(market: Market) -> None:
    assert market.send("accounts", {"name": "mine"}, 403)["error"]["code"] == "missing-scope"
    assert market.send("accounts/analytics/credit", {"mtokens": 1}, 403)["error"]["code"] == "missing-scope"
    assert market.send("accounts", {"name": "analytics"}, 409, OPERATOR)["error"]["code"] == "account-known"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    """A desk that sells deadlines, where reading needs a token; with accounts of ann's and bob's."""
    import tests.service.test_admissions as served

    monkeypatch.setattr(served, "AtTheDesk", _desk)
    found = Market(token=TOKENS, open_reads=False)
    for name in ("analytics", "research"):
        found.send("accounts", {"name": name}, 200, OPERATOR)
    yield found
    found.stop()


def read(market: Market, path: str, token: str) -> http_client.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return http_client.request("GET", f"{market.handle.url}/v1/{path}", timeout=60, headers=headers)


def test_who_pays_reads_its_own_account_and_no_other_where_reading_is_closed(closed: Market) -> None:
    def listed(token: str) -> list[str]:
        return [each["name"] for each in read(closed, "accounts", token).json()["items"]]

    assert (listed(ANN), listed(BOB), listed(OPERATOR)) == (
        ["analytics"],
        ["research"],
        ["analytics", "research"],
    )
    assert read(closed, "accounts/analytics", ANN).json()["name"] == "analytics"
    for other in ("research", "nobody", "analytics2"):
        answer = read(closed, f"accounts/{other}", ANN)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "other-account"), other
    poor = read(closed, "accounts", POOR)
    assert (poor.status_code, poor.json()["error"]["code"]) == (403, "other-account")
    assert read(closed, "applications", ANN).json()["error"]["code"] == "missing-scope"


def test_the_command_line_shows_who_pays_its_own_account(
    closed: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(closed, tmp_path, monkeypatch, ANN, "accounts") == 0
    shown = capsys.readouterr().out
    assert ("analytics" in shown, "research" in shown) == (True, False)
    assert run(closed, tmp_path, monkeypatch, ANN, "accounts", "research") == 2
    assert "the token is for account analytics, not for research" in capsys.readouterr().err


Captured = pytest.CaptureFixture[str]


def run(market: Market, folder: Path, monkeypatch: pytest.MonkeyPatch, token: str, *words: str) -> int:
    file = folder / "token"
    file.write_text(token)
    file.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(file))
    return exit_status_of(PROGRAM, [*words, "--url", market.url])


def test_accounts_on_the_command_line(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(market, tmp_path, monkeypatch, OPERATOR, "accounts", "--add", "research") == 0
    assert run(market, tmp_path, monkeypatch, OPERATOR, "accounts", "--credit", "research", "48.2") == 0
    capsys.readouterr()
    assert run(market, tmp_path, monkeypatch, OPERATOR, "accounts", "research", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out)["balance_mtokens"] == 48_200


def test_withdraw_on_the_command_line_asks_yarn_first(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = market.send("admissions", {**JOB, "budget_mtokens": 300_000}, 202)
    paid = balance(market)
    market.there.yarn.away = True
    assert run(market, tmp_path, monkeypatch, ANN, "admissions", made["id"], "--withdraw") == 3
    assert "cannot check whether an application uses admission" in capsys.readouterr().err
    market.held = True
    market.there.yarn.away = False
    running = market.there.submit(market.there.book.admissions[made["id"]])
    market.held = False
    wait_until(lambda: not market.there.desk._reconciler.unreachable, "the ResourceManager answers", 20)
    assert run(market, tmp_path, monkeypatch, ANN, "admissions", made["id"], "--withdraw") == 2
    assert f"runs as {running}" in capsys.readouterr().err
    assert balance(market) == paid


@pytest.mark.parametrize("name", ["nosuch", "a/b", "..", "a b", "x" * 200])
def test_an_account_that_there_is_not_is_bad_input(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, name: str
) -> None:
    assert run(market, tmp_path, monkeypatch, OPERATOR, "accounts", name) == 2
    assert capsys.readouterr().err.startswith("error: account ")


@pytest.mark.parametrize("amount", ["0", "-1", "nan", "inf", "1.0001", "1e3", ""])
def test_an_amount_that_is_none_is_bad_input(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amount: str
) -> None:
    assert run(market, tmp_path, monkeypatch, OPERATOR, "accounts", "--credit", "analytics", amount) == 2
    assert balance(market) == 5_000_000


TYPED = ("--user", "ann", "--name", "daily", "--queue", "root.production", "--containers", "10")


def typed(url: str, *words: str) -> list[str]:
    return [words[0], "--url", url, *TYPED, *words[1:], "--", *WORDS, *OPTIONS]


def test_a_quote_and_an_admission_on_the_command_line(
    market: Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ann"
    file.write_text(ANN)
    file.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(file))
    assert exit_status_of(PROGRAM, typed(market.url, "quote", "-o", "json")) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["points"][0]["price_mtokens"] == 600_000
    assert exit_status_of(PROGRAM, typed(market.url, "quote")) == 0
    assert "analytics has 5000 tokens" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, typed(market.url, "admit", "--budget", "300", "--print")) == 0
    assert "-D mapreduce.job.tags=deadline:" in capsys.readouterr().out.replace("'", "")
    assert 5_000_000 - 300_000 <= balance(market) < 5_000_000
    assert (
        exit_status_of(PROGRAM, typed(market.url, "admit", "--budget", "1", "--deadline", "30m", "--print"))
        == 1
    )
    assert "tokens, above the budget of" in capsys.readouterr().err
    for wrong in (("--budget", "0"), ("--account", "analytics", "--deadline", "9m")):
        assert exit_status_of(PROGRAM, typed(market.url, "admit", *wrong)) == 2
