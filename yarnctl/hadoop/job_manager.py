"""The client of a Flink application's JobManager, through YARN's web proxy (docs/facts/flink.md, 3).

A JobManager that does not answer gives ``Absent``. The only change is that of a job's bounds, by PUT.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from yarnctl.errors import BadInput, Unreachable
from yarnctl.hadoop.app_master import Absent, absent, approved
from yarnctl.hadoop.http.answers import Missing, Rejected, Uncertain
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import flink_rest as wire
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

BOUNDS_BYTES_MAX = 1 << 18
"""They are kept in a small file, twice."""
OVER = ("FINISHED", "CANCELED", "FAILED")
_JOB = re.compile(r"[0-9a-f]{32}")


class JobManager:
    """The JobManager of one application. The constructor sends nothing."""

    def __init__(self, transport: Transport, application: str) -> None:
        self._to = transport
        self._query = approved(transport, application)
        self._root = f"/proxy/{application}"

    def settings(self) -> dict[str, str] | Absent:
        """Return the settings in effect."""
        rows = self._read("/jobmanager/config", wire.SETTINGS)
        return rows if isinstance(rows, Absent) else {row.key: row.value for row in rows}

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
        rows = self._read("/taskmanagers", wire.TASK_MANAGERS)
        return rows if isinstance(rows, Absent) else tuple(rows)

    def checkpoint(self, job: str) -> wire.Completed | Absent:
        """Return the last completed checkpoint; Absent if there is none."""
        found = self._read(f"/jobs/{_id(job)}/checkpoints", wire.CHECKPOINT)
        if isinstance(found, Absent):
            return found
        return found.latest.completed or Absent("the job has no completed checkpoint")

    def bounds(self, job: str) -> wire.Bounds | Absent:
        """Return the bounds of every vertex; Absent where the job's scheduler has none (a batch job)."""
        try:
            answer = self._to.fetch(f"{self._root}/jobs/{_id(job)}/resource-requirements", self._query)
            if len(answer.body) > BOUNDS_BYTES_MAX:
                return Absent("the bounds of the job's vertices are too long")
            found = msgspec.json.decode(answer.body, type=wire.Bounds)
        except (Unreachable, Rejected, msgspec.MsgspecError, ValueError, RecursionError) as problem:
            return Absent(str(problem))
        return found or Absent("the job has no vertices")

    def set_bounds(self, job: str, bounds: wire.Bounds) -> Absent | None:
        """Set the bounds of every vertex. Absent: not done. Raises Rejected and Uncertain."""
        path = f"{self._root}/jobs/{_id(job)}/resource-requirements"
        try:
            answer = self._to.change("PUT", path, msgspec.json.encode(bounds), query=self._query)
        except Uncertain:
            raise
        except (Missing, Unreachable) as problem:
            return Absent(str(problem))
        return Absent(f"HTTP {answer.status}") if answer.status >= 300 or "html" in answer.kind else None

    def _read(self, path: str, decoder: OneDecoder[Any] | ListDecoder[Any]) -> Any:
        try:
            return self._to.read(f"{self._root}{path}", decoder, self._query)
        except (Unreachable, Rejected) as problem:
            return absent(self._to, problem)


def _id(job: str) -> str:
    if not _JOB.fullmatch(job):
        raise BadInput(f"id {job[:60]!r}", "not the id of a Flink job", "use 32 hexadecimal digits")
    return job
