"""Serving: a ``Web`` on uvicorn.

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
from email.utils import formatdate
from urllib.parse import urlsplit

import uvicorn
import uvloop

from emulator.live.wire.web import HttpProblem, Raw, Receive, Scope, Send, Web, remote_exception, send_reply
from yarnctl.errors import BadInput
from yarnctl.listening.connections import Bounds, protocol
from yarnctl.listening.names import BAD_HOST, Answered, RefusedRequest, name_of, names_for

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


def host_of(listener: socket.socket) -> str:
    """Return the address that a bound socket listens at."""
    return str(listener.getsockname()[0])


def url_of(listener: socket.socket) -> str:
    """Return the base URL of a bound socket; a wildcard address is loopback."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)  # noqa: S104  # recognised, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """Serves one ``Web``; ``started`` is called once it answers."""

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
        """Run the hooks, then answer."""
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


def serve(web: Web, listener: socket.socket, started: Callable[[], object] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT. ``started`` is called once everything answers."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(Server(web, host_of(listener), started).serve([listener]))
