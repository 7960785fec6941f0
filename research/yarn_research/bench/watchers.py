"""What 50 watchers cost the loop: processor time of its thread for a tick, with and without them.

A process of its own serves a cluster with 10,000 applications (as ``yarn_research.bench.http_tick``), a daemon
observes it, and another process watches the daemon: ``streams`` are clients of ``GET /v1/events``, ``pages`` do
the requests of the page, as it does them. Both are asked one after the other of the same daemon.

Rule, fixed before the first run: blocks of four arms (without, with, with, without) of ``TICKS`` each; an
arm's value is the processor time of the daemon's main thread (``/proc/PID/task/PID/schedstat``), in ms for a
tick. A block's value is the sum of its arms with watchers over the sum of those without. The row holds if the
median of the blocks is at most ``MOST_RATIO`` for both kinds. The details have the wall time of a tick too,
which is no part of the rule: all threads of a daemon share one interpreter.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple

import requests

from yarn_research.bench.http_tick import apps_of, serve
from yarn_research.bench.row import Row, spread

APPLICATIONS_BYTES = 14_700_000  # Of the answer that lists a little more than 10,000
WATCHERS = 50
TICKS = 15
SETTLING_S = 2.0
BLOCKS = 2
MOST_RATIO = 1.05
PATIENCE_S = 120.0
PROGRAM = [sys.executable, "-c", "from yarnctl.cli import main; main()"]
POLLED = (
    "/v1/snapshot", "/v1/occupancy?since_ms=9999999999999", "/v1/reclaims?limit=200&retired=true",
    "/v1/decisions?limit=50", "/v1/refusals?limit=20", "/v1/applications?limit=200", "/v1/status",
    "/v1/accounts", "/v1/admissions?limit=50", "/v1/budgets?limit=50", "/v1/time-lost", "/v1/report",
)  # fmt: skip
"""What the page requests (``poll`` of page.js)."""
PAUSE_S = 1.0  # Of the page, from one poll to the next
Kind = Literal["streams", "pages"]


class Arm(NamedTuple):
    """The main thread's processor time, and the daemon's wall time, in ms for a tick; bytes that came."""

    cpu_ms: float
    wall_ms: float
    ticks: int
    read_bytes: int


# --- the watchers -------------------------------------------------------------------------------


async def _watch(port: int, kind: Kind, read: list[int]) -> None:
    """Be one watcher until cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)

    async def ask(path: str) -> None:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        await writer.drain()

    if kind == "streams":
        await ask("/v1/events")
        while part := await reader.read(1 << 16):
            read[0] += len(part)
        raise ConnectionError("a stream of events ended")
    while True:
        for path in POLLED:
            await ask(path)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), (path, head)
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            read[0] += len(await reader.readexactly(int(fields[b"content-length"])))
        await asyncio.sleep(PAUSE_S)


def watchers(pipe: Connection, port: int, kind: Kind, count: int) -> None:
    """Watch until told to end, then report the bytes that came; a process of its own."""

    async def run() -> int:
        read = [0]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_watch(port, kind, read)) for _ in range(count)]
            await asyncio.to_thread(pipe.recv)
            for task in tasks:
                task.cancel()
        return read[0]

    pipe.send(asyncio.run(run()))


# --- the daemon ---------------------------------------------------------------------------------


def _apps() -> tuple[bytes, bytes]:
    return apps_of(APPLICATIONS_BYTES)


@contextmanager
def _cluster() -> Iterator[str]:
    """Yield the address of a cluster with 10,000 applications."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    server = spawn.Process(target=serve, args=(there,), kwargs={"apps_answers": _apps}, daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        server.terminate()
        server.join(10)


class Observer:
    """A daemon that observes, as a process. Use as a context."""

    def __init__(self, url: str, folder: Path) -> None:
        self.log = folder / "log"
        words = [
            *PROGRAM,
            "run",
            "--rm",
            url,
            "--state-dir",
            str(folder / "state"),
            "--listen",
            "127.0.0.1:0",
        ]
        with self.log.open("w") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        self.port = 0

    def __enter__(self) -> Observer:
        """Return it once it shows the applications."""
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s and self._process.poll() is None:
            found = [word for word in self.log.read_text().split() if "http://127.0.0.1:" in word]
            ports = [word.split("127.0.0.1:")[1].split("/")[0] for word in found]
            self.port = next((int(port) for port in reversed(ports) if port.isdigit()), 0)
            if self.port and self._sees_all():
                return self
            time.sleep(0.5)
        raise AssertionError(self.log.read_text())

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _sees_all(self) -> bool:
        try:
            return int(self.get("/v1/applications?limit=1")["total"]) >= 10_000
        except (OSError, KeyError):
            return False

    def get(self, path: str) -> Any:
        """Return an answer of its API."""
        return requests.get(f"http://127.0.0.1:{self.port}{path}", timeout=30).json()

    def main_thread_ns(self) -> int:
        """Return the processor time of its main thread, which runs the loop."""
        pid = self._process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


def arm(daemon: Observer, kind: Kind, count: int, ticks: int) -> Arm:
    """Measure so many ticks with ``count`` watchers."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=watchers, args=(there, daemon.port, kind, count), daemon=True)
    process.start()
    try:
        time.sleep(SETTLING_S)
        before, before_ns, walls = daemon.get("/v1/status")["loop"], daemon.main_thread_ns(), list[float]()
        after = before
        while after["ticks"] < before["ticks"] + ticks:
            time.sleep(1.0)
            after = daemon.get("/v1/status")["loop"]
            walls.append(float(after["tick_ms"]))
        spent_ms = (daemon.main_thread_ns() - before_ns) / 1e6
        assert process.is_alive(), "the watchers have ended"
        here.send("end")
        done = after["ticks"] - before["ticks"]
        return Arm(spent_ms / done, median(walls), done, here.recv())
    finally:
        process.join(10)
        process.kill()


def blocks(
    daemon: Observer, kind: Kind, count: int, ticks: int, number: int
) -> list[tuple[Arm, Arm, Arm, Arm]]:
    """Measure blocks of: without, with, with, without."""

    def one(watching: int) -> Arm:
        return arm(daemon, kind, watching, ticks)

    return [(one(0), one(count), one(count), one(0)) for _ in range(number)]


def ratio_of(block: Sequence[Arm]) -> float:
    """Return a block's processor time with watchers over that without."""
    first, second, third, fourth = (each.cpu_ms for each in block)
    return (second + third) / (first + fourth)


def watchers_row(count: int = WATCHERS, ticks: int = TICKS, number: int = BLOCKS) -> Row:
    """The median of the blocks, for the kind of watchers that costs more."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp())
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        daemon = stack.enter_context(Observer(stack.enter_context(_cluster()), folder))
        kinds: tuple[Kind, ...] = ("streams", "pages")
        found = {kind: blocks(daemon, kind, count, ticks, number) for kind in kinds}
    ratios = {kind: [ratio_of(block) for block in measured] for kind, measured in found.items()}
    worst = max(kinds, key=lambda kind: median(ratios[kind]))
    without = [each.cpu_ms for block in found[worst] for each in (block[0], block[3])]
    watched = [each.cpu_ms for block in found[worst] for each in (block[1], block[2])]
    return Row(
        name="watchers",
        what=f"loop thread's processor time for a tick, 10,000 applications, {count} watchers ({worst})",
        ours=median(watched),
        baseline=median(without),
        ratio=median(ratios[worst]),
        target=f"<= {MOST_RATIO}",
        holds=median(ratios[worst]) <= MOST_RATIO,
        unit="ms",
        details={
            kind: {
                "ratio": spread(ratios[kind]),
                "arms": [each._asdict() for block in found[kind] for each in block],
            }
            for kind in kinds
        }
        | {"cores": os.cpu_count()},
    )
