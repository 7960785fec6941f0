"""Faults: how a test breaks the emulator's WebHDFS, in the ways a real one breaks.

Law: nothing here happens unless a test (or ``--faults``) asked for it, and what is asked for is counted down,
so that a store recovers without anybody coming back to mend it.
"""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from typing import Any

import msgspec

from emulator.live.wire.web import JSON, Receive, Reply, Send, send_reply


class Fault(msgspec.Struct, forbid_unknown_fields=True):
    """What goes wrong with the next ``count`` requests (-1: with all) whose op is in ``ops`` (none: any).

    ``down``: the connection is cut without an answer. ``status``: this status and a page.
    ``garbage``: 200 and no JSON. ``delay_ms``: the answer comes later. ``drip_ms``: it comes byte by byte.
    ``safe_mode``: what would change something is refused, as by a NameNode in safe mode.
    ``tear_bytes``: an upload is cut off after so many bytes (the file stays as it is then).
    """

    ops: tuple[str, ...] = ()
    count: int = -1
    down: bool = False
    status: int = 0
    garbage: bool = False
    delay_ms: int = 0
    drip_ms: int = 0
    tear_bytes: int = -1
    safe_mode: bool = False


class Faults:
    """The switch. ``now`` is what goes wrong, None: nothing. ``hit`` counts requests that met a fault."""

    def __init__(self) -> None:
        self.now: Fault | None = None
        self.hit = 0

    def take(self, op: str) -> Fault | None:
        """Return the fault for a request, counted down."""
        fault = self.now
        if fault is None or fault.count == 0 or (fault.ops and op not in fault.ops):
            return None
        if fault.count > 0:
            fault.count -= 1
        self.hit += 1
        return fault


def cut(receive: Receive) -> bool:
    """Cut the connection of a request off, where the server (uvicorn) lets it be found."""
    transport = getattr(getattr(receive, "__self__", None), "transport", None)
    if transport is None:
        return False
    transport.abort()
    return True


async def gone(receive: Receive) -> None:
    """Wait until a connection that was cut is seen to be gone (the server would complain of no answer)."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def break_answer(fault: Fault, receive: Receive, send: Send) -> bool:
    """Answer wrongly; False if the fault leaves the answer itself alone."""
    if fault.delay_ms:
        await asyncio.sleep(fault.delay_ms / 1000)
    if fault.down:
        if cut(receive):
            await gone(receive)
        else:
            await send_reply(send, Reply(503))
    elif fault.status:
        await send_reply(send, Reply(fault.status, b"<html>broken on purpose</html>", "text/html"))
    elif fault.garbage:
        await send_reply(send, Reply(200, b'{"Fi\x00\xff<not json', JSON))
    else:
        return False
    return True


def dripping(send: Send, drip_ms: int) -> Send:
    """Return a ``send`` that lets a body out byte by byte."""

    async def slowly(message: MutableMapping[str, Any]) -> None:
        body = message.get("body", b"") if message["type"] == "http.response.body" else b""
        if len(body) < 2:
            await send(message)
            return
        for at in range(len(body)):
            more = message.get("more_body", False) or at + 1 < len(body)
            await send({"type": "http.response.body", "body": body[at : at + 1], "more_body": more})
            await asyncio.sleep(drip_ms / 1000)

    return slowly
