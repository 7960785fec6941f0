"""ETag, ``since`` with ``wait_ms``, and HEAD: for every address that reads the view.

The tag is the version of the view, so that a client which has the newest answer costs no work. What depends
on the view alone is answered once for each view, however many clients request it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import blake2s
from urllib.parse import parse_qs

from yarnctl.daemon.view.published import View
from yarnctl.service.answers.paging import WAIT_MAX_MS
from yarnctl.service.security.asgi import App, Message, Receive, Scope, Send
from yarnctl.service.security.middleware import READER
from yarnctl.service.watching import Watch

PREFIX, STREAM = "/v1/", "/v1/events"
SHARED = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "applications", "budgets", "decisions", "occupancy", "reclaims", "refusals", "report", "snapshot",
        "status", "time-lost",
    )
)  # fmt: skip
"""The addresses of what the page shows; no route there looks at the caller's token."""
SHARED_MAX = 64  # Answers that are kept of a view


class Conditional:
    """ASGI middleware; it runs after the checks of the caller."""

    def __init__(self, app: App, source: Callable[[], View], watch: Watch) -> None:
        self.app = app
        self.source = source
        self.watch = watch
        self._of: View | None = None
        self._kept: dict[tuple[str, bytes, str | None], asyncio.Task[list[Message]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 304 to a client that has the newest answer; otherwise pass the request on."""
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD" and scope["path"] != STREAM:
            scope = {**scope, "method": "GET"}  # uvicorn sends no body for it
        if not scope["path"].startswith(PREFIX) or scope["path"] == STREAM:
            await self.app(scope, receive, send)
            return
        await self._wait(scope)
        tag = self._tag()
        if tag in _tags_of(scope):
            await send({"type": "http.response.start", "status": 304, "headers": [(b"etag", tag)]})
            await send({"type": "http.response.body"})
            return

        async def send_with_tag(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 200:
                message["headers"] = [*message.get("headers", ()), (b"etag", tag)]
            await send(message)

        if scope["path"] not in SHARED:
            await self.app(scope, receive, send_with_tag)
            return
        for message in await self._shared(scope, receive):
            await send_with_tag(dict(message))

    async def _shared(self, scope: Scope, receive: Receive) -> list[Message]:
        """Return the answer to this request, made now, or for an earlier one of the same view and user."""
        view, key = self.source(), (scope["path"], scope["query_string"], READER.get())
        if view is not self._of:
            self._of, self._kept = view, {}
        task = self._kept.get(key)
        if task is None:
            task = asyncio.ensure_future(self._answered(scope, receive))
            if len(self._kept) < SHARED_MAX:
                self._kept[key] = task
        return await asyncio.shield(task)  # others may wait for it

    async def _answered(self, scope: Scope, receive: Receive) -> list[Message]:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(scope, receive, keep)
        return messages

    async def _wait(self, scope: Scope) -> None:
        given = parse_qs(scope["query_string"].decode("latin-1"))
        since, wait_ms = (given.get(name, [""])[0] for name in ("since", "wait_ms"))
        if not (_is_number(since) and _is_number(wait_ms)) or int(wait_ms) > WAIT_MAX_MS:
            return  # the route rejects what cannot be used
        await self.watch.newer(int(since), int(wait_ms) / 1000)

    def _tag(self) -> bytes:
        """Return the tag of the answers to this caller: of the process, the version and the user."""
        view = self.source()
        user = blake2s((READER.get() or "").encode(), digest_size=6).hexdigest()
        return f'W/"{view.loop.started_at_ms:x}-{view.version:x}-{user}"'.encode()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 16


def _tags_of(scope: Scope) -> list[bytes]:
    given = (value for name, value in scope["headers"] if name == b"if-none-match")
    return [each.strip() for value in given for each in value.split(b",")]
