"""The tests' HTTP client: requests with a bound on time and no proxy, and a bare exchange.

Law: a test that asks a server over HTTP asks through here. What tests the connection itself (half a request,
a missing Host), measures a library, or runs as a program elsewhere opens its own and stands in ``OTHERS``,
which ``tests/architecture`` compares with what is so.
"""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import requests
from requests import ConnectionError as NoConnection
from requests import Request, RequestException, Response

__all__ = ["NoConnection", "Request", "RequestException", "Response", "Session", "bare", "get", "post", "put"]

LONGEST_S = 60.0

OTHERS = {
    "tests/hadoop/programs/sides.py": "a job's program: runs where this package is not",
    "tests/hadoop/security.py": "looks whether a port is open",
    "tests/docker/jobs/patient_reduce.py": "a job's program: runs where this package is not",
    "tests/docker/test_emulator_compose.py": "looks whether a port is open",
    "tests/live/test_doors.py": "says Host by hand, or not at all",
    "tests/live/test_webhdfs_server.py": "sends half a request",
    "tests/service/test_connections.py": "sends half a request, and reads slowly",
}


class Session(requests.Session):
    """A session that asks directly, whatever the environment says, and waits a minute at most."""

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False

    def request(self, method: str, url: str, *given: Any, **named: Any) -> Response:  # type: ignore[override]
        """Ask; ``timeout`` may be shorter."""
        named.setdefault("timeout", LONGEST_S)
        return super().request(method, url, *given, **named)


def request(method: str, url: str, **named: Any) -> Response:
    with Session() as session:
        return session.request(method, url, **named)


def get(url: str, **named: Any) -> Response:
    return request("GET", url, **named)


def post(url: str, **named: Any) -> Response:
    return request("POST", url, **named)


def put(url: str, **named: Any) -> Response:
    return request("PUT", url, **named)


class Bare(NamedTuple):
    """An answer as it came."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def bare(method: str, url: str, body: bytes | None = None, headers: Mapping[str, str] = {}) -> Bare:
    """Ask on a connection of its own; no redirect is followed, nothing is added or mended on the way."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=LONGEST_S)
    try:
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return Bare(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()
