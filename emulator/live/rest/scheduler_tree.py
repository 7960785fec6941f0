"""GET /scheduler, the tree of the capacity scheduler (facts, section 1.3); read only.

Percentages are of the parent (``capacity``) and of the cluster (``absolute...``), which are the same where
there is no parent but root; :mod:`emulator.live.rest.nested_queues` shows trees.
"""

from __future__ import annotations

from typing import Any

from emulator.cluster.entities import LeafQueue
from emulator.cluster.queue_tree import TreeScheduler
from emulator.live.manager.service import LiveResourceManager
from emulator.live.manager.state import AppRecord
from emulator.live.rest.cluster_info import requested, reservations, vector
from emulator.live.rest.configuration import SchedulerConfiguration
from emulator.live.rest.dialect import CONSTANT_FIELDS
from emulator.live.rest.nested_queues import Row, partition, root_fields
from yarnctl.units import Resources


def usage(memory_mib: int, vcores: int, **more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return resourceUsagesByPartition for the only partition, the unlabelled one."""
    nothing = vector(0, 0)
    row: dict[str, Any] = {
        "partitionName": "",
        "used": vector(memory_mib, vcores),
        "reserved": nothing,
        "pending": nothing,
        "amUsed": nothing,
        "amLimit": nothing,
        "userAmLimit": nothing,
    }
    return [row | more]


def scheduler(manager: LiveResourceManager, conf: SchedulerConfiguration) -> dict[str, Any]:
    """Return schedulerInfo: root and the queues below it."""
    leaves = [_leaf(manager, queue, conf) for queue in manager.actor.scheduler.queues.values()]
    total_mib = manager.actor.total.memory_mib
    used_mib = sum(queue.used_mib for queue in manager.actor.scheduler.queues.values())
    used_percent = round(100 * used_mib / total_mib, 3) if total_mib else 0.0
    largest, total = manager.largest_node(), vector(*manager.actor.scheduler.shown(manager.actor.total))
    answer = CONSTANT_FIELDS["schedulerRoot"] | {
        "usedCapacity": used_percent,
        "queues": {"queue": leaves},
        "capacities": _capacities(100.0, used_percent, 100.0, total, total),
        "maximumAllocation": vector(*largest),
    }
    if isinstance(manager.actor.scheduler, TreeScheduler):
        by_path = {row["queuePath"]: row for row in leaves}
        answer |= root_fields(manager.actor.scheduler, by_path)
    return answer


def overview(manager: LiveResourceManager) -> dict[str, Any]:
    """Return the answer of GET /scheduler-overview: how the scheduler decides."""
    return CONSTANT_FIELDS["schedulerOverview"] | {
        "maximumAllocation": vector(*manager.largest_node()),
        "applicationPriority": manager.settings.max_priority,
        "schedulingResourceType": ",".join(
            (CONSTANT_FIELDS["schedulerOverview"]["schedulingResourceType"], *manager.actor.scheduler.types)
        ),
    }


def _capacities(
    capacity: float, used: float, maximum: float, least: Row, most: Row, am_percent: float = 0.0
) -> Row:
    """Return the shares of a queue directly below root, or root's: those of its parent and of the cluster."""
    own = {"capacity": capacity, "usedCapacity": used, "maxCapacity": maximum}
    whole = {f"absolute{key[0].upper()}{key[1:]}": value for key, value in own.items()}
    return {"queueCapacitiesByPartition": [partition(own | whole, least, most, am_percent)]}


def _leaf(manager: LiveResourceManager, queue: LeafQueue, conf: SchedulerConfiguration) -> dict[str, Any]:
    config = queue.config
    apps = [app for app in manager.applications.values() if app.actor.queue is queue]
    asks = [ask for app in apps for ask in app.actor.asks if not ask.label]
    pending = vector(*requested(asks), manager.actor.scheduler.types)
    shown, total = manager.actor.scheduler.shown, manager.actor.total
    used, most_resources = (
        vector(queue.used_mib, queue.used_vcores),
        shown(Resources(queue.maximum_mib, queue.maximum_vcores)),
    )
    guaranteed, maximum = vector(*shown(queue.guaranteed)), vector(*most_resources)
    capacity, most = round(config.capacity_ratio * 100, 6), round(config.maximum_ratio * 100, 6)
    used_ratios = (
        part / whole for part, whole in zip((queue.used_mib, queue.used_vcores), total, strict=True) if whole
    )
    absolute_used = round(100 * max(used_ratios, default=0.0), 3)
    own_used = (
        round(100 * queue.used_mib / queue.guaranteed.memory_mib, 3) if queue.guaranteed.memory_mib else 0.0
    )
    reserved = reservations(node for node in manager.nodes.values() if not node.actor.label)
    held = [reserved[app.number] for app in apps if app.number in reserved]
    am_limit = vector(queue.am_mib, int(most_resources.vcores * config.am_ratio))
    am_used = vector(queue.am_used_mib, sum(app.actor.activated for app in apps))
    containers = sum(app.actor.containers for app in apps)
    return CONSTANT_FIELDS["schedulerLeaf"] | {
        "queuePath": f"root.{queue.name}",
        "queueName": queue.name,
        "capacity": capacity,
        "usedCapacity": own_used,
        "maxCapacity": most,
        "absoluteCapacity": capacity,
        "absoluteMaxCapacity": most,
        "absoluteUsedCapacity": absolute_used,
        "numApplications": len(apps),
        "state": conf.queue_text(queue.name, "state", "RUNNING"),
        "resourcesUsed": used,
        "allocatedContainers": containers,
        "reservedContainers": sum(count for count, _, _ in held),
        "pendingContainers": sum(ask.count for ask in asks),
        "capacities": _capacities(
            capacity, absolute_used, most, guaranteed, maximum, round(config.am_ratio * 100, 6)
        ),
        "resources": {
            "resourceUsagesByPartition": usage(
                queue.used_mib, queue.used_vcores, pending=pending, amUsed=am_used, amLimit=am_limit,
                reserved=vector(sum(mib for _, mib, _ in held), sum(vcores for _, _, vcores in held)),
            )
        },
        "minEffectiveCapacity": guaranteed,
        "maxEffectiveCapacity": maximum,
        "maximumAllocation": vector(*manager.largest_node()),
        "preemptionDisabled": conf.is_excused(queue.name),
        "queuePriority": conf.queue_number(queue.name, "priority", 0),
        "numActiveApplications": sum(app.actor.activated for app in apps),
        "numPendingApplications": sum(not app.actor.activated for app in apps),
        "numContainers": containers,
        "userLimit": conf.queue_number(queue.name, "minimum-user-limit-percent", 100),
        "users": {"user": users} if (users := _users(apps, queue, most_resources)) else {},
        "userLimitFactor": -1.0 if config.user_limit_factor is None else config.user_limit_factor,
        "configuredMaxAMResourceLimit": config.am_ratio,
        "AMResourceLimit": am_limit,
        "usedAMResource": am_used,
        "userAMResourceLimit": am_limit,
    }  # fmt: skip


def _users(apps: list[AppRecord], queue: LeafQueue, most_resources: Resources) -> list[dict[str, Any]]:
    most_mib, vcores = most_resources
    limit = vector(most_mib if queue.user_mib is None else min(queue.user_mib, most_mib), vcores)
    rows = []
    for user in sorted({app.submission.user for app in apps}):
        own = [app for app in apps if app.submission.user == user]
        used_mib, used_vcores = (
            sum(app.actor.used_mib for app in own),
            sum(app.actor.used_vcores for app in own),
        )
        active = [app for app in own if app.actor.activated]
        rows.append(
            {
                "username": user,
                "resourcesUsed": vector(used_mib, used_vcores),
                "numPendingApplications": len(own) - len(active),
                "numActiveApplications": len(active),
                "AMResourceUsed": vector(sum(app.actor.am_mib for app in active), len(active)),
                "userResourceLimit": limit,
                "resources": {"resourceUsagesByPartition": usage(used_mib, used_vcores)},
                "userWeight": 1.0,
                "isActive": any(app.actor.pending for app in own),
            }
        )
    return rows
