"""A recorded workload, replayed live with modelled containers: by ``submit`` and by ``serve``."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from emulator.cluster.timing import HADOOP3
from emulator.live.jobs.submission_client import Client as Submitter
from emulator.live.jobs.workload_replay import play
from emulator.live.programs.all_in_one import ClusterPlan
from emulator.workload.spec import load
from tests.live.test_all_in_one import PATIENCE_S, Client, Programs, cluster, programs, wait_until
from yarnctl.errors import BadInput, Unreachable
from yarnctl.traces.job import Job

__all__ = ["programs"]

SPEC = "packaged:fb2009@18-18.05"
SPEED = "60"
SERVE = ("serve", "--nodes", "4", "--slots", "4", "--port", "0", "--containers", "modelled", "--speed", SPEED)
JOB = Job(
    name="one", job_class="research", submitted_at_ms=0, map_ms=(1000,), reduce_ms=(2000,), reduce_keys=(10,),
    queue="research",
)  # fmt: skip


def submit(url: str, *more: str) -> subprocess.CompletedProcess[str]:
    code = ("-c", "from emulator.cli import main; main()", "submit", "--rm", url, "--speed", SPEED)
    return subprocess.run(
        (sys.executable, *code, *more), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_submit_replays_a_packaged_slice(tmp_path: Path, programs: Programs) -> None:
    _, said = programs.start(*SERVE, "--work", str(tmp_path / "work"))
    url = said()["url"]
    done = submit(url, "--workload", SPEC, "--queue", "production", "--json")
    assert done.returncode == 0, done.stderr
    jobs = load(SPEC, "production").jobs
    rows = json.loads(done.stdout)
    assert [row["name"] for row in rows] == [job.name for job in jobs]
    for row, job in zip(rows, jobs, strict=True):
        assert row["final_status"] == "SUCCEEDED"
        assert row["submitted_at_ms"] == job.submitted_at_ms
        assert row["completion_ms"] > max(job.map_ms) + max(job.reduce_ms, default=0)
    assert f"{len(jobs)} of {len(jobs)} jobs submitted, {len(jobs)} over" in done.stderr

    refused = submit(url, "--workload", "synthetic:research-s", "--queue", "nowhere")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert "research-s" in refused.stderr.splitlines()[-1]
    assert "unknown queue" in refused.stderr.splitlines()[-1]


def test_serve_replays_workloads_by_itself(tmp_path: Path, programs: Programs) -> None:
    both = ("--workload", f"production={SPEC}", "--workload", "research=packaged:fb2009@21-21.05")
    _, said = programs.start(*SERVE, *both, "--work", str(tmp_path / "work"))
    client = Client(said()["url"], tmp_path)
    count = {"production": 12, "research": 5}

    def over() -> bool:
        rows = (client.get("apps")["apps"] or {}).get("app", [])
        states = [(row["queue"].rpartition(".")[2], row["finalStatus"]) for row in rows]
        return all(states.count((queue, "SUCCEEDED")) == jobs for queue, jobs in count.items())

    wait_until(over, "all jobs of both traces")


def test_a_job_that_fails_is_told(tmp_path: Path) -> None:
    """Killed by somebody: the row says so, the others go on."""
    other = msgspec.structs.replace(JOB, name="other", submitted_at_ms=1, map_ms=(3_600_000,))
    with cluster(tmp_path, ClusterPlan(nodes=2, processes=False), speed=20.0) as (client, _):
        told: list[str] = []

        def kill() -> None:
            wait_until(lambda: len((client.get("apps")["apps"] or {}).get("app", [])) == 2)
            names = {row["name"]: row["id"] for row in client.get("apps")["apps"]["app"]}
            Submitter(client.url, "hadoop")._json(
                f"/ws/v1/cluster/apps/{names['other']}/state", "PUT", {"state": "KILLED"}
            )

        killer = threading.Thread(target=kill)
        killer.start()
        rows = play(Submitter(client.url, "hadoop"), (JOB, other), 20.0, report=told.append)
        killer.join()
        assert [row.final_status for row in rows] == ["SUCCEEDED", "KILLED"]
        assert told[-1].endswith("2 of 2 jobs submitted, 2 over")


def test_the_instants_of_a_trace_are_kept(tmp_path: Path) -> None:
    """Each job enters no earlier than the trace says, and without waiting for the one before."""
    jobs = [
        msgspec.structs.replace(JOB, name=f"job{at}", submitted_at_ms=at * 10_000, map_ms=(3_600_000,))
        for at in range(3)
    ]
    with cluster(tmp_path, ClusterPlan(nodes=1, processes=False), speed=20.0) as (client, _):
        began_s = time.time()
        rows = play(Submitter(client.url, "hadoop"), tuple(jobs), 20.0, wait=False, began_s=began_s)
        assert [row.final_status for row in rows] == ["", "", ""]
        apps = sorted(client.get("apps")["apps"]["app"], key=lambda row: row["name"])
        for app, job in zip(apps, jobs, strict=True):
            due_ms = int(began_s * 1000) + (job.submitted_at_ms + HADOOP3.submit_ms) / 20
            assert app["startedTime"] >= due_ms - 1


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="check that yarn-emulator serve runs there"):
        play(Submitter("http://127.0.0.1:1", "ann"), (JOB,))
    assert submit("http://127.0.0.1:1", "--workload", SPEC).returncode == 3
    with pytest.raises(BadInput, match="is not an http address"):
        play(Submitter("ftp://127.0.0.1:1", "ann"), (JOB,))
