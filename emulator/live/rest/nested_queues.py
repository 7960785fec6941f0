"""The queues of a tree as GET /scheduler shows them: parents with ``queues.queue[]``, leaves with shares.

``capacity`` and ``maxCapacity`` are percentages of the parent, ``absolute...`` of the cluster,
``usedCapacity`` of the queue's own guarantee (the dominant resource). Reserved counts as used.
Source: docs/facts/hadoop.md, section 5 (observed on 3.4.2): root shows capacities and no use of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.cluster.entities import ParentConfig, TreeLeafConfig
from emulator.cluster.queue_tree import TreeQueue, TreeScheduler
from emulator.live.rest.cluster_info import vector
from emulator.live.rest.dialect import CONSTANT_FIELDS
from yarnctl.units import Resources

Row = dict[str, Any]

PARENT = (
    "weight", "normalizedWeight", "maxParallelApps", "isAbsoluteResource", "hideReservationQueues",
    "nodeLabels", "queueAcls", "mode", "creationMethod", "autoCreateChildQueueEnabled", "leafQueueTemplate",
    "autoQueueTemplateProperties", "autoQueueParentTemplateProperties", "autoQueueLeafTemplateProperties",
    "autoCreationEligibility",
)  # fmt: skip
"""Constant fields of a leaf that a parent shows as well."""

SUMS = ("numApplications", "allocatedContainers", "reservedContainers", "pendingContainers")


def root_fields(scheduler: TreeScheduler, total: Resources, leaf_rows: Mapping[str, Row]) -> Row:
    """Return what root shows of the tree; ``leaf_rows``: each leaf's own row, by path."""
    root = scheduler.root
    row = _fields(root, total)
    return {
        "usedCapacity": row["absoluteUsedCapacity"],
        "orderingPolicyInfo": _order(root),
        "capacities": row["capacities"],
        "queues": {"queue": _rows(scheduler, root, total, leaf_rows)},
    }


def _rows(
    scheduler: TreeScheduler, parent_queue: TreeQueue, total: Resources, leaf_rows: Mapping[str, Row]
) -> list[Row]:
    rows = []
    for queue in scheduler.nodes.values():
        if queue.above is not parent_queue:
            continue
        if queue.leaf is not None:
            rows.append(_leaf(queue, total, leaf_rows[queue.path]))
            continue
        below = _rows(scheduler, queue, total, leaf_rows)
        rows.append(_parent(queue, total, below))
    return rows


def _leaf(queue: TreeQueue, total: Resources, own_row: Row) -> Row:
    row = own_row | _fields(queue, total)
    row["resources"]["resourceUsagesByPartition"][0]["used"] = row["resourcesUsed"]
    row["orderingPolicyInfo"] = "fair" if queue.fair else "fifo"
    return row


def _parent(queue: TreeQueue, total: Resources, below: list[Row]) -> Row:
    constant = CONSTANT_FIELDS["schedulerLeaf"]
    usage = below[0]["resources"]["resourceUsagesByPartition"][0]
    kinds = [kind for kind in usage if kind != "partitionName"]
    sums = {
        kind: _sum([row["resources"]["resourceUsagesByPartition"][0][kind] for row in below])
        for kind in kinds
    }
    row = {key: constant[key] for key in PARENT} | _fields(queue, total)
    row |= {key: sum(each[key] for each in below) for key in SUMS}
    return row | {
        "queueType": "parent",
        "orderingPolicyInfo": _order(queue),
        "resources": {
            "resourceUsagesByPartition": [{"partitionName": ""} | sums | {"used": row["resourcesUsed"]}]
        },
        "queues": {"queue": below},
    }


def _sum(vectors: list[Row]) -> Row:
    return vector(sum(each["memory"] for each in vectors), sum(each["vCores"] for each in vectors))


def _order(queue: TreeQueue) -> str:
    assert isinstance(queue.config, ParentConfig)
    return queue.config.order


def _fields(queue: TreeQueue, total: Resources) -> Row:
    """Return the fields that parents and leaves share."""
    config, above = queue.config, queue.above
    outer_share, outer_most = (
        (1.0, 1.0) if above is None else (above.config.capacity_ratio, above.config.maximum_ratio)
    )
    capacity = _percent(config.capacity_ratio, outer_share)
    most = _percent(config.maximum_ratio, outer_most)
    used = vector(queue.used_mib, queue.used_vcores)
    guaranteed, maximum = vector(*queue.guaranteed), vector(*queue.maximum)
    of_total = max(
        (
            part / whole
            for part, whole in zip((queue.used_mib, queue.used_vcores), total, strict=True)
            if whole
        ),
        default=0.0,
    )
    shares = {
        "capacity": capacity,
        "usedCapacity": round(100 * queue.ratio(), 3) if any(queue.guaranteed) else 0.0,
        "maxCapacity": most,
        "absoluteCapacity": _percent(config.capacity_ratio, 1.0),
        "absoluteUsedCapacity": round(100 * of_total, 3),
        "absoluteMaxCapacity": _percent(config.maximum_ratio, 1.0),
    }
    text = f"{capacity:.1f}%"
    am_ratio = config.am_ratio if isinstance(config, TreeLeafConfig) else 0.0
    row = CONSTANT_FIELDS["queueCapacities"] | shares | {
        "queueCapacityVectorInfo": {
            "configuredCapacityVector": f"[memory-mb={text},vcores={text}]",
            "capacityVectorEntries": [
                {"resourceName": name, "resourceValue": text} for name in ("memory-mb", "vcores")
            ],
        },
        "maxAMLimitPercentage": round(am_ratio * 100, 6),
        "effectiveMinResource": guaranteed,
        "effectiveMaxResource": maximum,
    }  # fmt: skip
    return shares | {
        "queuePath": queue.path,
        "queueName": queue.path.rpartition(".")[2],
        "state": "STOPPED" if queue.stopped else "RUNNING",
        "resourcesUsed": used,
        "capacities": {"queueCapacitiesByPartition": [row]},
        "minEffectiveCapacity": guaranteed,
        "maxEffectiveCapacity": maximum,
        "queuePriority": queue.priority,
    }


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 6) if whole else 0.0
