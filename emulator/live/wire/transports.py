"""Transports: how the seam's messages reach their receiver, within a process or over HTTP.

Law: over HTTP each call is a POST of its struct as JSON to its path in ``messages.PATHS``. A call without an
answer may have been applied; since every call that changes something carries a number, it may be made again
as it is. A master's calls to one place keep their order, and a node that hangs delays no other place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from emulator.live.wire.http_client import Address, HttpPool
from emulator.live.wire.messages import (
    PATHS,
    Acknowledged,
    Allocated,
    ContainerService,
    MasterRegistered,
    MasterService,
    NodeOrders,
    NodeRegistered,
    NodeRegistration,
    NodeReport,
    ResourceTracker,
    TaskLaunch,
    TaskStop,
)
from emulator.live.wire.web import Web
from yarnctl.errors import Unreachable
from yarnctl.units import decode_vector

FIRST_RETRY_S, LONGEST_RETRY_S = 0.25, 8.0
MANAGER = ""
"""The place of the ResourceManager; a node's place is its address."""

Body = TypeVar("Body")
Heard = Callable[[Any], object]
Unanswered = Callable[[str], object]
"""Called with why there was no answer."""

Welcomed = Callable[[NodeRegistered | None], None]
Ordered = Callable[[NodeOrders | None], None]
"""Called with the answer; None: there was none."""

MasterCall = Literal["register_master", "allocate", "unregister", "start", "stop"]
_ANSWERS: dict[str, msgspec.json.Decoder[Any]] = {
    "register_master": msgspec.json.Decoder(MasterRegistered, dec_hook=decode_vector),
    "allocate": msgspec.json.Decoder(Allocated, dec_hook=decode_vector),
    "unregister": msgspec.json.Decoder(Acknowledged, dec_hook=decode_vector),
    "start": msgspec.json.Decoder(Acknowledged, dec_hook=decode_vector),
    "stop": msgspec.json.Decoder(Acknowledged, dec_hook=decode_vector),
}


# --- nodes ------------------------------------------------------------------------------------


class NodeTransport(Protocol):
    """Carries a node's calls; exactly one of the two is called back, now or later (None: no answer)."""

    def register_node(self, registration: NodeRegistration, answered: Welcomed) -> None:
        """Send a registration; it is repeated until there is an answer."""

    def node_heartbeat(self, report: NodeReport, answered: Ordered) -> None:
        """Carry one heartbeat, once."""


class DirectNodeTransport:
    """The ResourceManager is an object of this process: a call."""

    def __init__(self, tracker: ResourceTracker) -> None:
        self._tracker = tracker

    def register_node(self, registration: NodeRegistration, answered: Welcomed) -> None:
        """Register, now."""
        answered(self._tracker.register_node(registration))

    def node_heartbeat(self, report: NodeReport, answered: Ordered) -> None:
        """Send a heartbeat now."""
        answered(self._tracker.node_heartbeat(report))


class HttpNodeTransport:
    """Carries the calls of all nodes of one process to the ResourceManager at ``pool``'s address.

    ``draw`` gives numbers in [0, 1) for the jitter of retries. ``say`` is called once when answers stop,
    and once when they begin again.
    """

    def __init__(self, pool: HttpPool, draw: Callable[[], float], say: Callable[[str], None]) -> None:
        self._pool = pool
        self._draw = draw
        self._log = say
        self._encode = msgspec.json.Encoder().encode
        self._orders = msgspec.json.Decoder(NodeOrders, dec_hook=decode_vector)
        self._registration = msgspec.json.Decoder(NodeRegistered, dec_hook=decode_vector)
        self._unanswered = False
        self._closed = False

    def register_node(self, registration: NodeRegistration, answered: Welcomed) -> None:
        """Register; again, more and more seldom, until there is an answer."""
        self._register(self._encode(registration), answered, FIRST_RETRY_S)

    def _register(self, body: bytes, answered: Welcomed, retry_s: float) -> None:
        def heard(status: int, data: bytes) -> None:
            welcome = self._decoded(self._registration, status, data)
            if welcome is not None:
                answered(welcome)
            elif not self._closed:
                wait_s = retry_s * (0.5 + self._draw())
                longer_s = min(retry_s * 2, LONGEST_RETRY_S)
                asyncio.get_running_loop().call_later(wait_s, self._register, body, answered, longer_s)

        if not self._closed:
            self._pool.post(PATHS["register_node"], body, heard)

    def node_heartbeat(self, report: NodeReport, answered: Ordered) -> None:
        """Send one heartbeat."""
        self._pool.post(
            PATHS["node_heartbeat"],
            self._encode(report),
            lambda status, data: answered(self._decoded(self._orders, status, data)),
        )

    def _decoded(self, decoder: msgspec.json.Decoder[Body], status: int, data: bytes) -> Body | None:
        problem = f"status {status}" if status else data.decode(errors="replace")
        if status == 200:
            try:
                answer = decoder.decode(data)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                problem = f"no emulator's ResourceManager: {error}"
            else:
                if self._unanswered:
                    self._unanswered = False
                    self._log(f"{self._pool.address.url} answers again")
                return answer
        if not self._unanswered and not self._closed:
            self._unanswered = True
            self._log(f"{self._pool.address.url} does not answer ({problem}); trying again until it does")
        return None

    def close(self) -> None:
        """Carry nothing any more."""
        self._closed = True
        self._pool.close()


# --- masters ----------------------------------------------------------------------------------


class MasterTransport(Protocol):
    """Carries a master's calls; exactly one of ``answered`` and ``unanswered`` is called, now or later."""

    def carry(
        self, place: str, call: MasterCall, message: msgspec.Struct, answered: Heard, unanswered: Unanswered
    ) -> None:
        """Carry one call to the ResourceManager (``MANAGER``) or to the node at an address."""

    def close(self) -> None:
        """Report no more answers."""


class DirectMasterTransport:
    """ResourceManager and nodes are objects of this process, on this event loop."""

    def __init__(self, service: MasterService, node_at: Callable[[str], ContainerService]) -> None:
        self._manager = service
        self._node_at = node_at

    def carry(
        self, place: str, call: MasterCall, message: msgspec.Struct, answered: Heard, unanswered: Unanswered
    ) -> None:
        """Call, now."""
        try:
            receiver: object = self._manager if place == MANAGER else self._node_at(place)
            answer = getattr(receiver, call)(message)
        except Unreachable as why:
            unanswered(str(why))
            return
        answered(answer)

    def close(self) -> None:
        """Nothing is under way."""


class HttpMasterTransport:
    """Carries calls over HTTP, on one kept connection for each place.

    ``around`` runs what is called back (what is due by the clock comes first). Use it on one event loop.
    """

    def __init__(
        self, manager_url: str, around: Callable[[Callable[[], object]], object], timeout_s: float = 10.0
    ) -> None:
        self._around = around
        self._timeout_s = timeout_s
        self._pools = {MANAGER: self._pool(Address(manager_url))}
        self._closed = False

    def _pool(self, address: Address) -> HttpPool:
        return HttpPool(address, connections=1, timeout_s=self._timeout_s)

    def carry(
        self, place: str, call: MasterCall, message: msgspec.Struct, answered: Heard, unanswered: Unanswered
    ) -> None:
        """POST the message; its answer comes later."""
        if self._closed:
            return
        pool = self._pools.get(place)
        if pool is None:
            pool = self._pools[place] = self._pool(Address(place, "node"))
        url = pool.address.url + PATHS[call]

        def heard(status: int, data: bytes) -> None:
            if self._closed:
                return
            try:
                answer = _decoded(call, status, data)
            except ValueError as problem:
                why = f"{url}: no answer ({problem}); see whether the emulator runs there"
                self._around(lambda: unanswered(why))
            else:
                self._around(lambda: answered(answer))

        pool.post(PATHS[call], msgspec.json.encode(message), heard)

    def close(self) -> None:
        """Report no more answers; what was sent reaches its receiver."""
        self._closed = True
        for pool in self._pools.values():
            pool.close()


def _decoded(call: MasterCall, status: int, data: bytes) -> Any:
    """Return a call's answer; ValueError has why there is none."""
    if status != 200:
        said = data[:200].decode(errors="replace")
        raise ValueError(f"status {status}: {said}" if status else said)
    try:
        return _ANSWERS[call].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"an answer that is none of the emulator's: {error}") from None


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
