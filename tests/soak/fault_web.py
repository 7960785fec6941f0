"""Bad weather: breaks the answers that yarnctl gets, in the ways networks and proxies break them.

Law: it stands in front of the cluster's one port and touches only what yarnctl itself asks (by its user
name); jobs, nodes and the campaign's own questions pass. Every request that met a fault is counted under its
kind.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from typing import Any, NamedTuple

from emulator.live.programs.manager_program import SUPERUSER
from emulator.live.store.webhdfs_server import Fault, break_answer, cut, dripping, gone
from emulator.live.wire.web import Receive, Scope, Send, Web
from tests.soak.fault_plan import HTTP_KINDS

FAULTS: dict[str, dict[str, Any]] = {
    "http-500": {"status": 500},
    "http-time-out": {"delay_ms": 2500},
    "http-garbage": {"garbage": True},
    "http-slow-drip": {"drip_ms": 5},
    "http-lost-answer": {},
}
LOST = "http-lost-answer"
assert set(FAULTS) == set(HTTP_KINDS)


class KillAsked(NamedTuple):
    """yarnctl asked a master to end an attempt; ``status`` 200: it will (0: nobody knows)."""

    attempt: str
    at_ms: int
    status: int


def target_of(path: str) -> str:
    """Say whose answer a request asks for."""
    if path.startswith("/proxy/"):
        return "am"
    return "hdfs" if path.startswith("/webhdfs/") else "rm"


class BadWeather(Web):
    """A Web in front of another. ``begin`` and ``end`` may be called from any thread."""

    def __init__(self, inner: Web) -> None:
        super().__init__()
        self.inner = inner
        self.on_start, self.on_stop = inner.on_start, inner.on_stop
        self.struck: Counter[str] = Counter()
        self.kills: list[KillAsked] = []
        self._now: dict[str, str] = {}
        self._lock = threading.Lock()

    def begin(self, kind: str, target: str) -> None:
        """From now on the target's answers are broken in this way."""
        with self._lock:
            self._now[target] = kind

    def end(self, target: str) -> None:
        with self._lock:
            self._now.pop(target, None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        ours = scope["type"] == "http" and f"user.name={SUPERUSER}".encode() in scope["query_string"]
        if not ours:
            await self.inner(scope, receive, send)
            return
        kind = self._now.get(target_of(scope["path"]))
        if kind is not None:
            self.struck[kind] += 1
            if kind == LOST:
                await self._really(scope, receive, _nowhere)
                cut(receive)
                await gone(receive)
                return
            fault = Fault(**FAULTS[kind])
            if await break_answer(fault, receive, send):
                return
            if fault.drip_ms:
                send = dripping(send, fault.drip_ms)
        try:
            await self._really(scope, receive, send)
        except asyncio.CancelledError:  # the end of the server, in the middle of a slow answer
            return

    async def _really(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have it answered; note it if it ended an attempt."""
        if scope["method"] == "PUT" and scope["path"].endswith("/state"):
            send = self._noting(scope["path"], send)
        await self.inner(scope, receive, send)

    def _noting(self, path: str, send: Send) -> Send:
        attempt = path.rsplit("/", 2)[1]

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.kills.append(KillAsked(attempt, time.time_ns() // 1_000_000, message["status"]))
            await send(message)

        return noted


async def _nowhere(_: Any) -> None:
    """Take an answer that nobody will get."""
