"""The certificate: what is refused, what a reload changes, and that no bad file ends the service."""

from __future__ import annotations

import logging
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import http_client
from tests.unit.service.certificates import Authority
from tests.unit.service.conftest import TOKEN
from tests.unit.service.played import busy
from yarnctl.errors import BadInput
from yarnctl.service.app import make_app
from yarnctl.service.security.tls import Tls, TlsFiles, common_name
from yarnctl.service.serving import BOUNDS, Handle, serve_in_thread


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def files(authority: Authority) -> TlsFiles:
    return authority.sign("yarnctl")


@pytest.fixture
def served(files: TlsFiles) -> Iterator[Handle]:
    handle = serve_in_thread(make_app(busy, token=TOKEN), token=TOKEN, tls=Tls(files))
    yield handle
    handle.stop()


def shown(handle: Handle, authority: Path) -> str:
    """Return the common name in the certificate that a new connection sees."""
    context = ssl.create_default_context(cafile=authority)
    with (
        socket.create_connection(("127.0.0.1", handle.port), 30) as bare,
        context.wrap_socket(bare, server_hostname="127.0.0.1") as tls,
    ):
        return common_name(tls.getpeercert())


def test_page_and_api_are_served_over_tls_only(served: Handle, authority: Authority) -> None:
    assert served.url.startswith("https://127.0.0.1:")
    with http_client.Session() as session:
        session.verify = str(authority.file)
        assert session.get(f"{served.url}/v1/snapshot").status_code == 200
        assert "yarnctl" in session.get(served.url).text
    with pytest.raises(http_client.NoConnection):
        http_client.get(f"http://127.0.0.1:{served.port}/v1/snapshot")
    with pytest.raises(http_client.NoConnection):
        http_client.get(f"{served.url}/v1/snapshot")  # the authority is not trusted


def test_a_connection_without_a_handshake_is_closed(files: TlsFiles) -> None:
    bounds = BOUNDS._replace(head_s=0.2)
    handle = serve_in_thread(make_app(busy, token=TOKEN), token=TOKEN, tls=Tls(files), bounds=bounds)
    try:
        with socket.create_connection(("127.0.0.1", handle.port), 25) as silent:
            assert silent.recv(1) == b""
    finally:
        handle.stop()


def test_a_reload_uses_the_new_certificate(
    served: Handle, files: TlsFiles, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    with http_client.Session() as kept_open:
        kept_open.verify = str(authority.file)
        assert kept_open.get(f"{served.url}/v1/snapshot").status_code == 200
        new = authority.sign("renewed")
        files.certificate.write_bytes(new.certificate.read_bytes())
        files.key.write_bytes(new.key.read_bytes())
        assert shown(served, authority.file) == "yarnctl"
        with caplog.at_level(logging.WARNING, "yarnctl"):
            served.reload()
        assert shown(served, authority.file) == "renewed"
        assert kept_open.get(f"{served.url}/v1/snapshot").status_code == 200
    assert "certificate reloaded" in caplog.text
    assert new.key.read_text().splitlines()[1] not in caplog.text


@pytest.mark.parametrize("broken", ["mismatched", "cut", "missing", "empty", "open"])
def test_a_pair_that_cannot_be_used_is_refused_and_the_old_one_stays(
    served: Handle, files: TlsFiles, authority: Authority, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = files.key.read_text().splitlines()[1]
    if broken == "mismatched":
        files.certificate.write_bytes(authority.sign("another").certificate.read_bytes())
    elif broken == "cut":
        files.certificate.write_bytes(files.certificate.read_bytes()[:200])
    elif broken == "missing":
        files.key.unlink()
    elif broken == "empty":
        files.key.write_text("")
    else:
        files.key.chmod(0o604)
    with caplog.at_level(logging.ERROR, "yarnctl"):
        served.reload()
    assert "the certificate is not reloaded, the old one stays in use: --tls-" in caplog.text
    assert secret not in caplog.text
    assert shown(served, authority.file) == "yarnctl"
    with pytest.raises(BadInput, match="--tls-"):
        Tls(files)


def test_a_removed_authority_is_not_trusted_after_a_reload(tmp_path: Path, authority: Authority) -> None:
    old = Authority(tmp_path / "old")
    files = authority.sign("strict")._replace(client_authorities=tmp_path / "clients.pem")
    trusted = tmp_path / "clients.pem"
    trusted.write_bytes(old.file.read_bytes())
    client = old.sign("ann")
    handle = serve_in_thread(make_app(busy), tls=Tls(files))
    try:

        def status() -> int:
            with http_client.Session() as session:
                session.verify = str(authority.file)
                session.cert = (str(client.certificate), str(client.key))
                return session.get(f"{handle.url}/v1/snapshot").status_code

        assert status() == 200
        trusted.write_bytes(authority.file.read_bytes())
        handle.reload()
        with pytest.raises(http_client.NoConnection):
            status()
    finally:
        handle.stop()


def test_a_passphrase_is_an_error_and_not_asked_for(authority: Authority) -> None:
    files = authority.sign("locked")
    words = ["openssl", "pkey", "-in", str(files.key), "-aes256", "-passout", "pass:a phrase"]
    locked = subprocess.run(words, check=True, capture_output=True).stdout
    files.key.write_bytes(locked)
    with pytest.raises(BadInput, match="without a passphrase"):
        Tls(files)


def test_a_connection_without_a_request_does_not_delay_the_end(files: TlsFiles, authority: Authority) -> None:
    handle = serve_in_thread(make_app(busy), tls=Tls(files))
    context = ssl.create_default_context(cafile=authority.file)
    with (
        socket.create_connection(("127.0.0.1", handle.port), 30) as bare,
        context.wrap_socket(bare, server_hostname="127.0.0.1") as tls,
    ):
        tls.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert tls.recv(100).startswith(b"HTTP/1.1")
        handle.stop()
        assert not handle.is_alive
