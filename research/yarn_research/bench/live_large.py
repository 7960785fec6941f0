"""The live emulator as a large cluster: 10,000 nodes, 100,000 containers, 2,000 applications, 200 leaves.

``yarn-emulator serve`` reads a tree of 20 parents with 10 leaves each; every leaf gets as many applications of
modelled maps as fill the cluster. Then ``yarnctl run`` observes. Told are the time until all containers run,
how long answers take while 10,000 nodes have heartbeats, and the daemon's ticks.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from emulator.live.jobs.submission_client import Client
from emulator.live.wire.submitted_job import ModelledJob
from tests import http_client
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import program
from yarn_research.bench.row import Row, spread
from yarnctl.traces.job import Job

ROOT = "/ws/v1/cluster"
KEY = "yarn.scheduler.capacity."
LONG_S = 36_000.0
READS = 5
TICKS = re.compile(r"^yarnctl_last_tick_seconds (\S+)$", re.MULTILINE)


class LargeCluster(NamedTuple):
    """``leaves``: of each parent; ``speed``: of heartbeats and of everything modelled."""

    nodes: int = 10_000
    slots: int = 10
    applications: int = 2_000
    parents: int = 20
    leaves: int = 10
    speed: float = 0.2
    patience_s: float = 900.0


FULL = LargeCluster()
SMALL = LargeCluster(nodes=40, slots=5, applications=10, parents=2, leaves=2, speed=1.0, patience_s=120.0)


def scheduler_file(size: LargeCluster, file: Path) -> list[str]:
    """Write a ``capacity-scheduler.xml`` of equal shares; return the paths of its leaves."""
    parents = [f"p{number:02d}" for number in range(size.parents)]
    leaves = [f"q{number}" for number in range(size.leaves)]
    told = {f"{KEY}root.queues": ",".join(parents), f"{KEY}maximum-am-resource-percent": "0.9"}
    for parent in parents:
        told[f"{KEY}root.{parent}.queues"] = ",".join(leaves)
        told[f"{KEY}root.{parent}.capacity"] = str(100 / size.parents)
        for leaf in leaves:
            told[f"{KEY}root.{parent}.{leaf}.capacity"] = str(100 / size.leaves)
            told[f"{KEY}root.{parent}.{leaf}.user-limit-factor"] = "100"
    root = ElementTree.Element("configuration")
    for key, value in told.items():
        entry = ElementTree.SubElement(root, "property")
        ElementTree.SubElement(entry, "name").text = key
        ElementTree.SubElement(entry, "value").text = value
    file.write_bytes(ElementTree.tostring(root))
    return [f"root.{parent}.{leaf}" for parent in parents for leaf in leaves]


def jobs_of(size: LargeCluster, leaves: list[str]) -> list[Job]:
    """Return applications that together fill the cluster, each with a master."""
    maps = size.nodes * size.slots // size.applications - 1
    return [
        job(f"research{number}", 0, [LONG_S] * maps, [], queue=leaves[number % len(leaves)])
        for number in range(size.applications)
    ]


def until(patience_s: float, look: Callable[[], bool]) -> float:
    """Return after how many seconds something was so; raises AssertionError if it never is."""
    began_s = time.monotonic()
    while not look():
        if time.monotonic() - began_s > patience_s:
            raise AssertionError("the cluster never filled")
        time.sleep(0.2)  # how exactly it is seen
    return time.monotonic() - began_s


def measure(size: LargeCluster) -> dict[str, Any]:
    """Fill the cluster, observe it with yarnctl; return times in s."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        leaves = scheduler_file(size, folder / "capacity-scheduler.xml")
        words = ["serve", "--nodes", str(size.nodes), "--slots", str(size.slots), "--port", "0", "--json"]
        words += ["--scheduler-xml", str(folder / "capacity-scheduler.xml"), "--containers", "modelled"]
        words += ["--speed", str(size.speed), "--work", str(folder / "work")]
        with program("emulator.cli", *words, log=folder / "serve.log") as serve:
            assert serve.stdout is not None
            url = json.loads(serve.stdout.readline())["url"]
            client = Client(url, "ann")
            began_s = time.monotonic()
            for each in jobs_of(size, leaves):
                client.submit(ModelledJob(job=each), each.queue or "")
            submitted_s = time.monotonic() - began_s
            wanted = size.nodes * size.slots

            def is_full() -> bool:
                told = http_client.get(f"{url}{ROOT}/metrics", timeout=60).json()["clusterMetrics"]
                return bool(told["containersAllocated"] >= 0.99 * wanted)

            filled_s = until(size.patience_s, is_full)
            reads = {path: [_read_s(f"{url}{ROOT}/{path}") for _ in range(READS)] for path in PATHS}
            ticks = _ticks_s(url, leaves, folder, size.patience_s)
            metrics = http_client.get(f"{url}{ROOT}/metrics", timeout=60).json()["clusterMetrics"]
    return {
        "submitted_s": round(submitted_s, 1),
        "filled_s": round(filled_s, 1),
        "reads_s": {path: spread(times) for path, times in reads.items()},
        "ticks_s": ticks,
        "active_nodes": metrics["activeNodes"],
        "containers": metrics["containersAllocated"],
    }


PATHS = ("scheduler", "nodes", "apps")


def _read_s(url: str) -> float:
    began_s = time.monotonic()
    assert http_client.get(url, timeout=60).ok
    return time.monotonic() - began_s


def _ticks_s(url: str, leaves: list[str], folder: Path, patience_s: float) -> list[float]:
    """Return how long ticks of an observing daemon took, each once."""
    words = ["run", "--rm", url, "--state-dir", str(folder / "state"), "--listen", "127.0.0.1:0"]
    words += ["--preempting", leaves[0], "--preemptable", leaves[1]]
    found: list[float] = []
    with program("yarnctl.cli", *words, log=folder / "yarnctl.log"):
        said = folder / "yarnctl.log"
        until(patience_s, lambda: "http://127.0.0.1:" in said.read_text())
        address = re.findall(r"http://127\.0\.0\.1:\d+", said.read_text().replace(url, ""))[0]

        def look() -> bool:
            for text in TICKS.findall(http_client.get(f"{address}/metrics", timeout=60).text):
                if float(text) > 0 and float(text) not in found:
                    found.append(float(text))
            return len(found) >= READS

        until(patience_s, look)
    return found


def live_large(size: LargeCluster = FULL) -> Row:
    """Measure one cluster; there is no rival and no target: it is told whether it lives."""
    details = measure(size)
    longest_s = max(details["ticks_s"])
    return Row(
        name="live-large",
        what=f"live emulator, {size.nodes:,} nodes, {details['containers']:,} containers,"
        f" {size.applications:,} applications, {size.parents * size.leaves} leaves: longest tick of yarnctl",
        ours=1000 * longest_s,
        baseline=1000 * longest_s,
        ratio=1.0,
        target="told",
        holds=details["active_nodes"] == size.nodes,
        unit="ms",
        details=details,
    )
