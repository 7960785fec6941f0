"""A trap in a web: requests that count pass a point before and after their effect, and are struck there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from emulator.live.store.webhdfs_server import SECOND_STEP
from emulator.live.wire.web import Receive, Reply, Scope, Send, Web, read_body, send_reply


class Trap:
    """Points by name, each before and after the effect of a request; at ``at`` it calls ``strike`` once.

    ``strike`` runs in a thread while the request waits; ``drop``: a request that was struck before its effect
    never has one.
    """

    def __init__(self) -> None:
        self.at = ""
        self.drop = True
        self.strike: Callable[[], None] = lambda: None
        self.passed: list[str] = []

    def arm(self, at: str, strike: Callable[[], None], *, drop: bool = True) -> None:
        """Strike at the next point of this name."""
        self.strike, self.drop, self.at = strike, drop, at

    async def point(self, name: str) -> bool:
        """Pass a point; return whether it was struck."""
        self.passed.append(name)
        if name != self.at:
            return False
        self.at = ""
        await asyncio.to_thread(self.strike)
        return True


class TrappedWeb(Web):
    """Serves another web; requests that ``name_of`` names pass the trap."""

    def __init__(self, web: Web, trap: Trap, name_of: Callable[[str, str, str, bytes], str]) -> None:
        super().__init__()
        self.on_start, self.on_stop, self.names = web.on_start, web.on_stop, web.names
        self._whole, self._trap, self._name_of = web, trap, name_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http" or scope["method"] == "POST":
            await self._whole(scope, receive, send)
            return
        body = await read_body(receive, 1 << 24) if scope["method"] == "PUT" else b""
        query = scope["query_string"].decode("latin-1")
        name = self._name_of(scope["method"], scope["path"], query, body or b"")
        again = _repeated(body or b"")
        if not name:
            await self._whole(scope, again, send)
            return
        if await self._trap.point(f"{name} sent") and self._trap.drop:
            await send_reply(send, Reply(503))
            return
        answer: list[Any] = []

        async def keep(message: Any) -> None:
            answer.append(message)

        await self._whole(scope, again, keep)
        await self._trap.point(f"{name} done")
        for message in answer:
            await send(message)


def _repeated(body: bytes) -> Receive:
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


_RECORD = re.compile(r"/\.?changes-[^/]*")
_ORDER = re.compile(r"/\.term-[0-9]+/application_[0-9_]+-[0-9]+-(leave|back)-[^/]*")


def of_hdfs(path: str, query: str) -> str:
    """Return what a request to HDFS has to do with a change, "" if nothing."""
    told = parse_qs(query)
    op = told["op"][0].upper()
    if SECOND_STEP not in told and op == "CREATE":
        return ""  # it only asks where
    if _RECORD.search(path):
        is_half = "/.changes-" in path
        if op == "RENAME":
            return "commit" if is_half else "take-over"
        return {"CREATE": "record", "DELETE": "delete", "GETFILESTATUS": "check"}.get(op, "")
    order = _ORDER.search(path)
    if order is None or op not in ("CREATE", "RENAME"):
        return ""
    name = "change" if order[1] == "leave" else "back"
    return name if op == "RENAME" else f"{name}-file"
