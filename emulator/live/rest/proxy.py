"""The proxy: /proxy/{application}/... leads to the AM's REST (facts, section 2.2).

Law: GET and PUT only; of the caller's headers only Content-Type and Accept travel, and who asks as the cookie
``proxy-user``. An application that does not run is a redirect to a page. The AM is not trusted either: its
answer is bounded in size and time. An AM in this process is called directly, without a socket.
"""

from __future__ import annotations

import asyncio
from html import escape
from urllib.parse import urlsplit

import httptools

from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import FINAL, AppRecord
from emulator.live.wire.hadoop_request import caller, missing
from emulator.live.wire.web import Reply, Request, Web, json_reply

PASSED_ON = (b"content-type", b"accept")
LARGEST_ANSWER_BYTES = 64 << 20
HTML = "text/html;charset=utf-8"


class Proxy:
    """Forwards to masters. ``local``: tracking URL -> the AM's web, for masters of this process."""

    def __init__(self, manager: LiveResourceManager, url: str, timeout_s: float = 60.0) -> None:
        self._manager = manager
        self._url = url
        self.timeout_s = timeout_s
        self.local: dict[str, Web] = {}

    async def forward(self, request: Request) -> Reply:
        """Answer GET and PUT below /proxy."""
        name, _ = request.values
        app = self._manager.find(name)
        if app is None:
            return _error(404, f"Application {name[:60]} could not be found in the ResourceManager")
        attempt = app.attempt
        if app.state in FINAL or attempt is None or not attempt.registered or not attempt.tracking_url:
            return Reply(302, b"", HTML, (("Location", f"{self._url}/cluster/app/{app.id}"),))
        rest = request.raw_path.split("/", 3)
        path = "/" + (rest[3] if len(rest) > 3 else "")
        user = caller(request)
        headers = [(key, value) for key, value in request.headers if key in PASSED_ON]
        headers.append((b"cookie", f"proxy-user={user}".encode()))
        asked = Request(request.method, path, request.raw_query, headers, request.body)
        local = self.local.get(attempt.tracking_url)
        if local is not None:
            return await local.answer(asked)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await exchange(attempt.tracking_url, asked)
        except TimeoutError:
            return _error(504, f"the AM of {name} did not answer within {self.timeout_s:g} s")
        except (OSError, ValueError, httptools.HttpParserError) as problem:
            return _error(502, f"the AM of {name} cannot be reached: {type(problem).__name__}")

    def refuse(self, request: Request) -> Reply:
        """Answer every other method: the proxy is a servlet, and says no in its own words."""
        said = f"HTTP method {request.method[:20]} is not supported by this URL"
        told = {"servlet": "proxy", "message": said, "url": request.path[:300], "status": "405"}
        return json_reply(told, 405)

    def page(self, request: Request) -> Reply:
        """Answer /cluster/app/{application}: what a browser is redirected to."""
        app = self._manager.find(request.values[0])
        if app is None:
            raise missing(f"app with id: {request.values[0][:60]} not found")
        return Reply(200, _page(app).encode(), HTML)


def _page(app: AppRecord) -> str:
    rows = {
        "Name": app.submission.name,
        "User": app.submission.user,
        "Queue": app.queue,
        "State": app.state,
        "Final status": app.final_status,
        "Diagnostics": app.diagnostics,
    }
    cells = "".join(f"<tr><th>{key}</th><td>{escape(value)}</td></tr>" for key, value in rows.items())
    return f"<!doctype html><title>Application {app.id}</title><h1>{app.id}</h1><table>{cells}</table>"


def _error(status: int, message: str) -> Reply:
    return Reply(status, f"<!doctype html><title>Error {status}</title><p>{escape(message)}".encode(), HTML)


class _Answer:
    """Collects what the parser finds."""

    def __init__(self) -> None:
        self.kind = ""
        self.parts: list[bytes] = []
        self.location = ""
        self.whole = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-type":
            self.kind = value.decode("latin-1")
        elif name.lower() == b"location":
            self.location = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self.parts.append(body)

    def on_message_complete(self) -> None:
        self.whole = True


async def exchange(base: str, request: Request) -> Reply:
    """Ask a server once, on a connection of its own. Raises OSError, ValueError, HttpParserError."""
    parts = urlsplit(base)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("the tracking URL is none of http")
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    try:
        writer.write(_head(request, parts.netloc, parts.path.rstrip("/")) + request.body)
        answer = _Answer()
        parser = httptools.HttpResponseParser(answer)
        size = 0
        while not answer.whole:
            data = await reader.read(1 << 16)
            size += len(data)
            if not data:
                raise ConnectionResetError("the answer ends in its middle")
            if size > LARGEST_ANSWER_BYTES:
                raise ValueError("the answer is too long")
            parser.feed_data(data)
        headers = (("Location", answer.location),) if answer.location else ()
        return Reply(parser.get_status_code(), b"".join(answer.parts), answer.kind, headers)
    finally:
        writer.close()


def _head(request: Request, host: str, prefix: str) -> bytes:
    """Write a request's head; what was decoded into a line break never gets here (raw path and query)."""
    query = b"?" + request.raw_query if request.raw_query else b""
    lines = [
        f"{request.method} {prefix}{request.path}".encode("latin-1") + query + b" HTTP/1.1",
        b"Host: " + host.encode(),
        b"Content-Length: %d" % len(request.body),
        b"Connection: close",
    ]
    names = {b"content-type": b"Content-Type", b"accept": b"Accept", b"cookie": b"Cookie"}
    lines += [names[key] + b": " + value for key, value in request.headers if key in names]
    return b"\r\n".join(lines) + b"\r\n\r\n"
