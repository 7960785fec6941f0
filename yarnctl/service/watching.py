"""Waiting for newer views, for any number of clients at a time, on the service's event loop.

The daemon's loop publishes a view by replacing one reference and notifies nobody. So while clients wait, one
timer here compares one number now and then, and the clients wake only when it has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from yarnctl.daemon.view.published import View

PERIOD_S = 0.1


class Watch:
    """The clients that wait for a newer view. ``source`` returns the newest one."""

    def __init__(self, source: Callable[[], View]) -> None:
        self.closed = False
        self._source = source
        self._next: asyncio.Future[None] | None = None
        self._seen = 0

    def close(self) -> None:
        """Release all clients within a period, and those to come at once. Any thread may call it."""
        self.closed = True

    async def newer(self, version: int, wait_s: float) -> None:
        """Return when a view newer than ``version`` is published, or after ``wait_s`` seconds."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while self._source().version <= version and not self.closed:
            left_s = until_s - loop.time()
            if left_s <= 0:
                return
            if self._next is None:
                self._next, self._seen = loop.create_future(), self._source().version
                loop.call_later(PERIOD_S, self._look, loop)
            await asyncio.wait({self._next}, timeout=left_s)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._source().version == self._seen and not self.closed:
            loop.call_later(PERIOD_S, self._look, loop)
        elif self._next is not None:
            self._next.set_result(None)
            self._next = None
