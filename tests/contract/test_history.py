"""History: what the history server tells of a job after its master is gone (facts 2.2).

It is who is asked once the ResourceManager has forgotten an application (checkpoints of ended jobs).
"""

from __future__ import annotations

from tests.contract.asking import Cluster, job_id, refusal, rows
from tests.contract.host import JobPlan, need, until

ROOT = "/ws/v1/history"


def history(cluster: Cluster, path: str) -> str:
    """Return the URL of a path below the history server's root."""
    return f"{cluster.host.history}{ROOT}/{path}?user.name={cluster.user}"


def test_a_job_that_has_ended_is_in_the_history(cluster: Cluster) -> None:
    host = cluster.host
    need(host, "history")
    application = host.submit(JobPlan("told", "production"))
    cluster.wait_for(application, "FINISHED")
    url = history(cluster, f"mapreduce/jobs/{job_id(application)}")
    until(host, lambda: host.ask("GET", url).status == 200, "the job in the history")
    told = host.ask("GET", url).json()["job"]
    assert (told["id"], told["state"], told["name"]) == (job_id(application), "SUCCEEDED", "told")
    assert (told["user"], told["queue"].removeprefix("root.")) == ("alice", "production")
    assert 0 < told["submitTime"] <= told["startTime"] <= told["finishTime"]
    jobs = rows(host.ask("GET", history(cluster, "mapreduce/jobs")).json(), "jobs", "job")
    assert job_id(application) in {one["id"] for one in jobs}


def test_a_job_that_runs_or_never_was_is_not_in_the_history(cluster: Cluster) -> None:
    host = cluster.host
    need(host, "history")
    assert host.ask("GET", history(cluster, "info")).json()["historyInfo"]["startedOn"] > 0
    application = host.submit(JobPlan("untold", "production", holds=True))
    try:
        cluster.wait_for(application, "RUNNING")
        for name in (job_id(application), "job_1_0001"):
            answer = host.ask("GET", history(cluster, f"mapreduce/jobs/{name}"))
            assert (answer.status, refusal(answer)) == (404, "NotFoundException")
    finally:
        cluster.end(application)
