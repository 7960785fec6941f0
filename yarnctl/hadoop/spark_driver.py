"""The client of a Spark application's driver, through YARN's web proxy (docs/facts/spark.md, 6); read only.

A driver that does not answer gives ``Absent``.
"""

from __future__ import annotations

from typing import Any

from yarnctl.errors import Unreachable
from yarnctl.hadoop.app_master import Absent, absent, approved
from yarnctl.hadoop.http.answers import Rejected
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.wire import spark_rest as wire
from yarnctl.hadoop.wire.decoders import ListDecoder, OneDecoder

TASKS_MAX = 10_000
"""The maximum number of running tasks of a stage that are read."""
QUANTILES = "0.5,0.95"
EXECUTORS_ONLY = {"details": "true", "taskStatus": "failed"}
"""A stage's parts by executor come with the details alone, and those have every task unless a status is named
(SPARK-34092, since 3.2): failed ones are few.
"""


class SparkDriver:
    """The driver of one application. The constructor sends nothing."""

    def __init__(self, transport: Transport, application: str) -> None:
        self._query = approved(transport, application)
        self.application = application
        self._to = transport
        self._api = f"/proxy/{application}/api/v1"
        self._root = f"{self._api}/applications/{application}"

    def version(self) -> str | Absent:
        """Return the driver's version of Spark."""
        found = self._read(f"{self._api}/version", wire.VERSION)
        return found if isinstance(found, Absent) else str(found.spark)

    def settings(self) -> dict[str, str] | Absent:
        """Return the settings in effect."""
        found = self._read(f"{self._root}/environment", wire.ENVIRONMENT)
        return found if isinstance(found, Absent) else dict(found.settings)

    def executors(self) -> tuple[wire.Executor, ...] | Absent:
        """Return all executors, also removed ones and the driver."""
        found = self._read(f"{self._root}/allexecutors", wire.EXECUTORS)
        return found if isinstance(found, Absent) else tuple(found)

    def jobs(self) -> tuple[wire.ActiveJob, ...] | Absent:
        """Return the running jobs."""
        found = self._read(f"{self._root}/jobs", wire.JOBS, {"status": "running"})
        return found if isinstance(found, Absent) else tuple(found)

    def stages(self) -> tuple[wire.Stage, ...] | Absent:
        """Return every attempt at a stage that the driver still knows, without its parts by executor."""
        found = self._read(f"{self._root}/stages", wire.STAGES)
        return found if isinstance(found, Absent) else tuple(found)

    def stage(self, stage: int, attempt: int) -> wire.Stage | Absent:
        """Return one attempt at a stage with the bytes that each executor wrote."""
        found = self._read(f"{self._root}/stages/{stage}/{attempt}", wire.STAGE, EXECUTORS_ONLY)
        return (
            found if isinstance(found, Absent | wire.Stage) else Absent("the driver does not know this stage")
        )

    def running_tasks(self, stage: int, attempt: int) -> tuple[wire.StageTask, ...] | Absent:
        """Return the running tasks of a stage."""
        query = {"status": "running", "offset": "0", "length": str(TASKS_MAX)}
        found = self._read(f"{self._root}/stages/{stage}/{attempt}/taskList", wire.TASKS, query)
        return found if isinstance(found, Absent) else tuple(found)

    def task_spans_ms(self, stage: int, attempt: int) -> tuple[float, ...] | Absent:
        """Return the 50 % and 95 % quantiles of a stage's task times in ms; (): no task has finished."""
        query = {"quantiles": QUANTILES}
        found = self._read(f"{self._root}/stages/{stage}/{attempt}/taskSummary", wire.QUANTILES, query)
        return found if isinstance(found, Absent) else tuple(found.spans_ms)

    def _read(
        self, path: str, decoder: OneDecoder[Any] | ListDecoder[Any], query: dict[str, str] | None = None
    ) -> Any:
        try:
            return self._to.read(path, decoder, {**self._query, **(query or {})})
        except (Unreachable, Rejected) as problem:
            return absent(self._to, problem)
