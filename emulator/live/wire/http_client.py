"""The HTTP client of the live emulator: nodes, masters, the proxy and submission call through it.

Law: made for thousands of small calls a second from one event loop: a protocol and a parser (httptools), no
task and no future per call. A call is made once, and once more only if a kept connection turns out to be
closed before a byte of its answer came; a caller that repeats calls numbers them. Answers are bounded, and a
call without an answer in time is over: its connection is closed. ``HttpPool`` keeps connections and calls
back; ``exchange`` is one call on a connection of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import httptools

from yarnctl.errors import BadInput

LARGEST_ANSWER = 16 * 1024 * 1024

Answered = Callable[[int, bytes], None]
"""Called once with the status and the body; status 0: no answer, and the body has the reason."""


class Address:
    """Where a base URL leads: http only."""

    def __init__(self, url: str, where: str = "--rm") -> None:
        try:
            parts = urlsplit(url if "//" in url else f"http://{url}")
            port = parts.port
            if any(each.isspace() for each in url):
                raise ValueError("a blank in it")
        except ValueError as error:
            raise BadInput(f"{where} {url}", str(error), "use http://HOST:PORT") from None
        if parts.scheme != "http" or not parts.hostname or parts.username:
            raise BadInput(f"{where} {url}", "is not a plain http address", "use http://HOST:PORT")
        self.host = parts.hostname
        self.port = port or 80
        self.netloc = parts.netloc
        self.prefix = parts.path.rstrip("/")
        self.url = f"http://{parts.netloc}{self.prefix}"


class _Connection(asyncio.Protocol):
    """One connection, one call at a time; ``answered`` waits for its answer."""

    def __init__(self, owner: HttpPool | _OneCall, largest_bytes: int = LARGEST_ANSWER) -> None:
        self._owner = owner
        self._largest_bytes = largest_bytes
        self._transport: asyncio.WriteTransport | None = None
        self.answered: Answered | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._size = 0
        self._keep = True
        self._answered_before = False
        self._request = b""
        self.deadline_s = 0.0

    def call(self, request: bytes, answered: Answered, deadline_s: float) -> None:
        """Send a request; ``answered`` is called when its answer is whole, or nothing comes any more."""
        assert self._transport is not None
        self.answered = answered
        self._request = request
        self.deadline_s = deadline_s
        self._transport.write(request)

    def give_up(self, why: str) -> None:
        """Close; the call that waits has no answer."""
        if self._transport is not None:
            self._transport.abort()
        self._settle(0, why.encode())

    def close(self) -> None:
        """Close once everything is sent; the call that waits has no answer."""
        if self._transport is not None:
            self._transport.close()
        self._settle(0, b"closed")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self._request = b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.give_up(
                "too large an answer" if self._size > self._largest_bytes else f"no HTTP answer: {error}"
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.lost(self)
        if self.answered is not None and self._answered_before and self._request:
            answered, self.answered = self.answered, None
            self._owner.repeat(self._request, answered, self.deadline_s)
        self._settle(0, str(exc or "the connection was closed").encode())

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._largest_bytes:
            raise ValueError("too large")  # ends the parser
        self._body.append(body)

    def on_message_complete(self) -> None:
        status, body = self._parser.get_status_code(), b"".join(self._body)
        self._body, self._size = [], 0
        self._keep = self._parser.should_keep_alive()
        self._answered_before = True
        self._settle(status, body)

    def _settle(self, status: int, body: bytes) -> None:
        answered, self.answered = self.answered, None
        if answered is None:
            return
        transport = self._transport
        if transport is not None and not transport.is_closing():
            if self._keep:
                self._owner.free(self)
            else:
                transport.close()
        answered(status, body)


class HttpPool:
    """Connections to one address; up to ``connections`` calls at a time, the others wait their turn.

    ``timeout_s`` is what a call may take, its waiting included.
    """

    def __init__(self, address: Address, *, connections: int = 256, timeout_s: float = 10.0) -> None:
        self.address = address
        self._connections = connections
        self._timeout_s = timeout_s
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self.opened = 0
        self._opening = 0
        self._openers: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[bytes, Answered, float]] = deque()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False
        self._head = (
            f" HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\nContent-Length: "
        )

    def post(self, path: str, body: bytes, answered: Answered) -> None:
        """POST a JSON body to a path below the address."""
        head = f"POST {self.address.prefix}{path}{self._head}{len(body)}\r\n\r\n"
        request, deadline_s = head.encode() + body, time.monotonic() + self._timeout_s
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._timeout_s / 4, self._check_deadlines)
        if self._idle:
            self._idle.pop().call(request, answered, deadline_s)
            return
        self._waiting.append((request, answered, deadline_s))
        self._open_another()

    def _open_another(self) -> None:
        """Open a connection for calls that wait, if there may be one more."""
        if len(self._all) + self._opening < self._connections and self._opening < len(self._waiting):
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._open())
            self._openers.add(task)
            task.add_done_callback(self._openers.discard)

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            connecting = loop.create_connection(
                lambda: _Connection(self), self.address.host, self.address.port
            )
            _, connection = await asyncio.wait_for(connecting, self._timeout_s)
        except (OSError, TimeoutError) as error:
            self._opening -= 1
            if not self._all:  # no connection: no call that waits here will be sent
                self._fail_waiting(str(error) or type(error).__name__)
            return
        self._opening -= 1
        self._all.add(connection)
        self.opened += 1
        self.free(connection)

    def _fail_waiting(self, why: str) -> None:
        failed, self._waiting = self._waiting, deque()
        for _, answered, _ in failed:
            answered(0, why.encode())

    def free(self, connection: _Connection) -> None:
        """A connection can carry the next call."""
        if self._waiting:
            connection.call(*self._waiting.popleft())
        else:
            self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        """A connection is gone."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting:
            self._open_another()

    def repeat(self, request: bytes, answered: Answered, deadline_s: float) -> None:
        """A call was made on a kept connection that was closed already: make it once more."""
        self._waiting.appendleft((request, answered, deadline_s))
        self._open_another()

    def _check_deadlines(self) -> None:
        self._sweep = None
        now_s = time.monotonic()
        for connection in [each for each in self._all if each.answered and each.deadline_s < now_s]:
            connection.give_up(f"no answer within {self._timeout_s:g} s")
        while self._waiting and self._waiting[0][2] < now_s:
            self._waiting.popleft()[1](0, f"no answer within {self._timeout_s:g} s".encode())
        if not self._closed and (self._all or self._waiting or self._opening):
            self._sweep = asyncio.get_running_loop().call_later(self._timeout_s / 4, self._check_deadlines)

    def close(self) -> None:
        """Close all connections; calls that wait have no answer."""
        self._closed = True
        for task in self._openers:
            task.cancel()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._all):
            connection.close()
        self._fail_waiting("closed")


class _OneCall(_Connection):
    """A connection for one call, whose answer's headers are kept."""

    def __init__(self, largest_bytes: int) -> None:
        super().__init__(self, largest_bytes)
        self.headers: dict[str, str] = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def free(self, connection: _Connection) -> None:
        """The call is over."""
        connection.close()

    def lost(self, connection: _Connection) -> None:
        """No other call waits for it."""

    def repeat(self, request: bytes, answered: Answered, deadline_s: float) -> None:
        """Its connection is new: nothing is repeated."""


async def exchange(
    address: Address,
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    largest_bytes: int = LARGEST_ANSWER,
) -> tuple[int, dict[str, str], bytes]:
    """Ask a server once, on a connection of its own; ``target`` is path and query below the address, as sent.

    Returns status, headers (names in small letters) and body. Raises OSError if there is no whole answer
    within the bound. The caller bounds the time.
    """
    loop = asyncio.get_running_loop()
    lines = [f"{method} {address.prefix}{target} HTTP/1.1", f"Host: {address.netloc}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
    answered: asyncio.Future[tuple[int, bytes]] = loop.create_future()

    def heard(status: int, data: bytes) -> None:
        if not answered.done():
            answered.set_result((status, data))

    _, connection = await loop.create_connection(lambda: _OneCall(largest_bytes), address.host, address.port)
    try:
        connection.call("\r\n".join(lines).encode("latin-1") + body, heard, 0.0)
        status, data = await answered
    finally:
        connection.close()
    if not status:
        raise ConnectionError(data.decode(errors="replace"))
    return status, connection.headers, data
