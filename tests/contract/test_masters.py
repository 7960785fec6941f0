"""Masters: the MapReduce AM's REST by the proxy, attempts that are killed or fail, and where their room goes.

The story of one research job that holds the whole cluster (facts 2, 2.1, 2.2, 4.3, 5, 11). Tests stand in the
story's order, and each leaves the job as it was: every reduce in its reduce phase, no room left.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.asking import Cluster, attempt_path, job_id, no_number, refusal, rows
from tests.contract.host import Host, JobPlan, until


def room_mib(cluster: Cluster) -> int:
    """Return what all nodes hold that beat."""
    nodes = rows(cluster.get("nodes", states="RUNNING"), "nodes", "node")
    return sum(one["totalResource"]["memory"] for one in nodes if one["id"] != cluster.host.silent_node)


@pytest.fixture(scope="module")
def victim(host: Host) -> Iterator[str]:
    """A job that holds everything: an AM, and a reduce in each other slot."""
    cluster = Cluster(host)
    reduces = room_mib(cluster) // host.slot_mib - 1
    application = host.submit(JobPlan("victim", "research", reduces=reduces, holds=True))
    cluster.wait_for(application, "RUNNING")
    full(cluster, application, reduces)
    yield application
    cluster.end(application)


def full(cluster: Cluster, application: str, reduces: int) -> None:
    """Wait until every reduce runs."""
    look = "all reduces in their reduce phase"
    until(cluster.host, lambda: len(cluster.running_reduces(application)) == reduces, look)


def job(cluster: Cluster, application: str) -> dict[str, Any]:
    """Return the AM's row of its job."""
    row: dict[str, Any] = cluster.told(application)["job"]
    return row


def number(attempt: str) -> int:
    return int(attempt.rpartition("_")[2])


def attempt_state(cluster: Cluster, application: str, attempt: str) -> str:
    """Return an attempt's state, from the resource that is only that."""
    return str(cluster.told(application, f"{attempt_path(attempt)}/state")["state"])


def signal(cluster: Cluster, container: str, name: str) -> int:
    return cluster.ask("POST", f"containers/{container}/signal/{name}", b"").status


def next_attempt(cluster: Cluster, application: str, before: str) -> str:
    """Wait until the task of an attempt that ended runs again; return the new attempt."""
    task = before.replace("attempt_", "task_", 1).rpartition("_")[0]

    def look() -> str:
        last = cluster.running_reduces(application).get(task, {"id": before})["id"]
        return "" if last == before else str(last)

    return until(cluster.host, look, f"a new attempt at {task}")


# --- what it tells ----------------------------------------------------------------------------


def test_the_job_and_its_master(victim: str, cluster: Cluster) -> None:
    info = cluster.get(f"/proxy/{victim}/ws/v1/mapreduce/info")["info"]
    assert (info["appId"], info["user"], info["name"]) == (victim, "alice", "victim")
    told = job(cluster, victim)
    assert (told["id"], told["state"]) == (job_id(victim), "RUNNING")
    # From 3.4 on the whole path, whatever the job was submitted to.
    assert told["queue"] == ("research" if cluster.host.version == "3.3" else "root.research")
    reduces = len(cluster.tasks(victim))
    assert (told["mapsTotal"], told["mapsCompleted"], told["reducesTotal"]) == (1, 1, reduces)
    assert (told["reducesRunning"], told["reducesPending"], told["reducesCompleted"]) == (reduces, 0, 0)
    assert told["uberized"] is False
    assert told["startTime"] > 0
    listed = rows(cluster.get(f"/proxy/{victim}/ws/v1/mapreduce/jobs"), "jobs", "job")
    assert [one["id"] for one in listed] == [job_id(victim)]


def test_tasks_by_kind(victim: str, cluster: Cluster) -> None:
    (done,) = cluster.tasks(victim, "m")
    assert (done["state"], done["type"], done["progress"]) == ("SUCCEEDED", "MAP", 100)
    assert done["id"] == victim.replace("application_", "task_", 1) + "_m_000000"
    assert done["successfulAttempt"].startswith("attempt_")
    reduces = cluster.tasks(victim)
    assert {(one["state"], one["type"]) for one in reduces} == {("RUNNING", "REDUCE")}
    assert cluster.master(victim, "tasks?type=x").status == 400
    one = cluster.told(victim, f"tasks/{reduces[0]['id']}")["task"]
    assert (one["id"], one["successfulAttempt"]) == (reduces[0]["id"], "")


def test_a_running_reduce_tells_its_phases_and_hides_its_age(victim: str, cluster: Cluster) -> None:
    held = {one["containerId"]: one for one in cluster.containers(victim)}
    for one in cluster.running_reduces(victim).values():
        assert (one["type"], one["finishTime"]) == ("REDUCE", 0)
        assert 0 < one["startTime"] <= one["shuffleFinishTime"] <= one["mergeFinishTime"]
        assert (one["elapsedTime"], one["elapsedReduceTime"]) == (0, 0)  # Hadoop says 0 while it runs
        assert 0 <= one["progress"] <= 100  # told every few seconds: younger than the phases may be
        container = held[one["assignedContainerId"]]
        assert int(container["priority"]) == 10
        assert one["nodeHttpAddress"] in container["nodeHttpAddress"]
        whole = cluster.told(victim, attempt_path(one["id"]))["taskAttempt"]
        assert (whole["id"], whole["assignedContainerId"]) == (one["id"], one["assignedContainerId"])


def test_configuration_and_counters(victim: str, cluster: Cluster) -> None:
    conf = cluster.told(victim, "conf")["conf"]
    told = {one["name"]: one["value"] for one in conf["property"]}
    assert told["mapreduce.job.queuename"] == "research"
    assert {"stream.reduce.streamprocessor", "mapreduce.reduce.maxattempts", "mapreduce.task.timeout"} <= set(
        told
    )
    counters = cluster.told(victim, "counters")["jobCounters"]
    assert counters["id"] == job_id(victim)
    assert isinstance(counters["counterGroup"], list)
    task, attempt = next(iter(cluster.running_reduces(victim).items()))
    assert cluster.told(victim, f"tasks/{task}/counters")["jobTaskCounters"]["id"] == task
    own = cluster.told(victim, f"{attempt_path(attempt['id'])}/counters")["jobTaskAttemptCounters"]
    assert own["id"] == attempt["id"]


@pytest.mark.parametrize(
    "path", ["tasks/{task}_9", "tasks/{task}/attempts/{attempt}9", "tasks/{task}/attempts/x/state"]
)
def test_what_a_master_does_not_know(victim: str, cluster: Cluster, path: str) -> None:
    task, attempt = next(iter(cluster.running_reduces(victim).items()))
    assert cluster.master(victim, path.format(task=task, attempt=attempt["id"])).status in (400, 404)
    other = job_id("application_1_0001")
    answer = cluster.ask("GET", f"/proxy/{victim}/ws/v1/mapreduce/jobs/{other}")
    assert (answer.status, refusal(answer)) == (404, "NotFoundException")


def test_a_state_can_only_be_set_to_killed(victim: str, cluster: Cluster) -> None:
    attempt = next(iter(cluster.running_reduces(victim).values()))["id"]
    path = f"{attempt_path(attempt)}/state"
    assert cluster.master(victim, path, "PUT", {"state": "SUCCEEDED"}).status == 400
    same = cluster.master(victim, path, "PUT", {"state": "RUNNING"})
    assert (same.status, same.json()) == (200, {"state": "RUNNING"})  # it is so already
    url = f"/proxy/{victim}/ws/v1/mapreduce/jobs/{job_id(victim)}/{path}"
    plain = {"Accept": "application/json", "Content-Type": "text/plain"}
    assert cluster.ask("PUT", url, b'{"state":"KILLED"}', plain).status == no_number(cluster)
    assert attempt_state(cluster, victim, attempt) == "RUNNING"


# --- room that is given up -------------------------------------------------------------------


def test_a_killed_reduce_makes_room_for_the_queue_that_is_short_of_its_share(
    victim: str, cluster: Cluster
) -> None:
    """The heart of it: the AM's kill frees a container, and the scheduler gives it to production."""
    host = cluster.host
    before = cluster.running_reduces(victim)
    attempt = min(one["id"] for one in before.values())
    container = next(one["assignedContainerId"] for one in before.values() if one["id"] == attempt)
    hurried = host.submit(JobPlan("hurried", "production", reduces=1, holds=True))
    try:
        until(host, lambda: waits(cluster, hurried), "production's demand")
        assert "resourceRequests" not in cluster.app(hurried, deSelects="resourceRequests")
        answer = cluster.end_attempt(victim, attempt)
        assert (answer.status, answer.json()) == (200, {"state": "KILLED"})
        until(host, lambda: attempt_state(cluster, victim, attempt) == "KILLED", "the end of the attempt")
        until(host, lambda: cluster.containers(hurried), "production's AM")
        (master,) = cluster.containers(hurried)
        assert int(master["priority"]) == 0
        held = cluster.containers(victim)
        assert container not in {one["containerId"] for one in held}
        assert len(held) == len(before)  # the AM, and one reduce fewer
        cluster.wait_for(hurried, "RUNNING")
        until(host, lambda: pending(cluster, victim) == host.slot_mib, "the re-request, which waits")
        told = job(cluster, victim)
        assert (told["state"], told["killedReduceAttempts"], told["failedReduceAttempts"]) == (
            "RUNNING",
            1,
            0,
        )
    finally:
        cluster.end(hurried)
    again = next_attempt(cluster, victim, attempt)
    assert number(again) == number(attempt) + 1
    full(cluster, victim, len(before))
    assert [one["state"] for one in attempts_of(cluster, victim, attempt)] == ["KILLED", "RUNNING"]


def waits(cluster: Cluster, application: str) -> bool:
    """Whether an application is seen to wait for its AM: by a request of priority 0, and no container."""
    app = cluster.app(application)
    assert app["state"] in ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"), app
    assert cluster.containers(application) == []
    asked = {one["priority"]: one["numContainers"] for one in star(app)}
    leaf = queue(cluster, "production")
    return app["state"] == "ACCEPTED" and asked == {0: 1} and leaf["pendingContainers"] == 1


def star(app: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that count: those for any place (the others repeat them) that want something."""
    asked = [one for one in app.get("resourceRequests", []) if one["resourceName"] == "*"]
    return [one | {"priority": level(one)} for one in asked if one["numContainers"]]


def level(request: dict[str, Any]) -> int:
    """Return a request's priority, which some versions wrap."""
    told = request["priority"]
    return int(told["priority"] if isinstance(told, dict) else told)


def queue(cluster: Cluster, name: str) -> dict[str, Any]:
    root = cluster.get("scheduler")["scheduler"]["schedulerInfo"]
    found: dict[str, Any] = next(one for one in root["queues"]["queue"] if one["queueName"] == name)
    return found


def pending(cluster: Cluster, application: str) -> int:
    """Return what an application waits for (MiB), told in two ways that agree; -1 while they do not."""
    app = cluster.app(application)
    told = app["resourceInfo"]["resourceUsagesByPartition"][0]["pending"]["memory"]
    asked = sum(one["numContainers"] * one["capability"]["memory"] for one in star(app))
    return int(told) if told == asked else -1


def attempts_of(cluster: Cluster, application: str, attempt: str) -> list[dict[str, Any]]:
    return cluster.task_attempts(application, attempt.replace("attempt_", "task_", 1).rpartition("_")[0])


def test_an_application_that_waits_has_no_master_to_ask(victim: str, cluster: Cluster) -> None:
    waiting = cluster.host.submit(JobPlan("unheard", "production", holds=True))
    try:
        answer = cluster.ask("GET", f"/proxy/{waiting}/ws/v1/mapreduce/info")
        assert answer.status == 302
        assert answer.headers["location"].startswith("http")
        app = cluster.app(waiting)
        assert (app["trackingUI"], app["progress"]) == ("UNASSIGNED", 0)
        assert app.get("allocatedMB", -1) in (-1, 0)
        assert app.get("runningContainers", -1) in (-1, 0)
        if "resourceInfo" in app:  # 3.4.2 leaves it out at first
            assert (
                app["resourceInfo"]["resourceUsagesByPartition"][0]["pending"]["memory"]
                >= cluster.host.slot_mib
            )
    finally:
        cluster.end(waiting)
    gone = cluster.ask("GET", f"/proxy/{waiting}/ws/v1/mapreduce/info")
    assert gone.status == 302


def test_a_thread_dump_ends_nothing_and_a_forceful_end_is_a_failure(victim: str, cluster: Cluster) -> None:
    running = sorted(cluster.running_reduces(victim).values(), key=lambda one: str(one["nodeHttpAddress"]))
    asked, struck = running[:2]
    assert asked["nodeHttpAddress"] == struck["nodeHttpAddress"]
    failed = job(cluster, victim)["failedReduceAttempts"]
    assert signal(cluster, asked["assignedContainerId"], "OUTPUT_THREAD_DUMP") == 200
    assert (
        signal(cluster, struck["assignedContainerId"], "FORCEFUL_SHUTDOWN") == 200
    )  # after it, by the same node
    again = next_attempt(cluster, victim, struck["id"])
    assert number(again) == number(struck["id"]) + 1
    assert attempt_state(cluster, victim, struck["id"]) == "FAILED"
    assert attempt_state(cluster, victim, asked["id"]) == "RUNNING"
    assert job(cluster, victim)["failedReduceAttempts"] == failed + 1


def test_the_success_of_a_signal_is_no_json(victim: str, cluster: Cluster) -> None:
    container = next(iter(cluster.running_reduces(victim).values()))["assignedContainerId"]
    answer = cluster.ask("POST", f"containers/{container}/signal/OUTPUT_THREAD_DUMP", b"")
    assert answer.status == 200
    assert answer.body == (b"signal success" if cluster.host.version == "3.5" else b"")


def test_signals_that_reach_nobody(victim: str, cluster: Cluster) -> None:
    stranger = victim.replace("application_", "container_", 1) + "_01_999999"
    answer = cluster.ask("POST", f"containers/{stranger}/signal/OUTPUT_THREAD_DUMP", b"")
    assert answer.status == 500
    assert stranger in answer.body.decode()
    container = cluster.containers(victim)[0]["containerId"]
    assert signal(cluster, container, "SING") == 400


def test_the_attempts_of_a_second_master_are_numbered_from_1000(victim: str, cluster: Cluster) -> None:
    """Stands last: it changes every attempt of the job."""
    reduces = len(cluster.tasks(victim))
    (first,) = cluster.attempts(victim)
    assert signal(cluster, first["containerId"], "FORCEFUL_SHUTDOWN") == 200
    until(cluster.host, lambda: len(cluster.attempts(victim)) == 2, "a second attempt of the application")
    cluster.wait_for(victim, "RUNNING")
    until(cluster.host, lambda: cluster.master(victim).status == 200, "the second master")
    full(cluster, victim, reduces)
    assert {number(one["id"]) for one in cluster.running_reduces(victim).values()} == {1000}
    (done,) = cluster.tasks(victim, "m")
    assert number(done["successfulAttempt"]) == 0  # what the first had done stands
