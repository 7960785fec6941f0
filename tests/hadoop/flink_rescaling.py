"""A job of Flink on a real Hadoop that goes on with fewer workers, and what it wrote (docs/flink.md).

Law: it is submitted by ``yarnctl wrap --flink --exec``, as a user does. Its output says by itself whether
each number was counted once.
"""

from __future__ import annotations

import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

from tests import http_client
from tests.hadoop.artifacts import FLINK, NotToBeHad, flink_jars, javac
from tests.hadoop.configuration import Shape
from tests.hadoop.flink_client import FLINK_SETTINGS, write_flink_client
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.jobs import YARNCTL
from tests.hadoop.launcher import Cluster

SHAPE = Shape(nodes=3, node_memory_mib=1536, container_mib=512, own_hosts=True)
"""Nine containers of half a GiB: a JobManager and eight workers fill them."""
WORKERS = 8
JAVA = Path(__file__).parent / "flink_java"
PATIENCE_S, ENDS_S = 300.0, 1200.0
LOOK_S = 0.25
KEYS = 10
OUR_SETTINGS = {
    name: value
    for name, value in FLINK_SETTINGS.items()
    if not name.startswith(("execution.", "restart-", "resourcemanager."))
}


STABLE = (
    "jobmanager.adaptive-scheduler.resource-stabilization-timeout",
    "jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout",
)


class InstalledFlink(NamedTuple):
    """What a command line names: Flink's jars and the job's in HDFS, and a folder there, as whole URIs.

    ``taken``: a folder of this machine, where the tasks of a job say how many numbers they took.
    """

    libraries: str
    jar: str
    data: str
    taken: Path


def install(cluster: Cluster, folder: Path) -> InstalledFlink:
    """Put Flink's jars and the job's into HDFS, and its client on the path."""
    jars = flink_jars()
    classes, jar = folder / "classes", folder / "counting.jar"
    words = [javac(), "--release", "17", "-nowarn", "-d", str(classes), "-cp", f"{jars}/*"]
    done = subprocess.run([*words, *map(str, JAVA.glob("*.java"))], capture_output=True, text=True)
    if done.returncode:
        raise NotToBeHad(f"the job of flink_java does not compile: {done.stderr[-2000:]}")
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
    hdfs = Hdfs(cluster.hdfs_url, "root")
    hdfs.make("/flink/lib", "755")
    hdfs.make("/flink/data", "1777")
    names = [str(path) for path in sorted(jars.glob("*.jar"))]
    cluster.run("hadoop", "fs", "-put", *names, "/flink/lib/", user="root")
    hdfs.write("/flink/counting.jar", jar.read_bytes())
    write_flink_client(folder / "flink", cluster.folder / "bin", jars, cluster.jars)
    root = f"hdfs://127.0.0.1:{cluster.ports.name_node}/flink"
    taken = folder / "taken"
    return InstalledFlink(f"{root}/lib", f"{root}/counting.jar", f"{root}/data", taken)


class FlinkJob:
    """One job that counts; use it as a context: it is submitted, and ended if it has not ended."""

    def __init__(
        self,
        cluster: Cluster,
        there: InstalledFlink,
        name: str,
        *,
        numbers: int,
        number_ms: int = 5,
        most: int = WORKERS,
        interval_s: int = 2,
    ) -> None:
        self.cluster, self.there, self.name, self.most = cluster, there, name, most
        self.numbers, self.number_ms, self.interval_s = numbers, number_ms, interval_s
        self.application = ""

    def words(self) -> list[str]:
        """Return the whole command line."""
        told = {
            "yarn.application.queue": "research",
            "yarn.application.name": self.name,
            "yarn.provided.lib.dirs": self.there.libraries,
            "execution.checkpointing.interval": f"{self.interval_s}s",
            # its source has as many parts as it had workers when it began
            **dict.fromkeys(STABLE, "15s"),
            "execution.checkpointing.dir": f"{self.there.data}/checkpoints",
            **OUR_SETTINGS,
        }
        said = [f"-D{name}={value}" for name, value in told.items()]
        program = [str(self.numbers), str(self.number_ms), f"{self.there.data}/{self.name}"]
        program.append(str(self.there.taken / self.name))
        run = "run-application" if FLINK[1] < "2" else "run"  # 2.0 has one command for both
        flink = ["flink", run, "-t", "yarn-application", *said, "-p", str(self.most)]
        return [
            *(YARNCTL, "wrap", "--flink", "--exec", "--"),
            *(*flink, "-c", "counting.Count", self.there.jar, *program),
        ]

    def __enter__(self) -> FlinkJob:
        environment = {**self.cluster.environment, "HADOOP_USER_NAME": "alice"}
        (self.there.taken / self.name).mkdir(parents=True)
        done = subprocess.run(self.words(), env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps?applicationTypes=Apache%20Flink"
        rows = (http_client.get(url, timeout=20).json().get("apps") or {}).get("app", [])
        self.application = max(str(row["id"]) for row in rows if row["name"] == self.name)
        return self

    def __exit__(self, *_: object) -> None:
        if self.row()["state"] not in ("FINISHED", "FAILED", "KILLED"):
            url = f"{self.cluster.rm_url}/ws/v1/cluster/apps/{self.application}/state?user.name=alice"
            http_client.put(url, json={"state": "KILLED"}, timeout=20)

    def row(self) -> dict[str, Any]:
        url = f"{self.cluster.rm_url}/ws/v1/cluster/apps/{self.application}"
        row: dict[str, Any] = http_client.get(url, timeout=20).json()["app"]
        return row

    def workers(self) -> int:
        return max(0, int(self.row()["runningContainers"]) - 1)

    def ask(self, below: str) -> Any:
        """Return what its JobManager answers; None while it does not."""
        answer = http_client.get(f"{self.cluster.rm_url}/proxy/{self.application}/{below}", timeout=20)
        return (
            answer.json() if answer.headers.get("content-type", "").startswith("application/json") else None
        )

    def job(self) -> str:
        return str(self.ask("jobs/overview")["jobs"][0]["jid"])

    def uppers(self) -> set[int]:
        told = self.ask(f"jobs/{self.job()}/resource-requirements")
        return {each["parallelism"]["upperBound"] for each in told.values()}

    def until_working(self) -> None:
        """Wait until all its workers work, and a checkpoint is completed."""
        ends = time.monotonic() + PATIENCE_S
        while not (self.workers() == self.most and self._has_checkpoint()):
            assert time.monotonic() < ends, f"{self.workers()} workers: {self.row()}"
            time.sleep(LOOK_S)  # how exactly a beginning is seen

    def _has_checkpoint(self) -> bool:
        told = self.ask("jobs/overview")
        jobs = told["jobs"] if told else []
        tasks = jobs[0]["tasks"] if jobs else {}
        if not jobs or tasks["running"] + tasks["finished"] != tasks["total"]:
            return False
        found = self.ask(f"jobs/{jobs[0]['jid']}/checkpoints")
        return bool(found and found["latest"]["completed"])

    def until_over(self) -> str:
        """Wait for its end; return YARN's final status."""
        ends = time.monotonic() + ENDS_S
        while (row := self.row())["state"] not in ("FINISHED", "FAILED", "KILLED"):
            assert time.monotonic() < ends, row
            time.sleep(LOOK_S)  # how exactly its end is seen
        return str(row["finalStatus"])

    def taken_again(self) -> int:
        """Return how many numbers its tasks took more than once, after its end."""
        files = (self.there.taken / self.name).iterdir()
        return sum(int(file.read_text()) for file in files) - self.numbers

    def written(self) -> list[tuple[int, int, int]]:
        """Return the lines that are committed: key, count, number."""
        hdfs, folder = Hdfs(self.cluster.hdfs_url, "alice"), f"/flink/data/{self.name}"
        parts = [name for name in hdfs.names(folder) if name.startswith("part-")]
        lines = b"".join(hdfs.read(f"{folder}/{name}") for name in parts).decode("ascii").splitlines()
        return [(int(key), int(count), int(number)) for key, count, number in map(str.split, lines)]


def faults_of(written: list[tuple[int, int, int]], numbers: int) -> list[str]:
    """Return what is wrong with an output: numbers that are missing or twice, counts with gaps."""
    found: list[str] = []
    said = [number for _, _, number in written]
    if len(said) != len(set(said)):
        found.append(f"{len(said) - len(set(said))} numbers twice")
    if missing := numbers - len(set(said)):
        found.append(f"{missing} numbers missing")
    for key in range(KEYS):
        counts = sorted(count for mine, count, _ in written if mine == key)
        if counts != list(range(1, len(counts) + 1)):
            found.append(f"key {key}: its counts are not 1 to {len(counts)}")
    return found
