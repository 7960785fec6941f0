"""The set of jobs with deadlines on a real Hadoop: small tasks, twelve containers, two processors or more.

Law: the cluster is that of the other scenarios with one queue for all of them; jobs are streaming jobs,
submitted by Hadoop's own client.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.hadoop.attached import prepare
from tests.hadoop.configuration import Shape
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import PROGRAM, Plan, write_input
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.admission_hosts import BIN
from yarn_research.campaigns.admission_set import Kind, Mix

KEY_S = 0.1
SHAPE = Shape(nodes=3, node_memory_mib=1024)


class Hadoop:
    """A real cluster. A container's JVM starts in 2 to 12 s; what a task takes here must be more than that,
    or the processors are what is short, and no containers.
    """

    name = "Hadoop"
    container_mib = 256
    mix = Mix(
        big=Kind("big", 2, 0.0, 12, 25.0),
        small=Kind("small", 1, 0.0, 2, 4.0),
        unit_s=40.0,
        loose_s=330.0,
        tight_s=75.0,
        hopeless=2,
    )

    def __init__(
        self, cluster: Cluster, folder: Path, kinds: Sequence[Kind] = (), queue: str = "production"
    ) -> None:
        self._cluster = cluster
        self.queue = queue
        self._folder = folder
        self.rm, self.history = cluster.rm_url, cluster.history_url
        given = {
            name: value for name, value in cluster.environment.items() if not name.startswith("YARNCTL_")
        }
        path = f"{BIN}{os.pathsep}{given['PATH']}"
        self.environment: Mapping[str, str] = {**given, "PATH": path, "HADOOP_USER_NAME": "ann"}
        for kind in kinds or (self.mix.big, self.mix.small):
            write_input(Hdfs(cluster.hdfs_url, "ann"), self._plan(kind), self._input(kind))

    def _plan(self, kind: Kind) -> Plan:
        groups = (round(kind.reduce_s / KEY_S),) * kind.reduces
        return Plan(kind.name, "production", groups, KEY_S, maps=kind.maps, user="ann")

    def _input(self, kind: Kind) -> str:
        return f"/user/ann/{kind.name}-in"

    def words(self, kind: Kind, name: str, settings: Mapping[str, str]) -> list[str]:
        """Return the command line of ``hadoop jar``; each run of one name writes to a folder of its own."""
        run = len(list(self._folder.glob(f"{name}.groups-*")))
        groups = self._folder / f"{name}.groups-{run}"
        groups.mkdir(mode=0o777)
        told = {
            "mapreduce.job.name": name,
            "mapreduce.job.queuename": self.queue,
            "mapreduce.job.maps": str(kind.maps),
            "mapreduce.job.reduces": str(kind.reduces),
            "mapreduce.map.speculative": "false",
            "mapreduce.reduce.speculative": "false",
            **settings,
        }
        words = ["hadoop", "jar", str(self._cluster.streaming_jar)]
        words += [word for key, value in told.items() for word in ("-D", f"{key}={value}")]
        words += ["-files", str(PROGRAM), "-mapper", "/bin/cat", "-reducer", f"{sys.executable} work.py"]
        words += ["-input", self._input(kind), "-output", f"/user/ann/{name}-out-{run}"]
        return [*words, "-cmdenv", f"KEY_S={KEY_S}", "-cmdenv", f"GROUP_LOG={groups}"]


MARKET_KINDS = (Kind("short", 1, 0.0, 2, 30.0), Kind("long", 1, 0.0, 5, 40.0))
"""Few containers that are held for long: starting them is what two processors would be short of."""
BY_DEADLINE = Shape(nodes=3, node_memory_mib=1024, set_up="deadline")


@contextmanager
def hadoop_by_deadline(folder: Path) -> Iterator[Hadoop]:
    """Start a real Hadoop with the one queue of hadoop-conf/deadline, and jobs for the market."""
    with Cluster(BY_DEADLINE, folder / "hadoop") as cluster:
        prepare(cluster)
        Hdfs(cluster.hdfs_url, os.environ.get("USER") or "root").make("/user/ann", "755", "ann")
        yield Hadoop(cluster, folder, MARKET_KINDS, "default")


@contextmanager
def hadoop(folder: Path) -> Iterator[Hadoop]:
    """Start a real Hadoop."""
    with Cluster(SHAPE, folder / "hadoop") as cluster:
        prepare(cluster)
        Hdfs(cluster.hdfs_url, os.environ.get("USER") or "root").make("/user/ann", "755", "ann")
        yield Hadoop(cluster, folder)
