"""The client of the MapReduce history server: records of jobs that have ended, one request each.

An answer about another job is rejected. A job appears here some time after the ResourceManager reports its
end (``mapreduce.jobhistory.move.interval-ms``, three minutes by default). Until then it is Missing.

Source: Hadoop's ``HsWebServices`` (paths, parameters). Trap: ``limit`` cuts the list at its *end*, and the
list begins with the oldest job (``CachedHistoryStorage``), so that the newest are requested by a time, not a
limit.
"""

from __future__ import annotations

import re

from yarnctl.errors import BadInput
from yarnctl.frameworks.mapreduce import rest as mapreduce
from yarnctl.frameworks.mapreduce.rest import EndedJob, Task, TaskAttempt
from yarnctl.hadoop.http.answers import BadAnswer, explain
from yarnctl.hadoop.http.session import CallLimits
from yarnctl.hadoop.http.transport import Transport

HISTORY = "/ws/v1/history/mapreduce/jobs"
DAEMON = "history server"
QUICK = CallLimits(connect_ms=1_000, read_timeout_ms=2_000, answer_ms=4_000, answer_bytes=64 << 20, retries=0)
"""Bounds for a caller that must not wait: one call takes at most 5 s."""
LISTED_MAX = 20_000  # The history server's own limit of a list (``mapreduce.jobhistory.joblist.cache.size``)

_APPLICATION = re.compile(r"application_([0-9]{1,20}_[0-9]{1,12})")
_JOB = re.compile(r"job_[0-9]{1,20}_[0-9]{1,12}")
_TASK = re.compile(r"task_[0-9]{1,20}_[0-9]{1,12}_[mr]_[0-9]{1,12}")


def job_of(application: str) -> str:
    """Return the id of an application's job; raises BadInput for an invalid application id."""
    match = _APPLICATION.fullmatch(application)
    if match is None:
        raise BadInput(
            f"id {application[:60]!r}", "not an application id", "use the form application_<time>_<number>"
        )
    return f"job_{match[1]}"


class HistoryServer:
    """One history server. Methods raise Unreachable (BadAnswer), Rejected, and Missing for an unknown job."""

    def __init__(self, transport: Transport) -> None:
        self._to = transport

    @property
    def url(self) -> str:
        """The server's address, for messages."""
        return self._to.pinned

    def jobs(self, finished_since_ms: int, user: str = "") -> tuple[EndedJob, ...]:
        """Return the jobs that ended at ``finished_since_ms`` or later (of ``user``), the latest first."""
        query = {"finishedTimeBegin": str(max(0, finished_since_ms)), "limit": str(LISTED_MAX)}
        rows = self._to.read(HISTORY, mapreduce.ENDED_JOBS, query | ({"user": user} if user else {}))
        wanted = [
            row
            for row in rows
            if row.finished_at_ms >= finished_since_ms
            and (not user or row.user == user)
            and _JOB.fullmatch(row.job)
        ]
        return tuple(sorted(wanted, key=lambda row: (-row.finished_at_ms, row.job)))

    def job(self, job: str) -> EndedJob:
        """Return one job."""
        path = self._path(job)
        row = self._to.read(path, mapreduce.ENDED_JOB)
        self._about(path, row.job, job)
        return row

    def counters(self, job: str) -> dict[str, dict[str, int]]:
        """Return a job's counters: group -> name -> total."""
        path = f"{self._path(job)}/counters"
        told = self._to.read(path, mapreduce.JOB_COUNTERS)
        self._about(path, told.owner, job)
        return mapreduce.counters(told.groups)

    def configuration(self, job: str) -> dict[str, str]:
        """Return a job's whole configuration, as it was in effect."""
        rows = self._to.read(f"{self._path(job)}/conf", mapreduce.JOB_CONFIGURATION)
        return {row.name: row.value for row in rows}

    def tasks(self, job: str) -> tuple[Task, ...]:
        """Return all tasks of a job."""
        return tuple(self._to.read(f"{self._path(job)}/tasks", mapreduce.TASKS))

    def attempts(self, job: str, task: str) -> tuple[TaskAttempt, ...]:
        """Return all attempts at a task, the oldest first."""
        if not _TASK.fullmatch(task):
            form = "task_<time>_<number>_<m or r>_<n>"
            raise BadInput(f"id {task[:60]!r}", "not a task id", f"use the form {form}")
        rows = self._to.read(f"{self._path(job)}/tasks/{task}/attempts", mapreduce.ATTEMPTS)
        return tuple(sorted(rows, key=lambda row: row.started_at_ms))

    def close(self) -> None:
        """Close all connections."""
        self._to.close()

    @staticmethod
    def _path(job: str) -> str:
        if not _JOB.fullmatch(job):
            raise BadInput(f"id {job[:60]!r}", "not a job id", "use the form job_<time>_<number>")
        return f"{HISTORY}/{job}"

    def _about(self, path: str, answered: str, requested: str) -> None:
        if answered != requested:
            raise BadAnswer(explain(self._to.pinned + path, "the answer is about another job", requested))
