"""Moving an application to another queue, with what it holds and what it asks for.

Law: the sums of both queues stay those of their applications. What the scheduler offers for a new and for
an ended application is used as it is; only what the application holds is carried over here.
"""

from __future__ import annotations

from emulator.cluster.entities import Application, Ask, LeafQueue
from emulator.cluster.resource_manager import ResourceManager


def move(manager: ResourceManager, app: Application, target: LeafQueue) -> None:
    """Move an application; it is activated there by the target's own limit for masters."""
    source = app.queue
    if source is target:
        return
    asks = [(_like(ask), ask.count) for ask in app.asks]
    manager.scheduler.remove_application(app)
    for queue, sign in ((source, -1), (target, 1)):
        queue.used_mib += sign * app.used_mib
        queue.used_vcores += sign * app.used_vcores
        if queue.user_mib is not None:
            queue.users[app.user] = queue.users.get(app.user, 0) + sign * app.used_mib
    app.queue = target
    manager.scheduler.add_application(app)
    for ask, count in asks:
        manager.scheduler.ask(app, ask, count)
    app.version += 1
    manager.scheduler.version += 1


def _like(ask: Ask) -> Ask:
    copy = Ask(ask.priority, ask.memory_mib, ask.vcores, ask.off_switch)
    copy.hosts = dict(ask.hosts) if ask.hosts is not None else None
    return copy
