"""A fake daemon: an HTTP server in a thread that replays answers and writes down what it heard.

Law: it knows nothing of Hadoop. An answer is given by a function of what was heard, so that each test
states its shapes itself; faults of the wire (drips, cuts, silence, garbage) are fields of the answer.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import msgspec

from yarnctl.hadoop.http.session import CallLimits

NEVER_S = 60.0
"""A reply that comes so late comes to nobody, unless somebody waits who should have given up."""

STOPS_S = 0.002
"""How long a server that is told to stop may not see it; hundreds are stopped, one after the other."""

PATIENT = CallLimits(connect_ms=60_000, read_timeout_ms=60_000, answer_ms=120_000, retries=0, backoff_ms=1)
"""For whatever is answered: a machine that is busy with something else is no fault of the wire."""

HASTY = msgspec.structs.replace(PATIENT, read_timeout_ms=150, answer_ms=300)
"""For what is never answered, or never to the end: it is not waited for long."""


class Heard(NamedTuple):
    """One request as the daemon heard it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """``drip_s``: pause between single bytes; ``cut``: close after so many bytes; ``raw``: no HTTP at all;
    ``endless``: sent again and again, for as long as it is read.
    """

    body: bytes | str = b""
    status: int = 200
    kind: str = "application/json;charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    drip_s: float = 0.0
    cut: int = -1
    raw: bytes = b""
    endless: bytes = b""

    @property
    def is_endless(self) -> bool:
        """Whether whoever asks must give up."""
        return bool(self.delay_s or self.drip_s)

    @property
    def limits(self) -> CallLimits:
        return HASTY if self.is_endless else PATIENT


def page(text: str = "<html><body>hello</body></html>", status: int = 200) -> Reply:
    return Reply(text, status, "text/html;charset=utf-8")


class Replay:
    """Use as a context manager; ``url`` is its address, ``heard`` all requests in order."""

    def __init__(self, answer: Callable[[Heard], Reply] | Reply) -> None:
        self.answer = answer if callable(answer) else (lambda _heard: answer)
        self.heard: list[Heard] = []
        self.stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def _serve(self) -> None:
                outer._serve(self)

            do_GET = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  # http.server's names

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_: object) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> Replay:
        self.thread = threading.Thread(target=self.server.serve_forever, args=(STOPS_S,), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(5)

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        heard = Heard(
            handler.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            dict(handler.headers.items()),
            self._body(handler),
        )
        self.heard.append(heard)
        self._send(handler, self.answer(heard))

    def _body(self, handler: BaseHTTPRequestHandler) -> bytes:
        if handler.headers.get("Transfer-Encoding", "") == "chunked":
            body = b""
            while size := int(handler.rfile.readline().strip() or b"0", 16):
                body += handler.rfile.read(size)
                handler.rfile.readline()
            handler.rfile.readline()
            return body
        return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.delay_s and self.stopping.wait(reply.delay_s):
            return
        if reply.raw:
            handler.wfile.write(reply.raw)
            handler.close_connection = True
            return
        body = reply.body.encode() if isinstance(reply.body, str) else reply.body
        handler.send_response_only(reply.status)
        if reply.kind:
            handler.send_header("Content-Type", reply.kind)
        for name, value in reply.headers:
            handler.send_header(name, value)
        if reply.endless:
            self._send_endlessly(handler, reply.endless)
            return
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        with contextlib.suppress(OSError):
            if reply.drip_s:
                for at in range(len(body)):
                    handler.wfile.write(body[at : at + 1])
                    if self.stopping.wait(reply.drip_s):
                        return
            elif reply.cut >= 0:
                handler.wfile.write(body[: reply.cut])
                handler.wfile.flush()
                handler.close_connection = True
                handler.connection.shutdown(socket.SHUT_RDWR)
            else:
                handler.wfile.write(body)

    def _send_endlessly(self, handler: BaseHTTPRequestHandler, part: bytes) -> None:
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.end_headers()
            while not self.stopping.is_set():
                handler.wfile.write(part)


def routes(table: dict[str, Reply | str | bytes]) -> Callable[[Heard], Reply]:
    """Answer by ``METHOD /path`` (or ``/path`` for GET); 404 as Hadoop's for the rest."""

    def answer(heard: Heard) -> Reply:
        key = heard.path if heard.method == "GET" else f"{heard.method} {heard.path}"
        found = table.get(key)
        if found is None:
            return Reply(
                '{"RemoteException":{"exception":"NotFoundException","message":"no such path"}}', 404
            )
        return found if isinstance(found, Reply) else Reply(found)

    return answer


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
