"""Keys, checkpoints and suspending: what was done is saved once and never lost."""

from __future__ import annotations

from collections.abc import Iterator

from emulator.cluster.entities import DRAINING, EXECUTOR, NEVER, NOT_REQUESTED, REDUCE, RELEASE_WAIT, RUNNING
from emulator.cluster.executors.spark_master import SparkMaster
from emulator.invariants.watched_run import RunWatch, Stories, name_of

LOSING = ("killed", "failed", "lost")
"""Endings that may cost work; "suspended" and "completed" may not."""


def keys_without_gap(watch: RunWatch) -> Stories:
    """The saved pieces of a reduce follow each other from key 0, inside its keys."""
    for master in watch.masters:
        for task, pieces in master.keys._pieces.items():
            at = 0
            for piece in pieces:
                if piece.from_key != at or not at <= piece.to_key <= master.job.reduce_keys[task]:
                    yield f"job {master.app.number}, reduce {task}: {pieces}"
                at = piece.to_key


def manifest_is_the_last_piece(watch: RunWatch) -> Stories:
    """The store's manifest of a reduce names as many generations and keys as have been saved."""
    for master in watch.masters:
        if len(master.store) != len(master.keys._pieces):
            yield f"job {master.app.number}: {len(master.store)} manifests"
        for task, manifest in master.store.items():
            pieces = master.keys._pieces.get(task, [])
            if manifest.generation != len(pieces) or manifest.keys_done != master.keys.saved(task):
                yield f"job {master.app.number}, reduce {task}: {manifest}, {pieces}"


def saved_only_grows(watch: RunWatch) -> Stories:
    """What is saved of a reduce is never less than it was."""
    for (master, task), (generation, keys_done) in watch.saved.items():
        manifest = master.store.get(task)
        if manifest is None or manifest.generation < generation or manifest.keys_done < keys_done:
            yield f"job {master.app.number}, reduce {task}: {manifest} after {generation}, {keys_done}"


def attempts_go_on_where_saved(watch: RunWatch) -> Stories:
    """A running reduce begins its own piece at the key where the saved ones end."""
    for master in watch.masters:
        for container in master.running.values():
            if container.kind != REDUCE:
                continue
            saved = master.keys.saved(container.task)
            begins = container.to_key if container.stage == RELEASE_WAIT else container.from_key
            if container.log_from_key != saved or begins < saved:
                yield (
                    f"{name_of(container)} from key {container.from_key}, own from {container.log_from_key},"
                    f" saved {saved}"
                )


def committed_by_its_last_attempt(watch: RunWatch) -> Stories:
    """A reduce was committed by an attempt that existed, and no attempt of it runs any more."""
    for master in watch.masters:
        for task, attempt in enumerate(master.keys.committed):
            if attempt >= master.reduce_attempts[task]:
                yield f"job {master.app.number}, reduce {task}: attempt {attempt}"
        for container in master.running.values():
            if container.kind == REDUCE and master.keys.committed[container.task] != -1:
                yield f"{name_of(container)} runs though committed"


def requested_has_an_order(watch: RunWatch) -> Stories:
    """An attempt that suspends does so for an order, is a reduce, and its node is watched."""
    for container in watch.live:
        if container.stage == NOT_REQUESTED:
            continue
        if not container.order or container.kind != REDUCE or not container.node.watched:
            yield f"{name_of(container)}, stage {container.stage}"


def draining_stops_at_a_border(watch: RunWatch) -> Stories:
    """A draining attempt has no end of its own; it stops at a key that others follow."""
    for container in watch.live:
        if container.stage != DRAINING or container.state != RUNNING:
            continue
        keys = container.app.master.job.reduce_keys[container.task]
        if container.finish_at_ms != NEVER or not container.from_key <= container.to_key < keys:
            yield f"{name_of(container)} from {container.from_key} to {container.to_key}"


def release_wait_has_a_manifest(watch: RunWatch) -> Stories:
    """An attempt that holds, and one that was suspended, has a manifest of all it did."""
    for container in watch.live:
        if container.stage != RELEASE_WAIT:
            continue
        manifest = container.app.master.store.get(container.task)
        if (
            manifest is None
            or manifest.keys_done < container.to_key
            or container.log_from_key != container.to_key
        ):
            yield f"{name_of(container)} to {container.to_key}, {manifest}"


def suspended_has_saved(watch: RunWatch) -> Stories:
    """An attempt ends as suspended only after it has saved (an executor moves its blocks instead)."""
    for container in watch.live:
        if (
            container.terminal_state == "suspended"
            and container.kind != EXECUTOR
            and (container.stage != RELEASE_WAIT or container.to_key < container.from_key)
        ):
            yield f"{name_of(container)}, stage {container.stage}"


def lost_only_by_an_end(watch: RunWatch) -> Stories:
    """Work is lost only when an attempt is killed, fails or is lost, or a done map must run again."""
    for master, (lost_ms, _, _, maps_left) in watch.spent.items():
        if master.lost_ms <= lost_ms or master.maps_left > maps_left:
            continue
        if isinstance(master, SparkMaster) and not master.alive:
            continue  # a driver that ends takes all results with it
        gone = [each for each in watch.running[master] if each.number not in master.running]
        if not any(container.terminal_state in LOSING for container in gone):
            ended = [name_of(container) for container in gone]
            yield f"job {master.app.number} lost {master.lost_ms - lost_ms} ms; ended: {ended}"


def counters_only_grow(watch: RunWatch) -> Stories:
    """Lost work, overhead and suspensions are sums: none ever falls."""
    for master, (lost_ms, overhead_ms, suspensions, _) in watch.spent.items():
        if master.lost_ms < lost_ms or master.overhead_ms < overhead_ms or master.suspensions < suspensions:
            yield (
                f"job {master.app.number}: lost {master.lost_ms}, overhead {master.overhead_ms},"
                f" suspensions {master.suspensions}"
            )


def task_of_a_stage_in_one_place(watch: RunWatch) -> Stories:
    """Each task of a stage is done, running (for the first time) or waiting: one of them, once."""
    for master in _drivers(watch):
        for stage, places in enumerate(master.stages.places):
            found = [task for task, place in enumerate(places) if place != -1]
            found += master.stages.waiting[stage]
            for executor in master.executors.values():
                found += [run.task for run in executor.runs if run.stage == stage and not run.is_again]
            if sorted(found) != list(range(len(places))):
                yield f"job {master.app.number}, stage {stage}: {sorted(found)}"


def blocks_are_held(watch: RunWatch) -> Stories:
    """What the second stage still reads is held by an executor that is there."""
    for master in _drivers(watch):
        if -1 not in master.stages.places[1]:
            continue
        for task, place in enumerate(master.stages.places[0]):
            if place != -1 and place not in master.executors:
                yield f"job {master.app.number}: task {task} was done on {place}, which is gone"


def executor_has_its_container(watch: RunWatch) -> Stories:
    """A driver's executors are the containers that it runs, and each runs no more tasks than it has cores."""
    for master in _drivers(watch):
        if master.executors.keys() != master.running.keys():
            yield f"job {master.app.number}: {sorted(master.executors)}, {sorted(master.running)}"
        for number, executor in master.executors.items():
            if len(executor.runs) > master.shape.cores:
                yield f"job {master.app.number}, executor {number}: {len(executor.runs)} tasks"


def _drivers(watch: RunWatch) -> Iterator[SparkMaster]:
    for master in watch.masters:
        if isinstance(master, SparkMaster) and master.alive:
            yield master
