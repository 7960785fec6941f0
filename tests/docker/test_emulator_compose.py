"""The compose file with the emulated cluster: built, up, used, hurt and gone.

The engine is the one that runs, or one that is started here. Where there is none and none can be started
the tests are skipped with the reason, unless YARNCTL_REQUIRE_DOCKER is set: then they fail.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.composed import JOBS, SERVICES, Composed, Context, Job, free_port, until
from tests.docker.engine import Engine

IMAGE = "yarnctl:test"
REDUCES = 8
SLOTS = 3
"""On each of three nodes: one container for the master and one for each reduce."""


@pytest.fixture(scope="module")
def cluster(context: Context | None, engine: Engine, jobs: Path) -> Iterator[Composed]:
    settings = {
        "YARNCTL_IMAGE": IMAGE, "JOBS": str(jobs), "SLOTS": str(SLOTS),
        "RM_PORT": str(free_port()), "YARNCTL_PORT": str(free_port()),
    }  # fmt: skip
    project = Composed(engine, f"yarnctl-test-{os.getpid()}", settings, "emulator")
    try:
        project.compose("build", "--quiet")
        project.compose("up", "--detach")
        project.wait_healthy(*SERVICES)
        yield project
    finally:
        project.compose("down", "--volumes", "--rmi", "all")


def test_all_nodes_are_there(cluster: Composed) -> None:
    assert cluster.nodes() == dict.fromkeys(("nm1", "nm2", "nm3"), "RUNNING")


@pytest.mark.parametrize("service", SERVICES)
def test_no_process_is_root_or_could_become_it(cluster: Composed, service: str) -> None:
    rows = cluster.docker("top", cluster.container(service), "-eo", "pid,uid,args").splitlines()[1:]
    assert rows
    assert {row.split()[1] for row in rows} == {"10001"}, rows
    status = cluster.inside(service, "cat", "/proc/1/status")
    fields = dict(line.split(":", 1) for line in status.splitlines())
    sets = {name: fields[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "NoNewPrivs")}
    assert sets == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"}


@pytest.mark.parametrize("service", SERVICES)
def test_the_root_file_system_cannot_be_written(cluster: Composed, service: str) -> None:
    assert cluster.inspected(service)["HostConfig"]["ReadonlyRootfs"]
    with pytest.raises(AssertionError, match="Read-only file system"):
        cluster.inside(service, "touch", "/home/yarn/here")


def test_what_is_published_is_published_on_loopback(cluster: Composed) -> None:
    published: dict[str, list[dict[str, str]]] = {}
    for service in SERVICES:
        ports = cluster.inspected(service)["NetworkSettings"]["Ports"]
        published |= {name: bound for name, bound in ports.items() if bound}
    assert set(published) == {"8088/tcp", "8188/tcp"}
    assert {each["HostIp"] for bound in published.values() for each in bound} == {"127.0.0.1"}


def test_from_another_address_nobody_answers(cluster: Composed) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        try:
            outward.connect(("192.0.2.1", 9))  # sends nothing; tells which address would be ours
        except OSError:
            pytest.skip("this machine has no address but loopback's")
        address = str(outward.getsockname()[0])
    for port in (cluster.environment["RM_PORT"], cluster.environment["YARNCTL_PORT"]):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, int(port)), timeout=10)


def test_a_foreign_name_for_our_address_is_not_answered(cluster: Composed) -> None:
    status, _ = cluster.ask("yarnctl", "/v1/snapshot", headers={"Host": "rebound.example"})
    assert status == 421


ASK = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", 8188, timeout=60)
connection.request("POST", sys.argv[1], headers={"Authorization": "Bearer " + sys.argv[2]})
print(connection.getresponse().status)
"""


def test_the_loop_is_paused_with_the_token_only(cluster: Composed) -> None:
    def pause(token: str, what: str = "pause") -> int:
        return int(cluster.inside("yarnctl", "python3", "-c", ASK, f"/v1/loop/{what}", token))

    assert pause("") == 401
    assert pause("a" * 32) == 401
    token = cluster.inside("yarnctl", "cat", "/state/token").strip()
    assert pause(token) == 202
    assert pause(token, "continue") == 202
    until(
        lambda: cluster.read("yarnctl", "/v1/snapshot")["loop"]["loop_state"] == "running", "the loop runs on"
    )


def research(cluster: Composed, name: str) -> Job:
    """Submit a job whose reduces take their time until they are hurried."""
    reducer = f"python3 waiting_reduce.py /work/{name}-hurry /work/{name}-keys"
    mapper = "python3 steps_map.py"
    words = ("--mapper", mapper, "--reducer", reducer, "--reduces", str(REDUCES), "--restartable")
    return Job(cluster, "research", name, *words)


def hurry(cluster: Composed, name: str) -> None:
    cluster.inside("rm", "touch", f"/work/{name}-hurry")


def without_a_cluster() -> list[bytes]:
    """Return the lines that the job writes, in some order: mapper, sort and reducer, one after the other."""
    data = b"".join(path.read_bytes() for path in sorted((JOBS / "ranges").iterdir()))
    for program in ("steps_map.py", "steps_reduce.py"):
        done = subprocess.run([sys.executable, JOBS / program], input=data, capture_output=True, check=True)
        data = b"".join(sorted(done.stdout.splitlines(keepends=True)))
    return data.splitlines()


def test_suspended_reduces_write_what_they_would_have_written(cluster: Composed) -> None:
    patient = research(cluster, "research")
    hurried = None
    try:
        until(lambda: patient.all_reduces_run(REDUCES), "all reduces of the research job run")
        words = ("--mapper", "python3 steps_map.py", "--reducer", "python3 steps_reduce.py")
        hurried = Job(cluster, "production", "production", *words, "--reduces", str(REDUCES), "--no-runner")
        hurried.succeed()
        hurry(cluster, "research")
        patient.succeed()
    finally:
        patient.end()
        if hurried is not None:
            hurried.end()
    checkpoints = cluster.read("yarnctl", "/v1/checkpoints")["items"]
    assert checkpoints
    assert {each["application"] for each in checkpoints} == {patient.id()}
    expected = hurried.parts()
    assert len(expected) == REDUCES
    assert patient.parts() == expected
    keys = cluster.inside("rm", "cat", "/work/research-keys").split()
    assert len(keys) == len(set(keys)), "a key was worked on twice"


def test_the_demo_prints_what_was_reclaimed_and_why(cluster: Composed) -> None:
    told = cluster.compose("run", "--rm", "-T", "demo")
    assert "outputs of both jobs: identical" in told
    assert re.search(r"│ o-\d+ ", told), told
    assert "chosen   job first by" in told


def test_a_killed_node_is_lost_its_work_is_done_elsewhere_and_it_comes_back(cluster: Composed) -> None:
    job = research(cluster, "hurt")
    try:
        until(lambda: job.all_reduces_run(REDUCES), "all reduces run")
        masters = cluster.read("rm", f"/ws/v1/cluster/apps/{job.id()}")["app"]["amHostHttpAddress"]
        victim = next(name for name in ("nm1", "nm2", "nm3") if not masters.startswith(f"{name}:"))
        cluster.docker("kill", cluster.container(victim))
        until(lambda: cluster.nodes()[victim] == "LOST", f"{victim} lost")
        cluster.docker("start", cluster.container(victim))
        cluster.wait_healthy(victim)
        assert cluster.nodes()[victim] == "RUNNING"
        hurry(cluster, "hurt")
        job.succeed()
    finally:
        job.end()
    written = b"".join(job.parts().values()).splitlines()
    assert sorted(written) == sorted(without_a_cluster())


def test_a_killed_yarnctl_goes_on_from_its_journal(cluster: Composed) -> None:
    before = cluster.read("yarnctl", "/v1/decisions")["items"]
    assert before
    cluster.docker("kill", cluster.container("yarnctl"))
    cluster.docker("start", cluster.container("yarnctl"))
    cluster.wait_healthy("yarnctl")
    assert cluster.read("yarnctl", "/v1/decisions")["items"] == before


def test_down_leaves_nothing(cluster: Composed) -> None:
    cluster.compose("down", "--volumes", "--rmi", "all")
    for things in (("ps", "-aq"), ("network", "ls", "-q"), ("volume", "ls", "-q")):
        assert cluster.docker(*things, *cluster.of_project) == ""
    assert cluster.docker("images", "-q", IMAGE) == ""
