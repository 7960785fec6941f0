"""The client of a job's MapReduce master (facts, section 2). Only a refused or uncertain *change* raises."""

from __future__ import annotations

import re

import msgspec

from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce import rest as wire
from yarnctl.hadoop.http.answers import decoded
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent, ProxiedClient

Counters = dict[str, dict[str, int]]  # Group -> counter -> value

ATTEMPTS_MAX = 1_000

_INNER = re.compile(r"(?:job|task|attempt)_[0-9]+_[0-9]+(?:_[mr]_[0-9]+(?:_[0-9]+)?)?")


class MasterClient(ProxiedClient):
    """The master of one application."""

    def __init__(self, transport: Transport, application: str) -> None:
        super().__init__(transport, application, "/ws/v1/mapreduce")
        self.job_id = application.replace("application_", "job_", 1)

    def reduces(self) -> tuple[wire.Task, ...] | Absent:
        """Return the reduce tasks, finished ones included, ordered by id."""
        return self._tasks("r", "REDUCE")

    def maps(self) -> tuple[wire.Task, ...] | Absent:
        """Return the map tasks, finished ones included, ordered by id."""
        return self._tasks("m", "MAP")

    def _tasks(self, short: str, kind: str) -> tuple[wire.Task, ...] | Absent:
        rows = self._read(f"/jobs/{self.job_id}/tasks", wire.TASKS, {"type": short})
        if isinstance(rows, Absent):
            return rows
        return tuple(sorted((row for row in rows if row.kind in (kind, "")), key=lambda row: row.task))

    def maps_finished_at_ms(self) -> int | Absent:
        """Return when the last finished map finished (0: none has): a shuffle ends after that."""
        rows = self.maps()
        return rows if isinstance(rows, Absent) else max((row.finished_at_ms for row in rows), default=0)

    def attempts(self, task: str) -> tuple[wire.TaskAttempt, ...] | Absent:
        """Return the attempts at one task, ordered by id."""
        rows = self._read(f"/jobs/{self.job_id}/tasks/{_id(task)}/attempts", wire.ATTEMPTS)
        if not isinstance(rows, Absent) and len(rows) > ATTEMPTS_MAX:
            return Absent(f"more than {ATTEMPTS_MAX} attempts at a task")
        return rows if isinstance(rows, Absent) else tuple(sorted(rows, key=lambda row: row.attempt))

    def attempt_counters(self, task: str, attempt: str) -> Counters | Absent:
        """Return the counters of one attempt, a streaming reducer's own ones included."""
        path = f"/jobs/{self.job_id}/tasks/{_id(task)}/attempts/{_id(attempt)}/counters"
        return self._made(lambda found: wire.counters(found.groups), self._read(path, wire.ATTEMPT_COUNTERS))

    def configuration(self) -> dict[str, str] | Absent:
        """Return the job's whole configuration (job.xml as it is in effect)."""
        return self._made(
            lambda rows: {row.name: row.value for row in rows},
            self._read(f"/jobs/{self.job_id}/conf", wire.JOB_CONFIGURATION),
        )

    def kill(self, task: str, attempt: str) -> str | Absent:
        """Kill one attempt; it does not count as failed, and a new one is scheduled.

        Returns the echoed word KILLED at once, while the kill itself happens later (facts, section
        2.1). Absent: the master did not get the request. Raises Rejected and Uncertain.
        """
        path = f"/jobs/{self.job_id}/tasks/{_id(task)}/attempts/{_id(attempt)}/state"
        answer = self._put(path, b'{"state":"KILLED"}')
        if isinstance(answer, Absent):
            return answer
        return str(decoded(msgspec.structs.replace(answer, status=200), wire.ATTEMPT_STATE).state)


def _id(given: str) -> str:
    if not _INNER.fullmatch(given):
        raise BadInput(f"id {given[:60]!r}", "not an id of MapReduce", "use an id task_... or attempt_...")
    return given
