"""The queues of a tree as YARN's own preemption sees them, for :mod:`yarnctl.deciding.ideal_shares`."""

from __future__ import annotations

from collections.abc import Callable

from emulator.cluster.entities import LeafQueue, ParentConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.cluster.queues.tree_queue import TreeQueue
from yarnctl.deciding.ideal_shares import ShareQueue
from yarnctl.units import NOTHING, Resources, minus, plus


def share_queue(
    queue: TreeQueue, scheduler: TreeScheduler, is_excused: Callable[[LeafQueue], bool] = lambda _: False
) -> ShareQueue:
    """Return a queue and all below it as the policy sees them in the queue's partition."""
    above = queue.above
    by_priority = (
        above is not None
        and isinstance(above.config, ParentConfig)
        and above.config.order == "priority-utilization"
    )
    pending, unreserved = (NOTHING, NOTHING) if queue.leaf is None else _pending(queue, scheduler)
    return ShareQueue(
        queue=queue.name,
        guaranteed=queue.guaranteed,
        maximum=queue.maximum,
        used=Resources(queue.used_mib, queue.used_vcores),
        capacity_ratio=queue.shares()[0],
        pending=pending,
        unreserved=unreserved,
        priority=queue.priority if by_priority else 0,
        untouchable=queue.untouchable or (queue.leaf is not None and is_excused(queue.leaf)),
        children=tuple(share_queue(child, scheduler, is_excused) for child in queue.below),
    )


def _pending(queue: TreeQueue, scheduler: TreeScheduler) -> tuple[Resources, Resources]:
    """Return what the applications of a leaf request within their user limits, and that less reserved."""
    leaf_queue = queue.leaf
    assert leaf_queue is not None
    limit = queue.user_limit()
    limit_mib = None if limit is None else limit[0]
    pending = unreserved = NOTHING
    room_mib: dict[str, int] = {}
    for app in leaf_queue.demand:
        asks = [ask for ask in app.asks if ask.label == queue.label]
        if not asks:
            continue
        mib = asked_mib = sum(ask.count * ask.memory_mib for ask in asks)
        vcores = sum(ask.count * ask.vcores for ask in asks)
        if limit_mib is not None:
            left_mib = room_mib.get(app.user, limit_mib - queue.held_by(app.user)[0])
            mib = min(mib, max(0, left_mib))
            room_mib[app.user] = left_mib - mib
            vcores = -(-vcores * mib // asked_mib)  # the limit is one of memory
        size = Resources(mib, vcores)
        pending = plus(pending, size)
        unreserved = plus(unreserved, minus(size, scheduler.kept_for(app, queue.label)))
    return pending, unreserved
