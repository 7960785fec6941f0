"""History: what the history server tells of a job after its master is gone (facts 2.2).

It is who is asked once the ResourceManager has forgotten an application (checkpoints of ended jobs), and what
the gate learns from: tasks, the time of their containers, the settings a job ran with.
"""

from __future__ import annotations

from typing import Any

from tests.contract.asking import Cluster, job_id, refusal, rows
from tests.contract.host import JobPlan, need, until

ROOT = "/ws/v1/history"
GUESSED = (
    "mapreduce.job.running.map.limit",
    "mapreduce.job.reduce.slowstart.completedmaps",
    "mapreduce.job.ubertask.enable",
    "mapreduce.job.name",
)


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


def ended(cluster: Cluster, name: str, **plan: Any) -> str:
    """Run a job to its end; return its application once the history has it."""
    host = cluster.host
    application = host.submit(JobPlan(name, "production", **plan))
    cluster.wait_for(application, "FINISHED")
    url = history(cluster, f"mapreduce/jobs/{job_id(application)}")
    until(host, lambda: host.ask("GET", url).status == 200, "the job in the history")
    return application


def test_the_history_tells_what_a_job_has_cost(cluster: Cluster) -> None:
    """The time of all containers of each kind, in ms; the master's own is not in it."""
    host = cluster.host
    need(host, "history")
    application = ended(cluster, "counted", reduces=2)
    path = f"mapreduce/jobs/{job_id(application)}"
    job = host.ask("GET", history(cluster, path)).json()["job"]
    assert (job["mapsTotal"], job["mapsCompleted"], job["reducesTotal"], job["reducesCompleted"]) == (
        1,
        1,
        2,
        2,
    )
    assert (job["successfulMapAttempts"], job["successfulReduceAttempts"]) == (1, 2)
    told = host.ask("GET", history(cluster, f"{path}/counters")).json()["jobCounters"]
    assert told["id"] == job_id(application)
    groups = {one["counterGroupName"]: one["counter"] for one in told["counterGroup"]}
    own = groups["org.apache.hadoop.mapreduce.JobCounter"]
    totals = {one["name"]: one["totalCounterValue"] for one in own}
    assert (totals["TOTAL_LAUNCHED_MAPS"], totals["TOTAL_LAUNCHED_REDUCES"]) == (1, 2)
    elapsed_ms = job["finishTime"] - job["startTime"]
    assert 0 < totals["MILLIS_MAPS"] <= elapsed_ms
    assert 0 < totals["MILLIS_REDUCES"] <= 2 * elapsed_ms
    for kind in ("MAPS", "REDUCES"):  # by which a container's size is known
        assert totals[f"MB_MILLIS_{kind}"] == host.slot_mib * totals[f"MILLIS_{kind}"]
        assert totals[f"VCORES_MILLIS_{kind}"] == totals[f"MILLIS_{kind}"]


def test_the_history_tells_with_which_settings_a_job_ran(cluster: Cluster) -> None:
    host = cluster.host
    need(host, "history")
    application = ended(cluster, "12", tags="Deadline:1900000000,etl")
    told = host.ask("GET", history(cluster, f"mapreduce/jobs/{job_id(application)}/conf")).json()["conf"]
    settings = {one["name"]: one["value"] for one in told["property"]}
    seen = [settings[name] for name in GUESSED]
    # The history server of 3.5 writes text as what it seems to be; ours reads either.
    assert seen == ([0, 0.05, False, 12] if host.version == "3.5" else ["0", "0.05", "false", "12"])
    assert sorted(settings["mapreduce.job.tags"].lower().split(",")) == ["deadline:1900000000", "etl"]
    missing = host.ask("GET", history(cluster, "mapreduce/jobs/job_1_0001/counters"))
    assert (missing.status, refusal(missing)) == (404, "NotFoundException")


def test_the_history_lists_by_user_and_time_and_a_limit_leaves_the_oldest(cluster: Cluster) -> None:
    host = cluster.host
    need(host, "history")
    first, last = (ended(cluster, name) for name in ("listed-1", "listed-2"))

    def asked(query: str) -> list[str]:
        answer = host.ask("GET", f"{history(cluster, 'mapreduce/jobs')}&{query}")
        return [one["id"] for one in rows(answer.json(), "jobs", "job")]

    job = host.ask("GET", history(cluster, f"mapreduce/jobs/{job_id(last)}")).json()["job"]
    assert asked(f"finishedTimeBegin={job['finishTime']}&user=alice") == [job_id(last)]
    assert asked(f"finishedTimeBegin={job['finishTime'] + 1}") == []
    assert asked("user=nobody-at-all") == []
    every = asked("user=alice")
    assert every.index(job_id(first)) < every.index(job_id(last))
    assert asked("user=alice&limit=1") == every[:1]


def test_the_history_has_each_attempt_of_a_job(cluster: Cluster) -> None:
    """As the master showed them: kinds, states, instants in order, and when a reduce had merged its input."""
    host = cluster.host
    need(host, "history")
    application = ended(cluster, "attempted", reduces=2)
    path = f"mapreduce/jobs/{job_id(application)}/tasks"
    tasks = rows(host.ask("GET", history(cluster, path)).json(), "tasks", "task")
    assert sorted(task["type"] for task in tasks) == ["MAP", "REDUCE", "REDUCE"]
    for task in tasks:
        assert task["state"] == "SUCCEEDED"
        assert 0 < task["startTime"] <= task["finishTime"]
        told = host.ask("GET", history(cluster, f"{path}/{task['id']}/attempts")).json()
        attempts = rows(told, "taskAttempts", "taskAttempt")
        done = next(one for one in attempts if one["id"] == task["successfulAttempt"])
        assert (done["state"], done["type"]) == ("SUCCEEDED", task["type"])
        assert done["assignedContainerId"].startswith("container_")
        if task["type"] == "REDUCE":
            instants = ("startTime", "shuffleFinishTime", "mergeFinishTime", "finishTime")
            spans = [done[name] for name in instants]
            assert spans == sorted(spans)
            assert spans[2] > 0
