"""Queues, users and applications: what they hold, and the limits they keep."""

from __future__ import annotations

from collections import Counter

from emulator.cluster.entities import TreeLeafConfig
from emulator.cluster.queue_tree import TreeScheduler
from emulator.invariants.watched_run import RunWatch, Stories


def queue_is_its_containers(watch: RunWatch) -> Stories:
    """What a queue uses is what its containers hold."""
    sums = {name: [0, 0] for name in watch.scheduler.queues}
    for app, (mib, vcores, _) in watch.usage.items():
        sums[app.queue.name][0] += mib
        sums[app.queue.name][1] += vcores
    for name, queue in watch.scheduler.queues.items():
        if sums[name] != [queue.used_mib, queue.used_vcores]:
            yield f"{name} uses {queue.used_mib}, {queue.used_vcores}; holds {sums[name]}"


def parent_is_its_queues(watch: RunWatch) -> Stories:
    """In a tree, what a queue uses is what the containers and reservations at and below it hold."""
    if not isinstance(watch.scheduler, TreeScheduler):
        return
    sums: Counter[str] = Counter()
    for queue in watch.scheduler.nodes.values():
        if queue.leaf is not None:
            kept = [
                watch.scheduler.kept_for(app)[0] for app in watch.scheduler.kept if app.queue is queue.leaf
            ]
            for above in queue.chain:
                sums[above.name] += queue.leaf.used_mib + sum(kept)
    for queue in watch.scheduler.nodes.values():
        if queue.used_mib != sums[queue.name]:
            yield f"{queue.path} uses {queue.used_mib} MiB; below it are {sums[queue.name]}"


def application_is_its_containers(watch: RunWatch) -> Stories:
    """What an application uses is what its containers hold."""
    for master in watch.masters:
        app = master.app
        sums = watch.usage.get(app, [0, 0, 0])
        if sums != [app.used_mib, app.used_vcores, app.containers]:
            yield f"{app.number} uses {app.used_mib}, {app.used_vcores}, {app.containers}; holds {sums}"


def user_is_its_applications(watch: RunWatch) -> Stories:
    """Where users are limited, what a user holds in a queue is what its applications use there."""
    for name, queue in watch.scheduler.queues.items():
        if queue.user_mib is None:
            continue
        sums: Counter[str] = Counter()
        for app, (mib, _, _) in watch.usage.items():
            if app.queue is queue:
                sums[app.user] += mib
        if sums != {user: mib for user, mib in queue.users.items() if mib}:
            yield f"{name}: {queue.users}, holds {dict(sums)}"


def within_maximum(watch: RunWatch) -> Stories:
    """No queue grows beyond its maximum (it may be beyond when the cluster has shrunk)."""
    for name, queue in watch.scheduler.queues.items():
        used_mib, used_vcores, _, _ = watch.limits.get(name, (0, 0, 0, 0))  # created just now
        beyond_mib = used_mib < queue.used_mib > queue.maximum_mib
        if beyond_mib or used_vcores < queue.used_vcores > queue.maximum_vcores:
            yield (
                f"{name} grew to {queue.used_mib} MiB, {queue.used_vcores} vcores;"
                f" its maximum is {queue.maximum_mib}, {queue.maximum_vcores}"
            )


def within_user_limit(watch: RunWatch) -> Stories:
    """No user beyond the limit gets more (the container that crosses it is given)."""
    for name, queue in watch.scheduler.queues.items():
        if queue.user_mib is None:
            continue
        limit_mib = queue.user_mib
        if isinstance(queue.config, TreeLeafConfig) and queue.config.user_percent < 100:
            # The limit follows what is used: at a grant it was at most so much.
            grown_mib = queue.used_mib - watch.limits.get(name, (0, 0, 0, 0))[0]
            limit_mib = max(limit_mib, watch.user_limits.get(name, 0)) + max(0, grown_mib)
        for user, mib in queue.users.items():
            before_mib = watch.users.get((name, user), 0)
            largest_mib = max((each.memory_mib for each in watch.live if each.app.user == user), default=0)
            if mib > before_mib and mib - largest_mib > limit_mib:
                yield f"{name}: {user} grew from {before_mib} to {mib}, limit {limit_mib}"


def masters_within_am_share(watch: RunWatch) -> Stories:
    """The masters of active applications are counted, and do not grow beyond the queue's AM limit."""
    for name, queue in watch.scheduler.queues.items():
        active = [app for app in watch.rm.applications.values() if app.activated and app.queue is queue]
        used_mib = sum(app.am_mib for app in active)
        if used_mib != queue.am_used_mib:
            yield f"{name} counts {queue.am_used_mib}, has {used_mib}"
        before_mib = watch.limits[name][2] if name in watch.limits else 0
        if used_mib > queue.am_mib and used_mib > before_mib and len(active) > 1:
            yield f"{name} grew to {used_mib}, limit {queue.am_mib}"


def no_servable_ask_waits(watch: RunWatch) -> Stories:
    """Applications wait for activation in order, and only while the AM limit has no room for the first."""
    for name, queue in watch.scheduler.queues.items():
        if not queue.waiting:
            continue
        first = queue.waiting[0]
        if queue.am_used_mib == 0 or queue.am_used_mib + first.am_mib <= queue.am_mib:
            yield f"{name}: application {first.number} could be active"
        if queue.waiting != sorted(queue.waiting, key=lambda app: app.order):
            yield f"{name}: they wait out of order"
