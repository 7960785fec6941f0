"""A flood: 500 connections that send their requests slowly, and health checks meanwhile.

``python -m tests.service.flood`` prints one JSON object: for yarnctl's service and for the live emulator, how
many health checks were asked and answered while the slow connections were open (each on a connection of its
own), and the slowest and the median of them in ms. The server runs in a process of its own with the bounds it
ships with. Each slow caller sends a byte whenever a check has been answered, and comes again when cut off.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

SLOW = 500
CHECKS = 50
PATIENCE_S = 60.0
ROOT = Path(__file__).parents[2]
SLOW_HEAD = b"GET /v1/snapshot HTTP/1.1\r\nHost: localhost\r\nX: "
CHECKED = {"yarnctl": "/healthz", "emulator": "/ws/v1/cluster/info"}


def serve(which: str) -> None:
    """Serve one side on a free port, say which, and end when stdin does."""
    if which == "yarnctl":
        from tests.unit.service.played import busy
        from yarnctl.service.app import make_app
        from yarnctl.service.serving import serve_in_thread

        handle = serve_in_thread(make_app(busy, clock=lambda: busy().now_ms))
        print(handle.port, flush=True)
        sys.stdin.read()
        handle.stop()
        return
    from emulator.cluster.kernel import Kernel
    from emulator.live.manager.service import LiveResourceManager
    from emulator.live.rest.site import ManagerSite
    from emulator.live.wire.real_time_driver import RealTimeDriver
    from tests.hadoop.background import Background

    with Background(
        lambda url: ManagerSite(LiveResourceManager(RealTimeDriver(Kernel())), url).web
    ) as server:
        print(server.url.rpartition(":")[2], flush=True)
        sys.stdin.read()


class Flood:
    """So many slow callers of one port."""

    def __init__(self, port: int, number: int) -> None:
        self.port = port
        self.cut = 0
        self._selector = selectors.DefaultSelector()
        self._callers = {self._come() for _ in range(number)}

    def _come(self) -> socket.socket:
        caller = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        self._selector.register(caller, selectors.EVENT_READ)
        caller.sendall(SLOW_HEAD)
        return caller

    def go_on(self) -> None:
        """Send a byte from each; who was cut off comes again."""
        for key, _ in self._selector.select(0):
            self._again(key.fileobj)  # type: ignore[arg-type]
        for caller in list(self._callers):
            try:
                caller.sendall(b"x")
            except OSError:
                self._again(caller)

    def _again(self, caller: socket.socket) -> None:
        self._selector.unregister(caller)
        self._callers.discard(caller)
        caller.close()
        self.cut += 1
        self._callers.add(self._come())

    def close(self) -> None:
        for caller in self._callers:
            caller.close()
        self._selector.close()


def answered_ms(port: int, path: str) -> float | None:
    """Ask once on a new connection; return how long the answer took in ms, None for none or another."""
    began = time.perf_counter()
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
    except OSError:
        return None
    finally:
        connection.close()
    return (time.perf_counter() - began) * 1000 if answer.status == 200 else None


def measure(which: str, slow: int = SLOW, checks: int = CHECKS) -> dict[str, float | int]:
    """Ask for the health of one side, flooded."""
    words = [sys.executable, "-m", "tests.service.flood", which]
    with ExitStack() as stack:
        server = stack.enter_context(
            subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert server.stdin is not None
        assert server.stdout is not None
        stack.callback(server.stdin.close)
        port = int(server.stdout.readline())
        flood = Flood(port, slow)
        stack.callback(flood.close)
        found = []
        for _ in range(checks):
            found.append(answered_ms(port, CHECKED[which]))
            flood.go_on()
    times = [each for each in found if each is not None]
    return {
        "slow_connections": slow,
        "checks": checks,
        "answered": len(times),
        "slowest_ms": max(times, default=PATIENCE_S * 1000),
        "median_ms": median(times or [PATIENCE_S * 1000]),
        "cut_off": flood.cut,
    }


def main(words: list[str]) -> None:
    """Be a server, or measure both."""
    if words:
        serve(words[0])
    else:
        print(json.dumps({which: measure(which) for which in CHECKED}, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
