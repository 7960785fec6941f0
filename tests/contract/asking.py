"""Asking: a host's REST in the words of its users. Every path is Hadoop's, every answer is given as it came.

Law: no shape is mended here except the three that facts 1.4 name for every client: a root that may be
missing, a list of one as its element, an empty list as null or an empty object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from tests.contract.host import Answer, Host, until

JSON = {"Accept": "application/json", "Content-Type": "application/json"}
OCTETS = {"Content-Type": "application/octet-stream"}
FINAL = ("FINISHED", "FAILED", "KILLED")


class Cluster:
    """What one user sees and does. ``host`` may be asked directly where it is about the form."""

    def __init__(self, host: Host, user: str = "alice") -> None:
        self.host = host
        self.user = user

    def ask(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] = JSON, /, **query: str
    ) -> Answer:
        """Ask the ResourceManager below /ws/v1/cluster (or at a path that begins with /)."""
        base = self.host.rm + (path if path.startswith("/") else f"/ws/v1/cluster/{path}".rstrip("/"))
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        asked = urlencode({"user.name": self.user, **query})
        return self.host.ask(method, f"{base}{'&' if '?' in base else '?'}{asked}", data, headers)

    def get(self, path: str, **query: str) -> Any:
        """Return the JSON of a GET that must succeed."""
        answer = self.ask("GET", path, **query)
        assert answer.status == 200, (path, answer)
        assert answer.kind == "application/json", (path, answer)
        return answer.json()

    # --- applications -------------------------------------------------------------------------

    def new_application(self) -> str:
        answer = self.ask("POST", "apps/new-application", {})
        assert answer.status == 200, answer
        return str(answer.json()["application-id"])

    def app(self, application: str, **query: str) -> dict[str, Any]:
        row: dict[str, Any] = self.get(f"apps/{application}", **query)["app"]
        return row

    def apps(self, **query: str) -> list[dict[str, Any]]:
        return rows(self.get("apps", **query), "apps", "app")

    def state(self, application: str) -> str:
        return str(self.app(application, deSelects="resourceRequests")["state"])

    def wait_for(self, application: str, *states: str) -> list[str]:
        """Wait until an application is in one of the states; return all that were seen, in order."""
        seen: list[str] = []

        def look() -> bool:
            state = self.state(application)
            if not seen or seen[-1] != state:
                seen.append(state)
            assert state in states or state not in FINAL, (application, self.app(application))
            return state in states

        until(self.host, look, f"{application} in {states}")
        return seen

    def kill(self, application: str) -> Answer:
        return self.ask("PUT", f"apps/{application}/state", {"state": "KILLED"})

    def end(self, application: str) -> None:
        """Kill an application, and wait until nothing of it is left."""
        self.kill(application)
        self.wait_for(application, *FINAL)
        until(self.host, lambda: not self.containers(application), f"the end of {application}'s containers")

    # --- attempts and containers --------------------------------------------------------------

    def attempts(self, application: str) -> list[dict[str, Any]]:
        told = rows(self.get(f"apps/{application}/appattempts"), "appAttempts", "appAttempt")
        return sorted(told, key=lambda one: int(one["id"]))

    def containers(self, application: str) -> list[dict[str, Any]]:
        """Return the live containers of the application's last attempt."""
        attempts = self.attempts(application)
        if not attempts:
            return []
        name = attempts[-1].get("appAttemptId") or attempt_id(application, int(attempts[-1]["id"]))
        answer = self.ask("GET", f"apps/{application}/appattempts/{name}/containers")
        assert answer.status == 200, answer
        told = rows(answer.json() if answer.body else None, "containers", "container")
        return [one for one in told if one.get("containerState") != "COMPLETE"]

    # --- the AM -------------------------------------------------------------------------------

    def master(self, application: str, path: str = "", method: str = "GET", body: object = None) -> Answer:
        """Ask the AM of an application by the proxy, below its only job."""
        root = f"/proxy/{application}/ws/v1/mapreduce/jobs/{job_id(application)}"
        return self.ask(method, f"{root}/{path}".rstrip("/"), body)

    def told(self, application: str, path: str = "") -> Any:
        """Return what the AM answers to a GET that must succeed."""
        answer = self.master(application, path)
        assert answer.status == 200, (path, answer)
        assert answer.kind == "application/json", (path, answer)
        return answer.json()

    def tasks(self, application: str, kind: str = "r") -> list[dict[str, Any]]:
        return rows(self.told(application, f"tasks?type={kind}"), "tasks", "task")

    def task_attempts(self, application: str, task: str) -> list[dict[str, Any]]:
        told = rows(self.told(application, f"tasks/{task}/attempts"), "taskAttempts", "taskAttempt")
        return sorted(told, key=lambda one: int(str(one["id"]).rpartition("_")[2]))

    def running_reduces(self, application: str) -> dict[str, dict[str, Any]]:
        """Return task -> its running attempt, for the reduces that are in their reduce phase."""
        found = {}
        for task in self.tasks(application):
            if task["state"] == "RUNNING":
                last = self.task_attempts(application, task["id"])[-1]
                if last["state"] == "RUNNING" and last.get("mergeFinishTime", 0) > 0:
                    found[str(task["id"])] = last
        return found

    def end_attempt(self, application: str, attempt: str) -> Answer:
        """Have the AM kill a task's attempt."""
        return self.master(application, f"{attempt_path(attempt)}/state", "PUT", {"state": "KILLED"})

    # --- HDFS ---------------------------------------------------------------------------------

    def hdfs(self, method: str, path: str, op: str, body: bytes = b"", /, **query: str) -> Answer:
        asked = urlencode({"op": op, "user.name": self.user, **query})
        return self.host.ask(method, f"{self.host.hdfs}{quote(path)}?{asked}", body)

    def write(self, path: str, data: bytes, **query: str) -> Answer:
        """Write a file in the two steps of WebHDFS; return the last answer."""
        first = self.hdfs("PUT", path, "CREATE", **query)
        if first.status != 307:
            return first
        return self.host.ask("PUT", first.headers["location"], data, OCTETS)

    def read(self, path: str, **query: str) -> Answer:
        """Read a file in the two steps of WebHDFS; return the last answer."""
        first = self.hdfs("GET", path, "OPEN", **query)
        return self.host.ask("GET", first.headers["location"]) if first.status == 307 else first


def rows(told: Any, root: str, item: str) -> list[dict[str, Any]]:
    """Return the rows of a list in any form that a client must take (facts 1.4)."""
    inner = (told or {}).get(root, told) or {}
    found = inner.get(item) if isinstance(inner, dict) else None
    return found if isinstance(found, list) else [found] if found else []


def job_id(application: str) -> str:
    return application.replace("application_", "job_", 1)


def attempt_id(application: str, number: int) -> str:
    return f"{application.replace('application_', 'appattempt_', 1)}_{number:06d}"


def attempt_path(attempt: str) -> str:
    """Return the path of a task's attempt below its job."""
    task = attempt.replace("attempt_", "task_", 1).rpartition("_")[0]
    return f"tasks/{task}/attempts/{attempt}"


def refusal(answer: Answer, message: bool = True) -> str:
    """Return the exception of a RemoteException, whose fields must agree; some come without a message."""
    said = answer.json()["RemoteException"]
    assert bool(said.get("message")) is message, answer
    assert said["javaClassName"].endswith(said["exception"]), answer
    return str(said["exception"])


def no_number(cluster: Cluster) -> int:
    """Return the status of a rejection for which Hadoop has no number of its own."""
    return 500 if cluster.host.version == "3.3" else 503


def assert_not_taken(cluster: Cluster, answer: Answer, kind: str = "NotSupportedException") -> None:
    """A wrong method or media type is rejected as what Hadoop has no number for."""
    assert answer.status == no_number(cluster), answer
    assert refusal(answer, message=cluster.host.version == "3.5") == (
        kind if cluster.host.version == "3.5" else "WebApplicationException"
    )
