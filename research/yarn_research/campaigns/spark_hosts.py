"""Where applications of Spark run: as black boxes on the live emulator, or PySpark's own on a real Hadoop.

Law: an application goes in by a command line of spark-submit, and through the gate by ``yarnctl admit`` in
front of the same command line. Its jars lie on the one machine that is client and nodes: none are sent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from emulator.cli.black_box import RM
from tests.hadoop.artifacts import spark_home
from tests.hadoop.attached import prepare
from tests.hadoop.configuration import OPENS, Shape
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.admission_hosts import BIN, GatedHost, Live, live

MOST = 4
"""The containers that an application can use: three executors and a driver."""
QUEUE, USER = "production", "ann"
YARN = ("--master", "yarn", "--deploy-mode", "cluster", "--queue", QUEUE)
SHAPE = Shape(nodes=3, node_memory_mib=3072, container_mib=1024)
"""Nine containers of 1 GiB: a driver and an executor have 512 MiB of heap and what Spark adds."""
SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For JVMs that live for a minute on two processors."""
PROGRAM = Path(__file__).parent / "programs" / "spark_sleep.py"


class SparkHost(GatedHost, Protocol):
    """A cluster that takes applications of Spark; ``deadline`` is one that each can meet."""

    deadline: str

    def spark_words(self, name: str, options: Sequence[str] = ()) -> list[str]:
        """Return the command line that submits an application and waits for its end."""
        ...


class LiveSpark:
    """The live emulator: an application is a black box, 1 s and as much work as it has tasks."""

    container_mib = 1024
    deadline = "60s"
    tasks, task_s = 12, 1.0

    def __init__(self, host: Live) -> None:
        self.rm, self.history = host.rm, host.history
        self.environment: Mapping[str, str] = {**host.environment, RM: host.rm, "HADOOP_USER_NAME": USER}

    def spark_words(self, name: str, options: Sequence[str] = ()) -> list[str]:
        """Return the emulator's spark-submit."""
        model = f"modelled:1+{self.tasks * self.task_s:g}"
        return ["yarn-emulator", "spark-submit", *YARN, "--name", name, *options, model]


class HadoopSpark:
    """A real Hadoop with PySpark: tasks that sleep, so that more executors are faster on two processors."""

    container_mib = 1024
    deadline = "300s"
    tasks, task_s = 12, 2.0

    def __init__(self, cluster: Cluster) -> None:
        self.rm, self.history = cluster.rm_url, cluster.history_url
        home = spark_home()
        given = {
            name: value for name, value in cluster.environment.items() if not name.startswith("YARNCTL_")
        }
        self.environment: Mapping[str, str] = {
            **given,
            "PATH": os.pathsep.join((str(BIN), str(home / "bin"), given["PATH"])),
            "SPARK_HOME": str(home),
            "HADOOP_USER_NAME": USER,
            "SPARK_SUBMIT_OPTS": f"{SMALL} {OPENS}",
        }
        self._settings = {
            "spark.yarn.jars": f"local:{home}/jars/*",
            "spark.driver.extraJavaOptions": SMALL,
            "spark.executor.extraJavaOptions": SMALL,
            "spark.executor.memory": "512m",
            "spark.driver.memory": "512m",
            "spark.pyspark.python": sys.executable,
            "spark.yarn.am.waitTime": "300s",
            "spark.network.timeout": "300s",
            "spark.ui.enabled": "false",
        }

    def spark_words(self, name: str, options: Sequence[str] = ()) -> list[str]:
        """Return spark-submit's own command line."""
        told = [word for key, value in self._settings.items() for word in ("--conf", f"{key}={value}")]
        program = [str(PROGRAM), str(self.tasks), str(self.task_s)]
        return ["spark-submit", *YARN, "--name", name, *told, *options, *program]


@contextmanager
def live_spark(folder: Path) -> Iterator[LiveSpark]:
    """Serve three nodes of four containers."""
    with live(folder, max_priority=10) as host:
        yield LiveSpark(host)


@contextmanager
def hadoop_spark(folder: Path) -> Iterator[HadoopSpark]:
    """Start a real Hadoop."""
    with Cluster(SHAPE, folder / "hadoop") as cluster:
        prepare(cluster)
        Hdfs(cluster.hdfs_url, os.environ.get("USER") or "root").make(f"/user/{USER}", "755", USER)
        yield HadoopSpark(cluster)
