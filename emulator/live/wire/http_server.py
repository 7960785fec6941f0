"""Serving: a ``Web`` on uvicorn, in the foreground of a program or in the background of a test.

Law: loopback by default. Every application is behind a guard, since it runs commands: only
names that the server listens on, advertises or was given are answered, and no page of another origin
(:mod:`yarnctl.listening.names`). It costs a request one check of its headers and no await of its own. The
port is bound before anything else is started, so a port that is taken is one clear error, and port 0 gives
the port it became. SIGTERM and SIGINT end it in order, exit 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable
from concurrent.futures import Future
from email.utils import formatdate
from types import TracebackType
from typing import TypeVar
from urllib.parse import urlsplit

import uvicorn
import uvloop

from emulator.live.wire.web import HttpProblem, Raw, Receive, Scope, Send, Web, remote_exception, send_reply
from yarnctl.errors import BadInput
from yarnctl.listening.connections import Bounds, protocol
from yarnctl.listening.names import BAD_HOST, Answered, RefusedRequest, name_of, names_for

T = TypeVar("T")

LOOPBACK = "127.0.0.1"
BACKLOG = 4096
KEEP_ALIVE_S = 75
BOUNDS = Bounds(head_s=30.0, body_s=60.0, each_piece=True)
"""Thousands of nodes keep a connection each, and large bodies take long: their number is not bounded."""
LAST_ANSWERS_S = 2.0
DATE_EVERY_S = 0.5
"""Hadoop's answers carry a Date, to the second; so do ours."""
HOST_REMEDY = "use the address it listens at, or start it with --allow-host NAME"
ORIGIN_REMEDY = "ask without an Origin header"
WAIT_MAX_S = 60.0
"""How long starting and ending may take before it counts as failed."""


def guarded(web: Raw, host: str, names: Iterable[str] = ()) -> Raw:
    """Return an application behind its guard; the server listens on ``host`` and advertises ``names``."""
    own = frozenset(name.lower() for name in names if name)
    why_not = Answered(names_for(host) | own).why_not
    # Bound once: to look it up for each request would cost as much as the guard itself.
    answer: Raw = web.__call__  # type: ignore[operator]

    def guard(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            refused = why_not(scope["headers"])
            if refused is not None:
                return send_reply(send, remote_exception(_refusal(refused)))
        return answer(scope, receive, send)

    return guard


def name_in(url: str) -> str:
    """Return the host of a URL as it is in a Host header, "" if it has none."""
    return name_of(urlsplit(url).netloc.rpartition("@")[2])


def _refusal(refused: RefusedRequest) -> HttpProblem:
    remedy = HOST_REMEDY if refused is BAD_HOST else ORIGIN_REMEDY
    return HttpProblem(refused.status, "AuthorizationException", f"{refused.problem}; {remedy}")


def bind(host: str, port: int) -> socket.socket:
    """Return a bound socket; raises BadInput if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadInput(f"address {host}:{port}", why, "use another --port or --host") from None
    return listener


def _host_of(listener: socket.socket) -> str:
    return str(listener.getsockname()[0])


def url_of(listener: socket.socket) -> str:
    """Return the base URL of a bound socket; a wildcard address is loopback."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104  # recognised, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    def __init__(self, web: Web, host: str, started: Callable[[], object]) -> None:
        config = uvicorn.Config(
            guarded(web, host, web.names),
            interface="asgi3",
            loop="uvloop",
            http=protocol(BOUNDS),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            date_header=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
        )
        super().__init__(config)
        self._web = web
        self._log = started
        self._asked_to_end = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await _run(self._web.on_start)
        await super().startup(sockets)
        self._log()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nothing more, and finish running answers, for a moment; uvicorn would sleep."""
        for server in self.servers:
            server.close()
        for listener in sockets or ():
            listener.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        tasks = set(self.server_state.tasks)
        if tasks and not self.force_exit:
            await asyncio.wait(tasks, timeout=LAST_ANSWERS_S)
        for task in tasks:
            task.cancel()
        await _run(self._web.on_stop)

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """End in order by a signal; unlike uvicorn do not raise it again, so that the exit is 0."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, self.end)
        try:
            yield
        finally:
            for one in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(one)

    async def main_loop(self) -> None:
        """Wait for the end, keeping the answers' Date; uvicorn would check ten times a second."""
        while not self._asked_to_end.is_set():
            now = formatdate(time.time(), usegmt=True).encode()
            self.server_state.default_headers = [(b"date", now), *self.config.encoded_headers]
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._asked_to_end.wait(), DATE_EVERY_S)

    def end(self) -> None:
        """Ask for the end; asked again, do not wait for connections."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._asked_to_end.set()


async def _run(hooks: list[Callable[[], object]]) -> None:
    for hook in hooks:
        result = hook()
        if inspect.isawaitable(result):
            await result


def serve(
    web: Web,
    listener: socket.socket,
    started: Callable[[], object] = lambda: None,
    serve_also: tuple[tuple[Web, socket.socket], ...] = (),
) -> None:
    """Serve until SIGTERM or SIGINT. ``started`` is called once everything answers.

    ``serve_also``: more applications on the same event loop, each with its bound socket.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve_all(((web, listener), *serve_also), started))


async def _serve_all(sites: tuple[tuple[Web, socket.socket], ...], started: Callable[[], object]) -> None:
    waiting = len(sites)

    def one_started() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            started()

    servers = [_Server(web, _host_of(listener), one_started) for web, listener in sites]
    if len(servers) == 1:
        await servers[0].serve([sites[0][1]])
        return

    def end_all() -> None:
        for server in servers:
            server.end()

    loop = asyncio.get_running_loop()
    main = threading.current_thread() is threading.main_thread()
    for one in (signal.SIGINT, signal.SIGTERM) if main else ():
        loop.add_signal_handler(one, end_all)
    async with asyncio.TaskGroup() as group:
        for server, (_, listener) in zip(servers, sites, strict=True):
            group.create_task(server._serve([listener]))


class Background:
    """A ``Web`` that is served by a thread of its own: for tests, and beside a program.

    Use as a context; ``url`` is its base URL. The web is made by ``build`` (given the URL) on the server's
    thread; what it touches is touched there only: other threads go through ``run``.
    """

    def __init__(self, build: Callable[[str], Web], host: str = LOOPBACK, port: int = 0) -> None:
        self._listener = bind(host, port)
        self.url = url_of(self._listener)
        self._build = build
        self._server: _Server | None = None
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
        host = _host_of(self._listener)
        self._server = _Server(self._build(self.url), host, lambda: self._up.set_result(None))
        await self._server.serve([self._listener])
