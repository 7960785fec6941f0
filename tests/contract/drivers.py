"""Drivers of Spark: what is asked of one in the middle of its second stage, and what must hold of it.

Law: nothing here knows whether the driver is real, recorded or emulated; the claims are what yarnctl
relies on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from yarnctl.frameworks.spark import rest as spark_rest

Ask = Callable[[str], Any]
"""Path and query below an application -> the answer's JSON."""

DETAILS = "details=true&taskStatus=failed"
RUNNING = "taskList?status=running&offset=0&length=10000"
SPANS = "taskSummary?quantiles=0.5,0.95"


def answers(ask: Ask) -> dict[str, Any]:
    found = {path: ask(path) for path in ("environment", "allexecutors", "jobs?status=running", "stages")}
    for stage in found["stages"]:
        below = f"stages/{stage['stageId']}/{stage['attemptId']}"
        if stage["status"] in ("ACTIVE", "COMPLETE"):
            found[f"{below}?{DETAILS}"] = ask(f"{below}?{DETAILS}")
        if stage["status"] == "ACTIVE":
            found |= {f"{below}/{query}": ask(f"{below}/{query}") for query in (RUNNING, SPANS)}
    return found


class Told(NamedTuple):
    """The answers as yarnctl reads them. ``reading``: the stage that runs and reads what the first wrote."""

    executors: tuple[spark_rest.Executor, ...]
    jobs: tuple[spark_rest.ActiveJob, ...]
    stages: tuple[spark_rest.Stage, ...]
    details: tuple[spark_rest.Stage, ...]
    reading: spark_rest.Stage
    running: tuple[spark_rest.StageTask, ...]
    spans_ms: tuple[float, ...]


def read(found: dict[str, Any]) -> Told:
    """Read answers by yarnctl's own decoders."""
    raw = {path: json.dumps(answer).encode() for path, answer in found.items()}
    details = tuple(spark_rest.STAGE.read(text) for path, text in raw.items() if path.endswith(DETAILS))
    (reading,) = (each for each in details if each.status == "ACTIVE")
    below = f"stages/{reading.stage}/{reading.attempt}"
    return Told(
        tuple(spark_rest.EXECUTORS.read(raw["allexecutors"])),
        tuple(spark_rest.JOBS.read(raw["jobs?status=running"])), tuple(spark_rest.STAGES.read(raw["stages"])),
        details, reading, tuple(spark_rest.TASKS.read(raw[f"{below}/{RUNNING}"])),
        spark_rest.QUANTILES.read(raw[f"{below}/{SPANS}"]).spans_ms,
    )  # fmt: skip


def claims(told: Told) -> dict[str, bool]:
    """Return what yarnctl relies on, by name, and whether it holds."""
    names = {each.executor for each in told.executors if not each.is_driver}
    working = {each.executor for each in told.executors if each.is_active and not each.is_driver}
    (job,) = told.jobs
    wrote = [each for each in told.details if each.status == "COMPLETE" and each.shuffle_write]
    middle_ms, slow_ms = told.spans_ms
    return {
        "an executor's container is known": all(
            each.container.startswith("container_") for each in told.executors if not each.is_driver
        ),
        "containers are told apart": len({each.container for each in told.executors}) == len(names) + 1,
        "one row is the driver's": sum(each.is_driver for each in told.executors) == 1,
        "a job names its stages": told.reading.stage in job.stages and job.status == "RUNNING",
        "stages are listed without their parts": all(not each.by_executor for each in told.stages),
        "parts by executor come with the details": all(each.by_executor for each in told.details),
        "parts are of executors that there were": all(
            each.by_executor.keys() <= names for each in told.details
        ),
        "parts add up to what was written": bool(wrote)
        and all(
            sum(part.shuffle_write for part in each.by_executor.values()) == each.shuffle_write
            for each in wrote
        ),
        "each task that is done is some executor's": all(
            sum(part.succeeded for part in each.by_executor.values()) >= each.complete for each in wrote
        ),
        "the second stage reads what the first wrote": told.reading.shuffle_read > 0,
        "running tasks are of executors that work": {each.executor for each in told.running} <= working,
        "tasks run, no more than cores": 0
        < len(told.running)
        <= sum(each.cores for each in told.executors if each.executor in working),
        "launches can be read": all(each.age_ms(1 << 42) > 0 for each in told.running),
        "half of the tasks are no slower than almost all": 0 < middle_ms <= slow_ms,
    }
