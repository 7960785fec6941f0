"""Applications: from new-application to the end, and what may be changed on the way (facts 1.1 to 1.5)."""

from __future__ import annotations

import re

import pytest

from tests.contract.asking import (
    FINAL,
    JSON,
    Cluster,
    assert_not_taken,
    attempt_path,
    no_number,
    refusal,
    rows,
)
from tests.contract.host import JobPlan, until

ORDER = ["NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED"]
NOBODYS = "application_1_0001"


def in_order(seen: list[str], order: list[str]) -> bool:
    """Whether the states were seen in this order, some perhaps missed."""
    return [order.index(one) for one in seen] == sorted(order.index(one) for one in set(seen))


# --- coming and going -------------------------------------------------------------------------


def test_a_new_application_is_only_a_name(cluster: Cluster) -> None:
    answer = cluster.ask("POST", "apps/new-application", {})
    assert (answer.status, answer.kind) == (200, "application/json")
    told = answer.json()
    assert re.fullmatch(r"application_\d+_\d{4,}", told["application-id"])
    assert told["maximum-resource-capability"]["memory"] >= cluster.host.slot_mib
    assert cluster.new_application() != told["application-id"]
    assert cluster.ask("GET", f"apps/{told['application-id']}").status == 404


def test_a_job_goes_its_way_in_order_and_then_nothing_is_held(cluster: Cluster) -> None:
    application = cluster.host.submit(JobPlan("quick", "production", tags="Deadline:17,Rush"))
    seen = cluster.wait_for(application, "FINISHED")
    assert in_order(seen, ORDER), seen
    # FINISHED is said as soon as the AM takes its leave; its container stays until it has gone.
    until(cluster.host, lambda: not cluster.containers(application), "the end of the containers")
    # Between its container's end and the scheduler's forgetting it, YARN tells 0; then -1.
    what = "that nothing is told of its resources"
    until(cluster.host, lambda: cluster.app(application)["allocatedMB"] == -1, what)
    app = cluster.app(application)
    assert (app["finalStatus"], app["progress"], app["trackingUI"]) == ("SUCCEEDED", 100, "History")
    assert (app["name"], app["user"], app["applicationType"]) == ("quick", "alice", "MAPREDUCE")
    assert app["queue"].removeprefix("root.") == "production"
    assert set(app["applicationTags"].split(",")) == {"deadline:17", "rush"}  # YARN writes tags small
    assert 0 < app["startedTime"] <= app["launchTime"] <= app["finishedTime"]
    assert app["elapsedTime"] == app["finishedTime"] - app["startedTime"]
    assert (app["allocatedVCores"], app["runningContainers"]) == (-1, -1)
    assert cluster.get(f"apps/{application}/state")["state"] == "FINISHED"
    assert [one["id"] for one in cluster.attempts(application)] == [1]


def test_submitting_is_accepted_with_its_place_and_a_kill_is_on_its_way_first(cluster: Cluster) -> None:
    application = cluster.new_application()
    plan = JobPlan("short-lived", "research", reduces=1, holds=True)
    answer = cluster.ask("POST", "apps", cluster.host.context(application, plan))
    assert (answer.status, answer.body) == (202, b"")
    assert answer.headers["location"].endswith(f"/ws/v1/cluster/apps/{application}")
    assert cluster.state(application) in ORDER[:5]
    first = cluster.kill(application)
    assert first.status == 202
    assert first.headers["location"].endswith(f"/ws/v1/cluster/apps/{application}/state")
    assert first.json()["state"] in (*ORDER[:5], "FINAL_SAVING", "KILLING", "KILLED")  # often done by then
    assert cluster.wait_for(application, "KILLED")[-1] == "KILLED"
    again = cluster.kill(application)
    assert (again.status, again.json()["state"]) == (200, "KILLED")
    app = cluster.app(application)
    assert (app["finalStatus"], app["state"]) == ("KILLED", "KILLED")
    assert "alice" in app["diagnostics"]
    cluster.end(application)


def test_nothing_runs_in_a_queue_that_is_not_there(cluster: Cluster) -> None:
    application = cluster.new_application()
    answer = cluster.ask("POST", "apps", cluster.host.context(application, JobPlan("never", "nowhere")))
    if answer.status == 202:  # a version may take it first
        assert cluster.wait_for(application, "FAILED")[-1] == "FAILED"
    else:
        assert answer.status == 400


def test_a_submission_without_sense_is_refused(cluster: Cluster) -> None:
    assert cluster.ask("POST", "apps", {"application-name": "x"}).status == 400
    assert cluster.ask("POST", "apps", b"{", JSON).status == 400
    plain = {"Accept": "application/json", "Content-Type": "text/plain"}
    assert_not_taken(cluster, cluster.ask("POST", "apps", b"x", plain))


# --- what is not there, and what makes no sense -----------------------------------------------


@pytest.mark.parametrize(
    ("path", "status"),
    [(f"apps/{NOBODYS}", 404), (f"apps/{NOBODYS}/state", 404), (f"apps/{NOBODYS}/appattempts", 404),
     (f"/proxy/{NOBODYS}/ws/v1/mapreduce/info", 404), ("apps/application_x", 400),
     ("apps?states=SLEEPING", 400), ("apps?finalStatus=PERHAPS", 400), ("apps?limit=0", 400),
     ("apps?deSelects=resourceRequests,nothing", 400)],
)  # fmt: skip
def test_what_is_not_there_or_makes_no_sense(cluster: Cluster, path: str, status: int) -> None:
    answer = cluster.ask("GET", path)
    assert answer.status == status, answer
    if status == 404 and not path.startswith("/"):
        assert refusal(answer) == "NotFoundException"
    elif status == 400:
        assert refusal(answer) in ("BadRequestException", "IllegalArgumentException")


def test_nobody_is_listed_as_an_empty_object(cluster: Cluster) -> None:
    assert cluster.get("apps", user="nobody-at-all") in ({"apps": {}}, {"apps": None})


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [("state", {"state": "FINISHED"}, JSON, 400), ("state", {"state": "SLEEPING"}, JSON, 400),
     ("state", b"{", JSON, 400), ("state", b'{"state":"KILLED"}', {"Content-Type": "text/plain"}, None),
     ("priority", b"{", JSON, 400), ("queue", {"queue": "nowhere"}, JSON, None)],
)  # fmt: skip
def test_changes_that_are_refused(
    waiting: str, cluster: Cluster, path: str, body: object, headers: dict[str, str], status: int | None
) -> None:
    answer = cluster.ask("PUT", f"apps/{waiting}/{path}", body, headers)
    assert answer.status == (status or no_number(cluster)), answer
    assert cluster.state(waiting) not in FINAL


def test_what_is_no_change_is_answered_as_one(waiting: str, cluster: Cluster) -> None:
    told = cluster.ask("PUT", f"apps/{waiting}/state", {"state": "RUNNING"})
    assert (told.status, told.json()) == (200, {"state": "RUNNING"})  # it is so already
    told = cluster.ask("PUT", f"apps/{waiting}/priority", {"priority": "high"})
    assert (told.status, int(told.json()["priority"])) == (200, 0)  # what is no number is 0


def test_nothing_moves_to_a_queue_that_is_not_there(waiting: str, cluster: Cluster) -> None:
    answer = cluster.ask("PUT", f"apps/{waiting}/queue", {"queue": "nowhere"})
    assert refusal(answer, message=cluster.host.version == "3.5") == "UndeclaredThrowableException"
    assert cluster.app(waiting)["queue"].removeprefix("root.") == "production"


# --- an application that is there ------------------------------------------------------------


@pytest.fixture(scope="module")
def waiting(host):
    """An application that runs on and on: of its two reduces one is done, the other holds."""
    cluster = Cluster(host)
    application = host.submit(JobPlan("waiting", "production", reduces=2, holds=True, done=1))
    cluster.wait_for(application, "RUNNING")
    until(host, lambda: settled(cluster, application), "one reduce that is done, and one that holds")
    yield application
    cluster.end(application)


def settled(cluster: Cluster, application: str) -> bool:
    """Whether nothing moves any more: an AM and a reduce in its reduce phase are held."""
    done = [one for one in cluster.tasks(application) if one["successfulAttempt"]]
    running = cluster.running_reduces(application)
    return (len(done), len(running), len(cluster.containers(application))) == (1, 1, 2)


def test_a_priority_is_answered_as_it_holds(waiting: str, cluster: Cluster) -> None:
    path = f"apps/{waiting}/priority"
    told = cluster.ask("PUT", path, {"priority": 8})
    assert told.status == 200
    held = int(told.json()["priority"])
    assert held <= 8
    assert int(cluster.get(path)["priority"]) == held == cluster.app(waiting)["priority"]
    most = int(cluster.ask("PUT", path, {"priority": 1_000_000}).json()["priority"])
    conf = {one["key"]: one["value"] for one in cluster.get("/conf")["properties"]}
    assert most == int(conf["yarn.cluster.max-application-priority"])  # capped without a word
    assert int(cluster.ask("PUT", path, {"priority": 0}).json()["priority"]) == 0


def test_an_application_moves_with_what_it_holds(waiting: str, cluster: Cluster) -> None:
    def held(queue: str) -> int:
        root = cluster.get("scheduler")["scheduler"]["schedulerInfo"]
        (row,) = [one for one in root["queues"]["queue"] if one["queueName"] == queue]
        return int(row["resourcesUsed"]["memory"])

    before = held("research")
    mib = sum(int(one["allocatedMB"]) for one in cluster.containers(waiting))
    told = cluster.ask("PUT", f"apps/{waiting}/queue", {"queue": "research"})
    assert told.status == 200
    assert told.json()["queue"].removeprefix("root.") == "research"
    assert held("research") == before + mib
    assert cluster.app(waiting)["queue"].removeprefix("root.") == "research"
    assert cluster.get(f"apps/{waiting}/queue")["queue"].removeprefix("root.") == "research"
    assert cluster.ask("PUT", f"apps/{waiting}/queue", {"queue": "production"}).status == 200
    assert held("research") == before


def test_what_is_not_wanted_is_left_out(waiting: str, cluster: Cluster) -> None:
    whole = cluster.app(waiting)
    assert {"resourceInfo", "timeouts"} <= set(whole)
    assert "resourceRequests" not in whole  # all that it asked for it has
    fewer = cluster.app(waiting, deSelects="resourceRequests,timeouts,resourceInfo")
    assert not {"resourceInfo", "timeouts"} & set(fewer)
    assert fewer["id"] == waiting


@pytest.mark.parametrize(
    ("query", "found"),
    [({"states": "RUNNING,ACCEPTED"}, True), ({"states": "FINISHED"}, False), ({"user": "alice"}, True),
     ({"user": "bob"}, False), ({"applicationTypes": "MAPREDUCE"}, True),
     ({"applicationTypes": "SPARK"}, False), ({"name": "waiting"}, True),
     ({"finalStatus": "SUCCEEDED"}, False), ({"startedTimeEnd": "1"}, False)],
)  # fmt: skip
def test_the_query_of_apps(waiting: str, cluster: Cluster, query: dict[str, str], found: bool) -> None:
    assert (waiting in {one["id"] for one in cluster.apps(**query)}) is found


def test_attempts_and_containers_of_an_application(waiting: str, cluster: Cluster) -> None:
    (attempt,) = cluster.attempts(waiting)
    name = waiting.replace("application_", "appattempt_", 1) + "_000001"
    assert (attempt["id"], attempt["appAttemptId"]) == (1, name)
    assert attempt["containerId"].endswith("_000001")
    held = cluster.containers(waiting)
    masters = [one for one in held if int(one["priority"]) == 0]
    assert [one["containerId"] for one in masters] == [attempt["containerId"]]
    app = cluster.app(waiting)
    assert app["allocatedMB"] == sum(int(one["allocatedMB"]) for one in held)
    assert app["runningContainers"] == len(held)
    one = cluster.ask("GET", f"apps/{waiting}/appattempts/{name}/containers/{attempt['containerId']}").json()
    one = one.get("container", one)
    assert one["containerId"] == attempt["containerId"]


def test_one_attempt_is_told_without_a_root_or_not_at_all(waiting: str, cluster: Cluster) -> None:
    (attempt,) = cluster.attempts(waiting)
    answer = cluster.ask("GET", f"apps/{waiting}/appattempts/{attempt['appAttemptId']}")
    if cluster.host.version == "3.5":  # 3.5.0 has nobody to write this class: rely on the list
        assert (answer.status, refusal(answer)) == (503, "InternalServerErrorException")
        return
    other = answer.json()
    assert (other["appAttemptId"], other["appAttemptState"]) == (attempt["appAttemptId"], "RUNNING")
    assert other["amContainerId"] == attempt["containerId"]
    assert isinstance(other["startedTime"], str)


def test_containers_have_the_form_of_their_version(waiting: str, cluster: Cluster) -> None:
    """3.4 (Jersey 1) lists them without a root, numbers as text; what 3.5 does must be probed."""
    name = waiting.replace("application_", "appattempt_", 1) + "_000001"
    told = cluster.ask("GET", f"apps/{waiting}/appattempts/{name}/containers").json()
    for one in rows(told, "containers", "container"):
        assert isinstance(one["allocatedMB"], str if cluster.host.version != "3.5" else str | int)
        assert isinstance(one["priority"], str if cluster.host.version != "3.5" else str | int)
    if cluster.host.version != "3.5":
        assert "containers" not in told


def test_a_reduce_that_is_done_cannot_be_killed(waiting: str, cluster: Cluster) -> None:
    attempt = cluster.tasks(waiting)[0]["successfulAttempt"]
    answer = cluster.end_attempt(waiting, attempt)
    assert (answer.status, answer.json()) == (200, {"state": "KILLED"})  # said, and not done
    # The AM takes kills in their order: once a later one has struck, the first would have too.
    (later,) = cluster.running_reduces(waiting).values()
    cluster.end_attempt(waiting, later["id"])
    path = attempt_path(later["id"])
    until(cluster.host, lambda: cluster.told(waiting, f"{path}/state")["state"] == "KILLED", "its end")
    (first,) = cluster.task_attempts(waiting, cluster.tasks(waiting)[0]["id"])
    assert (first["id"], first["state"]) == (attempt, "SUCCEEDED")
    until(cluster.host, lambda: settled(cluster, waiting), "the other reduce again")
