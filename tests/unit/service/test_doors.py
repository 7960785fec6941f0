"""Who may do what: every endpoint of the document x every role x plain, TLS or client certificate x where.

Where: on loopback and beyond. A role comes with a token, or with a client certificate.

The table below has one row for each endpoint; one that is new and has none fails.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests import http_client
from tests.service.test_admissions import WISH, Daemon
from tests.unit.service.certificates import Authority
from yarnctl.cli import PROGRAM
from yarnctl.command_line import exit_status_of
from yarnctl.service.app import make_app
from yarnctl.service.security.tls import Tls
from yarnctl.service.security.tokens import Caller, Scope, Tokens

ROWS = {
    "GET /healthz": "free", "GET /readyz": "free", "GET /metrics": "read", "GET /v1/reclaims": "mine",
    "GET /v1/reclaims/{application_id}": "mine", "GET /v1/decisions": "read",
    "GET /v1/decisions/{decision_id}": "read", "GET /v1/refusals": "mine",
    "GET /v1/explanations/{any_id}": "mine", "GET /v1/snapshot": "mine", "GET /v1/applications": "mine",
    "GET /v1/status": "read",
    "GET /v1/checkpoints": "mine", "GET /v1/budgets": "mine", "GET /v1/occupancy": "read",
    "GET /v1/events": "mine", "GET /v1/time-lost": "read", "GET /v1/report": "read",
    "GET /v1/admissions": "list", "GET /v1/admissions/{admission_id}": "one", "POST /v1/admissions": "ask",
    "POST /v1/admissions/{admission_id}/renew": "own", "DELETE /v1/admissions/{admission_id}": "own",
    "GET /v1/runs": "list", "GET /v1/accounts": "account", "GET /v1/accounts/{account}": "account",
    "POST /v1/accounts": "operate", "POST /v1/accounts/{account}/credit": "operate", "POST /v1/quotes": "ask",
    "POST /v1/loop/pause": "operate", "POST /v1/loop/continue": "operate",
    "POST /v1/queues/{queue}/resume": "operate",
}  # fmt: skip
"""Endpoint -> what it needs."""

QUERIES = {"GET /v1/events": "/v1/events?wait_ms=0"}  # it would not end by itself
QUOTED = {name: value for name, value in WISH.items() if name != "deadline_ms"}
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/admissions": WISH,
    "POST /v1/quotes": {**QUOTED, "account": "analytics"},
    "POST /v1/accounts": {"name": "analytics"},
    "POST /v1/accounts/{account}/credit": {"mtokens": 1},
}

WHO = ("nobody", "a wrong token", "read", "submit, own", "submit, foreign", "own", "own, foreign", "operate")
DONE, NO, SCOPE, NOT_OWN, OTHER = "done", "401", "missing-scope", "not-own", "other-user"
ACCOUNT = "other-account"
NEEDS: dict[str, tuple[str, ...]] = {  # who, in the order of WHO
    "free": (DONE, DONE, DONE, DONE, DONE, DONE, DONE, DONE),
    "read": (NO, NO, DONE, SCOPE, SCOPE, SCOPE, SCOPE, DONE),
    "mine": (NO, NO, DONE, SCOPE, SCOPE, DONE, DONE, DONE),
    "list": (NO, NO, DONE, DONE, DONE, DONE, DONE, DONE),
    "one": (NO, NO, DONE, DONE, NOT_OWN, DONE, NOT_OWN, DONE),
    "account": (NO, NO, DONE, DONE, ACCOUNT, DONE, ACCOUNT, DONE),
    "ask": (NO, NO, SCOPE, DONE, OTHER, DONE, OTHER, DONE),
    "own": (NO, NO, SCOPE, DONE, NOT_OWN, DONE, NOT_OWN, DONE),
    "operate": (NO, NO, SCOPE, SCOPE, SCOPE, SCOPE, SCOPE, DONE),
}
READS = ("free", "read", "mine", "list", "one", "account")
"""What is free on loopback."""

SECRETS = {
    "a wrong token": "a wrong secret, long enough",
    "read": "the secret of who reads",
    "submit, own": "the secret of ann, who submits",
    "submit, foreign": "the secret of bob, who submits",
    "own": "the secret of ann, who sees her own",
    "own, foreign": "the secret of bob, who sees his own",
    "operate": "the secret of who operates",
}


def caller(name: str, user: str, *scopes: Scope) -> tuple[Caller, str]:
    return Caller(name, user, frozenset(scopes)), SECRETS[name]


CALLERS = [
    caller("read", "", "read"),
    (Caller("submit, own", "ann", frozenset({"submit"}), "analytics"), SECRETS["submit, own"]),
    caller("submit, foreign", "bob", "submit"),
    (Caller("own", "ann", frozenset({"own"}), "analytics"), SECRETS["own"]),
    caller("own, foreign", "bob", "own"),
    caller("operate", "", "operate"),
]
TOKENS = Tokens(CALLERS, {one.name: one for one, _ in CALLERS})  # the same role by secret and by certificate


WAYS = ("plain", "TLS", "client certificate")

BEYOND = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Proto": "http"}
"""The headers by which a trusted proxy reports a client on another host that uses no TLS."""


class Place:
    """A daemon with an admission of ann's; ``known`` is its id."""

    def __init__(self, beyond: bool, way: str, authority: Authority) -> None:
        host = "0.0.0.0" if beyond else "127.0.0.1"
        self.beyond, self.way, self.authority = beyond, way, authority
        files = authority.sign("yarnctl", clients=way == "client certificate")
        self.certificates = {who: authority.sign(who) for who in SECRETS} if files.client_authorities else {}
        is_plain = way == "plain"
        proxies = ("127.0.0.1",) if is_plain and beyond else ()
        self.daemon = Daemon(
            TOKENS, host, open_reads=not beyond, tls=None if is_plain else Tls(files), proxies=proxies
        )
        self.url = f"{'http' if is_plain else 'https'}://127.0.0.1:{self.daemon.handle.port}"
        answer = self.asked("POST /v1/admissions", "operate")
        self.known = answer.json()["id"]

    def asked(self, endpoint: str, who: str, **headers: str) -> http_client.Response:
        method, _, path = endpoint.partition(" ")
        told = {"application_id": "application_1_000002", "any_id": "o-000002", "decision_id": "2",
                "queue": "production"}  # fmt: skip
        path = QUERIES.get(endpoint, path).format(
            **told, admission_id=getattr(self, "known", ""), account="analytics"
        )
        by_certificate = self.certificates.get(who)
        has_token = who in SECRETS and by_certificate is None
        given = {"Authorization": f"Bearer {SECRETS[who]}"} if has_token else {}
        body: dict[str, Any] = {"json": BODIES[endpoint]} if endpoint in BODIES else {}
        with http_client.Session() as session:
            session.verify = str(self.authority.file)
            if by_certificate is not None:
                session.cert = (str(by_certificate.certificate), str(by_certificate.key))
            return session.request(method, self.url + path, headers={**given, **headers}, timeout=60, **body)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def all_places(authority: Authority) -> Iterator[dict[tuple[bool, str], Place]]:
    made = {(beyond, way): Place(beyond, way, authority) for beyond in (False, True) for way in WAYS}
    yield made
    for place in made.values():
        place.daemon.stop()


@pytest.fixture(scope="module")
def places(all_places: dict[tuple[bool, str], Place]) -> dict[bool, Place]:
    return {beyond: all_places[beyond, "plain" if not beyond else "TLS"] for beyond in (False, True)}


def became(answer: http_client.Response) -> str:
    if answer.status_code == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        return NO
    return str(answer.json()["error"]["code"]) if answer.status_code == 403 else DONE


def test_every_endpoint_has_a_row() -> None:
    paths: dict[str, dict[str, Any]] = make_app(lambda: None).openapi()["paths"]  # type: ignore[arg-type,return-value]
    there = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    assert there == set(ROWS)
    assert set(ROWS.values()) == set(NEEDS)


@pytest.mark.parametrize("beyond", [False, True], ids=["loopback", "beyond"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("endpoint", ROWS)
def test_who_may_do_what(
    all_places: dict[tuple[bool, str], Place],
    endpoint: str,
    who: str,
    way: str,
    beyond: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    place, needs = all_places[beyond, way], ROWS[endpoint]
    expected = NEEDS[needs][WHO.index(who)] if beyond or needs not in READS else DONE
    is_plain = way == "plain" and beyond
    if is_plain and who != "nobody":
        expected = "tls-required"
    if way == "client certificate" and who == "nobody":  # the handshake fails
        with pytest.raises(http_client.NoConnection):
            place.asked(endpoint, who)
        return
    with caplog.at_level(logging.DEBUG):
        answer = place.asked(endpoint, who, **(BEYOND if is_plain else {}))
    assert became(answer) == expected, answer.text
    assert not any(secret in answer.text + caplog.text for secret in SECRETS.values())


def test_only_a_trusted_proxy_says_where_a_client_is(all_places: dict[tuple[bool, str], Place]) -> None:
    untrusting = all_places[False, "plain"]
    assert became(untrusting.asked("GET /v1/admissions", "operate", **BEYOND)) == DONE
    behind = all_places[True, "plain"]
    secure = {**BEYOND, "X-Forwarded-Proto": "https"}
    assert became(behind.asked("GET /v1/admissions", "operate", **secure)) == DONE
    assert became(behind.asked("GET /v1/admissions", "operate")) == DONE  # from this machine


@pytest.mark.parametrize("beyond", [False, True], ids=["loopback", "beyond"])
@pytest.mark.parametrize("endpoint", ROWS)
def test_foreign_names_and_origins_are_refused_whoever_asks(
    places: dict[bool, Place], endpoint: str, beyond: bool
) -> None:
    place = places[beyond]
    assert place.asked(endpoint, "operate", Host="evil.example").json()["error"]["code"] == "bad-host"
    answer = place.asked(endpoint, "operate", Origin="http://evil.example")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "foreign-origin")
    assert place.asked(endpoint, "operate", Origin=place.url).status_code not in (403, 421)


@pytest.mark.parametrize("beyond", [False, True], ids=["loopback", "beyond"])
def test_a_list_shows_a_submitter_its_own_where_reading_is_not_free(
    places: dict[bool, Place], beyond: bool
) -> None:
    def listed(who: str) -> tuple[int, set[str]]:
        page = places[beyond].asked("GET /v1/admissions", who).json()
        return page["total"], {each["request"]["user"] for each in page["items"]}

    everything = listed("operate")
    assert everything[1] == {"ann"}
    assert listed("submit, own") == listed("read") == everything
    assert listed("submit, foreign") == ((0, set()) if beyond else everything)


def test_what_is_refused_does_nothing(places: dict[bool, Place]) -> None:
    daemon = places[True].daemon
    before = list(daemon.control.orders)
    kept = len(daemon.there.book.admissions)
    for who in WHO[:-1]:
        places[True].asked("POST /v1/loop/pause", who)
    for who in ("nobody", "read", "submit, foreign"):
        places[True].asked("POST /v1/admissions", who)
    assert daemon.control.orders == before
    assert len(daemon.there.book.admissions) == kept


def test_an_admission_that_is_not_known_is_not_known_to_everybody(places: dict[bool, Place]) -> None:
    for who in ("submit, own", "submit, foreign", "operate"):
        answer = places[True].asked("DELETE /v1/admissions/adm-ffff-77", who)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not-found")


@pytest.mark.parametrize(
    ("who", "words"),
    [
        ("submit, foreign", "is for user bob, the admission belongs to another user"),
        ("read", "the scope submit is required, the token read has read"),
        ("a wrong token", "set YARNCTL_TOKEN_FILE to the file with your token"),
    ],
)
def test_the_command_line_says_which_scope_is_missing(
    places: dict[bool, Place], who: str, words: str, tmp_path, monkeypatch, capsys
) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(SECRETS[who])
    place = places[True]
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(file))
    monkeypatch.setenv("YARNCTL_CA_FILE", str(place.authority.file))
    arguments = ["admissions", place.known, "--withdraw", "--url", place.url]
    assert exit_status_of(PROGRAM, arguments) == 2
    told = capsys.readouterr().err
    assert words in told
    assert SECRETS[who] not in told


@pytest.mark.parametrize(
    ("who", "result"), [("operate", "SUCCESS"), ("read", "FAILURE"), ("nobody", "FAILURE")]
)
def test_each_change_has_an_audit_line_also_a_rejected_one(
    places: dict[bool, Place], caplog: pytest.LogCaptureFixture, who: str, result: str
) -> None:
    with caplog.at_level(logging.INFO, "yarnctl.audit"):
        places[True].asked("POST /v1/loop/pause", who)
        places[True].asked("GET /v1/snapshot", who)
        places[True].asked("POST /v1/what-if", who)
    (line,) = [record.getMessage() for record in caplog.records if record.name == "yarnctl.audit"]
    fields = dict(field.split("=", 1) for field in line.split("\t"))
    assert (fields["OPERATION"], fields["RESULT"]) == ("POST /v1/loop/pause", result)
    assert fields["IP"] == "127.0.0.1"
    assert (fields["USER"] == "null") is (who == "nobody")
    assert not any(secret in line for secret in SECRETS.values())
