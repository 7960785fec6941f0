"""A proxy in front: its prefix, its headers, and what may be said about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from fastapi import FastAPI

from tests import http_client
from tests.unit.service.conftest import TOKEN
from tests.unit.service.played import busy
from yarnctl.cli.access_options import ListenOptions, service, tls_of
from yarnctl.errors import BadInput
from yarnctl.service.app import make_app
from yarnctl.service.security.middleware import PAGE_FILES
from yarnctl.service.security.proxies import checked_prefix, checked_proxies
from yarnctl.service.security.tokens import Caller, Tokens
from yarnctl.service.serving import Handle, serve_in_thread


@pytest.fixture(scope="module")
def served() -> Iterator[Handle]:
    handle = serve_in_thread(make_app(busy, token=TOKEN, prefix="/tools/yarnctl"), token=TOKEN)
    yield handle
    handle.stop()


@pytest.mark.parametrize("prefix", ["", "/tools/yarnctl"], ids=["removed", "left"])
def test_the_prefix_may_be_removed_by_the_proxy_or_left(served: Handle, prefix: str) -> None:
    for path in (*PAGE_FILES, "/v1/snapshot", "/metrics"):
        assert http_client.get(f"{served.url}{prefix}{path}").status_code == 200, path
    document = http_client.get(f"{served.url}{prefix}/openapi.json").json()
    assert document["servers"] == [{"url": "/tools/yarnctl"}]


def test_a_prefix_before_the_prefix_reaches_no_route() -> None:
    served = serve_in_thread(make_app(busy, token=TOKEN, open_reads=False, prefix="/yarnctl"), token=TOKEN)
    try:
        for path, status in (("/yarnctl/v1/what-if", 401), ("/yarnctl/yarnctl/v1/what-if", 404)):
            answer = http_client.request("POST", served.url + path, json={"without_node": "n"}, timeout=30)
            assert answer.status_code == status, path
    finally:
        served.stop()


def test_the_folder_is_named_by_a_relative_redirect(served: Handle) -> None:
    answer = http_client.get(f"{served.url}/tools/yarnctl", allow_redirects=False)
    place = answer.headers["location"]
    assert answer.status_code == 307
    assert "//" not in place
    assert urljoin("https://proxy.example/tools/yarnctl", place) == "https://proxy.example/tools/yarnctl/"


@pytest.mark.parametrize(
    "path", ["/v1/snapshot/", "/docs/", "/tools/yarnctl/v1/snapshot/", "/tools/yarnctlx"]
)
def test_no_answer_names_the_host_that_the_proxy_called(served: Handle, path: str) -> None:
    answer = http_client.get(f"{served.url}{path}", allow_redirects=False)
    assert (answer.status_code, answer.headers.get("location")) == (404, None)


def test_the_files_of_the_page_name_each_other_relatively(served: Handle) -> None:
    for path in PAGE_FILES:
        assert not {'="/', '("/', "('/"} & {
            text[:3] for text in http_client.get(served.url + path).text.split()
        }


@pytest.mark.parametrize(
    "proxy", ["*", "proxy.example", "0.0.0.0/0", "::/0", "10.0.0.1/8", "", "10.0.0.5:80"]
)
def test_a_proxy_is_an_address_or_a_network_of_some(proxy: str) -> None:
    with pytest.raises(BadInput, match="--trusted-proxy"):
        checked_proxies([proxy])
    assert checked_proxies(["10.0.0.5", "fd00::/64 "]) == ("10.0.0.5", "fd00::/64")


@pytest.mark.parametrize(
    "prefix", ["yarnctl", "/a b", "//evil.example", "/a/../b", "/a?b", "http://x", "/./a"]
)
def test_a_prefix_is_a_path(prefix: str) -> None:
    with pytest.raises(BadInput, match="--path-prefix"):
        checked_prefix(prefix)
    assert [checked_prefix(each) for each in ("", "/", "/yarnctl/", "/a/b")] == ["", "", "/yarnctl", "/a/b"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tls_certificate": "a.pem"}, "--tls-certificate: requires --tls-key"),
        ({"tls_key": "a.key"}, "--tls-key: requires --tls-certificate"),
        ({"tls_client_ca": "ca.pem"}, "--tls-client-ca: requires --tls-certificate"),
        (
            {"tls_certificate": Path("none.pem"), "tls_key": Path("none.key")},
            "--tls-certificate none.pem: cannot be read",
        ),
        ({"trusted_proxies": ("*",)}, "--trusted-proxy"),
        ({"path_prefix": "x"}, "--path-prefix"),
        ({"listen": "0.0.0.0:0"}, "without TLS"),
    ],
)
def test_options_that_cannot_be_used_are_refused_before_anything_listens(
    options: dict[str, object], told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        service(ListenOptions()._replace(**options), Tokens.of(TOKEN))  # type: ignore[arg-type]


def test_a_token_with_a_certificate_needs_an_authority() -> None:
    tokens = Tokens((), {"prometheus": Caller("board", "", frozenset({"read"}))})
    with pytest.raises(BadInput, match="the token board has a certificate"):
        tls_of(ListenOptions(), tokens)


def test_behind_a_trusted_proxy_reading_is_not_free_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    def made(*_: object, **more: object) -> FastAPI:
        given.update(more)
        return make_app(busy)

    monkeypatch.setattr("yarnctl.service.app.make_app", made)
    loop, state = type("Loop", (), {"admission": None, "what_if": None}), type("State", (), {"journal": None})
    for proxies, is_open in (((), True), (("127.0.0.1",), False)):
        serve = service(ListenOptions("127.0.0.1:0", trusted_proxies=proxies), Tokens.of(TOKEN))
        assert serve is not None
        serve(loop, state).stop()  # type: ignore[arg-type]
        assert given["open_reads"] is is_open
