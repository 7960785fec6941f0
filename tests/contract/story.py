"""The story whose answers are recorded: one job runs, is asked everything, loses an attempt, and ends.

Law: it asks by ``Host`` only, so that a real cluster and an emulated one tell the same story, and each answer
has a name. What a client of the cluster never reads is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.contract.asking import Cluster, attempt_id, attempt_path, job_id
from tests.contract.host import Answer, Host, JobPlan, until

Told = tuple[str, str, str, Answer]
"""Name, method, path, answer."""

NOBODYS = "application_1_0001"


class Teller:
    """Asks, and keeps every answer by its name."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.cluster = Cluster(host)
        self.told: list[Told] = []

    def rm(self, name: str, path: str, method: str = "GET", body: object = None, /, **query: str) -> Answer:
        return self._keep(name, method, path, self.cluster.ask(method, path, body, **query))

    def master(
        self, name: str, application: str, path: str = "", method: str = "GET", body: object = None
    ) -> Answer:
        """Ask the AM, below its job."""
        return self._keep(name, method, path, self.cluster.master(application, path, method, body))

    def hdfs(self, name: str, method: str, path: str, op: str, **query: str) -> Answer:
        return self._keep(name, method, f"{path}?op={op}", self.cluster.hdfs(method, path, op, **query))

    def history(self, name: str, path: str) -> Answer:
        url = f"{self.host.history}/ws/v1/history/{path}?user.name={self.cluster.user}"
        return self._keep(name, "GET", path, self.host.ask("GET", url))

    def _keep(self, name: str, method: str, path: str, answer: Answer) -> Answer:
        self.told.append((name, method, path, answer))
        return answer


def tell(host: Host) -> list[Told]:
    """Return every answer of the story, in its order."""
    teller = Teller(host)
    _cluster(teller)
    _hdfs(teller)
    application = _submitted(teller)
    _application(teller, application)
    _master(teller, application)
    _changes(teller, application)
    _ends(teller, application)
    return teller.told


def _cluster(to: Teller) -> None:
    for name in ("info", "userinfo", "metrics", "scheduler-overview", "scheduler-conf"):
        to.rm(name, name)
    to.rm("conf", "/conf")
    to.rm("apps-none", "apps", user="nobody-at-all")
    to.rm("nodes", "nodes", states="RUNNING")
    node = min(one["id"] for one in to.cluster.get("nodes", states="RUNNING")["nodes"]["node"])
    to.rm("node", f"nodes/{node}")
    to.rm("scheduler-idle", "scheduler")
    to.rm("new-application", "apps/new-application", "POST", {})
    to.rm("no-application", f"apps/{NOBODYS}")
    to.rm("no-application-id", "apps/application_x")
    to.rm("no-node", "nodes/nowhere:1")
    to.rm("no-state", "apps?states=SLEEPING")
    to.rm("no-master", f"/proxy/{NOBODYS}/ws/v1/mapreduce/info")


def _hdfs(to: Teller) -> None:
    cluster, folder = to.cluster, "/contract/story"
    above = Cluster(to.host, to.host.superuser)
    above.hdfs("PUT", "/contract", "MKDIRS", permission="1777")
    cluster.hdfs("DELETE", folder, "DELETE", recursive="true")
    to.hdfs("mkdirs", "PUT", folder, "MKDIRS", permission="700")
    to.hdfs("list-none", "GET", folder, "LISTSTATUS")
    assert cluster.write(f"{folder}/a", b"hello").status == 201
    assert cluster.write(f"{folder}/b", b"there").status == 201
    to.hdfs("place", "PUT", f"{folder}/c", "CREATE", noredirect="true")
    to.hdfs("status", "GET", f"{folder}/a", "GETFILESTATUS")
    to.hdfs("list", "GET", folder, "LISTSTATUS")
    to.hdfs("rename-onto", "PUT", f"{folder}/a", "RENAME", destination=f"{folder}/b")
    to.hdfs("delete-full", "DELETE", folder, "DELETE")
    to.hdfs("no-file", "GET", f"{folder}/nothing", "GETFILESTATUS")
    bob = Cluster(to.host, "bob").hdfs("GET", folder, "LISTSTATUS")
    to.told.append(("no-right", "GET", f"{folder}?op=LISTSTATUS", bob))
    to.hdfs("no-operation", "GET", folder, "NOTHING")


def _submitted(to: Teller) -> str:
    """Submit the job: of its two reduces one is done, the other goes on."""
    host, cluster = to.host, to.cluster
    application = host.submit(JobPlan("story", "research", reduces=2, holds=True, done=1))
    cluster.wait_for(application, "RUNNING")

    def settled() -> bool:
        done = [one for one in cluster.tasks(application) if one["successfulAttempt"]]
        held = len(cluster.containers(application))
        return (len(done), len(cluster.running_reduces(application)), held) == (1, 1, 2)

    until(host, settled, "one reduce that is done, and one that holds")
    return application


def _application(to: Teller, application: str) -> None:
    attempt = attempt_id(application, 1)
    to.rm("scheduler", "scheduler")
    to.rm("apps", "apps", name="story", states="RUNNING")
    to.rm("app", f"apps/{application}")
    for name in ("state", "priority", "queue"):
        to.rm(name, f"apps/{application}/{name}")
    to.rm("appattempts", f"apps/{application}/appattempts")
    to.rm("appattempt", f"apps/{application}/appattempts/{attempt}")
    to.rm("containers", f"apps/{application}/appattempts/{attempt}/containers")
    (master,) = [one for one in to.cluster.containers(application) if int(one["priority"]) == 0]
    to.rm("container", f"apps/{application}/appattempts/{attempt}/containers/{master['containerId']}")


def _master(to: Teller, application: str) -> None:
    to.rm("am-info", f"/proxy/{application}/ws/v1/mapreduce/info")
    to.rm("am-jobs", f"/proxy/{application}/ws/v1/mapreduce/jobs")
    to.rm("am-no-job", f"/proxy/{application}/ws/v1/mapreduce/jobs/{job_id(NOBODYS)}")
    to.master("am-job", application)
    for name in ("conf", "counters", "jobattempts"):
        to.master(f"am-job-{name}", application, name)
    ((task, running),) = to.cluster.running_reduces(application).items()
    attempt = attempt_path(running["id"])
    to.master("am-tasks", application, "tasks?type=r")
    to.master("am-task", application, f"tasks/{task}")
    to.master("am-task-counters", application, f"tasks/{task}/counters")
    to.master("am-attempts", application, f"tasks/{task}/attempts")
    to.master("am-attempt", application, attempt)
    to.master("am-attempt-state", application, f"{attempt}/state")
    to.master("am-attempt-counters", application, f"{attempt}/counters")
    (mapped,) = to.cluster.tasks(application, "m")
    to.master("am-map-attempts", application, f"tasks/{mapped['id']}/attempts")
    to.master("am-no-task", application, f"tasks/{task}_9")
    to.master("am-no-attempt", application, f"{attempt}9")
    to.master("am-no-kind", application, "tasks?type=x")


def _changes(to: Teller, application: str) -> None:
    to.rm("put-priority", f"apps/{application}/priority", "PUT", {"priority": 1})
    to.rm("no-queue", f"apps/{application}/queue", "PUT", {"queue": "nowhere"})
    to.rm("put-queue", f"apps/{application}/queue", "PUT", {"queue": "research"})
    (running,) = to.cluster.running_reduces(application).values()
    container, path = running["assignedContainerId"], f"{attempt_path(running['id'])}/state"
    to.rm("signal", f"containers/{container}/signal/OUTPUT_THREAD_DUMP", "POST", b"")
    to.rm("no-signal", f"containers/{container}/signal/SING", "POST", b"")
    stranger = application.replace("application_", "container_", 1) + "_01_999999"
    to.rm("no-container", f"containers/{stranger}/signal/OUTPUT_THREAD_DUMP", "POST", b"")
    to.master("am-no-kill", application, path, "PUT", {"state": "SUCCEEDED"})
    to.master("am-kill", application, path, "PUT", {"state": "KILLED"})
    told = to.cluster.told
    until(to.host, lambda: told(application, path)["state"] == "KILLED", "the end of the attempt")
    to.master("am-killed", application, attempt_path(running["id"]))


def _ends(to: Teller, application: str) -> None:
    to.rm("no-state-to-put", f"apps/{application}/state", "PUT", {"state": "SLEEPING"})
    to.rm("kill", f"apps/{application}/state", "PUT", {"state": "KILLED"})
    to.cluster.end(application)
    what = "that nothing is told of its containers"
    until(to.host, lambda: to.cluster.app(application)["allocatedMB"] == -1, what)
    to.rm("kill-again", f"apps/{application}/state", "PUT", {"state": "KILLED"})
    to.rm("app-killed", f"apps/{application}")
    done = to.host.submit(JobPlan("quick", "production"))
    to.cluster.wait_for(done, "FINISHED")
    until(to.host, lambda: not to.cluster.containers(done), "the end of the containers")
    to.rm("app-done", f"apps/{done}")
    to.history("history-info", "info")
    url = f"{to.host.history}/ws/v1/history/mapreduce/jobs/{job_id(done)}"
    until(to.host, lambda: to.host.ask("GET", url).status == 200, "the job in the history")
    to.history("history-job", f"mapreduce/jobs/{job_id(done)}")
    to.history("history-jobs", "mapreduce/jobs")
    to.history("history-no-job", f"mapreduce/jobs/{job_id(NOBODYS)}")


def names(told: list[Told]) -> Iterator[str]:
    return (name for name, _, _, _ in told)
