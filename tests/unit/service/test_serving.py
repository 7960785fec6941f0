"""Where the service listens, and that it ends."""

from __future__ import annotations

import socket

import pytest
import requests

from tests.unit.service.played import busy
from yarnctl.errors import BadInput
from yarnctl.service.app import make_app
from yarnctl.service.serving import is_loopback, names_for, parse_listen, require_safe, serve_in_thread


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8188", ("127.0.0.1", 8188)),
        (":8188", ("127.0.0.1", 8188)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:8188", ("::1", 8188)),
        ("0.0.0.0:80", ("0.0.0.0", 80)),
    ],
)
def test_addresses(text, address):
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text", ["", "8188", "host", "host:", "host:x", "host:65536", "::1:8188", "host:-1", "h:²"]
)
def test_what_is_no_address(text):
    with pytest.raises(BadInput, match="--listen"):
        parse_listen(text)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "gateway.example"])
def test_beyond_loopback_only_with_a_token(host):
    with pytest.raises(BadInput, match="set a token"):
        require_safe(host, None)
    with pytest.raises(BadInput, match="set a token"):
        require_safe(host, "")
    require_safe(host, "a token")
    assert names_for(host) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_on_loopback_names_are_checked(host):
    require_safe(host, None)
    assert is_loopback(host)
    assert "localhost" in (names_for(host) or ())


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
    assert requests.get(f"{handle.url}/v1/snapshot", timeout=30).status_code == 200
    with requests.Session() as kept_open:
        kept_open.get(f"{handle.url}/", timeout=30)
        handle.stop()
    assert not handle.is_alive
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{handle.url}/v1/snapshot", timeout=30)
    again = serve_in_thread(make_app(busy), port=handle.port)
    assert requests.get(f"{again.url}/v1/snapshot", timeout=30).status_code == 200
    again.stop()
