"""``GET /v1/events``: server-sent events, from a cursor on.

What a client has not read is not kept for it: each stream holds one cursor, reads the next events from the
view when the client has taken the last ones, and is told if some are no longer kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import msgspec
from fastapi import APIRouter, Header, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from pydantic import Field

from yarnctl.api.event_answers import EventOut
from yarnctl.daemon.view.published import View
from yarnctl.service.answers.error_body import ApiProblem, responses
from yarnctl.service.answers.event_log import CURSOR, after, newest
from yarnctl.service.answers.paging import WAIT_MAX_MS, Parameters
from yarnctl.service.security.middleware import READER
from yarnctl.service.watching import Watch

STREAMS_MAX = 128
OWN_STREAMS_MAX = 16  # Of one user with the scope own
BATCH = 100  # Events that one stream holds at a time
SILENCE_S = 15.0  # Then a comment shows that the stream still exists
EVENT_STREAM = "text/event-stream"

Cursor = Annotated[str, Field(pattern=CURSOR)]


class EventsQuery(Parameters):
    """Where a stream begins and ends."""

    cursor: Annotated[
        Cursor | None,
        Field(description="Begin after it; `0`: at the oldest event that is kept; default: now."),
    ] = None
    limit: Annotated[int | None, Field(ge=1, description="End after this many events.")] = None
    wait_ms: Annotated[
        int | None, Field(ge=0, le=WAIT_MAX_MS, description="End after this time without an event.")
    ] = None


def event_routes(source: Callable[[], View], watch: Watch) -> APIRouter:
    """Return the route of events."""
    router = APIRouter(prefix="/v1", tags=["reading"], responses=responses(401, 421, 503))
    streams: dict[object, str | None] = {}

    @router.get(
        "/events",
        response_class=StreamingResponse,
        responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}},
    )
    async def events(
        query: Annotated[EventsQuery, Query()], last_event_id: Annotated[Cursor | None, Header()] = None
    ) -> StreamingResponse:
        """What happens, as server-sent events; a stream that was lost continues where it ended."""
        if len(streams) >= STREAMS_MAX:
            message = f"{STREAMS_MAX} streams of events are open"
            raise ApiProblem(503, "too-many-streams", message, "retry later, or close another stream")
        user = READER.get()
        if user is not None and sum(each == user for each in streams.values()) >= OWN_STREAMS_MAX:
            message = f"{OWN_STREAMS_MAX} streams of events of user {user} are open"
            raise ApiProblem(503, "too-many-streams", message, "close another stream")
        cursor = last_event_id or query.cursor or newest(await _seen(source))
        body = _stream(source, watch, query, cursor, streams)
        return StreamingResponse(body, media_type=EVENT_STREAM, headers={"X-Accel-Buffering": "no"})

    return router


async def _seen(source: Callable[[], View]) -> View:
    """Return the newest view. That of one user takes long to make, so a thread makes it."""
    return source() if READER.get() is None else await run_in_threadpool(source)


async def _stream(
    source: Callable[[], View],
    watch: Watch,
    query: EventsQuery,
    cursor: str,
    streams: dict[object, str | None],
) -> AsyncIterator[bytes]:
    this, left, clock_s = object(), query.limit, asyncio.get_running_loop().time
    silence_s = SILENCE_S if query.wait_ms is None else query.wait_ms / 1000
    spoke_s = clock_s()
    streams[this] = READER.get()
    try:
        yield f": from {cursor}\nretry: 3000\n\n".encode()
        while (left is None or left > 0) and not watch.closed:
            view = await _seen(source)
            part = after(view, cursor, BATCH if left is None else min(BATCH, left))
            if part.is_gap:
                yield b"event: gap\ndata: {}\n\n"
            cursor = part.last
            if part.events:
                yield b"".join(map(_written, part.events))
                left = None if left is None else left - len(part.events)
                spoke_s = clock_s()
            elif clock_s() < spoke_s + silence_s:
                await watch.newer(view.version, spoke_s + silence_s - clock_s())
            elif query.wait_ms is not None:
                return
            else:
                yield b": still here\n\n"
                spoke_s = clock_s()
    finally:
        del streams[this]


def _written(event: EventOut) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (
        event.cursor.encode(),
        event.kind.encode(),
        msgspec.json.encode(event),
    )
