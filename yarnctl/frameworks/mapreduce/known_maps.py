"""The running attempts of maps, each read once: later looks need of them only what their task's row shows.

A master lists the attempts of one task a request, and a job has hundreds of maps. So a look reads those of
the first ``READ_MAX`` tasks, the wanted ones, and a few others (``MORE_MAX``), so that in time maps on all
nodes are known; those that no look has read are not shown yet. The id, the container and the start of an
attempt never change; its progress is its task's while it is the only one that runs. It is read again when its
container is gone. A second (speculative) attempt shows as a container that belongs to no known attempt: when
each task was read, all are read once more, a few in each look. A task without a running attempt is read again
when a container that belongs to no known attempt may be its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from yarnctl.frameworks.mapreduce.rest import Task, TaskAttempt
from yarnctl.hadoop.wire import views, yarn

STARTING_MS = 10_000
"""A container may belong to no attempt yet for so long."""

READ_MAX = 64
"""The number of maps whose attempts one look at a job reads: some 5 ms each, several in parallel."""

MORE_MAX = 4
"""The number that one look reads of other tasks, and of tasks that are read once more."""


class MapsSeen(NamedTuple):
    """The known attempts by task, and the tasks whose attempts this look reads."""

    known: dict[str, tuple[TaskAttempt, ...]]
    to_read: list[str]


class _JobMaps:
    """One job's maps. ``twice``: run by several attempts. ``again``: to be read once more; shown meanwhile.

    ``idle``: no attempt ran when they were read, the longest ago first. ``seen``: attributed containers.
    """

    def __init__(self) -> None:
        self.kept: dict[str, TaskAttempt] = {}
        self.seen: set[str] = set()
        self.twice: set[str] = set()
        self.again: set[str] = set()
        self.idle: dict[str, None] = {}

    def retain(self, running: Mapping[str, Task], containers: Mapping[str, yarn.ContainerRow]) -> None:
        """Forget what no longer runs."""
        self.seen &= containers.keys()
        self.twice &= running.keys()
        self.idle = {task: None for task in self.idle if task in running}
        self.kept = {
            task: attempt
            for task, attempt in self.kept.items()
            if task in running and attempt.container in containers
        }
        self.again &= self.kept.keys()


class KnownMaps:
    """Keeps attempts by application and task. An application's reads never run at the same time."""

    def __init__(self) -> None:
        self._jobs: dict[str, _JobMaps] = {}

    def look(
        self,
        application: str,
        tasks: Sequence[Task],
        containers: Mapping[str, yarn.ContainerRow],
        now_ms: int,
    ) -> MapsSeen:
        """Return what is known of these running maps, and which are read now; forget all others.

        ``tasks``: those whose attempts are wanted most come first.
        """
        job = self._jobs.setdefault(application, _JobMaps())
        running = {row.task: row for row in tasks}
        job.retain(running, containers)
        strange = {
            name: row
            for name, row in containers.items()
            if name not in job.seen and views.kind_of(row) == "map"
        }
        old = {name for name, row in strange.items() if row.started_at_ms <= now_ms - STARTING_MS}
        unread = [task for task in running if not (task in job.kept or task in job.idle or task in job.twice)]
        if not unread and len(old) > len(job.idle):
            job.again = set(job.kept)
            job.seen |= old  # searched once, found or not: for tasks without an attempt, too
            unread = [task for task in running if task in job.idle]
            job.idle.clear()
        first = set(islice(running, READ_MAX))
        idle = islice(job.idle, max(0, len(strange) - len(unread)))
        others = [*idle, *(task for task in unread if task not in first)]
        to_read = [
            *(task for task in running if task in job.twice),
            *(task for task in unread if task in first),
            *others[:MORE_MAX],
            *[task for task in running if task in job.again][:MORE_MAX],
        ]
        known: dict[str, tuple[TaskAttempt, ...]] = {
            task: (msgspec.structs.replace(attempt, progress_percent=running[task].progress_percent),)
            for task, attempt in job.kept.items()
        }
        return MapsSeen(known, to_read[:READ_MAX])

    def note(self, application: str, task: str, attempts: Sequence[TaskAttempt]) -> None:
        """Keep the running attempt of a map if it is the only one and has its container."""
        job = self._jobs.setdefault(application, _JobMaps())
        job.seen.update(each.container for each in attempts)
        for tasks in (job.twice, job.again):
            tasks.discard(task)
        for rows in (job.kept, job.idle):
            rows.pop(task, None)
        if len(attempts) > 1:
            job.twice.add(task)
        elif attempts and attempts[0].container:
            job.kept[task] = attempts[0]
        else:
            job.idle[task] = None

    def drop(self, applications: Iterable[str]) -> None:
        """Forget applications that have ended."""
        for name in applications:
            self._jobs.pop(name, None)
