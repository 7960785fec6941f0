"""The gate on a real Hadoop: more deadlines met than with plain queues, by Hadoop's own client.

A real client and a real history server: what ``yarnctl admit`` submits is known by its tags, held by its
limits, and found again in the history with what it has cost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hadoop.needing import need_hadoop
from yarn_research.campaigns.admission_bench import compare
from yarn_research.campaigns.admission_hadoop import Hadoop, hadoop
from yarnctl.attach.history.finished_jobs import FinishedJobs
from yarnctl.attach.history.fitting import FinishedJob
from yarnctl.frameworks.mapreduce.history_server import QUICK, HistoryServer
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.resource_manager import ResourceManager

pytestmark = pytest.mark.xdist_group("hadoop")


def test_more_deadlines_are_met_than_with_plain_queues(tmp_path: Path) -> None:
    need_hadoop("3.4.2")
    with hadoop(tmp_path) as host:
        found = compare(host, host, tmp_path, print)
        story = "\n".join(str(row) for row in found["table"])
        assert found["gate"]["met"] >= found["plain"]["met"] + 2, story
        hopeless = {job["name"] for job in found["jobs"] if job["hopeless"]}
        outcomes = {job["name"]: job["outcome"] for job in found["gate"]["jobs"]}
        assert {outcomes[name] for name in hopeless} == {"rejected"}, story
        _judge_history(host, found["gate"]["jobs"])


def _judge_history(host: Hadoop, jobs: list[dict[str, object]]) -> None:
    """Of a job that was let in the history tells limits, deadline and work."""
    with Transport([host.rm]) as to, Transport([host.history], limits=QUICK) as history:
        first = min(
            (row for row in HistoryServer(history).jobs(0, "ann") if row.name == "big-1"),
            key=lambda row: row.finished_at_ms,
        )
        told = FinishedJobs(HistoryServer(history), capacity=12).finished_job(
            first.job.replace("job_", "application_", 1)
        )
        application = ResourceManager(to).application(first.job.replace("job_", "application_", 1))
    ran = next(job for job in jobs if job["name"] == "big-1")
    assert isinstance(told, FinishedJob), told
    assert told.limited
    assert told.containers == ran["containers"]
    assert told.deadline_at_ms is not None
    assert "yarnctl-admission-adm-" in application.tags
    assert told.work_ms > told.elapsed_ms > 0
