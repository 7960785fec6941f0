"""Behind TLS the client keeps the same bounds, trusts what it was told to trust and nothing else."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.runner.test_https import make_certificate
from tests.unit.hadoop.replaying import STOPS_S
from yarnctl.client.requesting import DaemonAddress, Unanswered, send
from yarnctl.errors import Unreachable
from yarnctl.hadoop.http.answers import BadAnswer, Uncertain
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport

ONCE = CallLimits(connect_ms=5_000, read_timeout_ms=5_000, answer_ms=10_000, answer_bytes=1_000, retries=0)
BODY = {"/short": b'{"a":1}', "/long": b"1" * 2_000_000}


class Answering(BaseHTTPRequestHandler):
    """Answers with one of the bodies."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = BODY[self.path]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture(scope="module")
def url(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a caller that does not trust us leaves
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(STOPS_S,))
    thread.start()
    yield f"https://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_answer_behind_tls_is_read_also_on_a_kept_connection(url: str, certificate: Path) -> None:
    with Transport([url], limits=ONCE, ca_file=str(certificate)) as to:
        assert [to.fetch("/short").body for _ in range(3)] == [BODY["/short"]] * 3


def test_the_bounds_hold_behind_tls(url: str, certificate: Path) -> None:
    with Transport([url], limits=ONCE, ca_file=str(certificate)) as to:
        with pytest.raises(BadAnswer, match="too long"):
            to.fetch("/long")
        assert all(
            connection.response_class.__name__ == "MeteredResponse"
            for pool in to._sessions[url].adapters["https://"].poolmanager.pools._container.values()  # type: ignore[attr-defined]
            for connection in [pool._new_conn()]
        )


def test_nothing_is_sent_to_whom_nobody_told_to_trust(url: str) -> None:
    with Transport([url], limits=ONCE) as to:
        with pytest.raises(Unreachable, match="no trusted TLS connection"):
            to.fetch("/short")
        with pytest.raises(Unreachable) as refused:
            to.change("PUT", "/short", b"{}")
        assert not isinstance(refused.value, Uncertain)  # it surely did not arrive


def test_the_commands_say_that_tls_fails(url: str) -> None:
    with pytest.raises(Unanswered, match=r"TLS fails: .*CERTIFICATE_VERIFY_FAILED") as failed:
        send(DaemonAddress(url), "GET", "short")
    assert not failed.value.connected
