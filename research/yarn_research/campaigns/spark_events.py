"""The event log of a Spark application: tasks, attempts at stages, executors that were removed.

Law: pure. What Spark counts as a failure is read from the reason of a task's end, and from the words with
which an executor was removed; tasks that looked for moved blocks (``FetchFailed``) do not count with Spark's
own default (``spark.stage.ignoreDecommissionFetchFailure``), and are told apart.
Shapes: https://spark.apache.org/docs/latest/monitoring.html and JsonProtocol of Spark 4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from yarnctl.frameworks.spark.rest import left_well

NO_FAILURES = ("Success", "FetchFailed", "Resubmitted", "TaskKilled", "TaskCommitDenied")


class TaskRun(NamedTuple):
    """An attempt at a task, by the driver's clock, ms.

    ``partition`` tells a task in all attempts at its stage; its index is another one in each.
    """

    stage: int
    attempt: int
    partition: int
    executor: str
    began_ms: int
    ended_ms: int
    reason: str


class Told(NamedTuple):
    """What an event log tells."""

    tasks: tuple[TaskRun, ...]
    removed: dict[str, str]
    excluded: int

    @property
    def stage_attempts(self) -> int:
        """How many attempts there were beyond the first of a stage (one that ran no task is none)."""
        return len({(each.stage, each.attempt) for each in self.tasks if each.attempt})

    @property
    def ended_ms(self) -> int:
        """When the last task ended (0: none did)."""
        return max((each.ended_ms for each in self.tasks), default=0)

    def task_failures(self) -> list[str]:
        """Return the reasons of tasks that count as failed."""
        return [
            each.reason
            for each in self.tasks
            if each.reason not in NO_FAILURES
            and not (each.reason == "ExecutorLostFailure" and left_well(self.removed.get(each.executor, "")))
        ]

    def executor_failures(self) -> list[str]:
        """Return why executors were removed that did not leave by themselves."""
        return [reason for reason in self.removed.values() if not left_well(reason)]

    def rest_ms(self, executor: str, at_ms: int) -> int:
        """Return how long the longest task still ran that an executor had at an instant (0: none)."""
        mine = [each for each in self.tasks if each.executor == executor and each.began_ms <= at_ms]
        return max((each.ended_ms - at_ms for each in mine if each.ended_ms > at_ms), default=0)

    def last_end_ms(self, executor: str, at_ms: int) -> int:
        """Return how long after an instant an executor's last task ended (0: before it)."""
        mine = (each.ended_ms - at_ms for each in self.tasks if each.executor == executor)
        return max(0, max(mine, default=0))


def read(lines: Iterable[str]) -> Told:
    """Read an event log; lines that are no JSON (the last of one cut off) are left out."""
    tasks: list[TaskRun] = []
    excluded, removed = 0, dict[str, str]()
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        kind = event.get("Event")
        if kind == "SparkListenerTaskEnd":
            tasks.append(_task(event))
        elif kind == "SparkListenerExecutorRemoved":
            removed[event["Executor ID"]] = event["Removed Reason"]
        elif kind in ("SparkListenerExecutorExcluded", "SparkListenerNodeExcluded"):
            excluded += 1
    return Told(tuple(tasks), removed, excluded)


def _task(event: dict[str, Any]) -> TaskRun:
    row = event["Task Info"]
    return TaskRun(
        event["Stage ID"],
        event["Stage Attempt ID"],
        row["Partition ID"],
        row["Executor ID"],
        row["Launch Time"],
        row["Finish Time"],
        event["Task End Reason"]["Reason"],
    )
