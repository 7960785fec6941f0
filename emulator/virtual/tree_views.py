"""The tree of queues as the controller sees it in virtual time: parents, and what is reserved.

A queue's name is its path below root, as everywhere in the emulator; root's is "".
"""

from __future__ import annotations

from emulator.cluster.entities import ParentConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import TreeQueue
from emulator.cluster.resource_manager import application_id
from yarnctl.deciding.model import ParentView
from yarnctl.units import NOTHING, Resources, plus


def parent_views(scheduler: TreeScheduler, label: str = "") -> tuple[ParentView, ...]:
    """Return every parent that has children, by path, with what it has of the nodes of a label."""
    kept: dict[str, Resources] = {}
    tree = scheduler.trees[label]
    for app in scheduler.kept:
        if app.label != label:
            continue
        for queue in tree[app.queue.name].chain:
            kept[queue.name] = plus(kept.get(queue.name, NOTHING), scheduler.kept_for(app))
    return tuple(_view(queue, kept.get(name, NOTHING)) for name, queue in sorted(tree.items()) if queue.below)


def _view(queue: TreeQueue, kept_resources: Resources) -> ParentView:
    assert isinstance(queue.config, ParentConfig)
    by_priority = queue.config.order == "priority-utilization"
    return ParentView(
        queue=queue.name,
        guaranteed=queue.guaranteed,
        maximum=queue.maximum,
        used=Resources(queue.used_mib, queue.used_vcores),
        reserved=kept_resources,
        order=queue.config.order,
        priorities={each.name: each.priority for each in queue.below if each.priority} if by_priority else {},
        fair=tuple(sorted(each.name for each in queue.below if each.fair)),
    )


def reserved_by_application(scheduler: TreeScheduler) -> dict[str, Resources]:
    """Return application -> what is reserved for it."""
    return {application_id(app): scheduler.kept_for(app) for app in scheduler.kept}
