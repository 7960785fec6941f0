"""A Spark application on a real Hadoop whose executors are asked to leave, and what it did, counted.

Law: what it computed is compared with what this machine computes without Spark, and how often each piece of
user code ran is counted by the user code itself.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from click.testing import CliRunner

from tests import http_client
from tests.hadoop.artifacts import spark_home
from tests.hadoop.configuration import OPENS, SMALL, Shape
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from yarnctl.cli import spark_plugin

PROGRAM = Path(__file__).parent / "programs" / "spark_marks.py"
MAPS, KEYS = 24, 72
Program = Literal["groups", "reduced", "sql", "join"]
"""What the application computes (``programs/spark_marks.py``)."""
Scan = Literal["scan"]
SHAPE = Shape(nodes=3, node_memory_mib=2048, container_mib=1024, own_hosts=True)
"""Six containers of 1 GiB, two on each host: a master (or driver) and five executors fill them."""
PATIENCE_S = 240.0


def expected_digest(program: Program | Scan = "groups", maps: int = MAPS, keys: int = KEYS) -> str:
    """Return what the program writes, computed without Spark."""
    values = {key: [number * 1000 + key for number in range(maps)] for key in range(keys)}
    found: list[tuple[int, int | str]] = []
    for key, held in values.items():
        if program in ("groups", "scan"):
            found.append((key, hashlib.md5(str(held).encode()).hexdigest()))
        else:
            found.append((key, sum(held) + (maps if program == "join" else 0)))
    return hashlib.md5(repr((found, keys, maps * keys)).encode()).hexdigest()


class Marks(NamedTuple):
    """How often user code was called beyond once, for each map and key; and in how many reduce tasks."""

    maps_twice: int
    keys_twice: int
    tasks_twice: int


class Work(NamedTuple):
    """What an application computes: maps of ``map_s`` each, then keys of ``key_s`` in ``reduces`` tasks.

    ``reduces`` 0: as many reduce tasks as maps.
    """

    program: Program | Scan = "groups"
    maps: int = MAPS
    keys: int = KEYS
    map_s: float = 1.0
    key_s: float = 1.0
    reduces: int = 0

    @property
    def reduce_tasks(self) -> int:
        return self.reduces or self.maps

    def words(self) -> list[str]:
        """Return the program's arguments between its folder and its result."""
        numbers = (self.maps, self.keys, self.map_s, self.key_s, self.reduce_tasks)
        return [str(number) for number in numbers]


WORK = Work()


def submit_words(mode: str, executors: int, settings: Sequence[str]) -> list[str]:
    """Return spark-submit's words up to the program: small executors of one core, all there at first."""
    told = {
        "spark.yarn.jars": f"local:{spark_home()}/jars/*", "spark.executor.extraJavaOptions": SMALL,
        "spark.driver.extraJavaOptions": SMALL, "spark.yarn.am.extraJavaOptions": SMALL,
        "spark.executor.memory": "512m", "spark.driver.memory": "512m", "spark.yarn.am.memory": "512m",
        "spark.executor.cores": "1", "spark.executor.instances": str(executors),
        "spark.scheduler.minRegisteredResourcesRatio": "1.0", "spark.pyspark.python": sys.executable,
        "spark.network.timeout": "300s",
    }  # fmt: skip
    said = [word for name, value in told.items() for word in ("--conf", f"{name}={value}")]
    said += [word for each in settings for word in ("--conf", each)]
    words = ["spark-submit", "--master", "yarn", "--deploy-mode", mode, "--queue", "research"]
    return [*words, "--name", "marks", *said]


def event_log_in(folder: str) -> list[str]:
    """Return the settings by which an application leaves its event log in a folder, whole and plain."""
    return [
        "spark.eventLog.enabled=true",
        f"spark.eventLog.dir=file://{folder}",
        "spark.eventLog.rolling.enabled=false",
        "spark.eventLog.compress=false",
    ]


def plugin_in(folder: Path) -> str:
    """Compile the plugin as a user does; return the jar."""
    jar = folder / "leave.jar"
    told = CliRunner().invoke(spark_plugin.command, ["--spark-home", str(spark_home()), "--output", str(jar)])
    assert told.exit_code == 0, told.output
    return str(jar)


def environment_of(cluster: Cluster) -> dict[str, str]:
    home, given = spark_home(), cluster.environment
    return {
        **given,
        "PATH": os.pathsep.join((str(home / "bin"), given["PATH"])),
        "SPARK_HOME": str(home),
        "HADOOP_USER_NAME": "alice",
        "SPARK_SUBMIT_OPTS": f"{SMALL} {OPENS}",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


class SparkJob:
    """One application by ``yarnctl wrap --spark --exec``; ``folder`` gets its marks, result and log.

    ``pauses``: it waits until :meth:`go_on` before it uses a second time what it made. ``given``: variables
    of its client's environment, which win.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *,
        wrap: Sequence[str] = (),
        settings: Sequence[str] = (),
        cluster_mode: bool = False,
        executors: int = 5,
        work: Work = WORK,
        pauses: bool = False,
        given: Mapping[str, str] = {},
    ) -> None:
        self.cluster, self.folder, self.work = cluster, folder, work
        self.marks = folder / "marks"
        self.marks.mkdir(parents=True)
        if not pauses:
            self.go_on()
        self.result, self.log = folder / "result", folder / "spark.log"
        mode = "cluster" if cluster_mode else "client"
        sql = ("spark.sql.adaptive.enabled=false", f"spark.sql.shuffle.partitions={work.reduce_tasks}")
        self._words = [
            *(YARNCTL, "wrap", "--spark", *wrap, "--exec", "--"),
            *submit_words(mode, executors, (*sql, *settings)),
            *(str(PROGRAM), work.program, str(self.marks), *work.words(), str(self.result)),
        ]
        self._environment = {**environment_of(cluster), **given}
        self.process: subprocess.Popen[bytes] | None = None
        self.name = ""

    def __enter__(self) -> SparkJob:
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                self._words, env=self._environment, stdout=out, stderr=subprocess.STDOUT
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
            for name in self._running():  # in cluster mode it goes on without its client
                url = f"{self.cluster.rm_url}/ws/v1/cluster/apps/{name}/state?user.name=alice"
                self.request("PUT", url, json={"state": "KILLED"})

    def go_on(self) -> None:
        """Let it use a second time what it made."""
        (self.marks / "go").touch()

    def until_marked(self, kind: str, count: int) -> None:
        """Wait until so many different calls of a kind have begun; raises AssertionError if it ended."""
        ends = time.monotonic() + PATIENCE_S
        while len(list(self.marks.glob(f"{kind}-*"))) < count:
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > ends:
                raise AssertionError(f"never {count} of {kind}: {self.said()}")
            time.sleep(0.05)

    def until_over(self) -> str:
        """Wait for its end; return what it computed."""
        assert self.process is not None
        status = self.process.wait(PATIENCE_S)
        assert status == 0, self.said()
        return self.result.read_text(encoding="utf-8")

    def counted(self) -> Marks:
        """Count the calls beyond the first of each."""
        assert len(list(self.marks.glob("map-*"))) == self.work.maps, "every map has left a mark"
        keys = {path.name: path.stat().st_size - 1 for path in self.marks.glob("key-*")}
        tasks = {name.split("-")[1] for name, more in keys.items() if more}
        maps = sum(path.stat().st_size - 1 for path in self.marks.glob("map-*"))
        return Marks(maps, sum(keys.values()), len(tasks))

    def took_s(self) -> float:
        """Return how long it took, by the ResourceManager, once it is over."""
        row = self.row()
        return float(row["finishedTime"] - row["startedTime"]) / 1000

    def row(self) -> dict[str, Any]:
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps/{self.application}"
        found: dict[str, Any] = self.request("GET", url).json()["app"]
        return found

    def failures(self) -> list[str]:
        """Return the lines of tasks that failed and count: not those that looked for moved blocks."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if "Lost task" in line and "FetchFailed" not in line]

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    # -- its driver ------------------------------------------------------------------------------

    @property
    def application(self) -> str:
        """Its id, by the ResourceManager's list, while it runs."""
        if not self.name:
            self.name = max(self._running())
        return self.name

    def _running(self) -> list[str]:
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps?applicationTypes=SPARK&states=RUNNING"
        rows = (self.request("GET", url).json().get("apps") or {}).get("app", [])
        return [str(row["id"]) for row in rows]

    def driver(self, below: str) -> Any:
        name = self.application
        url = f"{self.cluster.rm_url}/proxy/{name}/api/v1/applications/{name}/{below}"
        return self.request("GET", url).json()

    def request(self, method: str, url: str, **named: Any) -> http_client.Response:
        """Ask the ResourceManager (a secured one wants a ticket)."""
        return http_client.request(method, url, timeout=20, **named)
