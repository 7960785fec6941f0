"""A ResourceManager whose signals reach nobody: it stands before the real one and passes all else on.

Law: a signal is answered as the real one answers it (200 and nothing), for that answer proves nothing
(facts/hadoop.md, 1.5); every other call is the real one's, word for word.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests import http_client

PASSED_ON = ("Accept", "Content-Type", "Accept-Encoding")
HOP = ("transfer-encoding", "content-length", "content-encoding", "connection", "server", "date")


class DeafManager:
    """``url`` is what yarnctl is told to be the ResourceManager; ``unheard`` counts the signals."""

    def __init__(self, url: str) -> None:
        self.unheard = 0
        self._behind = url
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer._pass_on(self)

            do_POST = do_PUT = do_GET  # noqa: N815 - the names http.server looks for

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _pass_on(self, call: BaseHTTPRequestHandler) -> None:
        body = call.rfile.read(int(call.headers.get("Content-Length") or 0))
        if call.command == "POST" and "/signal/" in call.path:
            self.unheard += 1
            _answer(call, 200, {}, b"")
            return
        headers = {name: call.headers[name] for name in PASSED_ON if name in call.headers}
        told = http_client.request(
            call.command, f"{self._behind}{call.path}", data=body, headers=headers, timeout=60,
            allow_redirects=False,
        )  # fmt: skip
        kept = {name: value for name, value in told.headers.items() if name.lower() not in HOP}
        _answer(call, told.status_code, kept, told.content)


def _answer(call: BaseHTTPRequestHandler, status: int, headers: dict[str, str], body: bytes) -> None:
    call.send_response(status)
    for name, value in headers.items():
        call.send_header(name, value)
    call.send_header("Content-Length", str(len(body)))
    call.end_headers()
    call.wfile.write(body)


@contextmanager
def deaf(url: str) -> Iterator[DeafManager]:
    """Serve it while the context lasts."""
    manager = DeafManager(url)
    thread = threading.Thread(target=manager.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield manager
    finally:
        manager.server.shutdown()
        manager.server.server_close()
        thread.join()
