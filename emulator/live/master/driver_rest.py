"""The REST of a driver of Spark, as 4.0 answers it (docs/facts/spark.md, 6).

It changes nothing. Fields that say nothing of a modelled application are as recorded, with zeros. Instants
are the wall clock's. Of a stage its parts by executor come with the details alone, as in Spark. A stage that
runs tasks again keeps its attempt's number.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from emulator.cluster.executors.spark_stages import TaskRun
from emulator.live.master.live_driver import ExecutorFacts, LiveDriver
from emulator.live.master.live_master import LiveMaster
from emulator.live.wire.web import TEXT, HttpProblem, Reply, Web, WebRequest, json_reply

_DATA = Path(__file__).parents[2] / "data" / "spark" / "constant-fields.json"
CONSTANT_FIELDS: dict[str, dict[str, Any]] = msgspec.json.decode(_DATA.read_bytes())
"""By kind of row: the fields that are not live."""

VERSION = "4.0.1"
MIB = 1 << 20
STAGE_NAMES = ("reduceByKey at modelled", "collect at modelled")
REASONS = {
    "left": "Executor decommission: spark scale down",
    "removed": "Executor killed by driver.",
    "preempted": "Container {container} on host: {host} was preempted.",
    "failed": "Container from a bad node: {container} on host: {host}. Exit status: 143.",
}
"""Why an executor is gone, in Spark's words (docs/facts/spark.md, 2, 4 and 9)."""


class DriverRest:
    """The views of one driver, and their routes."""

    def __init__(self, live: LiveMaster, web: Web) -> None:
        self.live = live
        self.driver = cast(LiveDriver, live.actor)
        self.web = web
        api = "/api/v1"
        app = f"{api}/applications/{{application}}"
        stage = f"{app}/stages/{{stage}}/{{attempt}}"
        self._get(f"{api}/version", lambda _: {"spark": VERSION})
        self._get("/metrics/json", lambda _: self.metrics())
        self._get(f"{app}/environment", lambda _: self.environment())
        self._get(f"{app}/allexecutors", lambda _: self.executors())
        self._get(f"{app}/executors", lambda _: [row for row in self.executors() if row["isActive"]])
        self._get(f"{app}/jobs", lambda asked: self.jobs(asked.query.get("status", "")))
        self._get(f"{app}/stages", lambda _: [self.stage(each) for each in self.shown_stages()])
        self._get(stage, self._stage)
        self._get(f"{stage}/taskList", self._tasks)
        self._get(f"{stage}/taskSummary", self._summary)

    def _get(self, path: str, answer: Callable[[WebRequest], object]) -> None:
        def handle(request: WebRequest) -> Reply:
            if request.values and request.values[0] != self.live.launch.application:
                return _unknown(f"unknown app {request.values[0][:80]}")
            try:
                found: Reply | None = self.live.around(lambda: json_reply(answer(request)))
            except HttpProblem as problem:
                return _unknown(problem.message)
            return _unknown("this driver has ended") if found is None else found

        self.web.add("GET", path, handle)

    def _number(self, request: WebRequest) -> int:
        stage, attempt = request.values[1:3]
        if attempt != "0" or stage not in {str(each) for each in self.shown_stages()}:
            raise HttpProblem(404, "", f"unknown stage: {stage[:20]} / {attempt[:20]}")
        return int(stage)

    def _stage(self, request: WebRequest) -> dict[str, Any]:
        stage = self._number(request)
        row = self.stage(stage)
        if request.query.get("details", "true") == "true":
            told = self.tasks(stage, request.query.get("taskStatus", "").lower())
            row["tasks"] = {str(task["taskId"]): task for task in told}
            row["executorSummary"] = self.by_executor(stage)
        return row

    def _tasks(self, request: WebRequest) -> list[dict[str, Any]]:
        return self.tasks(self._number(request), request.query.get("status", "").lower())

    def _summary(self, request: WebRequest) -> dict[str, Any]:
        text = request.query.get("quantiles", "0.05,0.25,0.5,0.75,0.95")
        try:
            quantiles = [min(1.0, max(0.0, float(each))) for each in text.split(",")]
        except ValueError:
            raise HttpProblem(404, "", f"Bad value for parameter quantiles: {text[:60]}") from None
        return self.summary(self._number(request), quantiles)

    def _instant(self, at_ms: int) -> str:
        wall_ms = self.live.driver.wall_of(at_ms)
        at = datetime.fromtimestamp(wall_ms / 1000, UTC)
        return f"{at:%Y-%m-%dT%H:%M:%S}.{wall_ms % 1000:03d}GMT"

    def _wall_span_ms(self, span_ms: int) -> int:
        return int(span_ms / self.live.driver.speed)

    def environment(self) -> dict[str, Any]:
        """GET /environment."""
        began_ms = self.live.driver.wall_of(self.live.started_at_ms)
        told = {name: value for name, value in self.live.conf.items() if name.startswith("spark.")}
        told |= {"spark.app.id": self.live.launch.application, "spark.app.startTime": str(began_ms)}
        return {"sparkProperties": [list(pair) for pair in sorted(told.items())]}

    def metrics(self) -> dict[str, Any]:
        """GET /metrics/json: of all gauges, those of the plugin."""
        prefix = f"{self.live.launch.application}.driver.plugin.yarnctl.Leave"
        values = {"order": self.driver.last_order, "executors": self.driver.staying}
        gauges = {f"{prefix}.{name}": {"value": value} for name, value in values.items()}
        return {"version": "4.0.0", "gauges": gauges if self.driver.last_order >= 0 else {}}

    def executors(self) -> list[dict[str, Any]]:
        """GET /allexecutors: those that are gone too, and the driver."""
        live: dict[str, Any] = dict.fromkeys(
            ("totalCores", "maxTasks", "activeTasks", "completedTasks", "totalTasks", "totalShuffleWrite"), 0
        )
        lived_ms = self.live.kernel.now_ms - self.live.started_at_ms
        return [
            *map(self._executor, self.driver.facts.values()),
            {
                **CONSTANT_FIELDS["executor"],
                **live,
                "id": "driver",
                "hostPort": "driver:40000",
                "isActive": True,
                "totalDuration": self._wall_span_ms(lived_ms),
                "addTime": self._instant(self.live.started_at_ms),
                "executorLogs": {},
                "attributes": {},
            },
        ]

    def _place(self, facts: ExecutorFacts) -> tuple[str, str]:
        """Return an executor's container and host."""
        granted = self.live.containers.granted(facts.container)
        return granted.container, granted.node.partition(":")[0]

    def _logs(self, facts: ExecutorFacts) -> dict[str, str]:
        container, host = self._place(facts)
        below = f"http://{host}:8042/node/containerlogs/{container}/{self.live.launch.user}"
        return {name: f"{below}/{name}?start=-4096" for name in ("stdout", "stderr")}

    def _executor(self, facts: ExecutorFacts) -> dict[str, Any]:
        driver = self.driver
        container, host = self._place(facts)
        executor = driver.executors.get(facts.container.number)
        active, cores, done = len(executor.runs) if executor else 0, driver.shape.cores, sum(facts.done)
        row = {
            **CONSTANT_FIELDS["executor"],
            "id": str(facts.executor),
            "hostPort": f"{host}:{40000 + facts.executor}",
            "isActive": driver.is_active(facts),
            "totalCores": cores,
            "maxTasks": cores,
            "activeTasks": active,
            "completedTasks": done,
            "totalTasks": done + active,
            "totalDuration": self._wall_span_ms(sum(facts.spent_ms)),
            "totalShuffleWrite": facts.done[0] * driver.shape.block_mib * MIB,
            "addTime": self._instant(facts.added_at_ms),
            "executorLogs": self._logs(facts),
            "attributes": {
                "NM_HTTP_ADDRESS": f"{host}:8042",
                "USER": self.live.launch.user,
                "LOG_FILES": "stderr,stdout",
                "NM_HTTP_PORT": "8042",
                "CLUSTER_ID": "",
                "NM_PORT": "8041",
                "HTTP_SCHEME": "http://",
                "NM_HOST": host,
                "CONTAINER_ID": container,
            },
        }
        if facts.ending:
            row["removeTime"] = self._instant(facts.ended_at_ms)
            row["removeReason"] = REASONS[facts.ending].format(container=container, host=host)
        return row

    def shown_stages(self) -> list[int]:
        """Return the stages that have tasks, the newest first."""
        return [stage for stage in (1, 0) if self.driver.stages.lengths_ms[stage]]

    def jobs(self, status: str) -> list[dict[str, Any]]:
        """GET /jobs: the one job, if it has that status ("" for any)."""
        stages = self.shown_stages()
        mine = "SUCCEEDED" if self.driver.stages.is_done() else "RUNNING"
        if not stages or status not in ("", mine.lower()):
            return []
        rows = [self.stage(stage) for stage in stages]
        total = {name: sum(row[name] for row in rows) for name in ("numTasks", "numActiveTasks")}
        done = sum(row["numCompletedIndices"] for row in rows)
        row = {
            **CONSTANT_FIELDS["job"],
            "jobId": 0,
            "name": STAGE_NAMES[1],
            "submissionTime": self._instant(min(filter(None, self.driver.stage_began_ms), default=0)),
            "stageIds": sorted(stages),
            "status": mine,
            **total,
            "numCompletedTasks": done,
            "numCompletedIndices": done,
            "numActiveStages": sum(row["status"] == "ACTIVE" for row in rows),
            "numCompletedStages": sum(row["status"] == "COMPLETE" for row in rows),
        }
        return [row]

    def stage(self, stage: int) -> dict[str, Any]:
        """GET /stages/{stage}/{attempt} without details."""
        driver, places = self.driver, self.driver.stages.places[stage]
        done, facts = len(places) - places.count(-1), self.driver.facts.values()
        wrote = sum(each.done[stage] for each in facts) if stage == 0 else 0
        status = "ACTIVE" if driver.stages.current() == stage else "PENDING"
        status = status if -1 in places else "COMPLETE"
        row = {
            **CONSTANT_FIELDS["stage"],
            "status": status,
            "stageId": stage,
            "attemptId": 0,
            "numTasks": len(places),
            "numActiveTasks": len(driver.running_tasks(stage)),
            "numCompleteTasks": max(done, sum(each.done[stage] for each in facts)),
            "numCompletedIndices": done,
            "executorRunTime": self._wall_span_ms(sum(driver.spans_ms[stage])),
            "shuffleReadBytes": done * driver.shape.block_mib * MIB if stage == 1 else 0,
            "shuffleWriteBytes": wrote * driver.shape.block_mib * MIB,
            "name": STAGE_NAMES[stage],
            "details": "modelled",
            "rddIds": [stage],
        }
        if driver.stage_began_ms[stage]:
            began = self._instant(driver.stage_began_ms[stage])
            row |= {"submissionTime": began, "firstTaskLaunchedTime": began}
        if status == "COMPLETE":
            row["completionTime"] = self._instant(driver.stage_ended_ms[stage])
        return row

    def by_executor(self, stage: int) -> dict[str, Any]:
        """Return what each executor did in a stage."""
        size_bytes = self.driver.shape.block_mib * MIB if stage == 0 else 0
        return {
            str(facts.executor): {
                **CONSTANT_FIELDS["stageOfExecutor"],
                "taskTime": self._wall_span_ms(facts.spent_ms[stage]),
                "succeededTasks": facts.done[stage],
                "shuffleWrite": facts.done[stage] * size_bytes,
            }
            for facts in self.driver.facts.values()
            if facts.done[stage]
        }

    def tasks(self, stage: int, status: str) -> list[dict[str, Any]]:
        """GET .../taskList: the tasks that run; those that have ended are not listed."""
        runs = self.driver.running_tasks(stage) if status in ("", "running") else []
        return [self._task(run) for run in runs]

    def _task(self, run: TaskRun) -> dict[str, Any]:
        facts = self.driver.facts[run.executor.number]
        return {
            **CONSTANT_FIELDS["task"],
            "taskId": run.stage * len(self.driver.stages.places[0]) + run.task,
            "index": run.task,
            "partitionId": run.task,
            "launchTime": self._instant(run.began_ms),
            "duration": 0,
            "executorId": str(facts.executor),
            "host": self._place(facts)[1],
            "executorLogs": self._logs(facts),
        }

    def summary(self, stage: int, quantiles: list[float]) -> dict[str, Any]:
        """GET .../taskSummary: how long finished tasks took; 404 while none has finished, as Spark has it."""
        spans_ms = sorted(self.driver.spans_ms[stage])
        if not spans_ms:
            raise HttpProblem(404, "", f"No tasks reported metrics for {stage} / 0 yet.")
        last = len(spans_ms) - 1
        at = [float(self._wall_span_ms(spans_ms[round(each * last)])) for each in quantiles]
        zeros = [0.0] * len(quantiles)
        told = {"quantiles": quantiles, "duration": at, "executorRunTime": at}
        return {**CONSTANT_FIELDS["taskSummary"], **told, "executorDeserializeTime": zeros}


def _unknown(why: str) -> Reply:
    """Return Spark's no: 404 and a line of text."""
    return Reply(404, why.encode(), TEXT)
