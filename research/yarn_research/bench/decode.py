"""How fast a 10 MB answer to /apps becomes records, beside json and dataclasses. Printed, not judged.

``python -m yarn_research.bench.decode``.
"""

from __future__ import annotations

import gc
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from yarnctl.hadoop.wire import yarn


def make_apps(size_bytes: int = 10_000_000) -> bytes:
    """Write an answer as 3.4.2 does: about 1.6 kB and 42 fields for each application."""
    chance, size = random.Random(1), 0
    rows: list[str] = []
    while size < size_bytes:
        rows.append(json.dumps(_row(len(rows), chance), separators=(",", ":")))
        size += len(rows[-1]) + 1
    return ('{"apps":{"app":[' + ",".join(rows) + "]}}").encode()


def _row(number: int, chance: random.Random) -> dict[str, Any]:
    name, held = f"application_1700000000000_{number:05d}", chance.randrange(1, 200)
    percent = chance.random() * 100
    return app_row(name, f"user{number % 40}", "research", "RUNNING", held, held, percent, _slots)


def _slots(count: int) -> dict[str, Any]:
    return {"memory": 1024 * count, "vCores": count}


def app_row(
    name: str,
    user: str,
    queue: str,
    state: str,
    held: int,
    waits: int,
    percent: float,
    slots: Callable[[int], dict[str, Any]],
) -> dict[str, Any]:
    """Return an application in an answer to /apps; it holds and awaits so many ``slots`` (vectors)."""
    host = "node00017.example.org"
    use = {
        "partitionName": "", "used": slots(held), "reserved": slots(0), "pending": slots(waits),
        "amUsed": slots(1), "amLimit": slots(0), "userAmLimit": slots(0),
    }  # fmt: skip
    return {
        "id": name, "user": user, "name": "streamjob" + "x" * 20, "queue": queue, "state": state,
        "finalStatus": "UNDEFINED", "progress": percent, "trackingUI": "ApplicationMaster",
        "trackingUrl": f"http://rm.example.org:8088/proxy/{name}/", "diagnostics": "",
        "clusterId": 1700000000000, "applicationType": "MAPREDUCE", "applicationTags": "", "priority": 0,
        "startedTime": 1_700_000_000_000 + len(name), "launchTime": 1_700_000_000_100, "finishedTime": 0,
        "elapsedTime": 12345, "amContainerLogs": f"http://{host}:8042/node/containerlogs/c/user",
        "amHostHttpAddress": f"{host}:8042", "amRPCAddress": f"{host}:39001", "masterNodeId": f"{host}:45454",
        "allocatedMB": 1024 * held, "allocatedVCores": held, "reservedMB": 0, "reservedVCores": 0,
        "runningContainers": held, "memorySeconds": 123456789, "vcoreSeconds": 123456,
        "queueUsagePercentage": 1.5, "clusterUsagePercentage": 0.5, "preemptedResourceMB": 0,
        "preemptedResourceVCores": 0, "numNonAMContainerPreempted": 0, "numAMContainerPreempted": 0,
        "preemptedMemorySeconds": 0, "preemptedVcoreSeconds": 0, "logAggregationStatus": "NOT_START",
        "unmanagedApplication": False, "amNodeLabelExpression": "",
        "resourceInfo": {"resourceUsagesByPartition": [use]},
    }  # fmt: skip


@dataclass
class PlainUse:
    """One row of what is pending."""

    pending_memory: int
    pending_cores: int


@dataclass
class PlainApplication:
    """The fields of ``wire.Application``."""

    application: str
    user: str
    queue: str
    state: str
    kind: str
    tags: str
    priority: int
    progress: float
    diagnostics: str
    submitted: int
    memory: int
    cores: int
    reserved_memory: int
    reserved_cores: int
    containers: int
    uses: list[PlainUse]


def read_plainly(body: bytes) -> list[PlainApplication]:
    """Read the same fields with json and dataclasses, as one would write it without a library."""
    return [
        PlainApplication(
            row["id"], row["user"], row["queue"], row["state"],
            row["applicationType"], row["applicationTags"],
            row["priority"], row["progress"], row["diagnostics"], row["startedTime"],
            row["allocatedMB"], row["allocatedVCores"],
            row["reservedMB"], row["reservedVCores"], row["runningContainers"],
            [
                PlainUse(use["pending"]["memory"], use["pending"]["vCores"])
                for use in row.get("resourceInfo", {}).get("resourceUsagesByPartition", [])
            ],
        )
        for row in json.loads(body)["apps"]["app"]
    ]  # fmt: skip


def best_ms(call: Callable[[bytes], object], body: bytes, repeats: int = 7) -> float:
    """Return the fastest of some runs in milliseconds, each with a clean heap."""
    found = []
    for _ in range(repeats):
        gc.collect()
        began = time.perf_counter()
        call(body)
        found.append((time.perf_counter() - began) * 1000)
    return min(found)


def main() -> None:
    body = make_apps()
    fast = yarn.APPLICATIONS.read(body)
    assert len(fast) == len(read_plainly(body))
    odd = body.replace(b'"priority":0', b'"priority":"0"', 50)
    mapped = body.replace(b'"progress":', b'"progress":NaN,"x":', 1)
    plain, typed = best_ms(read_plainly, body), best_ms(yarn.APPLICATIONS.read, body)
    print(f"{len(body) / 1e6:.1f} MB, {len(fast)} applications")
    print(f"json + dataclasses {plain:7.1f} ms")
    print(f"wire, fast         {typed:7.1f} ms   {plain / typed:.1f} times")
    print(f"wire, 50 odd rows  {best_ms(yarn.APPLICATIONS.read, odd, 3):7.1f} ms")
    print(f"wire, a NaN in it  {best_ms(yarn.APPLICATIONS.read, mapped, 3):7.1f} ms")


if __name__ == "__main__":
    main()
