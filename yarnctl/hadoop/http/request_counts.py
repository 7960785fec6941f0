"""Counts the requests that this process sends, for its metrics."""

from __future__ import annotations

from threading import Lock
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

Result = Literal["answered", "rejected", "failed"]
"""``rejected``: an answer with a status of 400 to 499; ``failed``: a higher one, or no whole answer."""


RequestKey = tuple[str, str, Result]
"""Kind of server, address, result."""


class RequestTally(NamedTuple):
    """How many requests were sent, and how long they lasted together, in seconds."""

    number: int
    seconds: float


class RequestCounts:
    """Requests by kind of server, address and result. Any thread may call it."""

    def __init__(self) -> None:
        self._rows: dict[RequestKey, RequestTally] = {}
        self._lock = Lock()

    def add(self, daemon: str, url: str, result: Result, seconds: float) -> None:
        """Count one request to ``daemon`` at the address of ``url``."""
        key = daemon, urlsplit(url).netloc, result
        with self._lock:
            before = self._rows.get(key, RequestTally(0, 0.0))
            self._rows[key] = RequestTally(before.number + 1, before.seconds + seconds)

    def rows(self) -> dict[RequestKey, RequestTally]:
        """Return all counts."""
        with self._lock:
            return dict(self._rows)


REQUESTS = RequestCounts()
"""The requests of all clients of this process."""
