"""Whole clusters with real processes: in one process, and in many."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.cluster.timing import Timing
from emulator.live.jobs.submission_client import Client as Submitter
from emulator.live.jobs.workload_replay import play
from emulator.live.manager.service import ManagerSettings
from emulator.live.node.process_supervisor import children, stat_fields
from emulator.live.programs.all_in_one import AllInOne, ClusterPlan, build, jobs_of
from emulator.live.programs.manager_program import Options
from emulator.live.wire.submitted_job import ENTRY, StreamingJob, write_job
from tests import http_client
from tests.hadoop.background import Background
from yarnctl.errors import BadInput
from yarnctl.traces.job import Job

PATIENCE_S = 120.0
QUICK = Timing(nm_heartbeat_ms=100, am_heartbeat_ms=100, am_retry_ms=100)
SUM = """
import itertools, sys, time
for key, lines in itertools.groupby(sys.stdin, key=lambda line: line.split("\\t")[0]):
    time.sleep({pause_s})
    print(key, sum(int(line.split("\\t")[1]) for line in lines), sep="\\t", flush=True)
"""
KEYS = 7
EXPECTED = sorted(f"k{key}\t{sum(range(key, 500, KEYS))}\n" for key in range(KEYS))


class Client:
    """What a user of the cluster can do."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.input = folder / "in"
        self.input.mkdir()
        (self.input / "numbers").write_text("".join(f"k{n % KEYS}\t{n}\n" for n in range(500)))

    def get(self, path: str) -> Any:
        return http_client.get(f"{self.url}/ws/v1/cluster/{path}", timeout=30).json()

    def post(self, path: str, body: dict[str, Any] | None = None) -> http_client.Response:
        answer = http_client.post(f"{self.url}/ws/v1/cluster/{path}?user.name=alice", json=body, timeout=30)
        assert answer.status_code in (200, 202), answer.text
        return answer

    def submit(self, name: str, reducer: str = "", pause_s: float = 0) -> str:
        script = self.folder / f"{name}.py"
        script.write_text(SUM.format(pause_s=pause_s))
        job = StreamingJob(
            name=name,
            inputs=(str(self.input),),
            output=str(self.folder / name),
            mapper="cat",
            reducer=reducer or f"{sys.executable} -S {script}",
            reduces=2,
            user="alice",
            queue="research",
            settings={"mapreduce.map.maxattempts": "2"},
        )
        application = self.post("apps/new-application").json()["application-id"]
        self.post(
            "apps",
            {
                "application-id": application,
                "application-name": name,
                "queue": "research",
                "resource": {"memory": 1024, "vCores": 1},
                "am-container-spec": {"environment": {"entry": [{"key": ENTRY, "value": write_job(job)}]}},
            },
        )
        return str(application)

    def app(self, application: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"apps/{application}")["app"]
        return found

    def over(self, application: str) -> tuple[str, str]:
        """Wait for the end; return final status and diagnostics."""
        wait_until(lambda: self.app(application)["state"] in ("FINISHED", "FAILED", "KILLED"), application)
        app = self.app(application)
        return app["finalStatus"], app["diagnostics"]

    def output(self, name: str) -> list[str]:
        assert (self.folder / name / "_SUCCESS").exists()
        parts = (self.folder / name).glob("part-*")
        return sorted(line for part in parts for line in part.read_text().splitlines(keepends=True))

    def containers(self, application: str) -> list[dict[str, Any]]:
        attempts = self.get(f"apps/{application}/appattempts")["appAttempts"].get("appAttempt", [])
        if not attempts:
            return []
        current = max(attempts, key=lambda one: one["id"])["appAttemptId"]
        told = self.get(f"apps/{application}/appattempts/{current}/containers")
        rows = (told or {}).get("container", [])
        return rows if isinstance(rows, list) else [rows]


def wait_until(condition: Callable[[], object], what: str = "") -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"never: {what}"
        time.sleep(0.02)


@contextlib.contextmanager
def cluster(
    folder: Path, plan: ClusterPlan | None = None, speed: float = 1.0
) -> Iterator[tuple[Client, AllInOne]]:
    made: list[AllInOne] = []

    def web(url: str) -> Any:
        options = Options(work=folder / "work", speed=speed)
        made.append(
            build(
                options, plan or ClusterPlan(nodes=2), url, ManagerSettings(timing=QUICK, am_expiry_ms=2000)
            )
        )
        return made[0].web

    with Background(web) as server:
        yield Client(server.url, folder), made[0]


def test_a_job_of_real_processes(tmp_path: Path) -> None:
    with cluster(tmp_path) as (client, whole):
        application = client.submit("sum")
        assert client.over(application) == ("SUCCEEDED", "")
        assert client.output("sum") == EXPECTED
        wait_until(lambda: client.get("metrics")["clusterMetrics"]["containersAllocated"] == 0)
        assert whole.masters == {}
        assert whole.site.proxy.local == {}


def test_the_end_of_a_cluster_ends_every_process(tmp_path: Path) -> None:
    with cluster(tmp_path) as (client, whole):
        application = client.submit("long", f"{sys.executable} -S -c 'import time; time.sleep(3600)'")
        wait_until(lambda: len(client.containers(application)) == 3, "AM and two reduces")
        processes = whole._processes
        assert processes is not None
        supervisor = processes.supervisor_pid
        wait_until(lambda: len(descendants(supervisor)) >= 4, "two reduces and their reducers")
        pids = [supervisor, *descendants(supervisor)]
    assert all(gone(pid) for pid in pids)


def test_an_am_that_is_killed_is_followed_by_another(tmp_path: Path) -> None:
    with cluster(tmp_path) as (client, _):
        application = client.submit("sum", pause_s=0.3)
        wait_until(lambda: len(client.containers(application)) >= 2, "an AM and a task")
        master = next(one for one in client.containers(application) if one["containerId"].endswith("_000001"))
        client.post(f"containers/{master['containerId']}/signal/FORCEFUL_SHUTDOWN")
        assert client.over(application) == ("SUCCEEDED", "")
        assert client.output("sum") == EXPECTED
        attempts = client.get(f"apps/{application}/appattempts")["appAttempts"]["appAttempt"]
        assert {one["id"] for one in attempts} == {1, 2}


def test_a_job_that_cannot_be_read_fails_and_says_why(tmp_path: Path) -> None:
    with cluster(tmp_path) as (client, _):
        application = client.post("apps/new-application").json()["application-id"]
        entry = [{"key": ENTRY, "value": '{"kind": "streaming", "name": 1}'}]
        client.post(
            "apps",
            {
                "application-id": application,
                "queue": "research",
                "am-container-spec": {"environment": {"entry": entry}},
            },
        )
        status, why = client.over(application)
        assert status == "FAILED"
        assert "YARN_EMULATOR_JOB" in why


def test_a_cluster_of_modelled_containers_starts_no_process(tmp_path: Path) -> None:
    with cluster(tmp_path, ClusterPlan(nodes=2, processes=False)) as (client, _):
        application = client.submit("sum")
        status, why = client.over(application)
        assert status == "FAILED"
        assert "modelled containers only" in why
        assert not list((tmp_path / "work" / "nodes").glob("*/*/stdout"))


def test_a_modelled_job_runs_by_its_timetable_without_any_process(tmp_path: Path) -> None:
    job = Job(
        name="modelled",
        job_class="research",
        submitted_at_ms=0,
        map_ms=(2000, 3000),
        reduce_ms=(4000,),
        reduce_keys=(10,),
        shuffle_ms=500,
        user="alice",
        queue="research",
    )
    with cluster(tmp_path, ClusterPlan(nodes=2, processes=False), speed=20.0) as (client, whole):
        before_ms = whole.site.manager.driver.now_ms()
        (row,) = play(Submitter(client.url, "alice"), (job,), speed=20.0)
        assert row.final_status == "SUCCEEDED"
        assert whole.site.manager.driver.now_ms() - before_ms > 3000 + 4000
        assert not (tmp_path / "work" / "nodes").exists()


def test_workloads_of_several_queues_are_one_sequence() -> None:
    jobs = jobs_of(["production=packaged:fb2009@18-19", "other=packaged:fb2009@21-22"])
    assert [job.submitted_at_ms for job in jobs] == sorted(job.submitted_at_ms for job in jobs)
    assert {(job.queue, job.job_class) for job in jobs} == {
        ("production", "production"),
        ("other", "research"),
    }
    with pytest.raises(BadInput, match="names no queue"):
        jobs_of(["packaged:fb2009"])


# --- several processes --------------------------------------------------------------------------


class Programs:
    """Programs of ``yarn-emulator``, started as a user would; all ended at the end."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> tuple[subprocess.Popen[str], Callable[[], dict[str, Any]]]:
        command = [sys.executable, "-c", "from emulator.cli import main; main()", *arguments, "--json"]
        program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.running.append(program)
        stdout = program.stdout
        assert stdout is not None
        return program, lambda: json.loads(stdout.readline())

    def end(self) -> list[int]:
        for program in self.running:
            program.terminate()
        return [program.wait(PATIENCE_S) for program in self.running]


@pytest.fixture
def programs() -> Iterator[Programs]:
    started = Programs()
    yield started
    started.end()


def test_serve_says_when_it_is_ready_and_ends_in_order(tmp_path: Path, programs: Programs) -> None:
    serve, said = programs.start("serve", "--port", "0", "--work", str(tmp_path / "work"))
    told = said()
    assert told["nodes"] == 3
    client = Client(told["url"], tmp_path)
    application = client.submit("long", f"{sys.executable} -S -c 'import time; time.sleep(3600)'")
    wait_until(lambda: len(client.containers(application)) == 3, "AM and two reduces")
    wait_until(lambda: len(descendants(serve.pid)) >= 5, "the supervisor, two reduces and their reducers")
    pids = descendants(serve.pid)
    assert programs.end() == [0]
    assert all(map(gone, pids))
    assert serve.stdout is not None
    assert serve.stdout.read() == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nm", "--rm", "https://x"), "plain http"),
        (("nm", "--rm", "http://x", "--slots", "1", "--memory-mib", "1"), "--slots"),
        (("nm", "--rm", "http://x", "--vcores", "1"), "one is missing"),
        (("serve", "--port", "0", "--queues", "a=1000"), "a"),
        (("serve", "--workload", "x"), "names no queue"),
        (("serve", "--nodes", "0"), "--nodes"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    work = ("--work", str(tmp_path / "work"))
    command = [sys.executable, "-c", "from emulator.cli import main; main()", *arguments, *work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_separate_processes(tmp_path: Path, programs: Programs) -> None:
    work = str(tmp_path / "work")
    _, said = programs.start("rm", "--port", "0", "--work", work, "--node-expiry-ms", "3000")
    url = said()["url"]
    first, first_said = programs.start("nm", "--rm", url, "--slots", "4", "--work", work)
    _, second_said = programs.start("nm", "--rm", url, "--count", "2", "--slots", "2", "--work", work)
    assert [len(said()["nodes"]) for said in (first_said, second_said)] == [1, 2]
    client = Client(url, tmp_path)
    assert len(client.get("nodes")["nodes"]["node"]) == 3
    application = client.submit("sum")
    assert client.over(application) == ("SUCCEEDED", "")
    assert client.output("sum") == EXPECTED

    application = client.submit("again", pause_s=0.3)
    wait_until(lambda: len(client.containers(application)) >= 2, "an AM and a task")
    pids = descendants(first.pid)
    first.kill()  # the node with the AM or some task: nothing of it is left, and the job goes on elsewhere
    first.wait()
    wait_until(lambda: all(map(gone, pids)), "the end of what ran on a node that was killed")
    assert client.over(application) == ("SUCCEEDED", "")
    assert client.output("again") == EXPECTED
    assert [status for status in programs.end() if status != -signal.SIGKILL] == [0, 0]


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


def gone(pid: int) -> bool:
    stat = stat_fields(pid)
    return stat is None or stat[0] in "ZX" or pid == os.getpid()
