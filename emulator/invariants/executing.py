"""Executors of Spark: each task of a stage in one place, blocks held, no more tasks than cores.

Law: that of the package. Each function here is one invariant and bears its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from emulator.cluster.executors.spark_master import SparkMaster
from emulator.invariants.watched_run import RunWatch, Stories


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
