"""A profile of the compose file, up: its services, what they answer, and jobs that are submitted to it.

Law: every wait is for a condition, with a deadline and with what was awaited in the failure.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests import http_client
from tests.docker.engine import Engine

T = TypeVar("T")

FILE = Path(__file__).parents[2] / "compose.yaml"
JOBS = FILE.parent / "docker/emulator/jobs"
HADOOP = FILE.parent / "docker/hadoop"
SERVICES = ("rm", "nm1", "nm2", "nm3", "yarnctl")
PATIENCE_S = 900.0


def until(look: Callable[[], T], what: str) -> T:
    """Look until what is seen is true; return it. Fails with what was awaited, and the last sight."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < deadline_s, f"never: {what}; last seen: {seen!r}"
        time.sleep(0.25)  # the pace of a poll
    return seen


class Context:
    """The build context of Hadoop's image, made in the background by its ``context.sh``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder.with_suffix(".log")
        with self._log.open("wb") as log:
            words = (str(HADOOP / "context.sh"), str(folder), sys.executable)
            self._program = subprocess.Popen(words, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it is made; fails with what was said."""
        assert self._program.wait(PATIENCE_S) == 0, self._log.read_text()

    def remove(self) -> None:
        self._program.kill()
        self._program.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Composed:
    """One project: the services of a profile on an engine. ``settings`` are those of .env."""

    def __init__(self, engine: Engine, project: str, settings: dict[str, str], profile: str) -> None:
        self.engine = engine
        self.project = project
        self.environment = {**engine.environment, **settings, "COMPOSE_PROFILES": profile}
        self.words = (*engine.compose_program(), "--file", str(FILE), "--project-name", project)

    def compose(self, *words: str) -> str:
        return self.engine.run(*self.words, *words, environment=self.environment).stdout

    def docker(self, *words: str) -> str:
        """Run a client command; return what it prints."""
        return self.engine.run("docker", *words).stdout

    def inside(self, service: str, *words: str) -> str:
        """Run a command in a service's container; return what it prints."""
        return self.docker("exec", self.container(service), *words)

    def container(self, service: str) -> str:
        found = self.docker(
            "ps", "-aq", *self.of_project, f"--filter=label=com.docker.compose.service={service}"
        )
        (only,) = found.split()
        return only

    @property
    def of_project(self) -> tuple[str, ...]:
        """Return the client's option that selects what belongs to this project."""
        return (f"--filter=label=com.docker.compose.project={self.project}",)

    def inspected(self, service: str) -> dict[str, Any]:
        """Return what the engine knows of a service's container."""
        (found,) = json.loads(self.docker("inspect", self.container(service)))
        return dict(found)

    def wait_healthy(self, *services: str) -> None:
        """Wait until these services are healthy; fails with the story of one that has ended."""
        for service in services:
            until(lambda service=service: self._is_healthy(service), f"{service} healthy")  # type: ignore[misc]

    def _is_healthy(self, service: str) -> bool:
        state = self.inspected(service)["State"]
        assert state["Running"], f"{service} ended with {state['ExitCode']}: {self.story(service)}"
        return bool(state["Health"]["Status"] == "healthy")

    def story(self, service: str) -> str:
        """Return the end of a service's log."""
        done = subprocess.run(
            ["docker", "logs", "--tail", "40", self.container(service)],
            env=self.engine.environment,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr

    # --- what it answers ------------------------------------------------------------------

    def ask(
        self, service: str, path: str, method: str = "GET", headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Ask through the published port; return status and JSON (0 and the reason: no answer)."""
        port = self.environment["YARNCTL_PORT" if service.endswith("yarnctl") else "RM_PORT"]
        headers = {"Accept": "application/json", "Content-Type": "application/json", **(headers or {})}
        body = b"{}" if method == "POST" else None
        url = f"http://127.0.0.1:{port}{path}"
        try:
            answer = http_client.request(method, url, data=body, headers=headers, timeout=30)
            return answer.status_code, json.loads(answer.content or b"null")
        except http_client.RequestException as error:
            return 0, str(error)

    def read(self, service: str, path: str) -> Any:
        """Return a JSON answer, whose status must be 200."""
        status, found = self.ask(service, path)
        assert status == 200, f"{service} {path}: {status} {found}"
        return found

    def nodes(self) -> dict[str, str]:
        """Return each node's state by host name."""
        found = self.read("rm", "/ws/v1/cluster/nodes")["nodes"]["node"]
        return {row["nodeHostName"]: row["state"] for row in found}


class Job:
    """A job that was submitted from a container of its own; ``output`` is a folder inside."""

    def __init__(self, cluster: Composed, queue: str, name: str, *words: str) -> None:
        self.cluster = cluster
        self.output = f"/work/out/{name}"
        self._name = name
        options = ("--name", name, "--queue", queue, "--input", "/jobs/ranges", "--output", self.output)
        self._client = subprocess.Popen(
            [*cluster.words, "run", "--rm", "-T", "submit", *options, *words], env=cluster.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def id(self) -> str:
        """Wait until the ResourceManager knows it; return its application's id."""
        return until(self._find, f"{self._name} submitted")

    def _find(self) -> str:
        if self._client.poll():
            self.succeed()
        rows = (self.cluster.read("rm", "/ws/v1/cluster/apps").get("apps") or {}).get("app", [])
        return next((row["id"] for row in rows if row["name"] == self._name), "")

    def all_reduces_run(self, count: int) -> bool:
        """Say whether so many reduces run, with all maps behind them."""
        job = self.id().replace("application", "job")
        status, found = self.cluster.ask("rm", f"/proxy/{self.id()}/ws/v1/mapreduce/jobs/{job}")
        return status == 200 and found["job"]["reducesRunning"] == count and not found["job"]["mapsPending"]

    def succeed(self) -> None:
        """Wait for the client; it must say that the job has succeeded."""
        told, _ = self._client.communicate(timeout=PATIENCE_S)
        assert self._client.returncode == 0, told
        assert "SUCCEEDED" in told

    def parts(self) -> dict[str, bytes]:
        """Return the output's files."""
        names = self.cluster.inside("rm", "ls", self.output).split()
        parts = [name for name in names if name.startswith("part-")]
        return {name: self.cluster.inside("rm", "cat", f"{self.output}/{name}").encode() for name in parts}

    def end(self) -> None:
        if self._client.poll() is None:
            self._client.terminate()
            self._client.communicate()


def free_port() -> int:
    """Return a port that nothing listens on now, below those that the system gives to connections.

    A container binds it much later: one of the system's own would be another program's by then.
    """
    while True:
        port = secrets.randbelow(10_000) + 20_000
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def must_run() -> bool:
    """Say whether a missing engine is a failure: where it is asked for."""
    return bool(os.environ.get("YARNCTL_REQUIRE_DOCKER"))
