"""Kerberos for real: runners write by their containers' tokens, yarnctl acts by its ticket, others may not.

The yarnctl that restores and takes over was installed from a release, without an index.
Law: no test waits for a span of time. The research job's reduces work slowly until a file says otherwise, so
production meets a full cluster however slow the machine is. Nothing secret may stand in what is logged.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from release.dist import make_archives, make_wheelhouse, pack_wheelhouse, this_release
from tests import http_client
from tests.hadoop.configuration import Shape
from tests.hadoop.secured_jobs import CHECKPOINTS, production, run_client, secured, start
from tests.hadoop.security import SecureCluster, as_user

PATIENCE_S = 420.0
KEYS = 12_000
SLOW = """\
import os, sys, time
def tell(key, count):
    print("%s\\t%d" % (key, count), flush=True)
    if not os.path.exists(sys.argv[1]):
        time.sleep(0.2)
key, count = None, 0
for line in sys.stdin:
    name = line.split("\\t")[0]
    if key not in (None, name):
        tell(key, count)
        count = 0
    key, count = name, count + 1
if key is not None:
    tell(key, count)
"""
YARNCTL = [sys.executable, "-c", "from yarnctl.cli import main; main()"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[SecureCluster]:
    folder = tmp_path_factory.mktemp("secure")
    mutable = {"yarn-site": {"yarn.scheduler.configuration.store.class": "memory"}}
    shape = Shape(nodes=1, node_memory_mib=2048, overrides=mutable)
    lines = (f"{number:06d}\t{'x' * 100}\n" for number in range(KEYS))
    with secured(shape, folder, lines) as running:
        (folder / "slow.py").write_text(SLOW)
        yield running


@pytest.fixture(scope="module")
def installed(tmp_path_factory, cluster) -> str:
    """Return the program that a release with Kerberos installs; no index is used (docs/install.md)."""
    folder = tmp_path_factory.mktemp("release")
    release = this_release(folder, "kerberos")
    wheel, _ = make_archives(release)
    packed = pack_wheelhouse(release, make_wheelhouse(release, wheel, folder / "wheels"))
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    given = {**os.environ, "PIP_NO_INDEX": "1", "PYTHONPATH": ""}
    run_client(given, str(packed.with_suffix("") / "install"), str(folder / "yarnctl"))
    return str(folder / "yarnctl" / "bin" / "yarnctl")


def wrapped(
    cluster: SecureCluster, given: dict[str, str], output: str, reduces: int, *options: str
) -> list[str]:
    """Return a research job's command line with the runner in it, as ``yarnctl wrap`` makes it."""
    hosts = cluster.hdfs_url.partition("://")[2]
    go = cluster.folder / "go"
    files = f"{cluster.folder}/slow.py,{cluster.ca_file}"
    store = ["--store", f"swebhdfs://{hosts}{CHECKPOINTS}", "--requests-owner", "yarnctl"]
    job = ["-D", "mapreduce.job.queuename=research", "-D", f"mapreduce.job.reduces={reduces}"]
    usual = ["hadoop", "jar", str(cluster.streaming_jar), *job, "-D", "mapreduce.job.maps=1", "-files", files]
    usual += ["-input", "input", "-output", output, "-mapper", "cat", "-reducer", f"python3 slow.py {go}"]
    usual += ["-cmdenv", f"YARNCTL_CA_FILE={cluster.ca_file.name}"]
    told = run_client(given, *YARNCTL, "wrap", "--restartable", *store, *usual)
    more = f" {' '.join(options)} -- " if options else " -- "
    return [word.replace(" -- ", more) for word in shlex.split(told)]


def expected() -> list[str]:
    return [f"{number:06d}\t1" for number in range(KEYS)]


def result(given: dict[str, str], output: str) -> list[str]:
    """Return a job's output lines, ordered."""
    return sorted(run_client(given, "hadoop", "fs", "-cat", f"{output}/part-*").splitlines())


def manifests(cluster: SecureCluster) -> list[str]:
    """Return the paths of all manifests, as HDFS's administrator sees them."""
    with cluster.session() as admin:

        def listed(path: str) -> list[dict[str, str]]:
            answer = admin.get(f"{cluster.hdfs_url}/webhdfs/v1{path}?op=LISTSTATUS", timeout=180)
            return answer.json()["FileStatuses"]["FileStatus"] if answer.ok else []

        found, folders = [], [CHECKPOINTS]
        for folder in folders:
            for row in listed(folder):
                path = f"{folder}/{row['pathSuffix']}"
                if row["type"] == "DIRECTORY":
                    folders.append(path)
                elif path.endswith(".manifest.json"):
                    found.append(path)
        return found


def wait_until(
    condition: Callable[[], object], what: str, alive: subprocess.Popen[str] | None = None
) -> None:
    """Look again until it holds; fail if the program that should bring it about has left."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        assert alive is None or alive.poll() is None, f"{what}: who should bring it about has left"
        assert time.monotonic() < ends, f"{what}: not within {PATIENCE_S:.0f} s"
        time.sleep(0.3)


def logs_of_containers(cluster: SecureCluster) -> str:
    found = cluster.folder.glob("nm-*/logs/application_*/container_*/*")
    return "".join(path.read_text(errors="replace") for path in found)


def test_a_runner_writes_and_resumes_by_its_container_s_token(cluster):
    """It suspends itself and leaves; Hadoop counts that as failed, and the next attempt goes on."""
    (cluster.folder / "go").touch()
    with as_user(cluster, cluster.user) as given:
        words = wrapped(cluster, given, "alone", 1, "--suspend-at", "1000", "--exit-when-saved")
        run_client(given, *words)
        assert result(given, "alone") == expected()
    assert len(manifests(cluster)) == 1
    logs = logs_of_containers(cluster)
    assert "the reducer runs without the task runner" not in logs
    assert "delegation=" not in logs.replace("delegation=***", "")


def test_the_daemon_moves_a_secured_job_by_its_ticket(cluster, tmp_path):
    (cluster.folder / "go").unlink(missing_ok=True)
    before = set(manifests(cluster))
    with as_user(cluster, "yarnctl") as ours, as_user(cluster, cluster.user) as given:
        ours = {**ours, "YARNCTL_CA_FILE": str(cluster.ca_file)}
        research = start(given, tmp_path / "research", *wrapped(cluster, given, "research", 6))
        wait_until(lambda: running_reduces(cluster) == 6, "six reduces at work", research)
        run = ["run", "--enforce", "--state-dir", str(tmp_path / "state"), "--listen", "off"]
        daemon = start(ours, tmp_path / "daemon", *YARNCTL, *run)
        try:
            wait_until(lambda: "running (enforce)" in (tmp_path / "daemon").read_text(), "enforcing", daemon)
            run_client(given, *production(cluster))
            (cluster.folder / "go").touch()
            assert research.wait(PATIENCE_S) == 0, (tmp_path / "research").read_text()[-2000:]
        finally:
            daemon.terminate()
            daemon.wait()
            research.kill()
            research.wait()
        assert result(given, "research") == expected()
    log = (tmp_path / "daemon").read_text()
    assert len(set(manifests(cluster)) - before) >= 1, log
    assert "freed" in log, log
    assert "Traceback" not in log
    assert "delegation=" not in (log + logs_of_containers(cluster)).replace("delegation=***", "")
    assert daemon.returncode == 0


class Lowered(NamedTuple):
    """A research queue that a daemon lowered; ``before``: its maximum, ``ours``: yarnctl's environment."""

    before: float
    ours: dict[str, str]
    daemon: subprocess.Popen[str]


@contextmanager
def lowered(cluster: SecureCluster, program: str, folder: Path, name: str) -> Iterator[Lowered]:
    """Yield a daemon that has lowered research's queue; what is left ends well once the block is over."""
    (cluster.folder / "go").unlink(missing_ok=True)
    before = research_maximum(cluster)
    with ExitStack() as stack:
        ours = stack.enter_context(as_user(cluster, "yarnctl"))
        given = stack.enter_context(as_user(cluster, cluster.user))
        ours = {**ours, "YARNCTL_CA_FILE": str(cluster.ca_file)}

        def started(environment: dict[str, str], log: str, *words: str) -> subprocess.Popen[str]:
            process = start(environment, folder / log, *words)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        research = started(given, "research", *wrapped(cluster, given, name, 6))
        wait_until(lambda: running_reduces(cluster) == 6, "six reduces at work", research)
        daemon = started(ours, "daemon", program, *enforcing(folder / "state"))
        wait_until(lambda: "running (enforce)" in (folder / "daemon").read_text(), "enforcing", daemon)
        urgent = started(given, "urgent", *production(cluster, f"urgent-{name}"))
        wait_until(lambda: research_maximum(cluster) < before, "research's maximum is lowered", daemon)
        yield Lowered(before, ours, daemon)
        (cluster.folder / "go").touch()
        for job, log in ((research, "research"), (urgent, "urgent")):
            assert job.wait(PATIENCE_S) == 0, (folder / log).read_text()[-2000:]
        assert result(given, name) == expected()


def enforcing(state: Path) -> list[str]:
    return ["run", "--enforce", "--cap-queue", "--state-dir", str(state), "--listen", "off"]


def test_restore_works_by_a_ticket_after_the_daemon_was_killed(cluster, installed, tmp_path):
    with lowered(cluster, installed, tmp_path, "lowered") as found:
        found.daemon.kill()
        found.daemon.wait()
        told = run_client(found.ours, installed, "restore", "--all", "-o", "json")
        assert research_maximum(cluster) == found.before, told
        assert json.loads(run_client(found.ours, installed, "restore", "-o", "json")) == {"settings": []}
    (row,) = json.loads(told)["settings"]
    assert (row["kind"], row["target"]) == ("queue", "root.research")


def test_a_standby_takes_over_by_a_ticket_and_restores_what_the_dead_leader_lowered(
    cluster, installed, tmp_path
):
    log = tmp_path / "standby"
    with lowered(cluster, installed, tmp_path, "fail-over") as found:
        standby = start(found.ours, log, installed, *enforcing(tmp_path / "state-standby"))
        try:
            wait_until(lambda: "another yarnctl holds the lock" in log.read_text(), "a standby", standby)
            assert "enforcing" not in log.read_text()
            found.daemon.kill()
            found.daemon.wait()
            wait_until(lambda: "enforcing" in log.read_text(), "the standby acts", standby)
            (cluster.folder / "go").touch()
            wait_until(lambda: research_maximum(cluster) == found.before, "the maximum is restored", standby)
        finally:
            standby.terminate()
            standby.wait()
    assert standby.returncode == 0, log.read_text()[-2000:]
    assert "Traceback" not in log.read_text()
    with as_user(cluster, "yarnctl") as ours:
        ours = {**ours, "YARNCTL_CA_FILE": str(cluster.ca_file)}
        assert json.loads(run_client(ours, installed, "restore", "-o", "json")) == {"settings": []}


def research_maximum(cluster: SecureCluster) -> float:
    """Return the maximum of the research queue in percent, as the ResourceManager shows it."""
    with cluster.session() as admin:
        told = admin.get(f"{cluster.rm_url}/ws/v1/cluster/scheduler", timeout=180).json()
    rows = told["scheduler"]["schedulerInfo"]["queues"]["queue"]
    (share,) = (row["maxCapacity"] for row in rows if row["queueName"] == "research")
    return float(share)


def running_reduces(cluster: SecureCluster) -> int:
    """Return how many reduces of the one running job are in their last phase, by their runners' own words."""
    with cluster.session() as admin:
        apps = (
            admin.get(f"{cluster.rm_url}/ws/v1/cluster/apps?states=RUNNING", timeout=180).json()["apps"] or {}
        )
        for app in apps.get("app", []):
            job = app["id"].replace("application", "job")
            admin.cookies.set(f"checked_{app['id']}", "true")
            master = f"{cluster.rm_url}/proxy/{app['id']}/ws/v1/mapreduce"
            url = f"{master}/jobs/{job}/tasks?type=r&proxyapproved=true"
            answer = admin.get(url, timeout=180, headers={"Accept": "application/json"})
            if answer.ok and "json" in answer.headers.get("Content-Type", ""):
                rows = (answer.json()["tasks"] or {}).get("task", [])
                return sum("phase=run" in row.get("status", "") for row in rows)
    return 0


def test_without_a_ticket_yarnctl_refuses_to_enforce_and_says_why(cluster, tmp_path):
    given = {**os.environ, "KRB5CCNAME": str(tmp_path / "none"), "YARNCTL_CA_FILE": str(cluster.ca_file)}
    where = ["--rm", cluster.rm_url, "--name-node", cluster.hdfs_url, "--state-dir", str(tmp_path / "state")]
    for authentication in ("simple", "kerberos"):
        done = subprocess.run(
            [*YARNCTL, "run", "--enforce", *where, "--listen", "off", "--ticks", "1"],
            env={**given, "YARNCTL_AUTHENTICATION": authentication},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 2, done.stderr
        assert "HTTP 401" in done.stderr, done.stderr
        assert "kinit" in done.stderr, done.stderr
        lines = done.stderr.splitlines()
        assert all(" WARNING " in line for line in lines[:-1]), lines
        assert (len(lines) <= 3, lines[-1].startswith("error: ")) == (True, True), lines


def test_others_see_nothing_of_a_checkpoint(cluster):
    (path, *_) = manifests(cluster)
    with http_client.Session() as nobody:
        answer = nobody.get(
            f"{cluster.hdfs_url}/webhdfs/v1{path}?op=OPEN&user.name=yarnctl",
            verify=str(cluster.ca_file),
            timeout=180,
        )
        assert answer.status_code == 401
    with as_user(cluster, "mallory") as given:
        done = subprocess.run(["hadoop", "fs", "-cat", path], env=given, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Permission denied" in done.stderr
