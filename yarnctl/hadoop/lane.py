"""The lane: plain GETs over kept connections, for a loop that asks the same daemon many times a second.

Law: as bounded as a session (the same reader keeps time and counts bytes), and nothing but GET over http
without authentication, cookies or repeats: all else goes by ``requests``. A long list is decoded while the
rest of it is still on its way.

What is HTTP here is read by the standard library's ``http.client``, and connections are made by urllib3, as
under ``requests``; only the layers in between are left out. A small answer costs 0.1 ms of processor time
so, 0.3 by urllib3's pool, 0.6 by ``requests``. The pool also hands a body out in copies only: with it a look
at 10 MB (``http-tick``) took 8 ms more. A header reader of our own would save 1 ms of 42: not worth a second
reader of what strangers send.

A kept connection that the daemon has closed meanwhile is replaced once; that is no repeat, because nothing
of an answer had come.
"""

from __future__ import annotations

import http.client
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from urllib3.connection import HTTPConnection
from urllib3.util.wait import wait_for_read

from yarnctl.hadoop.session import HEADERS, Limits, TooLarge, metered
from yarnctl.hadoop.shapes import Arriving, Many

STEP_BYTES = 256 << 10
KEPT_BYTES = 64 << 20
"""A buffer above this is not kept for the next answer."""
HEAD_BYTES = 256
KEPT_CONNECTIONS = 16


class Encoded(Exception):
    """The answer is compressed, although nobody asked for that: the session can read it."""


class Got(NamedTuple):
    """An answer. ``value`` is not None if the body was read as a list; ``body`` is then its beginning."""

    status: int
    kind: str
    location: str
    body: bytes
    value: list[Any] | None


class Lane:
    """Connections to one address. Raises what sockets, http.client and urllib3's connections raise."""

    def __init__(self, base: str, limits: Limits) -> None:
        parts = urlsplit(base)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._limits = limits
        self._response = metered(limits)
        self._idle: list[HTTPConnection] = []
        self._buffers: list[bytearray] = []
        fixed = {"Host": parts.netloc, **HEADERS, "Accept-Encoding": "identity"}
        self._fixed = "".join(f"{name}: {value}\r\n" for name, value in fixed.items())

    def get(self, target: str, accept: str, shape: Many[Any] | None) -> Got:
        """GET a path with its query (printable ASCII); JSON of a 200 is read as ``shape`` while it comes."""
        request = f"GET {target} HTTP/1.1\r\n{self._fixed}Accept: {accept}\r\n\r\n".encode("ascii")
        while self._idle:
            connection = self._idle.pop()
            if wait_for_read(connection.sock, 0):
                connection.close()  # closed from over there, or out of step
                continue
            try:
                response = self._ask(connection, request)
            except ConnectionError:  # RemoteDisconnected is one
                break
            return self._take(connection, response, shape)
        connection = HTTPConnection(self._host, self._port, timeout=self._limits.connect_ms / 1000)
        connection.connect()
        return self._take(connection, self._ask(connection, request), shape)

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _ask(self, connection: HTTPConnection, request: bytes) -> Any:
        try:
            connection.sock.settimeout(self._limits.silence_ms / 1000)
            connection.sock.sendall(request)
            response = self._response(connection.sock, method="GET")
            response.begin()
        except BaseException:
            connection.close()
            raise
        return response

    def _take(self, connection: HTTPConnection, response: Any, shape: Many[Any] | None) -> Got:
        try:
            got = self._read(response, shape)
        except BaseException:
            response.close()
            connection.close()
            raise
        if response.will_close or not response.isclosed() or len(self._idle) >= KEPT_CONNECTIONS:
            response.close()
            connection.close()
        else:
            self._idle.append(connection)
        return got

    def _read(self, response: Any, shape: Many[Any] | None) -> Got:
        fields = response.headers
        if fields.get("Content-Encoding", "").lower() not in ("", "identity"):
            raise Encoded
        kind = fields.get("Content-Type", "").partition(";")[0].strip().lower()
        location = fields.get("Location", "")
        value: list[Any] | None = None
        if (response.length or 0) > self._limits.answer_bytes:
            raise self._too_large()
        long = response.length is None or response.length > STEP_BYTES
        if shape is not None and long and response.status == 200 and kind.endswith("json"):
            body, value = self._arriving(response, shape)
        else:
            body = response.read()
        if len(body) > self._limits.answer_bytes:
            raise self._too_large()
        return Got(response.status, kind, location, body, value)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"longer than {self._limits.answer_bytes} bytes")

    def _arriving(self, response: Any, shape: Many[Any]) -> tuple[bytes, list[Any] | None]:
        """Read and decode a long list side by side, in a buffer that is kept."""
        buffer = self._buffers.pop() if self._buffers else bytearray()
        length, filled, rows = response.length, 0, Arriving(shape)
        try:
            while True:
                wanted = max(length or 0, filled + STEP_BYTES)
                if len(buffer) < wanted:
                    buffer.extend(bytes(wanted - len(buffer) if length else wanted))
                with memoryview(buffer) as whole, whole[filled : filled + STEP_BYTES] as part:
                    count = response.readinto(part)
                if not count:
                    break
                filled += count
                rows.take(buffer, filled)
                if filled > self._limits.answer_bytes:
                    raise self._too_large()
            if length is not None and filled < length:
                raise http.client.IncompleteRead(b"", length - filled)
            value = rows.end(buffer, filled)
            return bytes(buffer[: filled if value is None else HEAD_BYTES]), value
        finally:
            if len(buffer) <= KEPT_BYTES and len(self._buffers) < 2:
                self._buffers.append(buffer)
