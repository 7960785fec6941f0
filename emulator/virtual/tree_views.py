"""The tree of queues as the controller sees it in virtual time: parents, and what is reserved.

A queue's name is its path below root, as everywhere in the emulator; root's is "".
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from emulator.cluster.entities import Application, ParentConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import SharedLeaf, TreeQueue
from emulator.cluster.resource_manager import application_id
from yarnctl.deciding.model import ApplicationView, ContainerRequest, ParentView, QueueView
from yarnctl.units import NOTHING, Resources, fits, plus


def parent_views(scheduler: TreeScheduler, label: str = "") -> tuple[ParentView, ...]:
    """Return every parent that has children, by path, with what it has of the nodes of a label."""
    kept: dict[str, Resources] = {}
    tree = scheduler.trees[label]
    for app in scheduler.kept:
        for queue in tree[app.queue.name].chain:
            kept[queue.name] = plus(kept.get(queue.name, NOTHING), scheduler.kept_for(app, label))
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


def reserved_by_application(scheduler: TreeScheduler, label: str = "") -> dict[str, Resources]:
    """Return application -> what is reserved for it of the nodes with a label ("": none)."""
    found = {application_id(app): scheduler.kept_for(app, label) for app in scheduler.kept}
    return {name: size for name, size in found.items() if size != NOTHING}


def user_percents(scheduler: TreeScheduler) -> dict[str, float]:
    """Return, by queue, minimum-user-limit-percent where it is below 100."""
    return {
        name: float(leaf.user_percent)
        for name, leaf in scheduler.queues.items()
        if isinstance(leaf, SharedLeaf) and leaf.user_percent < 100
    }


def highest_user_limit(queue: TreeQueue) -> Resources | None:
    """Return guarantee x user-limit-factor of a leaf; None: there is none, or it is above the maximum."""
    leaf = queue.leaf
    assert isinstance(leaf, SharedLeaf)
    highest = leaf.highest_limit(queue.users, queue.all_guaranteed, queue.all_maximum)
    return None if fits(queue.maximum, highest) else Resources(*highest[:2])


def labelled_queues(scheduler: TreeScheduler, label: str) -> tuple[QueueView, ...]:
    """Return the leaves with what they have of the nodes with a label."""
    views = []
    for name, leaf in scheduler.queues.items():
        queue = scheduler.trees[label][name]
        views.append(
            QueueView(
                queue=name,
                guaranteed=queue.guaranteed,
                maximum=queue.maximum,
                used=Resources(queue.used_mib, queue.used_vcores),
                user_limit=highest_user_limit(queue),
                am_limit=Resources(leaf.am_mib, queue.maximum.vcores),
                am_used=Resources(leaf.am_used_mib, 0),
            )
        )
    return tuple(views)


def labelled_applications(
    scheduler: TreeScheduler,
    views: Iterable[tuple[Application, ApplicationView]],
    queues: Iterable[QueueView],
    label: str,
) -> tuple[ApplicationView, ...]:
    """Return the applications that hold or request nodes with a label, with what they do of these.

    Requests of queues without a part of the partition are left out, as where a ResourceManager is read.
    """
    may_use = {view.queue for view in queues if view.maximum > NOTHING}
    held: dict[Application, Resources] = {}
    for container in scheduler.live.values():
        if container.node.label == label:
            size = Resources(container.memory_mib, container.vcores)
            held[container.app] = plus(held.get(container.app, NOTHING), size)
    found = []
    for app, view in views:
        used = held.get(app, NOTHING)
        requests = requests_of(app, label) if view.queue in may_use else ()
        if requests or used != NOTHING:
            containers = view.containers if used != NOTHING else 0
            found.append(replace(view, used=used, requests=requests, containers=containers))
    return tuple(found)


def requests_of(app: Application, label: str = "") -> tuple[ContainerRequest, ...]:
    """Return what an application requests of the nodes with a label."""
    return tuple(
        ContainerRequest(ask.priority, Resources(ask.memory_mib, ask.vcores), ask.count)
        for ask in app.asks
        if ask.label == label
    )
