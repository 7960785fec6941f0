"""Servers that remember a week: one server that is the ResourceManager and both history servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.cli.history import import_command

ENDED_MS = 4_000_000_000_000  # later than today, so that every job is of the span
JOBS = "/ws/v1/history/mapreduce/jobs"
SPARK = "/api/v1/applications"
SETTINGS = {
    "mapreduce.map.memory.mb": "1000", "mapreduce.reduce.memory.mb": "2048", "mapreduce.map.cpu.vcores": "2",
    "yarn.app.mapreduce.am.resource.mb": "1500",
}  # fmt: skip
EXECUTORS = [
    {"id": "driver", "addTime": "2023-11-14T22:00:00.000GMT"},
    {
        "id": "1", "addTime": "2023-11-14T22:00:00.000GMT", "removeTime": "2023-11-14T22:01:00.000GMT",
        "removeReason": "Container container_1_0003_01_000002 on host: a was preempted.", "hostPort": "n7:41",
        "totalCores": 3,
    },
    {"id": "2", "addTime": "2023-11-14T22:00:30.000GMT", "hostPort": "n8:41", "totalCores": 3},
]  # fmt: skip
STAGES = [
    {
        "stageId": 4, "attemptId": 1, "status": "COMPLETE", "numTasks": 12, "executorRunTime": 90_000,
        "submissionTime": "2023-11-14T22:00:05.000GMT", "completionTime": "2023-11-14T22:00:50.000GMT",
    }
]  # fmt: skip


def app(number: int, **more: object) -> dict[str, object]:
    """Return an application as the ResourceManager lists it: 60 s long, its master launched after 1 s."""
    row = {
        "id": f"application_1_{number:04d}", "user": "alice", "name": f"daily {number}", "queue": "root.etl",
        "applicationType": "MAPREDUCE", "state": "FINISHED", "finalStatus": "SUCCEEDED",
        "startedTime": ENDED_MS - 60_000, "launchTime": ENDED_MS - 59_000, "finishedTime": ENDED_MS,
        "memorySeconds": 100_000, "vcoreSeconds": 100, "preemptedMemorySeconds": 0,
        "numNonAMContainerPreempted": 0, "numAMContainerPreempted": 0,
    }  # fmt: skip
    return row | more


def ended(number: int, **more: object) -> dict[str, object]:
    """Return a job as the history server lists it."""
    row = {
        "id": f"job_1_{number:04d}", "name": f"daily {number}", "user": "alice", "queue": "etl",
        "state": "SUCCEEDED", "submitTime": ENDED_MS - 60_000, "startTime": ENDED_MS - 55_000,
        "finishTime": ENDED_MS, "mapsTotal": 3, "reducesTotal": 1, "killedMapAttempts": 1,
        "failedMapAttempts": 0, "killedReduceAttempts": 0,
    }  # fmt: skip
    return row | more


def attempt(task: str, number: int, state: str, began_s: int, ended_s: int, **more: object) -> dict[str, Any]:
    """Return an attempt; times in seconds before the job's end."""
    return {
        "id": f"attempt_{task}_{number}", "type": "REDUCE" if "_r_" in task else "MAP", "state": state,
        "startTime": ENDED_MS - began_s * 1000, "finishTime": ENDED_MS - ended_s * 1000,
        "nodeHttpAddress": "n1.example:8042",
    } | more  # fmt: skip


class WeekServers:
    """``listed``: applications of the ResourceManager; ``kept``: jobs of the history server."""

    def __init__(self) -> None:
        self.listed = [app(1)]
        self.kept = {"job_1_0001": ended(1)}
        self.is_speculative = False
        self.heard: list[str] = []
        self.stop_at: Callable[[str], bool] = lambda path: False

    def attempts(self, task: str) -> list[dict[str, Any]]:
        """Return the attempts at a task: map 2 was preempted once, the reduce fetched for 8 s."""
        if task.endswith("m_000002"):
            killed = attempt(task, 0, "KILLED", 50, 45, diagnostics="Container preempted by scheduler")
            return [killed, attempt(task, 1, "SUCCEEDED", 40, 30)]
        if task.endswith("m_000001") and self.is_speculative:
            return [attempt(task, 0, "SUCCEEDED", 50, 40), attempt(task, 1, "KILLED", 45, 40)]
        if "_r_" in task:
            return [attempt(task, 0, "SUCCEEDED", 28, 5, mergeFinishTime=ENDED_MS - 20_000)]
        return [attempt(task, 0, "SUCCEEDED", 50, 40)]

    def tasks(self, job: str) -> list[dict[str, Any]]:
        """Return three maps and a reduce."""
        found = []
        for place, kind in enumerate("mmmr"):
            task = f"{job.removeprefix('job_')}_{kind}_{place:06d}"
            last = next(row for row in self.attempts(task) if row["state"] == "SUCCEEDED")
            found.append(
                {
                    "id": f"task_{task}", "type": last["type"], "state": "SUCCEEDED",
                    "startTime": self.attempts(task)[0]["startTime"], "finishTime": last["finishTime"],
                    "successfulAttempt": last["id"],
                }
            )  # fmt: skip
        return found

    def __call__(self, heard: Heard) -> Reply:
        path = heard.path
        self.heard.append(path)
        if self.stop_at(path):
            return Reply("{}", 500)
        found = self._found(path)
        return Reply("{}", 404) if found is None else Reply(json.dumps(found))

    def _found(self, path: str) -> object:
        fixed: dict[str, object] = {
            "/ws/v1/cluster/info": {
                "clusterInfo": {"id": 1, "startedOn": 1, "state": "STARTED", "haState": "ACTIVE"}
            },
            "/ws/v1/cluster/apps": {"apps": {"app": self.listed} if self.listed else {}},
            "/conf": {"properties": [{"key": "yarn.scheduler.minimum-allocation-mb", "value": "128"}]},
            JOBS: {"jobs": {"job": list(self.kept.values())}},
        }
        if path in fixed:
            return fixed[path]
        if path.startswith(SPARK):
            application, _, rest = path.removeprefix(f"{SPARK}/").partition("/")
            settings = [["spark.executor.memory", "1g"], ["spark.executor.memoryOverhead", "384m"]]
            spark = {
                "": {"id": application, "attempts": [{"attemptId": "1"}]},
                "1/allexecutors": EXECUTORS,
                "1/stages": STAGES,
                "1/environment": {"sparkProperties": settings},
            }
            return spark.get(rest)
        job, _, rest = path.removeprefix(f"{JOBS}/").partition("/")
        if job not in self.kept:
            return None
        if rest == "":
            return {"job": self.kept[job]}
        if rest == "conf":
            return {"conf": {"property": [{"name": k, "value": v} for k, v in SETTINGS.items()]}}
        if rest == "tasks":
            return {"tasks": {"task": self.tasks(job)}}
        task = rest.split("/")[1].removeprefix("task_")
        return {"taskAttempts": {"taskAttempt": self.attempts(task)}}

    def imported(self, out: Path, *words: str) -> Result:
        """Run the program; what it requested is in ``heard``."""
        self.heard.clear()
        with Replay(self) as server:
            urls = ["--rm", server.url, "--history", server.url, "--spark-history", server.url]
            return CliRunner().invoke(import_command, [*urls, "--out", str(out), *words])

    def counts(self, out: Path, *words: str) -> dict[str, Any]:
        """Return what the program reports as JSON."""
        result = self.imported(out, "-o", "json", "--requests-per-second", "1000", *words)
        assert result.exit_code == 0, result.output
        return dict(json.loads(result.stdout))
