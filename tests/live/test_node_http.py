"""Nodes and masters over HTTP: numbers, retries, silence, and answers that are none."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from emulator.live.wire.http_client import Address, HttpPool
from emulator.live.wire.http_server import bind
from emulator.live.wire.messages import (
    PATHS,
    Acknowledged,
    Allocate,
    Allocated,
    Granted,
    MasterRegistered,
    MasterRegistration,
    MasterUnregistration,
    NodeOrders,
    NodeRegistered,
    NodeRegistration,
    NodeReport,
    TaskLaunch,
    TaskStop,
)
from emulator.live.wire.transports import (
    MANAGER,
    HttpMasterTransport,
    HttpNodeTransport,
    MasterCall,
    container_web,
)
from emulator.live.wire.web import Reply, Web
from tests.hadoop.background import Background
from yarnctl.errors import BadInput, Unreachable

PATIENCE_S = 60.0


class Manager:
    """What a ResourceManager answers, kept in a list."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.failures = 0

    def web(self, _: str) -> Web:
        web = Web()
        answers: list[tuple[str, type, Callable[[Any], Any]]] = [
            ("register_node", NodeRegistration,
             lambda _: NodeRegistered(epoch=1, heartbeat_ms=1000, phase_ms=7)),
            ("node_heartbeat", NodeReport, lambda report: NodeOrders(number=report.number, stop=("c1",))),
            ("register_master", MasterRegistration, lambda _: MasterRegistered(heartbeat_ms=1000)),
            ("allocate", Allocate, lambda message: Allocated(number=message.number, granted=(GRANTED,))),
            ("unregister", MasterUnregistration, lambda _: Acknowledged()),
        ]  # fmt: skip
        for name, kind, answer in answers:
            web.call(PATHS[name], kind, self._keeping(answer))
        return web

    def _keeping(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def keep(message: Any) -> Any:
            self.heard.append(message)
            if self.failures:
                self.failures -= 1
                raise RuntimeError("planted")
            return answer(message)

        return keep


GRANTED = Granted(container="c1", node="n:1", node_address="http://n:1", memory_mib=1, vcores=1, priority=10)
REGISTRATION = NodeRegistration(node="n:1", address="http://n:1", memory_mib=1, vcores=1)


def on_a_loop(test: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE_S))


async def heartbeat(wire: HttpNodeTransport, number: int) -> NodeOrders | None:
    heard: asyncio.Future[NodeOrders | None] = asyncio.get_running_loop().create_future()
    wire.node_heartbeat(NodeReport(node="n:1", number=number), heard.set_result)
    return await heard


async def register(wire: HttpNodeTransport) -> NodeRegistered | None:
    heard: asyncio.Future[NodeRegistered | None] = asyncio.get_running_loop().create_future()
    wire.register_node(REGISTRATION, heard.set_result)
    return await heard


def test_a_nodes_calls_over_one_connection() -> None:
    manager = Manager()
    with Background(manager.web) as server:

        async def test() -> None:
            pool = HttpPool(Address(server.url), connections=1)
            wire = HttpNodeTransport(pool, lambda: 0.0, lambda text: pytest.fail(text))
            assert await register(wire) == NodeRegistered(epoch=1, heartbeat_ms=1000, phase_ms=7)
            beats = await asyncio.gather(*(heartbeat(wire, number) for number in range(1, 51)))
            assert beats == [NodeOrders(number=number, stop=("c1",)) for number in range(1, 51)]
            assert pool.opened == 1
            wire.close()

        on_a_loop(test)
    assert manager.heard[0] == REGISTRATION
    assert manager.heard[-1] == NodeReport(node="n:1", number=50)


def test_it_registers_until_somebody_answers_and_says_so_once() -> None:
    manager = Manager()
    manager.failures = 2
    listener = bind("127.0.0.1", 0)  # bound and not listened at: refused
    port = listener.getsockname()[1]
    said: list[str] = []

    async def test() -> None:
        refused = asyncio.Event()

        def say(text: str) -> None:
            said.append(text)
            refused.set()

        pool = HttpPool(Address(f"http://127.0.0.1:{port}"))
        wire = HttpNodeTransport(pool, lambda: 0.0, say)
        registering = asyncio.create_task(register(wire))
        await refused.wait()
        listener.close()
        with Background(manager.web, port=port):
            assert await registering == NodeRegistered(epoch=1, heartbeat_ms=1000, phase_ms=7)
            wire.close()

    on_a_loop(test)
    assert len(manager.heard) == 3
    assert [("trying again" in text, "answers again" in text) for text in said] == [
        (True, False),
        (False, True),
    ]


class Rude:
    """A server that answers whatever it hears with what it is given, then hangs up or not."""

    def __init__(self, answer: bytes, hang_up: bool) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self._answer, self._hang_up = answer, hang_up
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self._kept.append(connection)
            threading.Thread(target=self._answer_all, args=(connection,), daemon=True).start()

    def _answer_all(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # the client may have had enough
            while connection.recv(1 << 16):
                connection.sendall(self._answer)
                if self._hang_up:
                    connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self._kept:
            connection.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("answer", "hang_up", "why"),
    [(b"", True, "closed"), (HEAD + b"Content-Length: 100\r\n\r\n{", True, "closed"),
     (b"garbage\r\n\r\n", False, "no HTTP answer"),
     (HEAD + b"Content-Length: 2\r\n\r\n[]", False, "no emulator's ResourceManager"),
     (HEAD + b"Content-Length: 1\r\n\r\n\xff", False, "no emulator's ResourceManager"),
     (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", False, "status 404"),
     (b"", False, "within 0.2 s"),
     (HEAD + b"Content-Length: 99999999\r\n\r\n" + b"x" * (17 << 20), False, "too large")],
)  # fmt: skip
def test_a_heartbeat_without_an_answer_is_told_to_be_lost(answer: bytes, hang_up: bool, why: str) -> None:
    rude = Rude(answer, hang_up)
    said: list[str] = []

    async def test() -> None:
        timeout_s = 0.2 if "within" in why else PATIENCE_S
        wire = HttpNodeTransport(HttpPool(Address(rude.url), timeout_s=timeout_s), lambda: 0.0, said.append)
        assert await heartbeat(wire, 1) is None
        assert await heartbeat(wire, 1) is None
        wire.close()

    try:
        on_a_loop(test)
    finally:
        rude.close()
    assert len(said) == 1
    assert why in said[0]


class Master:
    """A master's transport; its clock of what is due stands still."""

    def __init__(self, manager_url: str, timeout_s: float = PATIENCE_S) -> None:
        self.turns = 0
        self.transport = HttpMasterTransport(manager_url, self._around, timeout_s)

    def _around(self, heard: Callable[[], object]) -> object:
        self.turns += 1
        return heard()

    async def call(self, call: MasterCall, message: Any, place: str = MANAGER) -> Any:
        """Return the answer; Unreachable if there is none."""
        heard: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.transport.carry(
            place, call, message, heard.set_result, lambda why: heard.set_exception(Unreachable(why))
        )
        return await heard


def allocate(number: int) -> Allocate:
    return Allocate(application="a", attempt=1, number=number)


def test_a_masters_calls() -> None:
    manager = Manager()
    with Background(manager.web) as server:

        async def test() -> None:
            master = Master(server.url)
            registration = MasterRegistration(application="a", attempt=1, tracking_url="http://x")
            assert await master.call("register_master", registration) == MasterRegistered(heartbeat_ms=1000)
            assert (await master.call("allocate", allocate(3))).granted == (GRANTED,)
            over = MasterUnregistration(application="a", attempt=1, final_status="SUCCEEDED")
            assert await master.call("unregister", over) == Acknowledged()
            manager.failures = 1
            with pytest.raises(Unreachable, match="status 500"):
                await master.call("allocate", allocate(4))
            assert (await master.call("allocate", allocate(4))).number == 4
            assert master.turns == 5
            master.transport.close()

        on_a_loop(test)


def test_a_master_goes_on_with_a_resourcemanager_that_was_started_again() -> None:
    manager = Manager()

    async def test() -> None:
        with Background(manager.web) as server:
            master = Master(server.url)
            await master.call("allocate", allocate(1))
        with pytest.raises(Unreachable, match="see whether the emulator runs there"):
            await master.call("allocate", allocate(2))
        with Background(manager.web, port=int(server.url.rpartition(":")[2])):
            assert (await master.call("allocate", allocate(2))).number == 2
        master.transport.close()

    on_a_loop(test)


def test_a_connection_that_has_become_stale_is_replaced_within_the_call() -> None:
    manager = Manager()

    async def test() -> None:
        with Background(manager.web) as server:
            master = Master(server.url)
            await master.call("allocate", allocate(1))
        with Background(manager.web, port=int(server.url.rpartition(":")[2])):
            assert (await master.call("allocate", allocate(2))).number == 2
            master.transport.close()

    on_a_loop(test)


def test_calls_to_one_place_keep_their_order() -> None:
    manager = Manager()
    with Background(manager.web) as server:

        async def test() -> None:
            master = Master(server.url)
            numbers = range(1, 31)
            answers = await asyncio.gather(*(master.call("allocate", allocate(number)) for number in numbers))
            assert [answer.number for answer in answers] == list(numbers)
            master.transport.close()

        on_a_loop(test)
    assert [message.number for message in manager.heard] == list(range(1, 31))


def test_a_call_behind_one_whose_connection_broke_gets_a_connection_of_its_own() -> None:
    """The first is lost with its connection, the second does not wait for the first one's time-out."""
    rude = Rude(b"", hang_up=True)

    async def test() -> None:
        master = Master(rude.url, timeout_s=10 * PATIENCE_S)
        answers = await asyncio.gather(
            *(master.call("allocate", allocate(number)) for number in (1, 2, 3)), return_exceptions=True
        )
        assert all(isinstance(answer, Unreachable) for answer in answers)
        master.transport.close()

    try:
        on_a_loop(test)
    finally:
        rude.close()


def test_a_place_that_hangs_delays_no_other() -> None:
    manager, hanging = Manager(), Rude(b"", hang_up=False)
    with Background(manager.web) as server:

        async def test() -> None:
            master = Master(server.url)
            stop = TaskStop(container="c1")
            stuck = asyncio.create_task(master.call("stop", stop, hanging.url))
            assert (await master.call("allocate", allocate(1))).number == 1
            assert not stuck.done()
            stuck.cancel()
            master.transport.close()

        try:
            on_a_loop(test)
        finally:
            hanging.close()


class Node:
    """A node that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[TaskLaunch | TaskStop] = []

    def start(self, launch: TaskLaunch) -> Acknowledged:
        self.told.append(launch)
        return Acknowledged()

    def stop(self, message: TaskStop) -> Acknowledged:
        self.told.append(message)
        return Acknowledged()


def test_each_of_many_nodes_behind_one_port_hears_its_own_masters() -> None:
    first, second = Node(), Node()
    launch = TaskLaunch(
        container="c1", application="a", kind="map", command=("x", "\udcff".encode(errors="replace").decode())
    )
    with Background(lambda _: container_web({"/0": first, "/1": second})) as server:

        async def test() -> None:
            master = Master(server.url)
            assert await master.call("start", launch, f"{server.url}/1") == Acknowledged()
            assert await master.call("stop", TaskStop(container="c1"), f"{server.url}/1") == Acknowledged()
            with pytest.raises(Unreachable, match="404"):
                await master.call("start", launch, f"{server.url}/2")
            master.transport.close()

        on_a_loop(test)
    assert first.told == []
    assert second.told == [launch, TaskStop(container="c1")]


@pytest.mark.parametrize(
    "url",
    ["https://x", "ftp://x:1", "http://", "http://x:99999", "http://u:p@x:1", "http://[::1", "http://x:1 y"],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(BadInput, match="--rm"):
        Address(url)


def test_addresses() -> None:
    address = Address("127.0.0.1:8088/")
    assert (address.host, address.port, address.prefix, address.url) == (
        "127.0.0.1",
        8088,
        "",
        "http://127.0.0.1:8088",
    )
    assert Address("http://n:1/7").prefix == "/7"


def test_a_web_that_answers_with_a_reply_of_its_own_is_no_node() -> None:
    web = Web()
    web.add("POST", PATHS["start"], lambda _: Reply(200, b'{"nothing": 1, "of": []}'))
    with Background(lambda _: web) as server:

        async def test() -> None:
            master = Master(server.url)
            with pytest.raises(Unreachable, match="404"):
                await master.call("stop", TaskStop(container="c1"), server.url)
            master.transport.close()

        on_a_loop(test)
