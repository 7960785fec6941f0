"""How many NodeManager heartbeats a second one core answers: our ASGI application beside FastAPI's.

Both sides are servers in a process of their own on the same uvicorn (uvloop, httptools, the same settings,
the same core), do the same bookkeeping for the same nodes and are asked by the same client, turn and turn
about. The client is a process on another core that keeps its connections and speaks raw HTTP with httptools;
it checks every answer's status and number. Before that both sides must answer some odd reports alike.

The baseline is what FastAPI's tutorial teaches: a pydantic model in, a pydantic model out, ``async def``.
A rate is answers per second of the *server's* processor time, so that what else runs here does not count; the
rate by the wall clock stands beside it.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from yarn_research.bench.row import Row, spread

NODES = 200
CONNECTIONS = 32
ANSWERS = 20_000
WARM_UP = 3_000
ROUNDS = 5
TARGET = 3.5
PATH = "/emulator/v1/nodes/heartbeat"
ROOT = Path(__file__).parents[3]


# --- servers ----------------------------------------------------------------------------------


def manager_of_nodes() -> Any:
    """Return a live ResourceManager with all nodes registered."""
    from emulator.cluster.kernel import Kernel
    from emulator.live.manager.service import LiveResourceManager
    from emulator.live.wire.messages import NodeRegistration
    from emulator.live.wire.real_time_driver import RealTimeDriver

    manager = LiveResourceManager(RealTimeDriver(Kernel()))
    for node in range(NODES):
        manager.register_node(
            NodeRegistration(node=f"n{node}:1", address=f"http://n{node}:1", memory_mib=4096, vcores=4)
        )
    return manager


def our_web() -> Any:
    """The emulator's own, all of its routes included, behind its guard."""
    from emulator.live.rest.site import ManagerSite
    from emulator.live.wire.http_server import guarded

    return guarded(ManagerSite(manager_of_nodes(), "http://127.0.0.1:1").web, "127.0.0.1")


def our_protocol() -> Any:
    """The emulator's own: uvicorn's, with a bound on how long a request may take to come."""
    from emulator.live.wire.http_server import BOUNDS
    from yarnctl.listening.connections import protocol

    return protocol(BOUNDS)


def fastapi_app() -> Any:
    """The idiomatic one, over the same actor: who beats when, what ended, what is offered."""
    import fastapi
    import pydantic

    manager = manager_of_nodes()

    class Ended(pydantic.BaseModel):
        container: str
        exit_status: int
        at_ms: int
        diagnostics: str = ""

    class Report(pydantic.BaseModel):
        node: str
        number: int
        ended: list[Ended] = []
        running: list[str] = []

    class Orders(pydantic.BaseModel):
        number: int
        masters: list[dict[str, Any]] = []
        signals: list[dict[str, Any]] = []
        stop: list[str] = []
        resync: bool = False

    app = fastapi.FastAPI()

    async def heartbeat(report):
        now_ms = time.time_ns() // 1_000_000
        node = manager.nodes.get(report.node)
        if node is None or (node.number is not None and report.number not in (node.number, node.number + 1)):
            return Orders(number=report.number, resync=True)
        node.heartbeat_at_ms = now_ms
        gone = []
        for one in report.ended:
            container = manager.containers.get(one.container)
            if container is not None and container.node is node:
                gone.append(container.actor)
        if report.number == node.number:
            return Orders(number=report.number)
        node.number = report.number
        manager.actor.node_heartbeat(node.actor, gone, now_ms)
        return Orders(number=report.number, stop=list(node.stop))

    # Set by hand: as text they would be looked for in the module, and the models are made here.
    heartbeat.__annotations__ = {"report": Report, "return": Orders}
    app.post(PATH)(heartbeat)
    return app


def serve(which: str, core: int) -> None:
    """Serve one side on a free port and say which; tell the processor time for each line on stdin."""
    import uvicorn

    _pin(core)
    ours = which == "ours"
    config = uvicorn.Config(
        our_web() if ours else fastapi_app(), interface="asgi3", http=our_protocol() if ours else "httptools",
        host="127.0.0.1", port=0, loop="uvloop", ws="none", lifespan="off",
        access_log=False, log_level="error", date_header=False, server_header=False, timeout_keep_alive=75,
    )  # fmt: skip

    class Told(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            asyncio.get_running_loop().add_reader(0, self._line)
            print(self.servers[0].sockets[0].getsockname()[1], flush=True)

        def _line(self) -> None:
            if sys.stdin.readline():
                print(time.process_time(), flush=True)
            else:
                asyncio.get_running_loop().remove_reader(0)
                self.should_exit = True

    Told(config).run()


# --- client -----------------------------------------------------------------------------------


class Beater(asyncio.Protocol):
    """One connection: nodes that beat in turn, the next when the last was answered."""

    def __init__(self, nodes: list[int], again: Callable[[], bool], done: Callable[[], None]) -> None:
        import httptools

        self._parser = httptools.HttpResponseParser(self)
        self._nodes = nodes
        self._numbers = dict.fromkeys(nodes, 0)
        self._at = 0
        self._again = again
        self._done = done
        self._body = b""
        self.running = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def go(self) -> None:
        """Begin."""
        self.running = True
        self._next()

    def _next(self) -> None:
        if not self._again():
            self.running = False
            self._done()
            return
        self._at = (self._at + 1) % len(self._nodes)
        node = self._nodes[self._at]
        self._numbers[node] += 1
        self._sent = self._numbers[node]
        body = b'{"node":"n%d:1","number":%d,"ended":[],"running":[]}' % (node, self._sent)
        self._transport.write(_HEAD % len(body) + body)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        answer = msgspec.json.decode(self._body)
        self._body = b""
        if self._parser.get_status_code() != 200 or answer["number"] != self._sent or answer["resync"]:
            raise SystemExit(f"a heartbeat was answered by {self._parser.get_status_code()} {answer}")
        self._next()


_HEAD = (
    b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n"
)


async def beat(port: int, lines: Iterator[str]) -> None:
    """For each line, a number: let so many heartbeats be answered, and print the seconds it took."""
    loop = asyncio.get_running_loop()
    left = 0

    def again() -> bool:
        nonlocal left
        left -= 1
        return left >= 0

    finished = asyncio.Event()

    def done() -> None:
        if not any(one.running for one in beaters):
            finished.set()

    beaters: list[Beater] = []
    for at in range(CONNECTIONS):
        mine = list(range(at, NODES, CONNECTIONS))
        make = partial(Beater, mine, again, done)
        _, beater = await loop.create_connection(make, "127.0.0.1", port)
        beaters.append(beater)
    for line in lines:
        left = int(line)
        finished.clear()
        began = time.perf_counter()
        for beater in beaters:
            beater.go()
        await finished.wait()
        print(time.perf_counter() - began, flush=True)


# --- the row ----------------------------------------------------------------------------------


def _pin(core: int) -> None:
    """Stay on one core, where the machine has so many and lets us."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


class Process:
    """A part of the bench as a process: a line in, a line out."""

    def __init__(self, *arguments: object) -> None:
        words = [sys.executable, "-m", "yarn_research.bench.heartbeats", *map(str, arguments)]
        self._process = subprocess.Popen(
            words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, line: object = None) -> float:
        """Return the number that it answers (the first it says of itself)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line is not None:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"a part of the heartbeats bench ended with {self._process.wait()}")
        return float(answer)

    def end(self) -> None:
        """Close its input: it ends by that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


REPORTS: tuple[dict[str, Any], ...] = (
    {"node": "n0:1", "number": 0, "ended": [], "running": []},
    {"node": "n0:1", "number": 0, "ended": [], "running": []},
    {"node": "n0:1", "number": 7, "ended": [], "running": []},
    {"node": "stranger:1", "number": 1},
    {"node": "n1:1", "number": 0, "ended": [{"container": "x", "exit_status": 0, "at_ms": 1}]},
)  # fmt: skip
"""A heartbeat, the same again, one out of turn, a node that nobody knows, and an end that nobody awaits."""


def answers(port: int) -> list[tuple[int, Any]]:
    """Return status and decoded answer of each report."""
    found = []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for report in REPORTS:
        body = msgspec.json.encode(report)
        connection.request("POST", PATH, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        found.append((response.status, msgspec.json.decode(response.read())))
    connection.close()
    return found


@contextmanager
def pair(which: str, told: list[list[tuple[int, Any]]]) -> Iterator[tuple[Process, Process]]:
    """Yield a server on the first core and its client on the second, warmed up; note its answers."""
    server = Process("serve", which)
    try:
        port = int(server.ask())
        told.append(answers(port))
        client = Process("client", port)
        try:
            client.ask(WARM_UP)
            yield server, client
        finally:
            client.end()
    finally:
        server.end()


def measure(server: Process, client: Process, count: int) -> tuple[float, float]:
    """Return answers per second, by the server's processor time and by the wall clock."""
    before_s = server.ask("time")
    wall_s = client.ask(count)
    return count / (server.ask("time") - before_s), count / wall_s


def heartbeats_row(count: int = ANSWERS, rounds: int = ROUNDS) -> Row:
    """Measure both sides in turn, ``count`` answers each a round."""
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    told: list[list[tuple[int, Any]]] = []
    with pair("ours", told) as (server, client), pair("fastapi", told) as (their_server, their_client):
        assert told[0] == told[1], f"the two sides do not answer alike: {told}"
        for _ in range(rounds):
            ours.append(measure(server, client, count))
            theirs.append(measure(their_server, their_client, count))
    rate, baseline = (median(cpu for cpu, _ in side) for side in (ours, theirs))
    ratio = median(one / other for (one, _), (other, _) in zip(ours, theirs, strict=True))
    return Row(
        name="heartbeats",
        what="NodeManager heartbeats (HTTP POST) a second of one core, beside an idiomatic FastAPI handler",
        ours=rate,
        baseline=baseline,
        ratio=ratio,
        target=f">= {TARGET}",
        holds=ratio >= TARGET,
        unit="/s",
        details={
            "ours_per_cpu_s": spread([cpu for cpu, _ in ours]),
            "fastapi_per_cpu_s": spread([cpu for cpu, _ in theirs]),
            "ours_per_wall_s": spread([wall for _, wall in ours]),
            "fastapi_per_wall_s": spread([wall for _, wall in theirs]),
            "wall_ratio": median(one / other for (_, one), (_, other) in zip(ours, theirs, strict=True)),
            "nodes": NODES,
            "connections": CONNECTIONS,
            "answers_a_round": count,
        },
    )


def main(words: list[str]) -> None:
    """Be one part: ``serve ours|fastapi`` or ``client PORT``."""
    if words[0] == "serve":
        serve(words[1], core=0)
    else:
        _pin(1)
        asyncio.run(beat(int(words[1]), iter(sys.stdin)))


if __name__ == "__main__":
    main(sys.argv[1:])
