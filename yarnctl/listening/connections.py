"""Bound the time and the number of connections of a server.

A caller that sends or reads slowly loses its own connection. If there are too many connections, one is
closed: never one with a request that is being answered; first those with an incomplete request, then idle
ones; of each kind the one that has waited longest. So a flood of connections does not block a caller that
sends a whole request at once. Everything here runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

PEER = "yarnctl.peer"  # In the extensions of the ASGI scope: the caller's verified certificate, or None
SWEEPS = 4  # The number of checks for late callers within the shortest bound


class Bounds(NamedTuple):
    """Spans in seconds; 0: no bound.

    ``head_s``: from a connection's beginning, or a request's first byte, to the end of its headers.
    ``body_s``: for the whole body, or for each piece of it (``each_piece``). ``answer_read_s``: how long an
    answer may stay unread by the caller. ``connections_max``: above it a connection that waits is closed.
    """

    head_s: float = 10.0
    body_s: float = 10.0
    each_piece: bool = False
    answer_read_s: float = 0.0
    connections_max: int = 0


class Connections:
    """The open connections of one server."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.open: set[BoundedConnection] = set()
        self.turns = 0
        self.closed_late = 0
        self.closed_for_room = 0
        self._next: asyncio.TimerHandle | None = None
        spans = (bounds.head_s, bounds.body_s, bounds.answer_read_s)
        self._period_s = min((span for span in spans if span), default=0.0) / SWEEPS

    def add(self, connection: BoundedConnection) -> None:
        """Count a connection, and close another one if there are too many."""
        self.open.add(connection)
        most = self.bounds.connections_max
        if most and len(self.open) > most:
            leaving = oldest(each for each in self.open if each is not connection)
            if leaving is None and len(self.open) > 2 * most:
                leaving = connection
            if leaving is not None:
                self.closed_for_room += 1
                self.drop(leaving)
        if self._next is None and self._period_s:
            self._next = connection.loop.call_later(self._period_s, self._sweep, connection.loop)

    def drop(self, connection: BoundedConnection) -> None:
        """Close a connection at once."""
        self.open.discard(connection)
        connection.transport.abort()

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = None
        now_s = loop.time()
        for each in [each for each in self.open if each.is_late(now_s)]:
            self.closed_late += 1
            self.drop(each)
        if self.open:
            self._next = loop.call_later(self._period_s, self._sweep, loop)


def oldest(connections: Iterable[BoundedConnection]) -> BoundedConnection | None:
    """Return the connection to close in favour of another: none that is being answered."""
    waiting = [each for each in connections if each.has_unanswered_request or each.cycle.response_complete]
    return min(waiting, key=lambda each: (not each.has_unanswered_request, each.turn), default=None)


class BoundedConnection(HttpToolsProtocol):
    """A connection of uvicorn with a bound on the time of each part of a request.

    ``has_unanswered_request``: the caller has not yet sent a whole request, or does not read the answer;
    ``until_s``: its deadline for that, by the loop's clock (0: none); ``turn``: the smaller, the earlier the
    wait began.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._among = connections
        self._head_s, self._body_s, self._each_piece, self._taking_s, _ = connections.bounds
        self.has_unanswered_request = False
        self.until_s = 0.0
        self.turn = 0
        self._in_body = False
        self._left_bytes = 0

    def is_late(self, now_s: float) -> bool:
        """Return whether the caller has exceeded its time (not while the server does not read).

        A caller that reads a part of an answer gets the same time for the next part.
        """
        if not self.has_unanswered_request or not 0 < self.until_s < now_s or self.flow.read_paused:
            return False
        left_bytes = self.transport.get_write_buffer_size() if self.flow.write_paused else 0
        if left_bytes < self._left_bytes:
            self._left_bytes = left_bytes
            self.until_s = now_s + self._taking_s
            return False
        return True

    def _wait(self, span_s: float) -> None:
        self.until_s = self.loop.time() + span_s if span_s else 0.0
        if not self.has_unanswered_request:
            self.has_unanswered_request = True
            self._among.turns += 1
            self.turn = self._among.turns

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._name_peer(transport)
        self._wait(self._head_s)
        self._among.add(self)

    def _name_peer(self, transport: asyncio.Transport) -> None:
        """Add the caller's certificate to the scope of its requests; uvicorn itself does not."""
        tls, app = transport.get_extra_info("ssl_object"), self.app
        if tls is None:
            return
        certificate = tls.getpeercert()

        async def with_peer(scope: Any, receive: Any, send: Any) -> None:
            scope.setdefault("extensions", {})[PEER] = certificate
            await app(scope, receive, send)

        self.app = with_peer

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the open ones."""
        self._among.open.discard(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process the data; then check whether the request is complete."""
        HttpToolsProtocol.data_received(self, data)
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and cycle.scope is self.scope and not cycle.more_body:
            self.has_unanswered_request = self._in_body = False
        else:
            self._owe(cycle is not None and cycle.scope is self.scope)

    def _owe(self, in_body: bool) -> None:
        """Note that the rest of the headers or of the body is due; its time runs from its beginning."""
        if self.has_unanswered_request and in_body == self._in_body and not (in_body and self._each_piece):
            return
        self._in_body = in_body
        self._wait(self._body_s if in_body else self._head_s)

    def pause_writing(self) -> None:
        """Wait until the caller reads."""
        super().pause_writing()
        self._left_bytes = self.transport.get_write_buffer_size()
        self._wait(self._taking_s)

    def resume_writing(self) -> None:
        """Stop waiting: the caller has read."""
        super().resume_writing()
        self._left_bytes = 0
        self.has_unanswered_request = False


def protocol(bounds: Bounds) -> type[asyncio.Protocol]:
    """Return a value for ``uvicorn.Config(http=...)``: the connections of one server within these bounds."""
    return cast("type[asyncio.Protocol]", partial(BoundedConnection, connections=Connections(bounds)))
