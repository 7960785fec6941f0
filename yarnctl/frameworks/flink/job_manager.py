"""The client of a Flink application's JobManager, through YARN's web proxy (docs/facts/flink.md, 3).

A JobManager that does not answer gives ``Absent``. The only change is that of a job's bounds, by PUT.
"""

from __future__ import annotations

import re

import msgspec

from yarnctl.errors import BadInput, Unreachable
from yarnctl.frameworks.flink import rest as wire
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent, ProxiedClient

BOUNDS_BYTES_MAX = 1 << 18  # They are kept in a small file, twice
OVER = ("FINISHED", "CANCELED", "FAILED")
_JOB = re.compile(r"[0-9a-f]{32}")


class JobManager(ProxiedClient):
    """The JobManager of one application."""

    def __init__(self, transport: Transport, application: str) -> None:
        super().__init__(transport, application, "")

    def settings(self) -> dict[str, str] | Absent:
        """Return the settings in effect."""
        return self._made(
            lambda rows: {row.key: row.value for row in rows}, self._read("/jobmanager/config", wire.SETTINGS)
        )

    def config(self) -> wire.FlinkConfig | Absent:
        """Return its version."""
        config: wire.FlinkConfig | Absent = self._read("/config", wire.CONFIG)
        return config

    def job(self) -> wire.FlinkJob | Absent:
        """Return the job that has not ended; Absent if there is none, or there are several."""
        rows = self._read("/jobs/overview", wire.JOBS)
        if isinstance(rows, Absent):
            return rows
        alive: list[wire.FlinkJob] = [row for row in rows if row.state not in OVER]
        if len(alive) != 1 or not _JOB.fullmatch(alive[0].job):
            return Absent(f"{len(alive)} jobs have not ended; exactly one is supported")
        return alive[0]

    def task_managers(self) -> tuple[wire.TaskManager, ...] | Absent:
        """Return the TaskManagers that are registered."""
        return self._made(tuple, self._read("/taskmanagers", wire.TASK_MANAGERS))

    def checkpoint(self, job: str) -> wire.Completed | Absent:
        """Return the last completed checkpoint; Absent if there is none."""
        found = self._read(f"/jobs/{_id(job)}/checkpoints", wire.CHECKPOINT)
        if isinstance(found, Absent):
            return found
        return found.latest.completed or Absent("the job has no completed checkpoint")

    def bounds(self, job: str) -> wire.Bounds | Absent:
        """Return the bounds of every vertex; Absent where the job's scheduler has none (a batch job)."""
        try:
            answer = self._transport.fetch(f"{self._root}/jobs/{_id(job)}/resource-requirements", self._query)
            if len(answer.body) > BOUNDS_BYTES_MAX:
                return Absent("the bounds of the job's vertices are too long")
            found = msgspec.json.decode(answer.body, type=wire.Bounds)
        except (Unreachable, Rejected, msgspec.MsgspecError, ValueError, RecursionError) as problem:
            return Absent(str(problem))
        return found or Absent("the job has no vertices")

    def set_bounds(self, job: str, bounds: wire.Bounds) -> Absent | None:
        """Set the bounds of every vertex. Absent: not done. Raises Rejected and Uncertain."""
        answer = self._put(f"/jobs/{_id(job)}/resource-requirements", msgspec.json.encode(bounds))
        return answer if isinstance(answer, Absent) else None


def _id(job: str) -> str:
    if not _JOB.fullmatch(job):
        raise BadInput(f"id {job[:60]!r}", "not the id of a Flink job", "use 32 hexadecimal digits")
    return job
