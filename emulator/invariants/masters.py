"""Masters and tasks: each task in one place, asked for, and ended on time."""

from __future__ import annotations

from collections import Counter

from emulator.cluster import entities
from emulator.cluster.app_master import AppMaster
from emulator.cluster.pending_tasks import FAILED_MAP, MAP_PRIORITY, REDUCE_PRIORITY
from emulator.invariants.watched_run import RunWatch, Stories, name_of


def one_master_per_job(watch: RunWatch) -> Stories:
    """A job has at most one running AM container, and a live master runs in it."""
    running = Counter(
        each.app.number for each in watch.live if each.kind == entities.AM and each.state == entities.RUNNING
    )
    for master in watch.masters:
        app, own = master.app, master.app.am_container
        if running[app.number] > 1:
            yield f"job {app.number} has {running[app.number]} masters"
        if master.alive and (own is None or own.state != entities.RUNNING or own.attempt != app.attempt):
            yield f"job {app.number}'s master lives in no container"


def task_in_one_place(watch: RunWatch) -> Stories:
    """Each task is done, running, deferred or unassigned: one of them, once."""
    for master in watch.masters:
        if not master.alive:
            continue
        maps = [task for task, node in enumerate(master.map_node) if node >= 0]
        maps += [*master.pending.unassigned[MAP_PRIORITY], *master.pending.unassigned[FAILED_MAP]]
        reduces = [task for task, attempt in enumerate(master.keys.committed) if attempt != -1]
        reduces += master.pending.deferred
        for priority in {REDUCE_PRIORITY, master.timing.resume_priority}:
            reduces += master.pending.unassigned[priority]
        for container in master.running.values():
            if container.kind != entities.EXECUTOR:
                (maps if container.kind == entities.MAP else reduces).append(container.task)
        if sorted(maps) != list(range(len(master.job.map_ms))):
            yield f"job {master.app.number}: maps {sorted(maps)}"
        if master.reduces_requested and sorted(reduces) != list(range(len(master.job.reduce_ms))):
            yield f"job {master.app.number}: reduces {sorted(reduces)}"


def tasks_left_are_counted(watch: RunWatch) -> Stories:
    """``maps_left`` and ``reduces_left`` count the tasks whose result does not exist."""
    for master in watch.masters:
        left = (master.map_node.count(-1), master.keys.committed.count(-1))
        if left != (master.maps_left, master.reduces_left):
            yield f"job {master.app.number}: {master.maps_left}, {master.reduces_left} left, not done {left}"


def every_task_is_asked_for(watch: RunWatch) -> Stories:
    """For every unassigned task a container is asked for, about to be, or on its way."""
    for master in watch.masters:
        if not master.alive:
            continue
        for priority, tasks in master.pending.unassigned.items():
            if not tasks:
                continue
            coming = master.due(priority)
            coming += sum(ask.count for ask in master.app.asks if ask.priority == priority)
            coming += sum(count for ask, count in master.unsent if ask.priority == priority)
            coming += sum(1 for container in master.app.mail_granted if container.priority == priority)
            if coming < len(tasks):
                yield f"job {master.app.number}: {len(tasks)} wait at {priority}, {coming} containers come"


def no_end_is_missed(watch: RunWatch) -> Stories:
    """A running attempt's end is ahead, unless it starts, waits, saves, or its node is lost."""
    now_ms = watch.kernel.now_ms
    for master in watch.masters:
        for container in master.running.values():
            if container.state != entities.RUNNING:
                continue
            if container.finish_at_ms < now_ms:
                yield f"{name_of(container)} should have ended at {container.finish_at_ms} ms"
            if container.finish_at_ms == entities.NEVER and not _may_wait(container, master):
                yield f"{name_of(container)} has no end"


def _may_wait(container: entities.Container, master: AppMaster) -> bool:
    if container.node.silent_until_ms == entities.NEVER or container.stage in (
        entities.DRAINING,
        entities.RELEASE_WAIT,
    ):
        return True
    if container.kind == entities.EXECUTOR:  # it waits for tasks, or is not up yet
        return True
    return master.launching.starting(container) or (
        master.maps_left > 0 and container in master.launching.shuffling
    )


def no_work_after_the_end(watch: RunWatch) -> Stories:
    """A container that has ended has no end ahead of it, and its master does not run it."""
    now_ms = watch.kernel.now_ms
    for container in watch.live:
        if container.state != entities.ENDED or container.kind == entities.AM:
            continue
        if now_ms < container.finish_at_ms < entities.NEVER:
            yield f"{name_of(container)} is to finish though it has ended"
        if container.number in container.app.master.running:
            yield f"{name_of(container)} has ended and is run"
