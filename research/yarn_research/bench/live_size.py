"""How many NodeManagers live on this machine: 5,000 of them beat once a second over HTTP.

Two programs, as a user would start them: ``yarn-emulator rm`` and one process with all nodes, each of
which has a connection of its own. The time of an answer is taken at the node, from the instant at which
the heartbeat was *due* (so that a node that comes late to it is no good either) to the decoded answer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from yarn_research.bench.row import Row

NODES = 5000
SECONDS = 20.0
SETTLING_S = 2.0
LIMIT_MS = 50.0
PROGRAM = [sys.executable, "-c", "from emulator.cli import main; main()"]


class Watch:
    """Stands between nodes and wire and writes down how long after its due instant each answer came."""

    def __init__(self, wire: Any, pace: Any) -> None:
        self._wire, self._pace = wire, pace
        self.register_node = wire.register_node
        self.sent_after_ms: list[float] = []
        self.answered_after_ms: list[float] = []
        self.lost = 0

    def node_heartbeat(self, report: Any, answered: Callable[[Any], None]) -> None:
        due_ms = self._pace.kernel.now_ms
        self.sent_after_ms.append(time.time() * 1000 - due_ms)

        def heard(orders: Any) -> None:
            self.answered_after_ms.append(time.time() * 1000 - due_ms)
            self.lost += orders is None
            answered(orders)

        self._wire.node_heartbeat(report, heard)

    def forget(self) -> None:
        """Begin to count."""
        self.sent_after_ms.clear()
        self.answered_after_ms.clear()
        self.lost = 0


class Measured(msgspec.Struct, kw_only=True):
    """What the nodes' process saw within ``seconds``."""

    seconds: float
    nodes: int
    register_s: float
    beats: int
    skipped_beats: int
    lost_answers: int
    sent_after_due_ms: dict[str, float]
    answered_after_due_ms: dict[str, float]
    nodes_cpu_ratio: float
    connections: int


def quantiles(values: list[float]) -> dict[str, float]:
    """Return what describes a long list of ms."""
    held = sorted(values)
    at = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
    return {name: round(held[min(len(held) - 1, int(len(held) * part))], 2) for name, part in at.items()}


def be_nodes(rm: str, count: int, seconds: float, work: str) -> None:
    """Be the nodes' process: measure from ``SETTLING_S`` after the last registration on, print, end."""
    import asyncio
    import signal

    from emulator.live.programs.node_program import NodePlan, run_nodes
    from emulator.live.wire.http_server import bind

    began_s = time.monotonic()
    watches: list[Watch] = []

    def watch(wire: Any, pace: Any) -> Watch:
        watches.append(Watch(wire, pace))
        return watches[0]

    def ready(nodes: list[Any]) -> None:
        registered_s = time.monotonic() - began_s

        def begin() -> None:
            watches[0].forget()
            skipped, cpu_s, from_s = (
                sum(node.late_beats for node in nodes),
                time.process_time(),
                time.monotonic(),
            )
            asyncio.get_running_loop().call_later(seconds, end, skipped, cpu_s, from_s)

        def end(skipped: int, cpu_s: float, from_s: float) -> None:
            passed_s = time.monotonic() - from_s
            told = Measured(
                seconds=round(passed_s, 3),
                nodes=len(nodes),
                register_s=round(registered_s, 2),
                beats=len(watches[0].answered_after_ms),
                skipped_beats=sum(node.late_beats for node in nodes) - skipped,
                lost_answers=watches[0].lost,
                sent_after_due_ms=quantiles(watches[0].sent_after_ms),
                answered_after_due_ms=quantiles(watches[0].answered_after_ms),
                nodes_cpu_ratio=round((time.process_time() - cpu_s) / passed_s, 3),
                connections=watches[0]._wire._pool.opened,
            )
            print(msgspec.json.encode(told).decode(), flush=True)
            os.kill(os.getpid(), signal.SIGTERM)

        asyncio.get_running_loop().call_later(SETTLING_S, begin)

    plan = NodePlan(rm=rm, work=Path(work), count=count, memory_mib=4096, vcores=4, host="127.0.0.1", seed=1)
    run_nodes(plan, bind("127.0.0.1", 0), lambda text: print(text, file=sys.stderr), ready, watch)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(count: int = NODES, seconds: float = SECONDS) -> tuple[Measured, float]:
    """Run both programs; return what the nodes saw and the share of a core the ResourceManager took."""
    from emulator.live.programs.node_program import allowed_connections

    allowed_connections()  # both programs inherit the limit of open files
    with tempfile.TemporaryDirectory() as work:
        manager = subprocess.Popen(
            [*PROGRAM, "rm", "--port", "0", "--work", work, "--json"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert manager.stdout is not None
            url = msgspec.json.decode(manager.stdout.readline())["url"]
            before_s, from_s = cpu_s(manager.pid), time.monotonic()
            nodes = subprocess.run(
                [sys.executable, "-m", "yarn_research.bench.live_size", url, str(count), str(seconds), work],
                check=True,
                stdout=subprocess.PIPE,
            )
            manager_ratio = (cpu_s(manager.pid) - before_s) / (time.monotonic() - from_s)
        finally:
            manager.terminate()
            manager.wait()
    return msgspec.json.decode(nodes.stdout, type=Measured), manager_ratio


def live_size(count: int = NODES, seconds: float = SECONDS) -> Row:
    """``count`` nodes, 1 s heartbeats, ``seconds``."""
    seen, manager_ratio = measure(count, seconds)
    p99_ms = seen.answered_after_due_ms["p99"]
    whole = seen.nodes == count and seen.beats >= 0.98 * count * seen.seconds and not seen.lost_answers
    return Row(
        name="live-size",
        what=f"{count} NodeManagers live, heartbeat due to answer, p99",
        ours=p99_ms,
        baseline=LIMIT_MS,
        ratio=p99_ms / LIMIT_MS,
        target="<= 1",
        holds=p99_ms <= LIMIT_MS and whole,
        unit="ms",
        details={"manager_cpu_ratio": round(manager_ratio, 3), **msgspec.to_builtins(seen)},
    )


if __name__ == "__main__":
    be_nodes(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
