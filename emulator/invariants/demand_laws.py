"""Demand: what is requested, what is kept for it, and what is under way."""

from __future__ import annotations

from collections import Counter
from itertools import product

from emulator.cluster.entities import ENDED, GRANTED, Application, LeafQueue, NodeReservation
from emulator.cluster.queue_tree import TreeScheduler
from emulator.invariants.watched_run import RunWatch, Stories, name_of


def demand_is_listed(watch: RunWatch) -> Stories:
    """A queue lists, in serving order, exactly the active applications that ask for something."""
    apps = watch.rm.applications.values()
    for name, queue in watch.scheduler.queues.items():
        demand = sorted(
            (app for app in apps if app.queue is queue and app.activated and app.asks), key=_order
        )
        if demand != queue.demand:
            listed, asking = [app.number for app in queue.demand], [app.number for app in demand]
            yield f"{name} lists {listed}, asking are {asking}"
    demanding = [queue for queue in watch.scheduler.queues.values() if queue.demand]
    if demanding != watch.scheduler.demanding:
        yield f"demanding are {[queue.name for queue in demanding]}"


def asks_are_in_order(watch: RunWatch) -> Stories:
    """An application's asks are positive, one per request priority, the lowest first."""
    for app in watch.rm.applications.values():
        priorities = [ask.priority for ask in app.asks]
        if priorities != sorted(set(priorities)) or any(ask.count <= 0 for ask in app.asks):
            asks = [(ask.priority, ask.count) for ask in app.asks]
            yield f"application {app.number} asks {asks}"


def pending_is_the_sum_of_asks(watch: RunWatch) -> Stories:
    """``pending`` counts what is asked for."""
    for app in watch.rm.applications.values():
        asked = sum(ask.count for ask in app.asks)
        if app.pending != asked:
            yield f"application {app.number}: pending {app.pending}, asks {asked}"


def reservations_are_counted(watch: RunWatch) -> Stories:
    """An application's count of reserved nodes, per request priority, is the nodes kept for it."""
    kept: Counter[tuple[int, int]] = Counter()
    for node in watch.nodes:
        if isinstance(node.reserved, NodeReservation):
            kept[node.reserved.app.number, node.reserved.ask.priority] += 1
    counted = Counter(
        {
            (master.app.number, priority): count
            for master in watch.masters
            for priority, count in master.app.reserved.items()
            if count
        }
    )
    if kept != counted:
        yield f"kept {dict(kept)}, counted {dict(counted)}"


def free_room_is_offered(watch: RunWatch) -> Stories:
    """While no sweep is under way, no ask could be served from the room of a node that sends heartbeats."""
    if watch.cluster.sweep.under_way:
        return
    now_ms = watch.kernel.now_ms
    tree = watch.scheduler if isinstance(watch.scheduler, TreeScheduler) else None
    labels = ("",) if tree is None else tuple(tree.trees)
    for queue, label in product(watch.scheduler.demanding, labels):
        for app in queue.demand:
            ask = app.first_ask(label)
            if ask is None:
                continue
            over_user_limit = queue.user_mib is not None and queue.users.get(app.user, 0) > queue.user_mib
            if tree is not None:
                over_user_limit = tree._over_user_limit(app, label)
            if tree is not None and not over_user_limit and not tree.within_headroom(app, ask):
                break
            if over_user_limit or (not label and _over_limits(queue, app, ask.memory_mib, ask.vcores)):
                continue
            for _, index in watch.rm.open_nodes:
                node = watch.nodes[index]
                if (
                    node.label != label
                    or ask.memory_mib > node.free_mib
                    or ask.vcores > node.free_vcores
                    or now_ms <= node.silent_until_ms
                ):
                    continue
                kept = node.reserved
                if kept is None or (isinstance(kept, NodeReservation) and kept.ask is ask):
                    yield (
                        f"application {app.number} asks for {ask.memory_mib} MiB, {ask.vcores} vcores;"
                        f" node {index} has {node.free_mib}, {node.free_vcores} free; no container is placed"
                    )


def _over_limits(queue: LeafQueue, app: Application, memory_mib: int, vcores: int) -> bool:
    if queue.used_mib + memory_mib > queue.maximum_mib or queue.used_vcores + vcores > queue.maximum_vcores:
        return True
    return queue.user_mib is not None and queue.users.get(app.user, 0) > queue.user_mib


def granted_is_in_the_mail(watch: RunWatch) -> Stories:
    """A container that is not launched yet is in its application's mailbox, once."""
    mailed: Counter[int] = Counter()
    for app in watch.rm.applications.values():
        for container in app.mail_granted:
            mailed[container.number] += 1
    for container in watch.live:
        if container.state == GRANTED and mailed[container.number] != 1:
            yield f"{name_of(container)} is in {mailed[container.number]} mailboxes"


def finished_jobs_own_nothing(watch: RunWatch) -> Stories:
    """A finished job asks for nothing and runs nothing; what it holds has ended."""
    for master in watch.masters:
        app = master.app
        if app.finished_at_ms is None:
            continue
        if app.asks or app.mail_granted or master.running or master.alive:
            yield f"job {app.number} is not at rest"
    for container in watch.live:
        if container.app.finished_at_ms is not None and container.state != ENDED:
            yield f"{name_of(container)} has not ended"


def _order(app: Application) -> tuple[int, int]:
    return app.order
