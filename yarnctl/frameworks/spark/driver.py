"""The client of a Spark application's driver, through YARN's web proxy (docs/facts/spark.md, 6); read only.

A driver that does not answer gives ``Absent``.
"""

from __future__ import annotations

from yarnctl.frameworks.spark import rest as wire
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent, ProxiedClient

TASKS_MAX = 10_000  # The maximum number of running tasks of a stage that are read
QUANTILES = "0.25,0.5,0.95"
EXECUTORS_ONLY = {"details": "true", "taskStatus": "failed"}
"""A stage's parts by executor come with the details alone, and those have every task unless a status is named
(SPARK-34092, since 3.2): failed ones are few.
"""


class SparkDriver(ProxiedClient):
    """The driver of one application."""

    def __init__(self, transport: Transport, application: str) -> None:
        super().__init__(transport, application, "")
        self._of = f"/api/v1/applications/{application}"

    def version(self) -> str | Absent:
        """Return the driver's version of Spark."""
        return self._made(lambda found: str(found.spark), self._read("/api/v1/version", wire.VERSION))

    def settings(self) -> dict[str, str] | Absent:
        """Return the settings in effect."""
        return self._made(
            lambda found: dict(found.pairs), self._read(f"{self._of}/environment", wire.ENVIRONMENT)
        )

    def plugin_answer(self) -> wire.PluginAnswer | Absent | None:
        """Return the answer of yarnctl's plugin; None if its gauges are not shown."""
        return self._made(lambda found: found.plugin(), self._read("/metrics/json", wire.METRICS))

    def executors(self) -> tuple[wire.Executor, ...] | Absent:
        """Return all executors, also removed ones and the driver."""
        return self._made(tuple, self._read(f"{self._of}/allexecutors", wire.EXECUTORS))

    def jobs(self) -> tuple[wire.ActiveJob, ...] | Absent:
        """Return the running jobs."""
        return self._made(tuple, self._read(f"{self._of}/jobs", wire.JOBS, {"status": "running"}))

    def stages(self) -> tuple[wire.Stage, ...] | Absent:
        """Return every attempt at a stage that the driver still knows, without its parts by executor."""
        return self._made(tuple, self._read(f"{self._of}/stages", wire.STAGES))

    def stage(self, stage: int, attempt: int) -> wire.Stage | Absent:
        """Return one attempt at a stage with the bytes that each executor wrote."""
        found = self._read(f"{self._of}/stages/{stage}/{attempt}", wire.STAGE, EXECUTORS_ONLY)
        return (
            found if isinstance(found, Absent | wire.Stage) else Absent("the driver does not know this stage")
        )

    def running_tasks(self, stage: int, attempt: int) -> tuple[wire.StageTask, ...] | Absent:
        """Return the running tasks of a stage."""
        query = {"status": "running", "offset": "0", "length": str(TASKS_MAX)}
        return self._made(
            tuple, self._read(f"{self._of}/stages/{stage}/{attempt}/taskList", wire.TASKS, query)
        )

    def task_spans_ms(self, stage: int, attempt: int) -> tuple[float, ...] | Absent:
        """Return the 25, 50 and 95 % quantiles of a stage's task times in ms; (): no task has finished."""
        query = {"quantiles": QUANTILES}
        path = f"{self._of}/stages/{stage}/{attempt}/taskSummary"
        return self._made(lambda found: tuple(found.spans_ms), self._read(path, wire.QUANTILES, query))
