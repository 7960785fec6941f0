"""Kerberos for real: runners write by their containers' tokens, yarnctl acts by its ticket, others may not.

Law: no test waits for a span of time. The research job's reduces work slowly until a file says otherwise, so
production meets a full cluster however slow the machine is. Nothing secret may stand in what is logged.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import http_client
from tests.hadoop import security
from tests.hadoop.configuration import Shape
from tests.hadoop.needing import need_hadoop
from tests.hadoop.security import SecureCluster, as_user

CHECKPOINTS, REQUESTS = "/yarnctl/checkpoints", "/yarnctl/requests"
OWNER = "SETOWNER&owner=yarnctl&group=yarnctl"
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


def what_is_missing() -> list[str]:
    found = [f"{name} (Debian: krb5-kdc, krb5-user)" for name in security.missing_programs()]
    if importlib.util.find_spec("requests_gssapi") is None:
        found.append("the package requests-gssapi (pip install 'yarnctl[kerberos]')")
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[SecureCluster]:
    need_hadoop(Shape().version)
    if missing := what_is_missing():
        told = f"a secured Hadoop needs: {', '.join(missing)}"
        if os.environ.get("CI") or os.environ.get("YARNCTL_REQUIRE_HADOOP"):
            pytest.fail(told, pytrace=False)
        pytest.skip(told)
    folder = tmp_path_factory.mktemp("secure")
    mutable = {"yarn-site": {"yarn.scheduler.configuration.store.class": "memory"}}
    with SecureCluster(Shape(nodes=1, node_memory_mib=2048, overrides=mutable), folder) as running:
        with running.session() as admin:
            make_folders(admin, running)
        (folder / "slow.py").write_text(SLOW)
        lines = [f"{number:06d}\t{'x' * 100}\n" for number in range(KEYS)]
        (folder / "input").write_text("".join(lines))
        with as_user(running, running.user) as given:
            run_client(given, "hadoop", "fs", "-mkdir", "-p", f"/user/{running.user}")
            run_client(given, "hadoop", "fs", "-put", str(folder / "input"), "input")
        yield running


def make_folders(admin: http_client.Session, cluster: SecureCluster) -> None:
    """Make what an administrator makes: folders that are yarnctl's, readable to its group."""
    for path, mode in (("/yarnctl", "755"), (CHECKPOINTS, "1777"), (REQUESTS, "755")):
        for operation in (f"MKDIRS&permission={mode}", f"SETPERMISSION&permission={mode}", OWNER):
            admin.put(f"{cluster.hdfs_url}/webhdfs/v1{path}?op={operation}", timeout=60).raise_for_status()


def run_client(given: dict[str, str], *words: str) -> str:
    """Run a client to its end; raise with what it said."""
    done = subprocess.run(words, env=given, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{' '.join(words)[:200]}: {done.stderr[-3000:]}"
    return done.stdout


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
            answer = admin.get(f"{cluster.hdfs_url}/webhdfs/v1{path}?op=LISTSTATUS", timeout=60)
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


def test_restore_works_by_a_ticket_after_the_daemon_was_killed(cluster, tmp_path):
    (cluster.folder / "go").unlink(missing_ok=True)
    before = research_maximum(cluster)
    with as_user(cluster, "yarnctl") as ours, as_user(cluster, cluster.user) as given:
        ours = {**ours, "YARNCTL_CA_FILE": str(cluster.ca_file)}
        research = start(given, tmp_path / "lowered", *wrapped(cluster, given, "lowered", 6))
        wait_until(lambda: running_reduces(cluster) == 6, "six reduces at work", research)
        run = ["run", "--enforce", "--cap-queue", "--state-dir", str(tmp_path / "state"), "--listen", "off"]
        daemon = start(ours, tmp_path / "daemon", *YARNCTL, *run)
        urgent = None
        try:
            wait_until(lambda: "running (enforce)" in (tmp_path / "daemon").read_text(), "enforcing", daemon)
            urgent = start(given, tmp_path / "urgent", *production(cluster, "urgent"))
            wait_until(lambda: research_maximum(cluster) < before, "research's maximum is lowered", daemon)
            daemon.kill()
            daemon.wait()
            told = run_client(ours, *YARNCTL, "restore", "--all", "-o", "json")
            assert research_maximum(cluster) == before, told
            assert json.loads(run_client(ours, *YARNCTL, "restore", "-o", "json")) == {"settings": []}
            (cluster.folder / "go").touch()
            assert research.wait(PATIENCE_S) == 0, (tmp_path / "lowered").read_text()[-2000:]
            assert urgent.wait(PATIENCE_S) == 0, (tmp_path / "urgent").read_text()[-2000:]
        finally:
            for one in (daemon, research, urgent):
                if one is not None:
                    one.kill()
                    one.wait()
        assert result(given, "lowered") == expected()
    (row,) = json.loads(told)["settings"]
    assert (row["kind"], row["target"]) == ("queue", "root.research")


def research_maximum(cluster: SecureCluster) -> float:
    """Return the maximum of the research queue in percent, as the ResourceManager shows it."""
    with cluster.session() as admin:
        told = admin.get(f"{cluster.rm_url}/ws/v1/cluster/scheduler", timeout=30).json()
    rows = told["scheduler"]["schedulerInfo"]["queues"]["queue"]
    (share,) = (row["maxCapacity"] for row in rows if row["queueName"] == "research")
    return float(share)


def start(given: dict[str, str], log: Path, *words: str) -> subprocess.Popen[str]:
    with log.open("w") as out:
        return subprocess.Popen(words, env=given, stdout=out, stderr=out, stdin=subprocess.DEVNULL, text=True)


def production(cluster: SecureCluster, output: str = "production") -> list[str]:
    """Return a plain job that finds room for its master and one container more, and wants three."""
    job = ["-D", "mapreduce.job.queuename=production", "-D", "mapreduce.job.reduces=3"]
    words = ["hadoop", "jar", str(cluster.streaming_jar), *job, "-D", "mapreduce.job.maps=1"]
    return [*words, "-input", "input", "-output", output, "-mapper", "cat", "-reducer", "cat"]


def running_reduces(cluster: SecureCluster) -> int:
    """Return how many reduces of the one running job are in their last phase, by their runners' own words."""
    with cluster.session() as admin:
        apps = (
            admin.get(f"{cluster.rm_url}/ws/v1/cluster/apps?states=RUNNING", timeout=30).json()["apps"] or {}
        )
        for app in apps.get("app", []):
            job = app["id"].replace("application", "job")
            admin.cookies.set(f"checked_{app['id']}", "true")
            master = f"{cluster.rm_url}/proxy/{app['id']}/ws/v1/mapreduce"
            url = f"{master}/jobs/{job}/tasks?type=r&proxyapproved=true"
            answer = admin.get(url, timeout=30, headers={"Accept": "application/json"})
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
        assert done.stderr.count("\n") <= 2, done.stderr


def test_others_see_nothing_of_a_checkpoint(cluster):
    (path, *_) = manifests(cluster)
    with http_client.Session() as nobody:
        answer = nobody.get(
            f"{cluster.hdfs_url}/webhdfs/v1{path}?op=OPEN&user.name=yarnctl",
            verify=str(cluster.ca_file),
            timeout=60,
        )
        assert answer.status_code == 401
    with as_user(cluster, "mallory") as given:
        done = subprocess.run(["hadoop", "fs", "-cat", path], env=given, capture_output=True, text=True)
    assert done.returncode != 0
    assert "Permission denied" in done.stderr
