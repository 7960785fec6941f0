"""A daemon's gate as a test plays it: admissions as the API tells them, answers in their order.

Law: it knows nothing of how a gate decides.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Self
from unittest.mock import patch

from tests.unit.hadoop.replaying import Heard, Replay, Reply
from yarnctl.cli import PROGRAM, gate_asking
from yarnctl.command_line import exit_status_of

ID = "adm-1f2e3d4c-7"
DEADLINE_MS = 1_900_000_000_000
JOB = ("hadoop", "jar", "/opt/hadoop-streaming.jar")
OPTIONS = ("-input", "/in", "-output", "/out", "-mapper", "cat", "-reducer", "python3 red.py 'a b'")
SIZED = ("-D", "mapreduce.job.name=daily", "-D", "mapreduce.job.maps=40", "-D", "mapreduce.job.reduces=8")
TAGS = [f"deadline:{DEADLINE_MS}", f"yarnctl-admission-{ID}"]
SETTINGS = {
    "mapreduce.job.running.map.limit": "11",
    "mapreduce.job.running.reduce.limit": "11",
    "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
}
ESTIMATE = {"mean_ms": 4_800_000, "stdev_ms": 0, "source": "history:3 runs of daily"}


def request(name: str, containers: int) -> dict:
    return {
        "name": name, "user": "ann", "queue": "root.production", "containers": containers,
        "deadline_ms": 600_000, "submitted_at_ms": DEADLINE_MS - 600_000, "estimate": ESTIMATE,
        "kind": "mapreduce",
    }  # fmt: skip


def gate(allocator: str = "justice", capacity: int | None = 40, problem: str = "") -> dict:
    counts = {"waiting": 0, "reserved": 0, "learned": 0}
    return {"allocator": allocator, "capacity": capacity, "container_mib": 1024, **counts, "problem": problem}


def page(*items: dict, gate: dict | None) -> dict:
    told = {"now_ms": DEADLINE_MS - 600_000, "version": 1, "total": len(items), "next": None}
    return {**told, "gate": gate, "items": items}


def admission(state: str, verdict: str, reason: str = "as it is", containers: int = 12, **more) -> dict:
    return {
        "id": ID,
        "state": state,
        "why": "",
        "request": request("daily", 41),
        "plan": {"verdict": verdict, "containers": containers, "deadline_at_ms": DEADLINE_MS,
            "start_at_ms": None, "finish_at_ms": None, "reason": reason},
        "application": None,
        "expires_at_ms": None,
        "lease_ms": 120_000,
        "tags": TAGS,
        "settings": SETTINGS if state == "admitted" else {},
        **more,
    }  # fmt: skip


ADMITTED = admission("admitted", "admit")
WAITING = admission("waiting", "defer", "needs 12 containers, 3 free now")


class Daemon(Replay):
    """A daemon that gives the answers one after the other; the last one again and again."""

    def __init__(self, *answers: dict | Reply, seen: dict | None = None) -> None:
        self.left = list(answers)
        self.page = seen or page(gate=gate())
        super().__init__(self._answered)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def _answered(self, heard: Heard) -> Reply:
        if heard.method == "GET":
            return Reply(json.dumps(self.page))
        if heard.method == "DELETE":
            return Reply(json.dumps(admission("withdrawn", "defer")))
        found = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        return found if isinstance(found, Reply) else Reply(json.dumps(found), 202)

    def calls(self) -> list[str]:
        """Return what was changed or waited for; looking does not count."""
        heard = [one for one in self.heard if one.method != "GET"]
        return [f"{one.method} {one.path.removeprefix('/v1/admissions')}" for one in heard]

    def asked(self) -> dict:
        return json.loads(next(one.body for one in self.heard if one.method == "POST"))


def admit(daemon: Replay, *words: str) -> int:
    """Type ``yarnctl admit``; on a machine that is busy nobody complains of a slow answer."""
    with patch.object(gate_asking, "SLOW_S", 600.0):
        return exit_status_of(PROGRAM, ["admit", "--url", daemon.url, *words])


def run_admit(daemon: Daemon, programs: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run ``yarnctl admit -- hadoop ...`` as a process of its own; ``hadoop`` is the one in ``programs``."""
    asking = ["admit", "--url", daemon.url, "--deadline", "10m", "--"]
    words = [*asking, "hadoop", *JOB[1:], *SIZED, *OPTIONS, *more]
    code = f"from yarnctl.cli import main; main({words!r})"
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=programs
    )
