"""The seam over HTTP: each call a POST of its struct as JSON to its path in ``messages.PATHS``.

Law: a call that was not answered may have been taken; since every call that changes something carries a
number, it may be made again as it is. Nodes call without waiting (``HttpNodeWire``), masters wait, with a
time-out (``HttpMasterService``, ``HttpContainerService``; use each from one thread).
"""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from emulator.live.wire.http_client import Address, HttpPool
from emulator.live.wire.messages import (
    PATHS,
    Allocate,
    Allocated,
    ContainerService,
    Done,
    MasterFarewell,
    MasterRegistration,
    MasterWelcome,
    NodeOrders,
    NodeRegistration,
    NodeReport,
    NodeWelcome,
    TaskLaunch,
    TaskStop,
)
from emulator.live.wire.web import Web
from yarnctl.errors import Unreachable

FIRST_RETRY_S, LONGEST_RETRY_S = 0.25, 8.0
LARGEST_ANSWER = 16 * 1024 * 1024

Answer = TypeVar("Answer")


class NoAnswer(Unreachable):
    """A call of the seam was not answered, or not by the emulator; whether it was taken is not known."""


# --- nodes ------------------------------------------------------------------------------------


class HttpNodeWire:
    """Carries the calls of all nodes of one process to the ResourceManager at ``pool``'s address.

    ``draw`` gives numbers in [0, 1) for the jitter of retries. ``say`` hears once when nobody answers,
    and once when somebody does again.
    """

    def __init__(self, pool: HttpPool, draw: Callable[[], float], say: Callable[[str], None]) -> None:
        self._pool = pool
        self._draw = draw
        self._say = say
        self._encode = msgspec.json.Encoder().encode
        self._orders = msgspec.json.Decoder(NodeOrders)
        self._welcome = msgspec.json.Decoder(NodeWelcome)
        self._silent = False
        self._closed = False

    def register_node(
        self, registration: NodeRegistration, answered: Callable[[NodeWelcome | None], None]
    ) -> None:
        """Register; again, more and more seldom, until somebody answers."""
        self._register(self._encode(registration), answered, FIRST_RETRY_S)

    def _register(self, body: bytes, answered: Callable[[NodeWelcome | None], None], retry_s: float) -> None:
        def heard(status: int, data: bytes) -> None:
            welcome = self._decoded(self._welcome, status, data)
            if welcome is not None:
                answered(welcome)
            elif not self._closed:
                wait_s = retry_s * (0.5 + self._draw())
                longer_s = min(retry_s * 2, LONGEST_RETRY_S)
                asyncio.get_running_loop().call_later(wait_s, self._register, body, answered, longer_s)

        if not self._closed:
            self._pool.post(PATHS["register_node"], body, heard)

    def node_heartbeat(self, report: NodeReport, answered: Callable[[NodeOrders | None], None]) -> None:
        """Beat, once."""
        self._pool.post(
            PATHS["node_heartbeat"],
            self._encode(report),
            lambda status, data: answered(self._decoded(self._orders, status, data)),
        )

    def _decoded(self, decoder: msgspec.json.Decoder[Answer], status: int, data: bytes) -> Answer | None:
        problem = f"status {status}" if status else data.decode(errors="replace")
        if status == 200:
            try:
                answer = decoder.decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = f"no emulator's ResourceManager: {error}"
            else:
                if self._silent:
                    self._silent = False
                    self._say(f"{self._pool.address.url} answers again")
                return answer
        if not self._silent and not self._closed:
            self._silent = True
            self._say(f"{self._pool.address.url} does not answer ({problem}); trying again until it does")
        return None

    def close(self) -> None:
        """Carry nothing any more."""
        self._closed = True
        self._pool.close()


# --- masters ----------------------------------------------------------------------------------


class _Poster:
    """Blocking POSTs to one address over a kept connection; a stale one is replaced, once per call."""

    def __init__(self, url: str, timeout_s: float, where: str) -> None:
        self.address = Address(url, where)
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    def post(self, call: str, message: msgspec.Struct, kind: type[Answer]) -> Answer:
        body = msgspec.json.encode(message)
        kept = self._connection is not None
        try:
            status, data = self._once(call, body)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not kept or isinstance(error, TimeoutError):
                raise self._no_answer(call, str(error) or type(error).__name__) from None
            try:
                status, data = self._once(call, body)
            except (OSError, http.client.HTTPException) as again:
                self.close()
                raise self._no_answer(call, str(again) or type(again).__name__) from None
        if status != 200:
            raise self._no_answer(call, f"status {status}: {data[:200].decode(errors='replace')}")
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._no_answer(call, f"an answer that is none of the emulator's: {error}") from None

    def _once(self, call: str, body: bytes) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self.address.host, self.address.port, timeout=self._timeout_s
            )
        headers = {"Content-Type": "application/json"}
        self._connection.request("POST", self.address.prefix + PATHS[call], body, headers)
        response = self._connection.getresponse()
        data = response.read(LARGEST_ANSWER + 1)
        if len(data) > LARGEST_ANSWER:
            self.close()
            raise http.client.HTTPException("the answer is too large")
        if response.will_close:
            self.close()
        return response.status, data

    def _no_answer(self, call: str, why: str) -> NoAnswer:
        url = self.address.url + PATHS[call]
        return NoAnswer(f"{url}: no answer ({why}); see whether the emulator runs there")

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class HttpMasterService:
    """``MasterService`` over HTTP, blocking; raises ``NoAnswer``."""

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self._poster = _Poster(url, timeout_s, "--rm")

    def register_master(self, registration: MasterRegistration) -> MasterWelcome:
        """Register an AM."""
        return self._poster.post("register_master", registration, MasterWelcome)

    def allocate(self, message: Allocate) -> Allocated:
        """Carry an AM's heartbeat; after ``NoAnswer`` the very same may be carried again."""
        return self._poster.post("allocate", message, Allocated)

    def farewell(self, message: MasterFarewell) -> Done:
        """End the application."""
        return self._poster.post("farewell", message, Done)

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()


class HttpContainerService:
    """``ContainerService`` over HTTP, blocking; raises ``NoAnswer``. ``url`` is ``Granted.node_address``."""

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self._poster = _Poster(url, timeout_s, "node")

    def start(self, launch: TaskLaunch) -> Done:
        """Start a container; after ``NoAnswer`` it may be carried again."""
        return self._poster.post("start", launch, Done)

    def stop(self, message: TaskStop) -> Done:
        """End a container; the same."""
        return self._poster.post("stop", message, Done)

    def close(self) -> None:
        """Close the connection."""
        self._poster.close()


# --- the server's side ------------------------------------------------------------------------


def container_web(nodes: Mapping[str, ContainerService], web: Web | None = None) -> Web:
    """Return the application that takes ``start`` and ``stop`` for nodes; the key is the path's prefix.

    A process with one node has the prefix "", one with many "/0", "/1", ...
    """
    web = web or Web()
    for prefix, node in nodes.items():
        web.call(prefix + PATHS["start"], TaskLaunch, node.start)
        web.call(prefix + PATHS["stop"], TaskStop, node.stop)
    return web
