"""The proxy: /proxy/{application}/... leads to the AM's REST (facts, section 2.2).

Law: GET and PUT only; of the caller's headers only Content-Type and Accept travel, and who asks as the cookie
``proxy-user``. An application that does not run is a redirect to a page. The AM is not trusted either: its
answer is bounded in size and time. An AM in this process is called directly, without a socket.
"""

from __future__ import annotations

import asyncio
from html import escape

from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import FINAL, AppRecord
from emulator.live.wire.hadoop_request import caller, missing
from emulator.live.wire.http_client import Address, exchange
from emulator.live.wire.web import Reply, Web, WebRequest, json_reply
from yarnctl.errors import BadInput

PASSED_ON = {b"content-type": "Content-Type", b"accept": "Accept"}
LARGEST_ANSWER_BYTES = 64 << 20
HTML = "text/html;charset=utf-8"


class Proxy:
    """Forwards to masters. ``local``: tracking URL -> the AM's web, for masters of this process."""

    def __init__(self, manager: LiveResourceManager, url: str, timeout_s: float = 60.0) -> None:
        self._manager = manager
        self._url = url
        self.timeout_s = timeout_s
        self.local: dict[str, Web] = {}

    async def forward(self, request: WebRequest) -> Reply:
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
        asked = WebRequest(request.method, path, request.raw_query, headers, request.body)
        local = self.local.get(attempt.tracking_url)
        if local is not None:
            return await local.answer(asked)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await _exchange(attempt.tracking_url, asked)
        except TimeoutError:
            return _error(504, f"the AM of {name} did not answer within {self.timeout_s:g} s")
        except (OSError, ValueError, BadInput) as problem:
            return _error(502, f"the AM of {name} cannot be reached: {type(problem).__name__}")

    def refuse(self, request: WebRequest) -> Reply:
        """Answer every other method: the proxy is a servlet, and says no in its own words."""
        said = f"HTTP method {request.method[:20]} is not supported by this URL"
        told = {"servlet": "proxy", "message": said, "url": request.path[:300], "status": "405"}
        return json_reply(told, 405)

    def page(self, request: WebRequest) -> Reply:
        """Answer /cluster/app/{application}: what a browser is redirected to."""
        app = self._manager.find(request.values[0])
        if app is None:
            raise missing(f"app with id: {request.values[0][:60]} not found")
        return Reply(200, _page(app).encode(), HTML)


async def _exchange(base: str, request: WebRequest) -> Reply:
    """Ask the AM at a tracking URL. What was decoded into a line break never gets there (raw path and query).

    Raises OSError, ValueError, BadInput.
    """
    if not base.startswith("http://"):
        raise ValueError("the tracking URL is none of http")
    target = request.path + ("?" + request.raw_query.decode("latin-1") if request.raw_query else "")
    headers = {PASSED_ON.get(key, "Cookie"): value.decode("latin-1") for key, value in request.headers}
    address = Address(base, "tracking URL")
    found = await exchange(address, request.method, target, headers, request.body, LARGEST_ANSWER_BYTES)
    location = found.headers.get("location")
    more = (("Location", location),) if location else ()
    return Reply(found.status, found.body, found.headers.get("content-type", ""), more)


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
