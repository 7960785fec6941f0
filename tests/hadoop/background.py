"""A ``Web`` of the live emulator, served by a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import TypeVar

import uvloop

from emulator.live.wire.http_server import LOOPBACK, Server, bind, host_of, url_of
from emulator.live.wire.web import Web

T = TypeVar("T")

WAIT_MAX_S = 60.0
"""How long starting and ending may take before it counts as failed."""


class Background:
    """A ``Web`` that is served by a thread of its own: for tests, and beside a program.

    Use as a context; ``url`` is its base URL. The web is made by ``build`` (given the URL) on the server's
    thread; what it touches is touched there only: other threads go through ``run``.
    """

    def __init__(self, build: Callable[[str], Web], host: str = LOOPBACK, port: int = 0) -> None:
        self._listener = bind(host, port)
        self.url = url_of(self._listener)
        self._build = build
        self._server: Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._up: Future[None] = Future()
        self._thread = threading.Thread(target=self._live, name=f"serving {self.url}", daemon=True)

    def __enter__(self) -> Background:
        """Start, and return once it answers."""
        self._thread.start()
        self._up.result(WAIT_MAX_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and return once it is gone."""
        self.stop()

    def stop(self) -> None:
        """End the server; what is connected is cut off after a moment."""
        if self._server is not None and self._loop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop has just ended by itself
                self._loop.call_soon_threadsafe(self._server.end)
        self._thread.join(WAIT_MAX_S)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._thread.name} did not end")

    def run(self, function: Callable[[], T]) -> T:
        """Run a function on the server's thread and return what it returns."""
        assert self._loop is not None

        async def there() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(there(), self._loop).result(WAIT_MAX_S)

    def _live(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if self._up.done():
                raise
            self._up.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        host = host_of(self._listener)
        self._server = Server(self._build(self.url), host, lambda: self._up.set_result(None))
        await self._server.serve([self._listener])
