"""Interactive sessions of Spark on a real Hadoop: PySpark, ``spark-shell`` and the Thrift server.

A session computes cells, one after another, and is idle between two. Each cell reads again what a shuffle at
the session's begin wrote (not the Thrift server, which keeps no data set), makes a shuffle of its own, and has
20 tasks of one second: dynamic allocation requests executors again only while tasks wait for a second.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tests import http_client
from tests.hadoop.artifacts import spark_home
from tests.hadoop.configuration import free_ports
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster
from tests.hadoop.spark_draining import environment_of, submit_words

SessionKind = Literal["pyspark", "spark-shell", "thrift-server"]
PROGRAMS = Path(__file__).parent / "programs"
THRIFT = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
QUERY = """select concat_ws(',', sort_array(collect_list(concat(key, ':', total)))) from
 (select id % 7 as key, sum(id * {number}) as total from range(0, 200, 1, 20) group by id % 7)
 where 0 <= (select count(slept) from (
  select reflect('java.lang.Thread', 'sleep', cast(1000 as bigint)) as slept from range(0, 20, 1, 20)))"""
PATIENCE_S, LOOK_S = 480.0, 0.1


def expected(kind: SessionKind, cell: int) -> str:
    """Return a cell's result, computed without Spark."""
    fresh = _joined({key: sum(n * cell for n in range(200) if n % 7 == key) for key in range(7)})
    if kind == "thrift-server":
        return fresh
    kept = _joined({key: sum(n * 1000 + key for n in range(20)) for key in range(40)})
    return f"{kept} {fresh} {sum(range(20))}"


def _joined(totals: dict[int, int]) -> str:
    return ",".join(sorted(f"{key}:{total}" for key, total in totals.items()))


class Session:
    """One session; use it as a context. ``folder`` gets results and log.

    ``wrap``: options of ``yarnctl wrap --spark`` (None: the session is untagged).
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        kind: SessionKind,
        wrap: Sequence[str] | None,
        settings: Sequence[str],
    ) -> None:
        self.cluster, self.folder, self.kind = cluster, folder, kind
        folder.mkdir(parents=True)
        self.log = folder / "session.log"
        (self._port,) = free_ports(1)
        program, *options = submit_words("client", 5, settings)
        if kind == "pyspark":
            options += [str(PROGRAMS / "spark_cells.py"), str(folder)]
        elif kind == "spark-shell":
            program = str(spark_home() / "bin" / "spark-shell")
        else:
            options += ["--class", THRIFT, "spark-internal"]
            options += ["--hiveconf", f"hive.server2.thrift.port={self._port}"]
            options += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
        wrapped = [] if wrap is None else [YARNCTL, "wrap", "--spark", *wrap, "--exec", "--"]
        self._words = [*wrapped, program, *options]
        self._process: subprocess.Popen[str] | None = None
        self._queries: dict[int, subprocess.Popen[bytes]] = {}
        self.application = ""

    def __enter__(self) -> Self:
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                self._words, env=environment_of(self.cluster), cwd=self.folder, text=True,
                stdin=subprocess.PIPE, stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        if self.kind == "spark-shell":
            self._type((PROGRAMS / "spark_cells.scala").read_text(encoding="utf-8"))
        self._until_running()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        (self.folder / "end").touch()
        if self.kind == "spark-shell" and self._process.poll() is None:
            self._type(":quit\n")
        if self._alive() and (self.kind == "thrift-server" or error is not None):
            os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def begin_cell(self, cell: int) -> None:
        """Begin to compute a cell; cells are counted from 1."""
        if self.kind == "pyspark":
            (self.folder / f"cell-{cell}").touch()
        elif self.kind == "spark-shell":
            self._type(f'cell({cell}, "{self.folder}")\n')
        else:
            self._query(cell)

    def until_cell(self, cell: int) -> str:
        """Wait for a cell; return its result."""
        result = self.folder / f"result-{cell}"
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends and self._alive():
            if cell in self._queries and self._queries[cell].poll() not in (None, 0):
                self._query(cell)  # the server does not listen yet
            if self.kind != "thrift-server" and result.exists():
                return result.read_text(encoding="utf-8")
            if self.kind == "thrift-server" and self._queries[cell].poll() == 0:
                return result.read_text(encoding="utf-8").rpartition("> ")[2].strip()  # behind the prompt
            time.sleep(LOOK_S)
        raise AssertionError(f"cell {cell} of {self.kind} has no result: {self.said()}")

    def said(self) -> str:
        """Return the end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def containers(self) -> set[str]:
        """Return the containers of its executors, by YARN's list."""
        attempts = f"{self.cluster.rm_url}/ws/v1/cluster/apps/{self.application}/appattempts"
        found = http_client.get(attempts, timeout=20).json()["appAttempts"]["appAttempt"][-1]
        told = http_client.get(f"{attempts}/{found['appAttemptId']}/containers", timeout=20).json()
        rows = told.get("container", [])
        rows = rows if isinstance(rows, list) else [rows]  # one alone is no list
        live = {row["containerId"] for row in rows if row["containerState"] != "COMPLETE"}
        return live - {found["containerId"]}

    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def _type(self, text: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def _query(self, cell: int) -> None:
        words = [str(spark_home() / "bin" / "beeline"), "-u", f"jdbc:hive2://127.0.0.1:{self._port}/"]
        words += ["-n", "alice", "--silent=true", "--outputformat=tsv2", "--showHeader=false"]
        words += ["-e", " ".join(QUERY.format(number=cell).split())]
        with (
            (self.folder / f"result-{cell}").open("wb") as out,
            (self.folder / "beeline.log").open("ab") as log,
        ):
            self._queries[cell] = subprocess.Popen(
                words, env=environment_of(self.cluster), cwd=self.folder, stdout=out, stderr=log
            )

    def _until_running(self) -> None:
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps?applicationTypes=SPARK&states=RUNNING"
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends and self._alive():
            rows = (http_client.get(url, timeout=10).json().get("apps") or {}).get("app", [])
            if rows:
                self.application = max(str(row["id"]) for row in rows)
                return
            time.sleep(LOOK_S)
        raise AssertionError(f"{self.kind} does not run: {self.said()}")
