"""What the history server tells of a finished job.

Law: it learns of a job a little after the job's end; until then it is asked again, for a bounded time.
"""

from __future__ import annotations

import time
from typing import Any

from tests import http_client
from tests.hadoop.jobs import LOOK_S, applications
from tests.hadoop.launcher import Cluster

PATIENCE_S = 120.0


def finished(cluster: Cluster, name: str) -> str:
    rows = [row for row in applications(cluster.rm_url) if row["name"] == name]
    assert len(rows) == 1, (name, rows)
    return str(rows[0]["id"]).replace("application_", "job_", 1)


def asked(cluster: Cluster, job: str, path: str) -> dict[str, Any]:
    """Return an answer about a job; raises AssertionError if it stays unknown."""
    return asked_at(cluster.history_url, job, path)


def asked_at(history_url: str, job: str, path: str) -> dict[str, Any]:
    """Return a history server's answer about a job: it learns of one a little after its end."""
    ends = time.monotonic() + PATIENCE_S
    url = f"{history_url}/ws/v1/history/mapreduce/jobs/{job}/{path}".rstrip("/")
    while not (answer := http_client.get(url, timeout=60)).ok:
        if time.monotonic() > ends:
            raise AssertionError(f"the history server does not know {job}: {answer.text[:500]}")
        time.sleep(LOOK_S)
    found: dict[str, Any] = answer.json()
    return found


def counters_of(cluster: Cluster, job: str) -> dict[str, dict[str, int]]:
    """Return a job's counters, summed over its tasks, by group and name."""
    groups = asked(cluster, job, "counters")["jobCounters"]["counterGroup"]
    return {
        str(group["counterGroupName"]): {
            str(each["name"]): int(each["totalCounterValue"]) for each in group["counter"]
        }
        for group in groups
    }


def reduce_attempts(cluster: Cluster, job: str) -> int:
    tasks = asked(cluster, job, "tasks?type=r")["tasks"]["task"]
    answers = [asked(cluster, job, f"tasks/{task['id']}/attempts") for task in tasks]
    return sum(len(answer["taskAttempts"]["taskAttempt"]) for answer in answers)
