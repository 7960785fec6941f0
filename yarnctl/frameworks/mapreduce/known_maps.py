"""The running attempts of maps, each read once: later looks need of them only what their task's row shows.

A master lists the attempts of one task a request, and a job has hundreds of maps. The id, the container and
the start of an attempt never change; its progress is its task's while it is the only one that runs. It is
read again when its container is gone. A second (speculative) attempt shows as a container that belongs to no
known attempt: then all are read once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from yarnctl.frameworks.mapreduce.rest import Task, TaskAttempt
from yarnctl.hadoop.wire import views, yarn

STARTING_MS = 10_000
"""A container may belong to no attempt yet for so long."""


class KnownMaps:
    """Keeps attempts by application and task. An application's reads never run at the same time."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, TaskAttempt]] = {}
        self._seen: dict[str, set[str]] = {}

    def known(
        self,
        application: str,
        tasks: Sequence[Task],
        containers: Mapping[str, yarn.ContainerRow],
        now_ms: int,
    ) -> dict[str, tuple[TaskAttempt, ...]]:
        """Return the attempts of these running tasks that need not be read, by task; forget all others."""
        before = self._kept.get(application, {})
        kept = {
            row.task: msgspec.structs.replace(before[row.task], progress_percent=row.progress_percent)
            for row in tasks
            if row.task in before and before[row.task].container in containers
        }
        seen = self._seen.get(application, set()) & containers.keys()
        strange = {
            name
            for name, row in containers.items()
            if name not in seen and views.kind_of(row) == "map" and row.started_at_ms <= now_ms - STARTING_MS
        }
        if len(strange) > len(tasks) - len(kept):
            kept = {}
            seen |= strange  # searched once, found or not
        self._kept[application], self._seen[application] = kept, seen
        return {task: (attempt,) for task, attempt in kept.items()}

    def note(self, application: str, task: str, attempts: Sequence[TaskAttempt]) -> None:
        """Keep the running attempt of a map if it is the only one and has its container."""
        self._seen.setdefault(application, set()).update(each.container for each in attempts)
        if len(attempts) == 1 and "_m_" in task and attempts[0].container:
            self._kept.setdefault(application, {})[task] = attempts[0]

    def drop(self, applications: Iterable[str]) -> None:
        """Forget applications that have ended."""
        for name in applications:
            self._kept.pop(name, None)
            self._seen.pop(name, None)
