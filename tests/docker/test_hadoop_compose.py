"""The compose file with the real Hadoop: built, up, a research job suspended for a production job, and gone.

Without an engine, or without Java and Maven for the jars, the tests are skipped with the reason; where
YARNCTL_REQUIRE_DOCKER is set they fail.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.composed import PATIENCE_S, Composed, Context, free_port, must_run, until
from tests.docker.engine import Engine
from tests.hadoop.artifacts import STREAMING, cache_folder, missing_programs

HERE = Path(__file__).parent
NODES = ("node1", "node2")
DAEMONS = ("namenode", "datanode", "resourcemanager", *NODES, "historyserver")
YARNCTL = "hadoop-yarnctl"
SERVICES = (*DAEMONS, YARNCTL)
REDUCES = 7
"""Two nodes hold eight containers: one for the master and one for each reduce."""
HURRY = "/user/alice/hurry"
GROUPS = 256
"""So many different numbers of steps do the sample's ranges have."""


@pytest.fixture(scope="module", autouse=True)
def jars() -> None:
    """Say what is missing where Hadoop's jars can neither be found nor fetched."""
    kept = cache_folder() / f"hadoop-{os.environ.get('HADOOP', next(iter(STREAMING)))}" / "lib"
    if not kept.is_dir() and (absent := missing_programs()):
        told = f"no jars of Hadoop, and not on the path: {', '.join(absent)}"
        if must_run():
            pytest.fail(told)
        pytest.skip(told)


@pytest.fixture(scope="module")
def cluster(context: Context, engine: Engine, jobs: Path) -> Iterator[Composed]:
    settings = {
        "CONTEXT": str(context.folder), "IMAGE": "yarnctl-hadoop:test", "YARNCTL_IMAGE": "yarnctl:test",
        "JOBS": str(jobs), "MODE": "--enforce", "RM_PORT": str(free_port()), "YARNCTL_PORT": str(free_port()),
    }  # fmt: skip
    project = Composed(engine, f"yarnctl-hadoop-{os.getpid()}", settings, "hadoop")
    context.wait()
    try:
        project.compose("build", "--quiet")
        project.compose("up", "--detach")
        project.wait_healthy(*SERVICES)
        yield project
    finally:
        project.compose("down", "--volumes", "--rmi", "all")


PARTS = """
import json, sys, urllib.request
root = f"http://namenode:9870/webhdfs/v1{sys.argv[1]}"
ask = lambda path, op: urllib.request.urlopen(f"{root}{path}?op={op}&user.name=alice", timeout=60).read()
rows = json.loads(ask("", "LISTSTATUS"))["FileStatuses"]["FileStatus"]
names = [row["pathSuffix"] for row in rows if row["pathSuffix"].startswith("part-")]
print(json.dumps({name: ask(f"/{name}", "OPEN").decode() for name in names}))
"""
"""Prints an output's files, by name."""
TOUCH = """
import sys, urllib.request
url = f"http://namenode:9870/webhdfs/v1{sys.argv[1]}?op=MKDIRS&user.name=alice"
urllib.request.urlopen(urllib.request.Request(url, method="PUT"), timeout=60)
"""
"""Makes a path be there."""


class Client:
    """A streaming job, submitted from a container of its own by ``words``; ``output`` lies in HDFS."""

    def __init__(self, cluster: Composed, queue: str, reducer: str, *before: str) -> None:
        self.cluster = cluster
        self.name = self.output = queue
        options = {"mapreduce.job.name": queue, "mapreduce.job.queuename": queue}
        options["mapreduce.job.reduces"] = str(REDUCES)
        words = [*before, "mapred", "streaming"]
        words += [word for name, value in options.items() for word in ("-D", f"{name}={value}")]
        words += ["-files", f"steps_map.py,{reducer.split()[1]}", "-input", "ranges", "-output", self.output]
        words += ["-mapper", "python3 steps_map.py", "-reducer", reducer]
        self._client = subprocess.Popen(
            [*cluster.words, "run", "--rm", "-T", "client", *words], env=cluster.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def application(self) -> str:
        """Return the application's id, "" as long as the ResourceManager does not know it."""
        if self._client.poll() is not None:
            self.succeed()
        rows = (self.cluster.read("resourcemanager", "/ws/v1/cluster/apps").get("apps") or {}).get("app", [])
        return next((row["id"] for row in rows if row["name"] == self.name), "")

    def all_reduces_run(self) -> bool:
        """Say whether every reduce is at its keys: the runner counts them in its status."""
        one = self.application()
        path = f"/proxy/{one}/ws/v1/mapreduce/jobs/{one.replace('application', 'job')}/tasks?type=r"
        status, found = self.cluster.ask("resourcemanager", path) if one else (0, {})
        rows = (found.get("tasks") or {}).get("task") or [] if status == 200 else []
        return sum("phase=run" in str(row.get("status")) for row in rows) == REDUCES

    def succeed(self) -> str:
        """Wait for the client; it must say that the job has completed. Returns all that it said."""
        told, _ = self._client.communicate(timeout=2 * PATIENCE_S)
        assert self._client.returncode == 0, told[-5000:]
        assert "completed successfully" in told
        return told

    def parts(self) -> dict[str, str]:
        """Return the output's files."""
        told = self.cluster.inside("namenode", "python3", "-c", PARTS, f"/user/alice/{self.output}")
        return {str(name): str(text) for name, text in json.loads(told).items()}

    def end(self) -> None:
        if self._client.poll() is None:
            self._client.terminate()
            self._client.communicate()


def test_every_node_is_there(cluster: Composed) -> None:
    found = cluster.read("resourcemanager", "/ws/v1/cluster/nodes")["nodes"]["node"]
    assert {row["nodeHostName"]: row["state"] for row in found} == dict.fromkeys(NODES, "RUNNING")


@pytest.mark.parametrize("service", SERVICES)
def test_no_process_is_root_or_can_write_its_root_file_system(cluster: Composed, service: str) -> None:
    rows = cluster.docker("top", cluster.container(service), "-eo", "pid,uid,args").splitlines()[1:]
    assert {row.split()[1] for row in rows} == {"10001"}, rows
    host = cluster.inspected(service)["HostConfig"]
    assert (host["ReadonlyRootfs"], host["CapDrop"]) == (True, ["ALL"])
    bound = [each for one in (host["PortBindings"] or {}).values() for each in one]
    assert {each["HostIp"] for each in bound} <= {"127.0.0.1"}


def test_the_folders_are_those_that_check_asks_for(cluster: Composed) -> None:
    asked = (
        "yarnctl",
        "check",
        "--rm=http://resourcemanager:8088",
        "--name-node=http://namenode:9870",
        "--json",
    )
    done = subprocess.run(
        ["docker", "exec", cluster.container(YARNCTL), *asked],
        env=cluster.engine.environment,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)
    assert [row for row in told["findings"] if row["severity"] == "fail"] == [], done.stderr


def test_a_research_job_gives_way_and_writes_what_it_would_have_written(cluster: Composed) -> None:
    cluster.compose("run", "--rm", "-T", "client", "hdfs", "dfs", "-put", "ranges", "ranges")
    url = f"http://namenode:9870/webhdfs/v1{HURRY}?op=GETFILESTATUS"
    wrapped = ("yarnctl", "wrap", "--restartable", "--exec", "--")
    patient = Client(cluster, "research", f"python3 patient_reduce.py {url}", *wrapped)
    hurried = None
    try:
        until(patient.all_reduces_run, "all reduces of the research job run")
        hurried = Client(cluster, "production", "python3 patient_reduce.py")
        hurried.succeed()
        cluster.inside("namenode", "python3", "-c", TOUCH, HURRY)
        counted = patient.succeed()
    finally:
        patient.end()
        if hurried is not None:
            hurried.end()
    checkpoints = cluster.read(YARNCTL, "/v1/checkpoints")["items"]
    assert {each["application"] for each in checkpoints} == {patient.application()}
    expected = hurried.parts()
    assert len(expected) == REDUCES
    assert sum(text.count("\n") for text in expected.values()) == GROUPS
    assert patient.parts() == expected
    assert f"groups={GROUPS}\n" in counted, "a key was worked on twice, or never"


def test_down_leaves_nothing(cluster: Composed) -> None:
    cluster.compose("down", "--volumes", "--rmi", "all")
    for things in (("ps", "-aq"), ("network", "ls", "-q"), ("volume", "ls", "-q")):
        assert cluster.docker(*things, *cluster.of_project) == ""
