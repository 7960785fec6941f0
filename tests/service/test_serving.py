"""Where the service listens, and that it ends."""

from __future__ import annotations

import socket

import pytest

from tests import http_client
from tests.unit.service.conftest import TOKEN
from tests.unit.service.played import busy
from yarnctl.errors import BadInput
from yarnctl.listening.names import is_answered, is_loopback, names_for
from yarnctl.service.app import make_app
from yarnctl.service.security.tokens import Tokens
from yarnctl.service.serving import parse_listen, require_safe, serve_in_thread


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:8188", ("127.0.0.1", 8188)), (":8188", ("127.0.0.1", 8188)),
     ("localhost:0", ("localhost", 0)), ("[::1]:8188", ("::1", 8188)), ("0.0.0.0:80", ("0.0.0.0", 80))],
)  # fmt: skip
def test_addresses(text, address):
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text", ["", "8188", "host", "host:", "host:x", "host:65536", "::1:8188", "host:-1", "h:²"]
)
def test_what_is_no_address(text):
    with pytest.raises(BadInput, match="--listen"):
        parse_listen(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gateway.example"])
def test_beyond_loopback_only_with_a_token_and_tls_or_expressly_without(host):
    with pytest.raises(BadInput, match="set a token"):
        require_safe(host, None)
    with pytest.raises(BadInput, match="set a token"):
        require_safe(host, "", has_tls=True)
    with pytest.raises(BadInput, match=r"without TLS.*--tls-certificate"):
        require_safe(host, "a token")
    require_safe(host, "a token", has_tls=True)
    require_safe(host, None, open_reads=True)


def test_names_that_are_answered():
    assert not is_answered("10.1.2.3", names_for("127.0.0.1"))
    names = names_for("0.0.0.0", ["Yarnctl.example"])
    for name in ("10.1.2.3", "[fd00::1]", "localhost", "yarnctl.example", "127.0.0.1"):
        assert is_answered(name, names), name
    for name in ("evil.example", "10.1.2.3.evil.example", "[evil]", "", "*.ip"[1:], "10.1.2"):
        assert not is_answered(name, names), name
    for name in ("a b", "host:80", "http://host", "", "*", "*.ip"):
        with pytest.raises(BadInput, match="--allow-host"):
            names_for("0.0.0.0", [name])


def test_beyond_loopback_reading_needs_the_token():
    app = make_app(busy, token=TOKEN, names=names_for("0.0.0.0", ["inside"]), open_reads=False)
    handle = serve_in_thread(app, "0.0.0.0", 0, token=TOKEN, proxies=("192.0.2.1",))
    try:
        with http_client.Session() as caller:
            caller.trust_env = False
            url = f"http://127.0.0.1:{handle.port}"
            for path in ("/", "/docs", "/healthz", "/readyz", "/openapi.json"):
                assert caller.get(url + path, timeout=30).status_code in (200, 503), path
            for path in ("/v1/snapshot", "/metrics", "/v1/nothing", "/v1/snapshot?x=1"):
                answer = caller.get(url + path, timeout=30)
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized"), path
                assert answer.headers["www-authenticate"] == "Bearer"
            wrong = {"Authorization": f"Bearer {TOKEN}x"}
            assert caller.get(f"{url}/v1/snapshot", headers=wrong, timeout=30).status_code == 401
            right = {"Authorization": f"Bearer {TOKEN}", "Host": "inside"}
            assert caller.get(f"{url}/v1/snapshot", headers=right, timeout=30).status_code == 200
            right["Host"] = "evil.example"
            assert caller.get(f"{url}/v1/snapshot", headers=right, timeout=30).status_code == 421
    finally:
        handle.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_on_loopback_names_are_checked(host):
    require_safe(host, None)
    assert is_loopback(host)
    assert "localhost" in names_for(host)


def test_it_refuses_before_it_listens():
    with pytest.raises(BadInput, match="no token"):
        serve_in_thread(make_app(busy), "0.0.0.0", 0)


def test_a_port_that_is_taken_is_said_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"cannot listen on 127.0.0.1:{port}"):
            serve_in_thread(make_app(busy), "127.0.0.1", port)


def test_it_answers_as_soon_as_it_is_there_and_not_after_it_stopped():
    handle = serve_in_thread(make_app(busy))
    assert http_client.get(f"{handle.url}/v1/snapshot", timeout=30).status_code == 200
    with http_client.Session() as kept_open:
        kept_open.get(f"{handle.url}/", timeout=30)
        handle.stop()
    assert not handle.is_alive
    with pytest.raises(http_client.NoConnection):
        http_client.get(f"{handle.url}/v1/snapshot", timeout=30)
    again = serve_in_thread(make_app(busy), port=handle.port)
    assert http_client.get(f"{again.url}/v1/snapshot", timeout=30).status_code == 200
    again.stop()


def test_the_service_goes_by_the_loops_own_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the wall clock, set back an hour, a loop that is stuck would look young for an hour."""
    from yarnctl.cli.access_options import ListenOptions, service
    from yarnctl.daemon.running import clock_ms

    given: dict[str, object] = {}

    class Seen(Exception):
        pass

    def make(*_: object, **more: object) -> None:
        given.update(more)
        raise Seen

    monkeypatch.setattr("yarnctl.service.app.make_app", make)
    serve = service(ListenOptions("127.0.0.1:0"), Tokens())
    assert serve is not None
    loop, state = type("Loop", (), {"admission": None, "what_if": None}), type("State", (), {"journal": None})
    with pytest.raises(Seen):
        serve(loop, state)  # type: ignore[arg-type]
    assert given["clock"] is clock_ms
