"""The cluster's identity, counters and nodes (facts, section 1.1), in the natural form; read only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

from emulator.cluster.entities import Ask, NodeReservation
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import NodeRecord
from emulator.live.rest.dialect import CONSTANT_FIELDS, Dialect
from yarnctl.units import NOTHING, Resources, minus, plus, times

NODE_STATES = (
    "NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONED", "LOST", "REBOOTED", "DECOMMISSIONING", "SHUTDOWN",
)  # fmt: skip


def vector(
    memory_mib: int, vcores: int, other_resources: Resources = NOTHING, types: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a ResourceInfo; of ``other_resources`` what comes after vcores counts, named by ``types``."""
    more = zip_longest(types, other_resources[2 : 2 + len(types)], fillvalue=0)
    informations: list[dict[str, Any]] = [
        {
            "attributes": {},
            "maximumAllocation": 9223372036854775807,
            "minimumAllocation": 0,
            "name": name,
            "resourceType": "COUNTABLE",
            "units": units,
            "value": value,
        }
        for name, units, value in (
            ("memory-mb", "Mi", memory_mib),
            ("vcores", "", vcores),
            *((name, "", value) for name, value in more),
        )
    ]
    return {
        "memory": memory_mib,
        "vCores": vcores,
        "resourceInformations": {"resourceInformation": informations},
    }


def requested(asks: Iterable[Ask]) -> tuple[int, int, Resources]:
    """Return memory, vcores and the other resource types of requests, for :func:`vector`."""
    rows = list(asks)
    memory_mib = sum(ask.count * ask.memory_mib for ask in rows)
    return memory_mib, sum(ask.count * ask.vcores for ask in rows), others_of(rows)


def others_of(asks: Iterable[Ask]) -> Resources:
    """Return what requests want of the scheduler's other resource types."""
    found = NOTHING
    for ask in asks:
        found = plus(found, times(ask.others, ask.count))
    return found


def info(manager: LiveResourceManager, dialect: Dialect) -> dict[str, Any]:
    """Return ClusterInfo; its id is the epoch."""
    version = dialect.hadoop_version
    build = f"{version} from the emulator of yarnctl"
    return CONSTANT_FIELDS["clusterInfo"] | {
        "id": manager.epoch,
        "startedOn": manager.driver.wall_of(manager.started_at_ms),
        "resourceManagerVersion": version,
        "resourceManagerBuildVersion": build,
        "hadoopVersion": version,
        "hadoopBuildVersion": build,
    }


def pending_of(manager: LiveResourceManager) -> tuple[int, int, int]:
    """Return containers, MiB and vcores requested and not granted, of nodes without a label."""
    count = memory_mib = vcores = 0
    for app in manager.applications.values():
        for ask in app.actor.asks:
            if not ask.label:
                count += ask.count
                memory_mib += ask.count * ask.memory_mib
                vcores += ask.count * ask.vcores
    return count, memory_mib, vcores


def reservations(nodes: Iterable[NodeRecord]) -> dict[int, tuple[int, int, int]]:
    """Return application number -> containers, MiB and vcores reserved for it."""
    found: dict[int, tuple[int, int, int]] = {}
    for node in nodes:
        held = node.actor.reserved
        if isinstance(held, NodeReservation):
            count, memory_mib, vcores = found.get(held.app.number, (0, 0, 0))
            found[held.app.number] = (
                count + 1, memory_mib + held.ask.memory_mib, vcores + held.ask.vcores,
            )  # fmt: skip
    return found


def metrics(manager: LiveResourceManager) -> dict[str, Any]:
    """Return ClusterMetrics: memory and vcores of nodes without a label, and of all across partitions."""
    every = list(manager.nodes.values())
    nodes = [node for node in every if not node.actor.label]
    total_mib, total_vcores = manager.actor.total[0], sum(node.actor.true_vcores for node in nodes)
    free_mib = sum(node.actor.free_mib for node in nodes)
    free_vcores = sum(node.actor.true_free_vcores for node in nodes)
    whole = vector(sum(node.actor.total_mib for node in every), sum(node.actor.true_vcores for node in every))
    held = vector(
        sum(node.actor.total_mib - node.actor.free_mib for node in every),
        sum(node.actor.total_vcores - node.actor.free_vcores for node in every),
    )
    waiting, waiting_mib, waiting_vcores = pending_of(manager)
    reserved = [sum(each) for each in zip((0, 0, 0), *reservations(nodes).values(), strict=True)]
    ended = [app.state for app in manager.finished.values()]
    running = sum(app.state == "RUNNING" for app in manager.applications.values())
    everywhere = [sum(each) for each in zip((0, 0, 0), *reservations(every).values(), strict=True)]
    return CONSTANT_FIELDS["clusterMetrics"] | {
        "appsSubmitted": len(ended) + len(manager.applications),
        "appsCompleted": ended.count("FINISHED"),
        "appsPending": len(manager.applications) - running,
        "appsRunning": running,
        "appsFailed": ended.count("FAILED"),
        "appsKilled": ended.count("KILLED"),
        "reservedMB": reserved[1],
        "availableMB": free_mib,
        "allocatedMB": total_mib - free_mib,
        "pendingMB": waiting_mib,
        "reservedVirtualCores": reserved[2],
        "availableVirtualCores": free_vcores,
        "allocatedVirtualCores": total_vcores - free_vcores,
        "pendingVirtualCores": waiting_vcores,
        "containersAllocated": len(manager.containers),
        "containersReserved": reserved[0],
        "containersPending": waiting,
        "totalMB": total_mib,
        "totalVirtualCores": total_vcores,
        "totalNodes": len(every) + len(manager.lost),
        "lostNodes": len(manager.lost),
        "activeNodes": len(every),
        "totalUsedResourcesAcrossPartition": held,
        "totalClusterResourcesAcrossPartition": whole,
        "totalReservedResourcesAcrossPartition": vector(everywhere[1], everywhere[2]),
        "totalAllocatedContainersAcrossPartition": len(manager.containers),
    }


def node_row(
    manager: LiveResourceManager, node: NodeRecord, dialect: Dialect, containers: int, lost: bool
) -> dict[str, Any]:
    """Return NodeInfo; a lost node has neither use nor room."""
    actor = node.actor
    used_mib = 0 if lost else actor.total_mib - actor.free_mib
    used_vcores = 0 if lost else actor.total_vcores - actor.free_vcores
    free_mib, free_vcores = (0, 0) if lost else (actor.free_mib, actor.true_free_vcores)
    free_others = NOTHING if lost else actor.free_others
    used_others = NOTHING if lost else minus(actor.others, actor.free_others)
    total_others = NOTHING if lost else actor.others
    types = manager.actor.scheduler.types
    memory_percent = round(100 * used_mib / actor.total_mib, 2) if actor.total_mib else 0.0
    return CONSTANT_FIELDS["nodeInfo"] | {
        "rack": node.rack,
        "state": "LOST" if lost else "RUNNING",
        "id": node.id,
        **({"nodeLabels": [actor.label]} if actor.label else {}),
        "nodeHostName": node.id.rpartition(":")[0] or node.id,
        "nodeHTTPAddress": "" if lost else node.http_address,
        "lastHealthUpdate": manager.driver.wall_of(node.heartbeat_at_ms),
        "version": dialect.hadoop_version,
        "numContainers": containers,
        "usedMemoryMB": used_mib,
        "availMemoryMB": free_mib,
        "usedVirtualCores": used_vcores,
        "availableVirtualCores": free_vcores,
        "memUtilization": memory_percent,
        "resourceUtilization": {
            "nodePhysicalMemoryMB": used_mib,
            "nodeVirtualMemoryMB": used_mib,
            "nodeCPUUsage": 0.0,
            "aggregatedContainersPhysicalMemoryMB": used_mib,
            "aggregatedContainersVirtualMemoryMB": used_mib,
            "containersCPUUsage": 0.0,
        },
        "usedResource": vector(used_mib, used_vcores, used_others, types),
        "availableResource": vector(free_mib, free_vcores, free_others, types),
        "totalResource": vector(used_mib + free_mib, used_vcores + free_vcores, total_others, types),
    }


def containers_by_node(manager: LiveResourceManager) -> Counter[str]:
    """Return how many containers each node holds."""
    return Counter(container.node.id for container in manager.containers.values())


def nodes(manager: LiveResourceManager, dialect: Dialect, states: frozenset[str]) -> list[dict[str, Any]]:
    """Return the nodes in these states (none named: all, lost ones too), ordered by id."""
    rows = []
    if not states or "RUNNING" in states:
        counts = containers_by_node(manager)
        rows += [node_row(manager, node, dialect, counts[node.id], False) for node in manager.nodes.values()]
    if not states or "LOST" in states:
        rows += [node_row(manager, node, dialect, 0, lost=True) for node in manager.lost.values()]
    return sorted(rows, key=lambda row: str(row["id"]))


def labels(manager: LiveResourceManager) -> list[dict[str, Any]]:
    """Return the cluster's node labels, with the resources of each partition."""
    scheduler = manager.actor.scheduler
    if not isinstance(scheduler, TreeScheduler):
        return []
    return [
        {
            "name": name,
            "exclusivity": exclusive,
            "partitionInfo": {"resourceAvailable": vector(*scheduler.totals[name])},
        }
        for name, exclusive in scheduler.labels.items()
    ]
