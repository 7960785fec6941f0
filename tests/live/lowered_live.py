"""A live cluster on which ``yarnctl run --cap-queue`` lowers research, and a trap at each of its requests.

Law: the daemon is a process of its own and is told nothing of the trap: what it sends to the ResourceManager
and to HDFS is where it is struck, on the server's side, before or after the request has had its effect.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from emulator.live.jobs.submission_client import Client as Submitter
from emulator.live.jobs.workload_replay import play
from emulator.live.manager.service import ManagerSettings
from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build
from emulator.live.programs.manager_program import Options
from tests import http_client
from tests.hadoop.background import Background
from tests.live.test_all_in_one import QUICK, wait_until
from yarnctl.hadoop.lock import LOCK_PATH
from yarnctl.traces.job import Job

ROOT = Path(__file__).parents[2]
KEY = "yarn.scheduler.capacity.root.research.maximum-capacity"
END_S = 300.0
POINTS = (
    "create done", "rename sent", "rename done", "change sent", "change made", "held",
    "back sent", "back made", "delete sent", "delete done",
)  # fmt: skip
RESEARCH = Job(
    name="research", job_class="research", submitted_at_ms=0, map_ms=(200,), reduce_ms=(600_000,) * 10,
    reduce_keys=(6000,) * 10, shuffle_ms=100, user="alice",
)  # fmt: skip
PRODUCTION = Job(
    name="production", job_class="production", submitted_at_ms=0, map_ms=(600_000,) * 4, user="bob"
)


class Daemon:
    """``yarnctl run --enforce`` as a process; ``said`` is what it has written."""

    def __init__(self, url: str, state: Path, *options: str, enforce: bool = True) -> None:
        words = ["run", "--rm", url, "--listen", "off", "--state-dir", str(state), *options]
        words += ["--enforce"] if enforce else []
        self.said = ""
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from yarnctl.cli import main; main()", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def kill(self) -> None:
        """SIGKILL; callable from the thread that serves it."""
        os.kill(self.process.pid, signal.SIGKILL)

    def fill_disk(self) -> None:
        """Let no file of it grow any more (its output is a pipe)."""
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (0, 0))

    def end(self) -> int:
        """Ask it to stop if it runs; return its exit status."""
        self.process.terminate()
        return self.ended()

    def ended(self) -> int:
        """Wait for its end; return its exit status."""
        status = self.process.wait(END_S)
        self._reader.join(END_S)
        return status


class LoweringCluster:
    """The cluster; ``strike`` is called once, at the point named ``at``."""

    def __init__(self, url: str, whole: AllInOne) -> None:
        self.url, self.whole = url, whole
        self.at = ""
        self.strike: Callable[[], None] = lambda: None
        self.passed: list[str] = []
        self._trap()

    def _trap(self) -> None:
        store: Any = self.whole.web._mounts["webhdfs"]
        configuration: Any = self.whole.site.scheduler_conf
        self._around(configuration, "change", lambda args: self._of_change(args[0]))
        self._around(store._answers, "RENAME", lambda args: "rename" if _is_record(args[1]) else "")
        self._around(store._answers, "DELETE", lambda args: "delete" if _is_record(args[1]) else "")
        take = store._receive

        async def taken(user: str, path: str, *more: Any) -> Any:
            reply = await take(user, path, *more)
            if _is_record(path):
                self._point("create done")
            return reply

        store._receive = taken

    def _around(self, holder: Any, name: str, kind_of: Callable[[tuple[Any, ...]], str]) -> None:
        plain = holder[name] if isinstance(holder, dict) else getattr(holder, name)

        def trapped(*args: Any) -> Any:
            kind = kind_of(args)
            if kind:
                self._point(f"{kind} sent")
            answer = plain(*args)
            if kind:
                self._point(f"{kind} {'made' if kind in ('change', 'back') else 'done'}")
            return answer

        if isinstance(holder, dict):
            holder[name] = trapped
        else:
            setattr(holder, name, trapped)

    @staticmethod
    def _of_change(changes: list[tuple[str, str, str]]) -> str:
        return "back" if any(float(value) > 5 for _, _, value in changes) else "change"

    def _point(self, name: str) -> None:
        self.passed.append(name)
        if name == self.at:
            self.at = ""
            self.strike()

    @property
    def maximum(self) -> str:
        """The queue's maximum as an administrator sees it."""
        rows = http_client.get(f"{self.url}/ws/v1/cluster/scheduler-conf", timeout=60).json()["property"]
        return str(next(row["value"] for row in rows if row["name"] == KEY))

    @property
    def records(self) -> list[str]:
        """The files of lowered queues in HDFS, whole or not."""
        folder = self.whole.work / f"hdfs{LOCK_PATH}"
        return [one.name for one in folder.iterdir() if "changes-" in one.name] if folder.exists() else []


def _is_record(path: str) -> bool:
    return "/changes-" in path or "/.changes-" in path


@contextlib.contextmanager
def lowering(folder: Path) -> Iterator[LoweringCluster]:
    """Make a cluster that research fills and on which production waits for a daemon to make room."""
    made: list[AllInOne] = []

    def web(url: str) -> Any:
        options = Options(work=folder / "work", speed=1.0)
        settings = ManagerSettings(timing=QUICK, am_expiry_ms=60_000)
        made.append(build(options, ClusterPlan(nodes=3, processes=False), url, settings))
        return made[0].web

    with Background(web) as server:
        trapped = LoweringCluster(server.url, made[0])
        play(Submitter(server.url, "harness"), (RESEARCH,), wait=False)
        wait_until(lambda: _allocated(server.url) >= 11, "research fills the cluster")
        play(Submitter(server.url, "harness"), (PRODUCTION,), wait=False)
        yield trapped


def _allocated(url: str) -> int:
    told = http_client.get(f"{url}/ws/v1/cluster/metrics", timeout=60).json()
    return int(told["clusterMetrics"]["containersAllocated"])
