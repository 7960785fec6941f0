"""Observe the workers (TaskManagers) of Flink jobs that may be rescaled, as tasks with a container each.

A rescale interrupts the whole job and repeats its work since the last checkpoint, for any number of workers
that leave: each worker has that cost, and ``deciding/mix`` counts it once. Since Flink 2.0 it waits for the
next checkpoint, at most a set delay. Where the interval is no longer than that, the work since a checkpoint
that has just completed is repeated: while it took place, and until the job stops. A job with a part that is
not running, or without a completed checkpoint, shows no worker. Source: docs/facts/flink.md, 4 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from yarnctl.attach.connection.application_guard import ReadAnswer
from yarnctl.attach.eligibility.settings_reader import ExecutorReader
from yarnctl.attach.observing.cluster_state import Held, sizes_of
from yarnctl.attach.observing.victims import ObservedVictim, Victim
from yarnctl.attach.orders.connected import Removal, RemoveReason, TrackedOrder
from yarnctl.deciding.model import TaskView
from yarnctl.frameworks.flink.consent import SAVES_FIRST
from yarnctl.frameworks.flink.job_manager import JobManager
from yarnctl.frameworks.flink.rest import TaskManager, least
from yarnctl.frameworks.framework import Parts, observed
from yarnctl.hadoop.proxied import Absent

STOP_MS = 100
"""From a completed checkpoint until the job stops for the rescale that waited for it."""


class WorkerLook(NamedTuple):
    """TaskManagers, start of the work that a rescale repeats (-1: none may leave), least parallelism.

    ``saved_in_ms``: how long the last checkpoint took.
    """

    managers: tuple[TaskManager, ...]
    since_ms: int
    least: int
    saved_in_ms: int = 0


class WorkerObserver:
    """Observes JobManagers; ``job_manager`` makes the client of one."""

    def __init__(
        self, parts: Parts, reader: ExecutorReader, job_manager: Callable[[str], JobManager]
    ) -> None:
        self._parts, self._reader, self._job_manager = parts, reader, job_manager

    def observe(self, victims: Sequence[str]) -> dict[str, ObservedVictim]:
        """Observe applications; a Problem for one that does not answer. One left alone shows no task."""
        return observed(self._parts, self._reader.allowed, victims, self._look, self._victim)

    def remove_reasons(self, wanted: Sequence[TrackedOrder]) -> dict[str, RemoveReason]:
        """Return no word for each worker: an ended worker always counts as drained."""
        return {one.order: Removal("", is_drained=True) for one in wanted}

    def _look(self, application: str) -> WorkerLook | Absent:
        manager = self._job_manager(application)
        managers, job = manager.task_managers(), manager.job()
        if isinstance(managers, Absent):
            return managers
        if isinstance(job, Absent):
            return job
        saved = manager.checkpoint(job.job) if job.works else Absent("not all tasks of the job are running")
        bounds = manager.bounds(job.job)
        if isinstance(saved, Absent) or isinstance(bounds, Absent):
            return WorkerLook(managers, -1, 1)
        return WorkerLook(managers, saved.begun_ms, least(bounds), saved.took_ms)

    def _victim(self, application: str, held: Held, answer: ReadAnswer[WorkerLook]) -> Victim:
        look = answer.value
        rules, now_ms = self._reader.allowed[application], self._parts.connection.clock()
        shown = sorted(each.container for each in look.managers if each.container in held.containers)
        # A worker that is not registered is starting, or Flink will release it: wait until it has.
        settled = look.since_ms >= 0 and len(shown) == len(look.managers) == len(held.containers) - 1
        slots = max(1, min((each.slots for each in look.managers), default=1))
        stay = max(1, rules.min_executors, -(-look.least // slots))
        free = len(shown) - stay if settled and not self._parts.are_leaving(application) else 0
        terms = self._parts.connection.settings
        again_ms = max(0, now_ms - look.since_ms)
        if SAVES_FIRST in rules.traits:
            again_ms = look.saved_in_ms + STOP_MS
        again_ms = again_ms * len(shown) if look.since_ms >= 0 else 0
        return Victim(
            tuple(
                TaskView(
                    attempt=name,
                    container=name,
                    node=held.containers[name].node,
                    size=held.containers[name].size,
                    kind="worker",
                    remaining_ms=rules.room_in_ms,
                    resume_cost_ms=(terms.flink_lower_ms + terms.flink_raise_ms) * len(shown),
                    since_ms=now_ms - again_ms,
                    generation=0,
                    checkpointable=place < free,
                    resumed=False,
                )
                for place, name in enumerate(shown)
            ),
            sizes_of(held.containers.values()),
        )
