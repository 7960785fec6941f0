"""From the answers of a ResourceManager with 10,000 nodes to victims: decoding, model and choice on one core.

The answers have the fields that 3.4.2 gives: a row of /nodes is about 2 kB (every vector names each resource
again), a row of /apps about 1.6 kB, a queue about 5 kB. The tree has 20 parents with 10 leaves each; every
leaf has pending requests. 2,000 applications hold 100,000 containers. Production waits for four.
The rival only decodes the same three answers into plain dictionaries with ``json``: the least that a program
without typed records does before it can decide anything.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from functools import partial
from typing import Any, NamedTuple

import requests

from yarn_research.bench.decode import app_row
from yarn_research.bench.http_tick import ASKER, ROOT, WANTED, ours, serve, timed
from yarn_research.bench.row import Row, spread
from yarnctl.attach.connection.cluster_queues import QueueNames
from yarnctl.attach.connection.connection import Attachment
from yarnctl.attach.port import attach
from yarnctl.config import ClusterAddress
from yarnctl.deciding.queue_names import NamedQueues
from yarnctl.hadoop.wire.calculator import DOMINANT, KEY

LIMIT_MS = 120.0
PARENTS = 20
PRODUCTION, RESEARCH = "root.p00.q0", "root.p01.q0"


class Scale(NamedTuple):
    """The size of the cluster. ``leaves``: of each parent."""

    nodes: int = 10_000
    applications: int = 2_000
    containers: int = 100_000
    leaves: int = 10


FULL = Scale()
SMALL = Scale(nodes=100, applications=40, containers=1_000, leaves=1)


def vector(memory_mib: int, vcores: int) -> dict[str, Any]:
    """Return a resource vector as 3.4 writes it."""
    rows = [
        {
            "attributes": {}, "maximumAllocation": 9223372036854775807, "minimumAllocation": 0, "name": name,
            "resourceType": "COUNTABLE", "units": units, "value": value,
        }
        for name, units, value in (("memory-mb", "Mi", memory_mib), ("vcores", "", vcores))
    ]  # fmt: skip
    return {
        "memory": memory_mib,
        "vCores": vcores,
        "resourceInformations": {"resourceInformation": rows},
    }


def slots(count: float) -> dict[str, Any]:
    """Return the vector of so many containers of 1 GiB and a core."""
    return vector(1024 * int(count), int(count))


def _node(place: int, held: int) -> dict[str, Any]:
    usage = dict.fromkeys(
        (
            "nodePhysicalMemoryMB", "nodeVirtualMemoryMB", "aggregatedContainersPhysicalMemoryMB",
            "aggregatedContainersVirtualMemoryMB",
        ), 1024 * held,
    )  # fmt: skip
    name = f"node{place:05d}.example.org"
    return {
        "rack": f"/rack{place // 40:03d}", "state": "RUNNING", "id": f"{name}:45454", "nodeHostName": name,
        "nodeHTTPAddress": f"{name}:8042", "lastHealthUpdate": 1_700_000_000_000 + place, "version": "3.4.2",
        "healthReport": "", "numContainers": held, "usedMemoryMB": 1024 * held, "availMemoryMB": 0,
        "usedVirtualCores": held, "availableVirtualCores": 0, "numRunningOpportContainers": 0,
        "usedMemoryOpportGB": 0, "usedVirtualCoresOpport": 0, "numQueuedContainers": 0, "allocationTags": {},
        "resourceUtilization": {**usage, "nodeCPUUsage": 0.7, "containersCPUUsage": 0.6},
        "usedResource": slots(held), "availableResource": slots(0), "totalResource": slots(held),
        "nodeAttributesInfo": {},
    }  # fmt: skip


def _queue(path: str, share_ratio: float, total: int, used: float, waits: bool) -> dict[str, Any]:
    share = {
        "absoluteCapacity": 100 * share_ratio,
        "absoluteMaxCapacity": 100.0,
        "absoluteUsedCapacity": 100 * used / total,
        "capacity": 100 * share_ratio,
        "maxCapacity": 100.0,
        "usedCapacity": 100 * used / total / share_ratio,
    }
    least, most = slots(total * share_ratio), slots(total)
    pending = slots(WANTED if waits else 0)
    return {
        "queueName": path.rpartition(".")[2], "queuePath": path, "state": "RUNNING", "mode": "percentage",
        **share, "minEffectiveCapacity": least, "maxEffectiveCapacity": most, "resourcesUsed": slots(used),
        "maxParallelApps": 2147483647, "creationMethod": "static", "autoCreationEligibility": "off",
        "isAbsoluteResource": False, "orderingPolicyInfo": "fifo", "queuePriority": 0, "weight": -1.0,
        "capacities": {"queueCapacitiesByPartition": [{
            "partitionName": "", **share, "effectiveMinResource": least, "effectiveMaxResource": most,
            "configuredMinResource": slots(0), "configuredMaxResource": slots(0), "maxAMLimitPercentage": 10.0,
        }]},
        "resources": {"resourceUsagesByPartition": [{
            "partitionName": "", "used": slots(used), "reserved": slots(0), "pending": pending,
            "amUsed": slots(1), "amLimit": slots(100),
        }]},
    }  # fmt: skip


def _tree(scale: Scale) -> dict[str, Any]:
    total, count = scale.containers, PARENTS * scale.leaves
    parents = []
    for place in range(PARENTS):
        leaves = []
        for at in range(scale.leaves):
            path = f"root.p{place:02d}.q{at}"
            used = 0.0 if path == PRODUCTION else total * (2 if path == RESEARCH else 1) / count
            user = {
                "username": f"user{at}", "resourcesUsed": slots(used), "AMResourceUsed": slots(1),
                "userResourceLimit": slots(total), "userWeight": 1.0, "isActive": True,
                "numPendingApplications": 0, "numActiveApplications": 10,
                "resources": {"resourceUsagesByPartition": [{"partitionName": "", "used": slots(used)}]},
            }  # fmt: skip
            leaf = _queue(path, 1 / count, total, used, waits=True)
            leaf |= {
                "type": "capacitySchedulerLeafQueueInfo", "queueType": "leaf", "userLimitFactor": 100.0,
                "pendingContainers": WANTED, "users": {"user": [user]}, "preemptionDisabled": True,
                "numActiveApplications": 10, "numPendingApplications": 0, "userLimit": 100.0,
            }  # fmt: skip
            leaves.append(leaf)
        parent = _queue(f"root.p{place:02d}", 1 / PARENTS, total, total / PARENTS, waits=True)
        parent |= {"queueType": "parent", "orderingPolicyInfo": "utilization", "queues": {"queue": leaves}}
        parents.append(parent)
    root = {"type": "capacityScheduler", "queueName": "root", "queues": {"queue": parents}}
    return {"scheduler": {"schedulerInfo": root}}


def static_answers(scale: Scale) -> dict[str, bytes]:
    """Return the answers that stay the same."""
    held = scale.containers // scale.nodes
    texts: dict[str, Any] = {
        f"{ROOT}/info": {"clusterInfo": {"id": 1, "haState": "ACTIVE"}},
        "/conf": {"properties": [{"key": "yarn.web-proxy.address", "value": ""}]},
        f"{ROOT}/scheduler-conf": {"property": [{"name": KEY, "value": DOMINANT}]},
        f"{ROOT}/scheduler": _tree(scale),
        f"{ROOT}/nodes": {"nodes": {"node": [_node(place, held) for place in range(scale.nodes)]}},
    }
    return {path: json.dumps(value, separators=(",", ":")).encode() for path, value in texts.items()}


def apps_answers(scale: Scale) -> tuple[bytes, bytes]:
    """Return two answers to /apps, between which every job has got on."""
    count = PARENTS * scale.leaves
    bodies = []
    for percent in (10.0, 10.2):
        rows = [_app(place, scale, count, percent) for place in range(scale.applications)]
        rows.append(app_row(ASKER, "p", PRODUCTION, "ACCEPTED", 0, WANTED, 0.0, slots))
        bodies.append(json.dumps({"apps": {"app": rows}}, separators=(",", ":")).encode())
    return bodies[0], bodies[1]


def _app(place: int, scale: Scale, count: int, percent: float) -> dict[str, Any]:
    at = 1 + place % (count - 1)  # none but the requester is in production's queue
    path = f"root.p{at // scale.leaves:02d}.q{at % scale.leaves}"
    name = f"application_1700000000000_{place:05d}"
    held = scale.containers // scale.applications
    waits = WANTED if place < count - 1 else 0
    return app_row(name, f"user{place % 40}", path, "RUNNING", held, waits, percent, slots)


def plainly(url: str) -> int:
    """Read the three answers into dictionaries; return how many rows they have."""
    session = requests.Session()
    told = [session.get(f"{url}{ROOT}/{path}", timeout=60).json() for path in ("scheduler", "nodes", "apps")]
    return len(told[1]["nodes"]["node"]) + len(told[2]["apps"]["app"])


def measure(scale: Scale, repeats: int) -> dict[str, Any]:
    """Return processor and wall times in ms of both sides, in turn."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    answers = (partial(static_answers, scale), partial(apps_answers, scale))
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there, *answers), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{here.recv()}"
        told = Attachment(
            name_nodes=("nn:9870",),
            eligibility_reads_max=20_000,
            others_max=20_000,
            look_ms=60_000,
            look_wait_ms=60_000,  # all jobs are new at once
        )
        names = QueueNames(NamedQueues((PRODUCTION,), (RESEARCH,)))
        port = attach(ClusterAddress(resource_managers=(url,), user="yarnctl"), told, _now_ms, queues=names)
        for _ in range(told.stable_observations):
            expected = ours(port, PRODUCTION, RESEARCH)
        assert len(expected) == WANTED, (expected, port.last_problem, list(port.why_not.items())[:3])
        found: dict[str, list[float]] = {"ours": [], "naive": [], "ours_cpu": [], "naive_cpu": []}
        for _ in range(repeats):
            took_ms, cpu_ms, picked = timed(partial(ours, port, PRODUCTION, RESEARCH))
            assert picked == expected
            found["ours"].append(took_ms)
            found["ours_cpu"].append(cpu_ms)
            took_ms, cpu_ms, _ = timed(partial(plainly, url))
            found["naive"].append(took_ms)
            found["naive_cpu"].append(cpu_ms)
        sizes = {path: len(body) for path, body in static_answers(scale).items()}
        return {name: spread(times) for name, times in found.items()} | {
            "bytes": sizes | {f"{ROOT}/apps": len(apps_answers(scale)[0])}
        }
    finally:
        server.kill()
        server.join()


def _now_ms() -> int:

    return time.time_ns() // 1_000_000


def scale_row(scale: Scale = FULL, repeats: int = 9) -> Row:
    """Measure a look to victims in processor time; the rival decides nothing."""
    details = measure(scale, repeats)
    our_ms, plain_ms = (details[side]["median"] for side in ("ours_cpu", "naive_cpu"))
    return Row(
        name="scale",
        what=f"{scale.nodes:,} nodes, {scale.applications:,} applications, {PARENTS * scale.leaves} leaves:"
        " from three answers to victims (processor time), beside json alone",
        ours=our_ms,
        baseline=plain_ms,
        ratio=plain_ms / our_ms,
        target=f"<= {LIMIT_MS:.0f} ms",
        holds=our_ms <= LIMIT_MS,
        unit="ms",
        details=details,
    )
