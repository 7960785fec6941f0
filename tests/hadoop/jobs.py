"""Streaming jobs on a real cluster: made, submitted as users do, waited for, judged by what they left.

Law: a reduce's length is given by how many key groups it has, each of a known span of work. Keys are
chosen so that Hadoop's own HashPartitioner hands each reduce exactly its groups; a value permutes
nothing, so outputs of two runs are compared byte for byte.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests import http_client
from tests.hadoop.hdfs import Hdfs
from tests.hadoop.launcher import Cluster

PROGRAM = Path(__file__).parent / "programs" / "work.py"
BLOW_UP = PROGRAM.with_name("blow_up.py")
EXPAND = PROGRAM.with_name("expand.py")
YARNCTL = str(Path(sys.executable).with_name("yarnctl"))
LOOK_S = 0.25
PATIENCE_S = 900.0
FINAL = ("FINISHED", "FAILED", "KILLED")


class Plan(NamedTuple):
    """A job: ``groups[i]`` key groups in reduce ``i``, ``key_s`` of work each, ``values`` lines in a group.

    ``settings`` are ``-D`` properties, ``words`` further options of streaming, ``wrap`` words for
    ``yarnctl wrap`` (none: submitted without the runner). ``work``: what a group's work is (``work.py``).
    """

    name: str
    queue: str
    groups: tuple[int, ...]
    key_s: float = 0.1
    maps: int = 2
    values: int = 3
    user: str = "alice"
    wrap: tuple[str, ...] = ()
    settings: Mapping[str, str] = {}
    words: tuple[str, ...] = ()
    mapper: str = "/bin/cat"
    work: str = "sleep"

    @property
    def reduce_s(self) -> tuple[float, ...]:
        return tuple(count * self.key_s for count in self.groups)


RESTARTABLE = ("--restartable",)


def partition_of(key: str, reduces: int) -> int:
    """Return the reduce that Hadoop's HashPartitioner gives a Text key (WritableComparator.hashBytes)."""
    code = 1
    for byte in key.encode():
        code = (31 * code + (byte - 256 if byte > 127 else byte)) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % reduces


def keys_of(groups: tuple[int, ...]) -> Iterator[str]:
    """Yield keys so that reduce ``i`` is handed ``groups[i]`` of them."""
    wanted = Counter(dict(enumerate(groups)))
    for number in itertools.count():
        if not wanted.total():
            return
        key = f"k{number:06d}"
        part = partition_of(key, len(groups))
        if wanted[part] > 0:
            wanted[part] -= 1
            yield key


def write_input(hdfs: Hdfs, plan: Plan, folder: str) -> None:
    """Write a job's input: one file for each map."""
    lines = [f"{key}\tv{number}" for key in keys_of(plan.groups) for number in range(plan.values)]
    for number in range(plan.maps):
        text = "\n".join(lines[number :: plan.maps]) + "\n"
        hdfs.write(f"{folder}/input-{number:02d}.txt", text.encode())


class Finished(NamedTuple):
    """How an application ended, by the ResourceManager's clock."""

    state: str
    took_s: float
    am_wait_s: float
    preempted: int


class Job:
    """One submitted job."""

    def __init__(self, cluster: Cluster, plan: Plan, folder: Path, number: str) -> None:
        self.plan = plan
        self.cluster = cluster
        self.hdfs = Hdfs(cluster.hdfs_url, plan.user)
        self.name = f"{plan.name}-{number}"
        self.output = f"/user/{plan.user}/{self.name}/out"
        self.log = folder / f"{self.name}.log"
        self.groups = folder / f"{self.name}.groups"
        self.groups.mkdir(mode=0o777)
        words = self.words(f"/user/{plan.user}/{self.name}/in")
        self._began_ms = time.time() * 1000
        self._client = _start(self.environment, plan, words, self.log)
        self._application = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the client that submits it."""
        return {
            **self.cluster.environment,
            "HADOOP_USER_NAME": self.plan.user,
            "YARNCTL_STORE": f"{self.cluster.hdfs_url.replace('http:', 'webhdfs:')}/yarnctl/checkpoints",
        }

    def words(self, source: str) -> list[str]:
        """Write the input; return the command line."""
        write_input(self.hdfs, self.plan, source)
        return streaming_words(self.cluster, self.plan, self.name, source, self.output, self.groups)

    @property
    def application(self) -> str:
        """The application's id; waits until the ResourceManager knows it."""
        while not self._application:
            rows = applications(self.cluster.rm_url)
            self._application = next((row["id"] for row in rows if self.is_this(row)), "")
            if not self._application and self._client.poll() not in (None, 0):
                raise AssertionError(f"{self.name} was not submitted: {self.said()}")
            if not self._application:
                time.sleep(LOOK_S)
        return self._application

    def is_this(self, row: Mapping[str, Any]) -> bool:
        """Say whether an application of the ResourceManager's is this job."""
        return bool(row["name"] == self.name)

    @property
    def submitting_s(self) -> float:
        """Seconds from the client's start to the ResourceManager's taking the job."""
        return max(0.0, float(self.row()["startedTime"]) - self._began_ms) / 1000

    def row(self) -> dict[str, Any]:
        """Return the application as the ResourceManager tells of it."""
        answer = http_client.get(f"{self.cluster.rm_url}/ws/v1/cluster/apps/{self.application}", timeout=30)
        found: dict[str, Any] = answer.json()["app"]
        return found

    def said(self) -> str:
        """Return the end of what the submitting client said."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def wait(self, patience_s: float = PATIENCE_S) -> Finished:
        ends = time.monotonic() + patience_s
        while (row := self.row())["state"] not in FINAL:
            if time.monotonic() > ends:
                raise AssertionError(f"{self.name} does not end: {row}")
            time.sleep(LOOK_S)
        self._client.wait(120)
        return Finished(
            str(row["finalStatus"]),
            (row["finishedTime"] - row["startedTime"]) / 1000,
            (row["launchTime"] - row["startedTime"]) / 1000,
            int(row.get("numNonAMContainerPreempted") or 0) + int(row.get("numAMContainerPreempted") or 0),
        )

    def hurry(self) -> None:
        """Have the rest of the work take a hundredth of its time."""
        self.groups.with_name(f"{self.groups.name}.hurry").touch()

    def stop(self) -> None:
        if self._client.poll() is None:
            self._client.kill()
            self._client.wait()

    def begun(self) -> Counter[str]:
        """Return how often each key group was begun, over all attempts."""
        found: Counter[str] = Counter()
        for path in self.groups.iterdir():
            found.update(line.split(" ")[0] for line in path.read_text(encoding="ascii").splitlines())
        return found

    def groups_twice(self) -> int:
        """Return how many times a key group was begun again."""
        begun = self.begun()
        return begun.total() - len(begun)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of every part of the output."""
        return self.hdfs.digests(self.output)

    def tasks(self) -> list[dict[str, Any]]:
        """Return the reduce tasks as the job's master tells of them; none while it cannot be asked."""
        job = self.application.replace("application_", "job_", 1)
        url = f"{self.cluster.rm_url}/proxy/{self.application}/ws/v1/mapreduce/jobs/{job}/tasks?type=r"
        answer = http_client.get(url, timeout=30, allow_redirects=False)
        if not answer.ok or "json" not in answer.headers.get("Content-Type", ""):
            return []
        rows: list[dict[str, Any]] = (answer.json().get("tasks") or {}).get("task") or []
        return rows

    def at_work(self) -> int:
        """Return how many reduces have begun with their keys."""
        return len({path.name.rpartition("_")[0] for path in self.groups.iterdir()})


def streaming_words(
    cluster: Cluster, plan: Plan, name: str, source: str, output: str, groups: Path
) -> list[str]:
    """Return the command line that a user types to submit the job."""
    settings = {
        "mapreduce.job.name": name,
        "mapreduce.job.queuename": plan.queue,
        "mapreduce.job.reduces": str(len(plan.groups)),
        "mapreduce.reduce.speculative": "false",
        "mapreduce.map.speculative": "false",
        "stream.jobconf.truncate.limit": "20000",
        **plan.settings,
    }
    words = ["hadoop", "jar", str(cluster.streaming_jar)]
    words += [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    words += [
        "-files", f"{PROGRAM},{BLOW_UP},{EXPAND}", "-mapper", plan.mapper, "-reducer",
        f"{sys.executable} work.py",
    ]  # fmt: skip
    words += ["-input", source, "-output", output]
    words += ["-cmdenv", f"KEY_S={plan.key_s}", "-cmdenv", f"GROUP_LOG={groups}"]
    words += ["-cmdenv", f"WORK={plan.work}"]
    return [*words, *plan.words]


def _start(
    environment: Mapping[str, str], plan: Plan, words: list[str], log: Path
) -> subprocess.Popen[bytes]:
    if plan.wrap:
        words = [YARNCTL, "wrap", *plan.wrap, "--exec", "--", *words]
    with log.open("wb") as out:
        return subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )


def applications(rm_url: str) -> list[dict[str, Any]]:
    found = http_client.get(f"{rm_url}/ws/v1/cluster/apps", timeout=30).json()
    rows: list[dict[str, Any]] = (found.get("apps") or {}).get("app") or []
    return rows
