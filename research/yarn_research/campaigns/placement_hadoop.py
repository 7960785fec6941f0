"""Where applications are placed for real: a Hadoop with a queue for each framework, and their jars.

Law: applications go in by ``yarnctl profile`` and ``yarnctl place`` alone, as a user types them. Each queue
has a third of the containers, guaranteed and at most. What an application wrote is read when it has ended.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.hadoop.artifacts import flink_jars, spark_home
from tests.hadoop.configuration import OPENS, SMALL, Shape
from tests.hadoop.flink_client import write_flink_client
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.admission_hosts import BIN
from yarn_research.campaigns.placed_applications import (
    FILES,
    RATE_KIB,
    PlacedApplication,
    application_toml,
    applications,
    input_files,
    is_right,
)
from yarn_research.campaigns.placement_frameworks import (
    KINDS,
    Installed,
    build_jar,
    commands,
    output_of,
)

USER = "ann"
HOME = f"/user/{USER}"
FRAMEWORKS = "/frameworks"
CONTAINER_MIB = 1024
"""A Spark JVM has 512 MiB of heap and 384 MiB beside it; containers of all frameworks are alike."""
POOL_CONTAINERS = 4
"""One application with three workers, or two with one."""
COST_MTOKENS = 1000
"""A container-second costs the same everywhere: the frameworks' own times decide."""


def queue_properties() -> dict[str, str]:
    """Return the queues: a third each, guaranteed and at most.

    A third of 12 GiB is 4096 MiB less the rounding of percents, which would be three containers: a queue's
    most is 34 %, four containers and no fifth.
    """
    root = "yarn.scheduler.capacity.root"
    found = {f"{root}.queues": ",".join(KINDS)}
    for kind, percent in zip(KINDS, ("34", "33", "33"), strict=True):
        found |= {
            f"{root}.{kind}.capacity": percent,
            f"{root}.{kind}.maximum-capacity": "34",
            f"{root}.{kind}.user-limit-factor": "2",
            f"{root}.{kind}.maximum-am-resource-percent": "1.0",
            f"{root}.{kind}.ordering-policy": "fifo",
        }
    return found


SHAPE = Shape(
    set_up="deadline",
    nodes=3,
    node_memory_mib=4096,
    container_mib=CONTAINER_MIB,
    overrides={"capacity-scheduler": queue_properties()},
)


def pools_toml() -> str:
    """Return the file of pools."""
    return "\n".join(
        f'[[pool]]\nname = "{kind}"\nqueue = "root.{kind}"\nkinds = ["{kind}"]\n'
        f"capacity = {POOL_CONTAINERS}\ncontainer_mib = {CONTAINER_MIB}\ncost_mtokens = {COST_MTOKENS}\n"
        for kind in KINDS
    )


class HadoopPools:
    """A real Hadoop with three pools; ``folder`` is the client's.

    ``rate_kib``: what a task of wordcount and grep reads a second.
    """

    name = "Hadoop"
    container_mib = CONTAINER_MIB

    def __init__(self, cluster: Cluster, folder: Path, rate_kib: int = RATE_KIB) -> None:
        self.rm, self.history = cluster.rm_url, cluster.history_url
        self._hdfs, self._rate_kib = Hdfs(cluster.hdfs_url, USER), rate_kib
        self.there = _installed(cluster, folder)
        spark = self.there.spark
        given = {
            name: value for name, value in cluster.environment.items() if not name.startswith("YARNCTL_")
        }
        self.environment: Mapping[str, str] = {
            **given,
            "PATH": os.pathsep.join((str(BIN), str(spark / "bin"), given["PATH"])),
            "SPARK_HOME": str(spark),
            "SPARK_SUBMIT_OPTS": f"{SMALL} {OPENS}",
            "HADOOP_USER_NAME": USER,
            "YARNCTL_RM": cluster.rm_url,
            "XDG_STATE_HOME": str(folder / "state"),
        }

    def write_input(self, placed: Sequence[PlacedApplication]) -> None:
        """Write what these applications read."""
        for folder in sorted({each.folder for each in placed}):
            for number, content in zip(range(FILES), input_files(folder), strict=True):
                self._hdfs.write(f"{HOME}/in/{folder}/part-{number}.txt", content)

    def write_application(self, placed: PlacedApplication, folder: Path) -> Path:
        """Write an application's APP.toml into a folder; return its path."""
        file = folder / f"{placed}.toml"
        file.write_text(application_toml(placed, commands(placed, self.there, self._rate_kib)))
        return file

    def is_output_right(self, name: str) -> bool:
        """Say whether the application that YARN has under this name wrote what it should."""
        placed, folder = application_named(name), output_of(HOME, name)
        if placed is None:
            return False
        parts = [part for part in self._hdfs.names(folder) if part.startswith("part-")]
        text = b"".join(self._hdfs.read(f"{folder}/{part}") for part in parts).decode()
        return is_right(placed, text.splitlines())


def application_named(name: str) -> PlacedApplication | None:
    """Return the application that a name in YARN begins with: ``wordcount-1-RUN``."""
    return next((each for each in applications() if name.startswith(f"{each}-")), None)


def _installed(cluster: Cluster, folder: Path) -> Installed:
    """Put the programs and Flink's jars into HDFS, and Flink's client on the path."""
    flink, spark = flink_jars(), spark_home()
    build_jar(folder / "placing.jar", [cluster.jars, spark / "jars", flink])
    superuser = os.environ.get("USER") or "root"
    hdfs = Hdfs(cluster.hdfs_url, superuser)
    hdfs.make(HOME, "755", USER)
    hdfs.make(f"{FRAMEWORKS}/flink", "755")
    jars = [str(path) for path in sorted(flink.glob("*.jar"))]
    cluster.run("hadoop", "fs", "-put", *jars, f"{FRAMEWORKS}/flink/", user=superuser)
    hdfs.write(f"{FRAMEWORKS}/placing.jar", (folder / "placing.jar").read_bytes())
    write_flink_client(folder / "flink", cluster.folder / "bin", flink, cluster.jars)
    root = f"hdfs://127.0.0.1:{cluster.ports.name_node}"
    jar_uri, flink_uri = f"{root}{FRAMEWORKS}/placing.jar", f"{root}{FRAMEWORKS}/flink"
    return Installed(folder / "placing.jar", jar_uri, flink_uri, spark, f"{root}{HOME}")


@contextmanager
def hadoop_pools(folder: Path, rate_kib: int = RATE_KIB) -> Iterator[HadoopPools]:
    """Start a real Hadoop with three nodes of 4 GiB."""
    folder.mkdir(parents=True, exist_ok=True)
    with Cluster(SHAPE, folder / "hadoop") as cluster:
        yield HadoopPools(cluster, folder, rate_kib)
