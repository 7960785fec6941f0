"""The rival of a choice: without yarnctl, the tasks that it chose in the run before are killed, each as late.

Law: who is killed, and when, is read from the journal of that run; the rest is a run as without yarnctl.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from tests import http_client
from tests.hadoop.jobs import Job
from yarnctl.deciding.records import Decision, Record


class ChosenTask(NamedTuple):
    """A task of research (``r_000003``), and when it was chosen, s after research's start."""

    task: str
    after_s: float


def chosen_tasks(records: Iterable[Record], started_ms: int) -> list[ChosenTask]:
    """Return the tasks that decisions chose, in their order."""
    found = []
    for record in records:
        if isinstance(record, Decision):
            after_s = (record.at_ms - started_ms) / 1000
            found += [ChosenTask(task_of(pick.task.attempt), after_s) for pick in record.picks]
    return found


def task_of(attempt: str) -> str:
    """Return the kind and the number of an attempt's task: ``r_000003``."""
    return "_".join(attempt.split("_")[3:5])


@contextmanager
def killing(job: Job | None, tasks: Iterable[ChosenTask]) -> Iterator[list[str]]:
    """Kill the running attempt of each task at its instant, until the block ends; yield those killed."""
    killed: list[str] = []
    if job is None:
        yield killed
        return
    ended, started_s = threading.Event(), job.row()["startedTime"] / 1000

    def kill_each() -> None:
        for each in tasks:
            if ended.wait(max(0.0, started_s + each.after_s - time.time())):
                return
            if attempt := kill(job, each.task):
                killed.append(attempt)

    thread = threading.Thread(target=kill_each)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()


def kill(job: Job, task: str) -> str:
    """Kill a task's running attempt through its master; return it ("": none runs)."""
    ids = job.application.removeprefix("application_")
    master = f"{job.cluster.rm_url}/proxy/{job.application}/ws/v1/mapreduce/jobs/job_{ids}"
    url = f"{master}/tasks/task_{ids}_{task}/attempts"
    answer = http_client.get(url, timeout=30, allow_redirects=False)
    if not answer.ok or "json" not in answer.headers.get("Content-Type", ""):
        return ""
    for row in answer.json()["taskAttempts"]["taskAttempt"]:
        if row["state"] == "RUNNING":
            asked = http_client.put(
                f"{url}/{row['id']}/state?user.name={job.plan.user}", json={"state": "KILLED"}, timeout=30
            )
            if not asked.ok:
                raise AssertionError(f"{row['id']}: {asked.status_code} {asked.text[:200]}")
            return str(row["id"])
    return ""
