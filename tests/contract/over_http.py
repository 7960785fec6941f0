"""Over HTTP: how a host in real time is asked, whoever serves it.

Law: one connection a question, no redirect followed, nothing mended on the way.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.contract.host import Answer

ANSWER_S = 60.0


class OverHttp:
    """What every host in real time has in common."""

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> Answer:
        """Ask once, on a connection of its own."""
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_S)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", body, dict(headers))
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, told, answer.read())
        finally:
            connection.close()

    def now_s(self) -> float:
        """Return real time."""
        return time.monotonic()

    def wait(self, span_s: float) -> None:
        """Let real time pass: the pace of a poll."""
        time.sleep(span_s)
