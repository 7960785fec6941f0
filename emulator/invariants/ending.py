"""The end: what holds once every job is done."""

from __future__ import annotations

from emulator.cluster.entities import ENDED, NEVER, NodeReservation
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.invariants.watched_run import RunWatch, Stories, name_of


def all_jobs_are_done(watch: RunWatch) -> Stories:
    """Every job has finished."""
    if watch.cluster.unfinished or len(watch.masters) != len(watch.cluster.jobs):
        yield f"{watch.cluster.unfinished} jobs are unfinished"
    for master in watch.masters:
        if master.app.finished_at_ms is None:
            yield f"job {master.app.number} has not finished"


def all_keys_are_committed(watch: RunWatch) -> Stories:
    """Every key of every reduce was committed once and in order; a job without reduces did all maps."""
    for master in watch.masters:
        for task, keys in enumerate(master.job.reduce_keys):
            at = 0
            for piece in master.keys.pieces(task):
                if piece.from_key != at:
                    yield f"job {master.app.number}, reduce {task}, key {at}"
                at = piece.to_key
            if master.keys.committed[task] == -1 or at != keys:
                yield f"job {master.app.number}, reduce {task}: {at} of {keys}"
        if isinstance(master, SparkMaster) and any(-1 in places for places in master.stages.places):
            yield f"job {master.app.number}: {master.stages.places}"
        if not master.job.reduce_ms and master.maps_left:
            yield f"job {master.app.number}: {master.maps_left} maps left"


def only_last_exits_are_held(watch: RunWatch) -> Stories:
    """What is still held has ended and is about to be reported."""
    for container in watch.live:
        if container.state != ENDED and container.node.silent_until_ms != NEVER:
            yield f"{name_of(container)}, state {container.state}"


def no_resource_is_open(watch: RunWatch) -> Stories:
    """No queue has demand or waiting applications, and no live application keeps a node."""
    for name, queue in watch.scheduler.queues.items():
        if queue.demand or queue.waiting or queue.am_used_mib:
            yield f"{name} still has demand"
    for node in watch.nodes:
        kept = node.reserved
        if isinstance(kept, NodeReservation) and kept.app.finished_at_ms is None:
            yield f"node {node.index} is kept for job {kept.app.number}"


def suspending_loses_nothing(watch: RunWatch) -> Stories:
    """Where nothing fails and nothing is killed, no work is lost, however often it was suspended."""
    if watch.may_lose:
        return
    for master in watch.masters:
        if master.lost_ms:
            yield f"job {master.app.number} lost {master.lost_ms} ms"
