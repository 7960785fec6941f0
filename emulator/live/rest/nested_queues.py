"""The queues of a tree as GET /scheduler shows them: parents with ``queues.queue[]``, leaves with shares.

``capacity`` and ``maxCapacity`` are percentages of the parent, ``absolute...`` of the cluster,
``usedCapacity`` of the queue's own guarantee (the dominant resource). Reserved counts as used.
Source: docs/facts/hadoop.md, section 5 (observed on 3.4.2): root shows capacities and no use of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from emulator.cluster.entities import LeafQueue, ParentConfig, TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.live.rest.cluster_info import others_of, vector
from emulator.live.rest.dialect import CONSTANT_FIELDS
from yarnctl.units import NOTHING, Resources, plus

Row = dict[str, Any]

PARENT = (
    "weight", "normalizedWeight", "maxParallelApps", "isAbsoluteResource", "hideReservationQueues",
    "nodeLabels", "queueAcls", "mode", "creationMethod", "autoCreateChildQueueEnabled", "leafQueueTemplate",
    "autoQueueTemplateProperties", "autoQueueParentTemplateProperties", "autoQueueLeafTemplateProperties",
    "autoCreationEligibility",
)  # fmt: skip
"""Constant fields of a leaf that a parent shows as well."""

USES = ("used", "reserved", "pending", "amUsed", "amLimit", "userAmLimit")
SUMS = ("numApplications", "allocatedContainers", "reservedContainers", "pendingContainers")


def root_fields(scheduler: TreeScheduler, leaf_rows: Mapping[str, Row]) -> Row:
    """Return what root shows of the tree; ``leaf_rows``: each leaf's own row, by path."""
    root = scheduler.root
    row = _fields(scheduler, root)
    return {
        "usedCapacity": row["absoluteUsedCapacity"],
        "orderingPolicyInfo": _order(root),
        "capacities": _with_partitions(scheduler, root, row)["capacities"],
        "autoCreationEligibility": _eligibility(root),
        "queues": _list(_rows(scheduler, root, leaf_rows)),
    }


def _list(rows: list[Row]) -> Row:
    return {"queue": rows} if rows else {}


def _rows(scheduler: TreeScheduler, parent_queue: TreeQueue, leaf_rows: Mapping[str, Row]) -> list[Row]:
    rows = []
    for queue in parent_queue.below:
        if queue.leaf is not None:
            row = _leaf(scheduler, queue, leaf_rows[queue.path])
            rows.append(_with_partitions(scheduler, queue, row))
            continue
        below = _rows(scheduler, queue, leaf_rows)
        rows.append(_with_partitions(scheduler, queue, _parent(scheduler, queue, below)))
    return rows


def _with_partitions(scheduler: TreeScheduler, queue: TreeQueue, row: Row) -> Row:
    """Return a queue's row with those of each partition that it may use or uses."""
    for label in scheduler.labels:
        own = scheduler.trees[label][queue.name]
        if not (own.may_request(label) or own.used_mib or own.used_vcores):
            continue
        capacities = _fields(scheduler, own)["capacities"]
        (shares,) = capacities["queueCapacitiesByPartition"]
        row["capacities"]["queueCapacitiesByPartition"].append(shares | {"partitionName": label})
        if queue.above is not None:
            row["resources"]["resourceUsagesByPartition"].append(_usage(scheduler, own))
    return row


def _usage(scheduler: TreeScheduler, queue: TreeQueue) -> Row:
    """Return what a queue uses, reserves and requests of the nodes with a label."""
    pending = reserved = NOTHING
    for leaf in _leaves(queue):
        for app in (*leaf.demand, *leaf.waiting):
            asks = [ask for ask in app.asks if ask.label == queue.label]
            for ask in asks:
                pending = plus(pending, Resources(ask.count * ask.memory_mib, ask.count * ask.vcores))
            pending = plus(pending, others_of(asks))
            reserved = plus(reserved, scheduler.kept_for(app, queue.label))
    nothing = vector(0, 0)
    return {"partitionName": queue.label} | dict.fromkeys(USES, nothing) | {
        "used": vector(queue.used_mib, queue.used_vcores, queue.used_others, scheduler.types),
        "reserved": vector(reserved[0], reserved[1], reserved, scheduler.types),
        "pending": vector(pending[0], pending[1], pending, scheduler.types),
    }  # fmt: skip


def _leaves(queue: TreeQueue) -> list[LeafQueue]:
    if queue.leaf is not None:
        return [queue.leaf]
    return [leaf for child in queue.below for leaf in _leaves(child)]


def _leaf(scheduler: TreeScheduler, queue: TreeQueue, own_row: Row) -> Row:
    row = own_row | _fields(scheduler, queue)
    uses = row["resources"]["resourceUsagesByPartition"][0]
    uses["used"] = row["resourcesUsed"]
    if scheduler.types:
        uses["reserved"] = _usage(scheduler, queue)["reserved"]
    row["orderingPolicyInfo"] = "fair" if queue.fair else "fifo"
    return row | _draining(row)


def _parent(scheduler: TreeScheduler, queue: TreeQueue, below: list[Row]) -> Row:
    constant = CONSTANT_FIELDS["schedulerLeaf"]
    sums = {
        kind: _sum([row["resources"]["resourceUsagesByPartition"][0][kind] for row in below], scheduler.types)
        for kind in USES
    }
    row = {key: constant[key] for key in PARENT} | _fields(scheduler, queue)
    row |= {key: sum(each[key] for each in below) for key in SUMS}
    return row | _draining(row) | {
        "queueType": "parent",
        "autoCreationEligibility": _eligibility(queue),
        "orderingPolicyInfo": _order(queue),
        "resources": {
            "resourceUsagesByPartition": [{"partitionName": ""} | sums | {"used": row["resourcesUsed"]}]
        },
        "queues": _list(below),
    }  # fmt: skip


def _eligibility(queue: TreeQueue) -> str:
    """Return whether a parent creates queues; those created below one do so, too."""
    assert isinstance(queue.config, ParentConfig)
    return "flexible" if queue.config.depth_on_demand or queue.config.on_demand else "off"


def _draining(row: Row) -> Row:
    """Return the state of a stopped queue with applications that still run."""
    return {"state": "DRAINING"} if row["state"] == "STOPPED" and row["numApplications"] else {}


def _sum(vectors: list[Row], types: Sequence[str]) -> Row:
    counts: Counter[str] = Counter()
    for each in vectors:
        for row in each["resourceInformations"]["resourceInformation"]:
            counts[row["name"]] += row["value"]
    others = Resources(0, 0, *(counts[name] for name in types))
    return vector(counts["memory-mb"], counts["vcores"], others, types)


def _order(queue: TreeQueue) -> str:
    assert isinstance(queue.config, ParentConfig)
    return queue.config.order


def _fields(scheduler: TreeScheduler, queue: TreeQueue) -> Row:
    """Return the fields that parents and leaves share."""
    config, above = queue.config, queue.above
    outer_share, outer_most = (1.0, 1.0) if above is None else above.shares()
    share, share_most = queue.shares()
    capacity = _percent(share, outer_share)
    most = _percent(share_most, outer_most)
    types = scheduler.types
    used = vector(queue.used_mib, queue.used_vcores, queue.used_others, types)
    shown, shown_most = scheduler.shown(queue.guaranteed), scheduler.shown(queue.maximum)
    guaranteed = vector(shown.memory_mib, shown.vcores, queue.guaranteed_others, types)
    maximum = vector(shown_most.memory_mib, shown_most.vcores, queue.maximum_others, types)
    shares = {
        "capacity": capacity,
        "usedCapacity": round(100 * queue.ratio(), 3) if any(queue.guaranteed) else 0.0,
        "maxCapacity": most,
        "absoluteCapacity": _percent(share, 1.0),
        "absoluteUsedCapacity": round(100 * queue.used_share(), 3),
        "absoluteMaxCapacity": _percent(share_most, 1.0),
    }
    am_ratio = config.am_ratio if isinstance(config, TreeLeafConfig) else 0.0
    row = partition(shares, guaranteed, maximum, round(am_ratio * 100, 6))
    if isinstance(config, ParentConfig | TreeLeafConfig) and not queue.label:
        kind, own = _kind(config, capacity)
        shares, row = shares | kind, row | own
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


def partition(shares: Row, least: Row, most: Row, am_percent: float) -> Row:
    """Return a queue's shares of one partition; ``least`` and ``most``: the vectors that they come to."""
    text = f"{shares['capacity']:.1f}%"
    vector_info = {
        "configuredCapacityVector": f"[memory-mb={text},vcores={text}]",
        "capacityVectorEntries": [
            {"resourceName": name, "resourceValue": text} for name in ("memory-mb", "vcores")
        ],
    }
    return CONSTANT_FIELDS["queueCapacities"] | {"queueCapacityVectorInfo": vector_info} | shares | {
        "maxAMLimitPercentage": am_percent,
        "effectiveMinResource": least,
        "effectiveMaxResource": most,
    }  # fmt: skip


def _kind(config: ParentConfig | TreeLeafConfig, capacity: float) -> tuple[Row, Row]:
    """Return the fields of a queue with a weight, with resources or on demand, and those of its partition."""
    kind: Row = {"creationMethod": "dynamicFlexible"} if config.on_demand else {}
    if config.accessible is not None:
        kind["nodeLabels"] = list(config.accessible)
    if config.default_label:
        kind["defaultNodeLabelExpression"] = config.default_label
    own: Row = {}
    if config.weight is not None:
        own = {"weight": config.weight, "normalizedWeight": round(capacity / 100, 6)}
        kind |= own | {"mode": "weight"}
    if config.absolute is not None:
        own = {"configuredMinResource": vector(*config.absolute)}
        if config.absolute_maximum is not None:
            own["configuredMaxResource"] = vector(*config.absolute_maximum)
        kind |= {"mode": "absolute", "isAbsoluteResource": True}
    return kind, own


def _percent(part: float, whole: float) -> float:
    return round(100 * part / whole, 6) if whole else 0.0
