"""Over HTTP: how a host in real time is asked, whoever serves it.

Law: one connection a question, no redirect followed, nothing mended on the way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tests import http_client
from tests.contract.host import Answer


class OverHttp:
    """What every host in real time has in common."""

    def ask(self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = {}) -> Answer:
        """Ask once, on a connection of its own."""
        answer = http_client.bare(method, url, body, headers)
        return Answer(
            answer.status, {name.lower(): each for name, each in answer.headers.items()}, answer.body
        )

    def now_s(self) -> float:
        return time.monotonic()

    def wait(self, span_s: float) -> None:
        """Let real time pass: the pace of a poll."""
        time.sleep(span_s)
