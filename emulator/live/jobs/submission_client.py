"""Submit by the ResourceManager's REST (new-application, then POST /apps) and wait, for Hadoop as well.

What cannot be reached is Unreachable with the URL, what is refused BadInput with YARN's message.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlsplit

from emulator.live.wire.http_client import Address, exchange
from emulator.live.wire.submitted_job import ENTRY, ModelledJob, StreamingJob, SubmittedJob, write_job
from yarnctl.errors import BadInput, Unreachable
from yarnctl.units import Resources

TIMEOUT_S = 30.0
LARGEST_ANSWER_BYTES = 64 << 20
CHECKPOINTS, REQUESTS, REQUESTS_OWNER = "/yarnctl/checkpoints", "/yarnctl/requests", "yarnctl"
FINAL_STATES = ("FINISHED", "FAILED", "KILLED")


class Client:
    """One ResourceManager, asked as ``user``. The constructor sends nothing."""

    def __init__(self, rm: str, user: str) -> None:
        parts = urlsplit(rm)
        if parts.scheme != "http" or not parts.hostname:
            raise BadInput(f"--rm {rm}", "is not an http address", "use http://HOST:PORT")
        self.url = rm.rstrip("/")
        self.user = user

    def _ask(self, method: str, url: str, body: object = None) -> tuple[int, bytes]:
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"}
        if data:
            headers["Content-Type"] = "application/json"
        parts = urlsplit(url)
        target = f"{parts.path or '/'}?{parts.query}"
        asking = exchange(
            Address(f"http://{parts.netloc}"), method, target, headers, data, LARGEST_ANSWER_BYTES
        )
        try:
            status, _, content = asyncio.run(asyncio.wait_for(asking, TIMEOUT_S))
        except (OSError, ValueError) as error:
            why = str(error) or f"no answer within {TIMEOUT_S:g} s"
            raise Unreachable(f"{url}: {why}; check that yarn-emulator serve runs there") from None
        return status, content

    def _json(self, path: str, method: str = "GET", body: object = None) -> dict[str, Any]:
        url = f"{self.url}{path}{'&' if '?' in path else '?'}user.name={quote(self.user)}"
        status, data = self._ask(method, url, body)
        try:
            found = json.loads(data) if data.strip() else {}
        except ValueError:
            found = None
        if status >= 500 or not isinstance(found, dict):
            raise Unreachable(
                f"{self.url}{path}: status {status} and no JSON; check that it is a ResourceManager"
            )
        if status >= 400:
            said = found.get("RemoteException") or {}
            raise BadInput(f"{self.url}{path}", str(said.get("message") or f"status {status}"))
        return found

    def setting(self, name: str) -> str:
        """Return one key of the cluster's configuration, "" if it has none."""
        rows = self._json("/conf").get("properties") or []
        return next((str(row.get("value", "")) for row in rows if row.get("key") == name), "")

    def webhdfs(self) -> str:
        """Return HOST:PORT of the cluster's WebHDFS."""
        found = self.setting("dfs.namenode.http-address")
        if not found:
            raise BadInput(
                "--rm", "its /conf has no dfs.namenode.http-address", "start serve or rm with WebHDFS"
            )
        return found

    def make_checkpoint_folders(self, webhdfs: str, owner: str = REQUESTS_OWNER) -> None:
        """Make the folder of checkpoints (mode 1777) and the one above it as ``owner``, if they are missing.

        ``owner`` is the daemon's user: any other owner could remove the checkpoints of all users.
        """
        for path, mode in ((CHECKPOINTS.rpartition("/")[0], 755), (CHECKPOINTS, 1777)):
            url = f"http://{webhdfs}/webhdfs/v1{path}"
            status, _ = self._ask("GET", f"{url}?op=GETFILESTATUS&user.name={quote(self.user)}")
            if status != 404:
                continue
            status, data = self._ask("PUT", f"{url}?op=MKDIRS&permission={mode}&user.name={quote(owner)}")
            if status != 200:
                raise BadInput(f"folder {path}", f"status {status}: {data[:200].decode(errors='replace')}")

    def submit(
        self,
        job: SubmittedJob,
        queue: str,
        tags: tuple[str, ...] = (),
        priority: int = 0,
        kind: str = "MAPREDUCE",
    ) -> str:
        """Submit a job; return its application's id. ``kind`` is its application type."""
        name = str(self._json("/ws/v1/cluster/apps/new-application", "POST", {}).get("application-id", ""))
        if not name:
            raise Unreachable(f"{self.url}: new-application returned no id")
        size = am_size(job)
        context = {
            "application-id": name,
            "application-name": job.name if isinstance(job, StreamingJob) else job.job.name,
            "application-type": kind,
            "queue": queue,
            "priority": priority,
            "max-app-attempts": 2,
            "resource": {"memory": size.memory_mib, "vCores": size.vcores},
            "am-container-spec": {"environment": {"entry": [{"key": ENTRY, "value": write_job(job)}]}},
        }
        own = [tag.strip() for tag in job.settings.get("mapreduce.job.tags", "").split(",") if tag.strip()]
        if tags or own:
            context["application-tags"] = ",".join([*own, *tags])
        self._json("/ws/v1/cluster/apps", "POST", context)
        return name

    def application(self, name: str) -> dict[str, Any]:
        """Return an application's row."""
        found = self._json(f"/ws/v1/cluster/apps/{name}")
        row = found.get("app", found)
        return row if isinstance(row, dict) else {}

    def rows(self, path: str, outer: str, inner: str) -> list[dict[str, Any]]:
        """Return the rows of a list that the cluster answers at a path."""
        rows = (self._json(path).get(outer) or {}).get(inner) or []
        return [row for row in rows if isinstance(row, dict)]

    def applications(self) -> list[dict[str, Any]]:
        """Return the rows of all applications that the ResourceManager still lists."""
        return self.rows("/ws/v1/cluster/apps", "apps", "app")

    def wait(self, name: str, every_s: float, show: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Poll until the application is over; return its last row.

        A ResourceManager that does not answer for a while is waited for, a minute at most.
        """
        silent_since_s: float | None = None
        while True:
            try:
                row = self.application(name)
                silent_since_s = None
            except Unreachable:
                silent_since_s = silent_since_s or time.monotonic()
                if time.monotonic() - silent_since_s > 60:
                    raise
                row = {}
            show(row)
            if row.get("state") in FINAL_STATES:
                return row
            time.sleep(every_s)  # the pace of a poll: REST has nothing to wait on


def am_size(job: SubmittedJob) -> Resources:
    """Return the size of the AM's container."""
    return job.job.am_size if isinstance(job, ModelledJob) else job.am_size


def checkpoint_environment(webhdfs: str, owner: str = REQUESTS_OWNER) -> dict[str, str]:
    """Return the cluster's addresses for the task runner, as ``-cmdenv``."""
    return {
        "YARNCTL_STORE": f"webhdfs://{webhdfs}{CHECKPOINTS}",
        "YARNCTL_REQUESTS": f"webhdfs://{webhdfs}{REQUESTS}",
        "YARNCTL_REQUESTS_OWNER": owner,
    }
