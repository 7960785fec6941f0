"""The bill of YARN's own preemption, by the program against servers that answer as Hadoop's and Spark's do.

The first job's numbers are those of a real run (one run, 3.4.2): six attempts of 26.0, 2.0, 33.9, 35.2, 2.0
and 41.9 s were killed, two of them second attempts after 2.0 s each; the ResourceManager's sum was 36,250
MiB-seconds, for containers of 256 MiB, of 244,068.
"""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from tests.unit.hadoop.replaying import Heard, Replay, Reply, closed_port
from yarnctl.attach.bill.collector import Pace
from yarnctl.cli.bill import PROBLEMS_SHOWN, _warn, command
from yarnctl.errors import BadInput
from yarnctl.frameworks.spark.history_server import container_mib
from yarnctl.frameworks.spark.rest import instant_ms

NOW_MS = 4_000_000_000_000  # later than today, so that every job is of the span
RUNS_S = (26.0, 2.0, 33.9, 35.2, 2.0, 41.9)
TASK_OF = (0, 0, 1, 2, 2, 3)
MAPS_END_MS = NOW_MS - 150_000
JOBS = "/ws/v1/history/mapreduce/jobs"
KILLED_BY_YARN = "Container preempted by scheduler"


def app(number: int, **more: object) -> dict[str, object]:
    row = {
        "id": f"application_1_{number:04d}", "user": "alice", "name": "daily", "queue": "root.research",
        "applicationType": "MAPREDUCE", "applicationTags": "", "finishedTime": NOW_MS, "memorySeconds": 1000,
        "preemptedMemorySeconds": 0, "numNonAMContainerPreempted": 0, "numAMContainerPreempted": 0,
    }  # fmt: skip
    return row | more


LISTED = [
    app(1, memorySeconds=244_068, preemptedMemorySeconds=36_250, numNonAMContainerPreempted=6),
    app(2, queue="root.production", user="bob"),
    app(
        3, applicationType="SPARK", name="scan", memorySeconds=500_000, preemptedMemorySeconds=84_480,
        numNonAMContainerPreempted=1, applicationTags="yarnctl-drain:plugin",
    ),
    app(4, applicationType="TEZ", name="hive", preemptedMemorySeconds=700, numNonAMContainerPreempted=2),
]  # fmt: skip


def attempts(task: int) -> list[dict[str, object]]:
    """Return the attempts at a reduce: those that YARN preempted, then the one that succeeded."""
    began_ms, rows = NOW_MS - 100_000, []
    for ran_s, of in zip(RUNS_S, TASK_OF, strict=True):
        if of == task:
            rows.append((began_ms, began_ms + int(ran_s * 1000), "KILLED", KILLED_BY_YARN, 0))
            began_ms += int(ran_s * 1000) + 1000
    rows.append((began_ms, began_ms + 40_000, "SUCCEEDED", "", began_ms + 3_000))
    return [
        {
            "id": f"attempt_1_0001_r_{task:06d}_{place}", "type": "REDUCE", "startTime": began,
            "finishTime": ended, "state": state, "diagnostics": why, "mergeFinishTime": merged,
        }
        for place, (began, ended, state, why, merged) in enumerate(rows)
    ]  # fmt: skip


def tasks() -> list[dict[str, object]]:
    found = [{"id": "task_1_0001_m_000000", "type": "MAP", "finishTime": MAPS_END_MS,
              "successfulAttempt": "attempt_1_0001_m_000000_0"}]  # fmt: skip
    for task in range(11):
        tries = len(attempts(task)) - 1
        found.append({"id": f"task_1_0001_r_{task:06d}", "type": "REDUCE", "finishTime": NOW_MS,
                      "successfulAttempt": f"attempt_1_0001_r_{task:06d}_{tries}"})  # fmt: skip
    return found


EXECUTORS = [
    {"id": "driver", "addTime": "2023-11-14T22:00:00.000GMT"},
    {
        "id": "1", "addTime": "2023-11-14T22:00:00.000GMT", "removeTime": "2023-11-14T22:01:00.000GMT",
        "removeReason": "Container container_1_0003_01_000002 on host: a was preempted.",
    },
    {
        "id": "2", "addTime": "2023-11-14T22:00:00.000GMT", "removeTime": "2023-11-14T22:01:00.000GMT",
        "removeReason": "Executor killed by driver.",
    },
]  # fmt: skip
SETTINGS = [["spark.executor.memory", "1g"], ["spark.executor.memoryOverhead", "384m"]]
SCAN = {
    "id": "application_1_0003", "name": "scan",
    "attempts": [{"attemptId": "1", "sparkUser": "alice", "endTimeEpoch": NOW_MS}],
}  # fmt: skip


TASKS_HIT = 4
"""The tasks of a job that was hit of which attempts were preempted."""


class Many(NamedTuple):
    """Requests to the history: of jobs that the ResourceManager lists, after it forgot them, and resumed.

    ``seconds``: of the three bills.
    """

    listed: int
    forgotten: int
    resumed: int
    seconds: tuple[float, float, float]


def many(world: World, *, jobs: int, hit: int, folder: Path) -> Many:
    """Bill so many jobs, of which ``hit`` lost six containers of four tasks."""
    names = [f"job_1_{number:05d}" for number in range(jobs)]
    hits = set(names[:: jobs // hit][:hit])
    world.ended = [
        {"id": name, "finishTime": NOW_MS, "name": "daily", "user": "alice", "queue": "research"}
        for name in names
    ]
    world.listed = [
        app(1, id=name.replace("job", "application"), preemptedMemorySeconds=36_250 * (name in hits),
            numNonAMContainerPreempted=6 * (name in hits))
        for name in names
    ]  # fmt: skip
    world.hits = hits
    fast, resume = ("--requests-per-second", "1000"), ("--resume", str(folder / "bill.jsonl"))
    counts, seconds = list[int](), list[float]()
    for words in (fast, (*fast, *resume), (*fast, *resume)):
        began_s = time.monotonic()
        world.rows(*words)
        seconds.append(time.monotonic() - began_s)
        counts.append(world.about_jobs())
        world.listed = []
    listed, forgotten, resumed = counts
    first, second, third = seconds
    return Many(listed, forgotten, resumed, (first, second, third))


class World:
    """One server that is the ResourceManager and both history servers. ``listed``: what the first lists."""

    def __init__(self) -> None:
        self.listed = list(LISTED)
        self.ended = [
            {"id": "job_1_0001", "finishTime": NOW_MS, "name": "daily", "user": "alice", "queue": "research",
             "state": "SUCCEEDED"}
        ]  # fmt: skip
        self.reduce_mib = "200"
        self.peaks_mib: dict[str, int] = {}
        self.killed = {"killedMapAttempts": 0, "killedReduceAttempts": 6}
        self.hits: set[str] = set()
        self.scans: list[dict[str, Any]] = []
        """What Spark's history server lists."""

    def about_jobs(self) -> int:
        """Return how many requests about single jobs the history server got."""
        return sum(path.startswith(f"{JOBS}/") for path in self.heard)

    def counters(self, path: str) -> list[dict[str, object]]:
        """Return the counters of a job: reduces of 100 s in all, with its peak."""
        peak = self.peaks_mib[path.split("/")[-2]] << 20
        groups = {
            "org.apache.hadoop.mapreduce.TaskCounter": {"REDUCE_PHYSICAL_MEMORY_BYTES_MAX": peak},
            "org.apache.hadoop.mapreduce.JobCounter": {"MILLIS_REDUCES": 100_000, "MILLIS_MAPS": 5},
        }
        return [
            {
                "counterGroupName": group,
                "counter": [{"name": name, "totalCounterValue": value} for name, value in rows.items()],
            }
            for group, rows in groups.items()
        ]

    def runs(self, *peaks_mib: int) -> None:
        """Let a job have run so often, with these peaks, the first one first."""
        names = [f"job_1_{place:04d}" for place in range(len(peaks_mib))]
        self.ended = [
            self.ended[0] | {"id": name, "finishTime": NOW_MS + place} for place, name in enumerate(names)
        ]
        self.peaks_mib = dict(zip(names, peaks_mib, strict=True))

    def __call__(self, heard: Heard) -> Reply:
        path = heard.path
        found: object
        if self.hits and path.startswith(f"{JOBS}/"):
            job, _, rest = path.removeprefix(f"{JOBS}/").partition("/")
            if not rest:
                killed = self.killed if job in self.hits else {}
                return Reply(json.dumps({"job": self.ended[0] | {"id": job} | killed}))
            rest = rest.replace(job.removeprefix("job"), "_1_0001")
            path = f"{JOBS}/job_1_0001/{rest}"
        if path == "/ws/v1/cluster/info":
            found = {"clusterInfo": {"id": 1, "startedOn": 1, "state": "STARTED", "haState": "ACTIVE"}}
        elif path == "/ws/v1/cluster/apps":
            found = {"apps": {"app": self.listed} if self.listed else {}}
        elif path == "/conf":
            found = {"properties": [{"key": "yarn.scheduler.minimum-allocation-mb", "value": "128"}]}
        elif path == JOBS:
            found = {"jobs": {"job": self.ended}}
        elif path == f"{JOBS}/job_1_0001":
            found = {"job": self.ended[0] | self.killed}
        elif path == f"{JOBS}/job_1_0001/tasks":
            found = {"tasks": {"task": tasks()}}
        elif path.endswith("/conf"):
            found = {"conf": {"property": [{"name": "mapreduce.reduce.memory.mb", "value": self.reduce_mib}]}}
        elif path.endswith("/counters"):
            found = {"jobCounters": {"id": path.split("/")[-2], "counterGroup": self.counters(path)}}
        elif path.startswith(f"{JOBS}/job_1_0001/tasks/task_1_0001_r_"):
            task = int(path.split("/")[-2].rpartition("_")[2])
            found = {"taskAttempts": {"taskAttempt": attempts(task)}}
        elif path.startswith(f"{JOBS}/job_1_0001/tasks/"):
            found = {
                "taskAttempts": {"taskAttempt": [{"id": "attempt_1_0001_m_000000_0", "state": "SUCCEEDED"}]}
            }
        elif path == "/api/v1/applications":
            found = self.scans
        elif path == "/api/v1/applications/application_1_0003":
            found = SCAN
        elif path == "/api/v1/applications/application_1_0003/1/allexecutors":
            found = EXECUTORS
        elif path == "/api/v1/applications/application_1_0003/1/environment":
            found = {"sparkProperties": SETTINGS}
        else:
            return Reply("{}", 404)
        return Reply(json.dumps(found))

    def billed(self, *words: str) -> Result:
        """Run the program; what it asked for is in ``heard``."""
        with Replay(self) as server:
            urls = ["--rm", server.url, "--history", server.url, "--spark-history", server.url]
            result = CliRunner().invoke(command, [*urls, *words])
            self.heard = [heard.path for heard in server.heard]
        return result

    def rows(self, *words: str) -> dict[tuple[str, ...], dict[str, Any]]:
        result = self.billed("-o", "json", *words)
        assert result.exit_code == 0, result.output
        return {tuple(row["keys"]): row for row in json.loads(result.stdout)["rows"]}


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_of_a_real_run_is_billed_as_the_resource_manager_counted_it(world: World):
    row = world.rows()["research", "alice", "daily"]
    assert (row["containers"], row["lost_mib_s"], row["unattributed"]) == (6, 36_250, 0)
    assert row["lost_ratio"] == pytest.approx(0.149, abs=0.001)
    assert row["again_mib_s"] == 2 * 2 * 256  # two second attempts, 2 s each
    # 3 s to fetch and 6 s to leave and return are taken off each: 17 + 24.9 + 26.2 + 32.9 s are left.
    assert row["kept_least_mib_s"] == int(101.0 * 256)
    assert row["kept_most_mib_s"] == int(141.0 * 256)


def test_what_no_history_explains_is_unattributed(world: World):
    row = world.rows()["research", "alice", "hive"]
    assert (row["containers"], row["lost_mib_s"], row["unattributed"]) == (2, 700, 2)
    assert (row["kept_least_mib_s"], row["kept_most_mib_s"]) == (0, 700)


def test_an_executor_that_was_preempted_is_billed_and_one_that_left_is_not(world: World):
    row = world.rows()["research", "alice", "scan"]
    assert (row["containers"], row["lost_mib_s"], row["unattributed"]) == (1, 84_480, 0)
    assert row["kept_most_mib_s"] == 58 * 1408  # 1 GiB and 384 MiB; 2 s to leave


def test_after_a_restart_of_the_resource_manager_the_history_gives_the_same_bill(world: World):
    listed = world.rows()["research", "alice", "daily"]
    world.listed = []
    alone = world.rows()["research", "alice", "daily"]
    assert alone["lost_mib_s"] == 141 * 256
    assert abs(alone["lost_mib_s"] - listed["lost_mib_s"]) <= 0.02 * listed["lost_mib_s"]
    assert alone["again_mib_s"] == listed["again_mib_s"]


def test_after_a_restart_an_application_of_spark_is_billed_by_its_own_history(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(globals(), "SETTINGS", [*SETTINGS, ["spark.yarn.queue", "root.research"]])
    world.scans = [SCAN, SCAN | {"id": "local-1"}, SCAN | {"id": "application_1_0009", "attempts": []}]
    listed = world.rows()
    assert listed["research", "alice", "scan"]["containers"] == 1  # once, though both servers list it
    world.listed = []
    row = world.rows()["research", "alice", "scan"]
    assert (row["containers"], row["lost_mib_s"], row["unattributed"]) == (1, 60 * 1408, 0)
    world.scans = [SCAN | {"attempts": [{"attemptId": "1", "endTimeEpoch": 5}]}]
    assert ("research", "alice", "scan") not in world.rows()


def event_log() -> str:
    """Return what EXECUTORS and SETTINGS say as Spark's event log, of the first attempt."""
    events: list[dict[str, object]] = [
        {"Event": "SparkListenerApplicationStart", "App Name": "scan", "App ID": "application_1_0003",
         "Timestamp": NOW_MS - 900_000, "User": "alice"},
        {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": dict(SETTINGS)},
    ]  # fmt: skip
    for one in EXECUTORS[1:]:
        for side, key, reason in (("Added", "addTime", ""), ("Removed", "removeTime", one["removeReason"])):
            event: dict[str, object] = {"Event": f"SparkListenerExecutor{side}", "Executor ID": one["id"]}
            events.append(event | {"Timestamp": instant_ms(one[key]), "Removed Reason": reason})
    events.append({"Event": "SparkListenerApplicationEnd", "Timestamp": NOW_MS})
    return "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)


def test_event_logs_give_the_rows_of_sparks_history_server(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setitem(globals(), "SETTINGS", [*SETTINGS, ["spark.yarn.queue", "root.research"]])
    world.scans = [SCAN]
    (tmp_path / "application_1_0003_1").write_text(event_log())
    (tmp_path / "application_1_0003_2.zstd").write_bytes(b"\x28\xb5\x2f\xfd")
    for listed in (LISTED, []):
        world.listed = listed
        by_server = world.rows()
        with Replay(world) as server:
            words = ["--rm", server.url, "--history", server.url, "--event-logs", str(tmp_path)]
            result = CliRunner().invoke(command, [*words, "-o", "json"])
        found = json.loads(result.stdout)
        assert {tuple(row["keys"]): row for row in found["rows"]} == by_server
        assert by_server["research", "alice", "scan"]["unattributed"] == 0
        assert any("zstd" in problem for problem in found["problems"])


@pytest.mark.parametrize("words", [("--event-logs", "no-such"), ("--event-logs", ".", "--idle")])
def test_event_logs_of_no_folder_and_beside_idle_are_refused(world: World, words: tuple[str, ...]):
    with Replay(world) as server:
        result = CliRunner().invoke(command, ["--rm", server.url, "--history", server.url, *words])
    assert isinstance(result.exception, BadInput)
    assert str(result.exception).startswith("--event-logs: ")


def test_only_tasks_that_were_begun_again_are_read(world: World):
    world.rows()
    read = [path for path in world.heard if path.endswith("/attempts")]
    assert len(read) == 4
    assert world.heard.count(f"{JOBS}/job_1_0001") == 0  # the ResourceManager has told


def test_a_job_without_killed_attempts_costs_one_request(world: World):
    world.listed, world.killed = [], {}
    assert world.rows() == {}
    assert [path for path in world.heard if path.startswith(f"{JOBS}/")] == [f"{JOBS}/job_1_0001"]


def test_attempts_that_somebody_else_killed_are_not_billed(world: World, monkeypatch: pytest.MonkeyPatch):
    world.listed = []
    monkeypatch.setitem(globals(), "KILLED_BY_YARN", "Attempt killed on request of a user")
    assert world.rows() == {}
    assert len([path for path in world.heard if path.endswith("/attempts")]) == 4


def test_a_job_is_read_once_with_a_file(world: World, tmp_path: Path):
    file = tmp_path / "bill.jsonl"
    first = world.rows("--resume", str(file))
    assert world.rows("--resume", str(file)) == first
    assert not [path for path in world.heard if path.endswith("/attempts")]
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])  # killed while it wrote
    assert world.rows("--resume", str(file)) == first
    assert sorted(file.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_a_file_that_is_no_such_file_is_refused(world: World, tmp_path: Path):
    file = tmp_path / "bill.jsonl"
    file.write_text("no\nno\n")
    result = world.billed("--resume", str(file))
    assert isinstance(result.exception, BadInput)
    assert f"{file}, line 1" in str(result.exception)
    assert file.read_text() == "no\nno\n"


def test_the_sum_does_not_depend_on_how_it_is_grouped(world: World):
    sums = {
        sum(row["lost_mib_s"] for row in world.rows("--by", by).values())
        for by in ("queue", "day,user", "application", "kind", "queue,user,name")
    }
    assert sums == {36_250 + 84_480 + 700}


def test_a_server_that_does_not_answer_leaves_a_warning_and_the_exact_sum(world: World):
    with Replay(world) as server:
        words = ["--rm", server.url, "--history", server.url]
        words += ["--spark-history", f"http://127.0.0.1:{closed_port()}"]
        result = CliRunner().invoke(command, [*words, "-o", "json"])
    found = json.loads(result.stdout)
    row = next(row for row in found["rows"] if row["keys"][2] == "scan")
    assert (row["lost_mib_s"], row["unattributed"], row["kept_least_mib_s"]) == (84_480, 1, 0)
    assert "application_1_0003" in result.stderr
    assert "applications that it has forgotten: http://127.0.0.1" in result.stderr
    assert len(found["problems"]) == 2


def test_who_could_give_containers(world: World):
    found = json.loads(world.billed("-o", "json").stdout)["giving"]
    spark = next(one for one in found if one["kind"] == "SPARK")
    assert spark["held_ratio"] == pytest.approx(500_000 / 746_068, abs=1e-3)
    assert spark["enrolled_ratio"] == 1.0
    tez = next(one for one in found if one["kind"] == "TEZ")
    assert tez["lever"] == "none: left alone"
    assert "Work of each queue that could give containers, at most" in world.billed().stdout


def test_table_and_csv(world: World):
    table = world.billed().stdout
    assert table.startswith("YARN preempted 9 containers; lost 0.0329 GiB h")
    assert "14.9%" in table
    lines = world.billed("-o", "csv").stdout.splitlines()
    assert lines[0].startswith("queue,user,name,jobs,containers,masters,lost_mib_s")
    assert len(lines) == 4


def test_a_name_with_a_terminal_sequence_is_shown_harmless(world: World):
    world.listed = [app(4, applicationType="TEZ", name="\x1b[2J,\"x", preemptedMemorySeconds=700,
                        numNonAMContainerPreempted=2)]  # fmt: skip
    world.ended = []
    assert "\x1b" not in world.billed().stdout


def idle_rows(world: World, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(world.billed("--idle", "-o", "json", *words).stdout)["rows"]
    return found


def test_idle_executors_of_a_session(world: World, monkeypatch: pytest.MonkeyPatch):
    busy = [one | {"totalDuration": 60_000, "maxTasks": 2, "totalCores": 2} for one in EXECUTORS]
    monkeypatch.setitem(globals(), "EXECUTORS", busy)
    (row,) = idle_rows(world)
    assert (row["name"], row["executors"], row["running"]) == ("scan", 2, False)
    assert row["held_mib_s"] == 2 * 60 * 1408  # the driver holds its container for its own work
    assert row["idle_mib_s"] == 2 * 30 * 1408
    assert row["setting"] == "spark.dynamicAllocation.enabled=true"
    monkeypatch.setitem(globals(), "SETTINGS", [*SETTINGS, ["spark.dynamicAllocation.enabled", "true"]])
    assert idle_rows(world)[0]["setting"].endswith("executorIdleTimeout (now 60s)")
    assert "50%" in world.billed("--idle").stdout
    assert len(world.billed("--idle", "-o", "csv").stdout.splitlines()) == 2
    busy = [one | {"totalDuration": 120_000, "maxTasks": 2} for one in EXECUTORS]
    monkeypatch.setitem(globals(), "EXECUTORS", busy)
    assert idle_rows(world) == [], "its tasks ran all the time"


def test_an_executor_of_a_running_session_holds_until_now(world: World, monkeypatch: pytest.MonkeyPatch):
    alone = [{"id": "1", "addTime": "2023-11-14T22:00:00.000GMT", "maxTasks": 1}]
    monkeypatch.setitem(globals(), "EXECUTORS", alone)
    world.listed = [app(3, applicationType="SPARK", finishedTime=0)]
    (row,) = idle_rows(world)
    assert (row["running"], row["idle_ratio"]) == (True, 1.0)
    assert row["held_mib_s"] > 86_400 * 1408


def test_parquet_has_the_rows_of_json(world: World):
    result = world.billed("-o", "parquet")
    table = pq.read_table(io.BytesIO(result.stdout_bytes)).to_pylist()
    rows = world.rows()
    assert {(row["queue"], row["user"], row["name"]): row["lost_mib_s"] for row in table} == {
        keys: row["lost_mib_s"] for keys, row in rows.items()
    }
    world.listed, world.ended = [], []
    empty = pq.read_table(io.BytesIO(world.billed("-o", "parquet").stdout_bytes))
    assert empty.num_rows == 0
    assert str(empty.schema.field("lost_ratio").type) == "double"


def test_the_page_needs_no_other_file(world: World, tmp_path: Path):
    world.listed = [*LISTED[:3], app(4, applicationType="TEZ", name="<script>x", preemptedMemorySeconds=700,
                                     numNonAMContainerPreempted=2)]  # fmt: skip
    file = tmp_path / "bill.html"
    assert world.billed("--html", str(file)).exit_code == 0
    text = file.read_text()
    assert "0.0329 GiB h" in text
    assert "&lt;script&gt;x" in text
    assert not re.search(r"<script|<link|src=|href=|url\(|@import", text)
    assert isinstance(world.billed("--html", str(tmp_path / "no" / "x.html")).exception, BadInput)


def test_requests_of_a_large_cluster(world: World, tmp_path: Path):
    """Only jobs that were hit are read: two requests each, and one for each task that was begun again."""
    found = many(world, jobs=200, hit=6, folder=tmp_path)
    assert found.listed == 6 * (2 + TASKS_HIT)
    assert found.forgotten == 200 + 6 * (2 + TASKS_HIT)
    assert found.resumed == 0


def test_an_unknown_key_is_refused_with_the_nearest(world: World):
    result = world.billed("--by", "quee")
    assert str(result.exception) == "--by: unknown key 'quee'; did you mean queue?"


@pytest.mark.parametrize(
    ("peaks_mib", "requested", "advised"),
    [
        ((300, 310, 305), "1024", 384),  # 310 and a fifth, in steps of 128
        ((300,), "1024", 512),  # of one run a half more
        ((300, 700, 310), "1024", 896),
        ((300, 900, 310), "1024", None),  # no smaller container suffices
    ],
)
def test_memory_that_was_never_used(
    world: World, peaks_mib: tuple[int, ...], requested: str, advised: int | None
):
    world.runs(*peaks_mib)
    world.reduce_mib = requested
    rows = json.loads(world.billed("--oversized", "-o", "json").stdout)["rows"]
    if advised is None:
        assert rows == []
        return
    (row,) = rows
    assert (row["runs"], row["peak_mib"], row["advised_mib"]) == (len(peaks_mib), max(peaks_mib), advised)
    assert row["slack_mib_s"] == len(peaks_mib) * 100 * (1024 - advised)
    assert row["setting"] == f"-Dmapreduce.reduce.memory.mb={advised}"
    assert row["exceeds_ratio"] == pytest.approx(1 / (len(peaks_mib) + 1))
    assert f"{advised}" in world.billed("--oversized").stdout
    assert len(world.billed("--oversized", "-o", "csv").stdout.splitlines()) == 2


def test_jobs_whose_counters_have_no_peak_get_no_advice(world: World):
    world.runs(0, 0)
    assert json.loads(world.billed("--oversized", "-o", "json").stdout)["rows"] == []


def test_the_pace_is_kept():
    slept: list[float] = []
    pace = Pace(slept.append, lambda: sum(slept), 4.0)
    for _ in range(5):
        pace.wait()
    assert sum(slept) == pytest.approx(1.0)
    assert pace.requests == 5


@pytest.mark.parametrize(
    ("settings", "mib"),
    [
        ({}, 1024 + 384),
        ({"spark.executor.memory": "8g"}, 8192 + 819),
        ({"spark.executor.memory": "512m", "spark.executor.memoryOverhead": "1g"}, 1536),
        ({"spark.executor.memory": "1g", "spark.executor.memoryOverheadFactor": "0.5"}, 1024 + 512),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1g"}, 1024 + 384 + 1024),
        ({"spark.executor.memory": "many"}, 384),
    ],
)
def test_an_executors_container_by_its_settings(settings: dict[str, str], mib: int):
    assert container_mib(settings) == mib


def test_problems_that_are_not_shown_are_counted(capsys):
    _warn([f"problem {number}" for number in range(PROBLEMS_SHOWN + 7)])
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == PROBLEMS_SHOWN + 1
    assert shown[-1] == "warning: 7 more; -o json has all"


def test_a_reduce_that_waited_for_maps_has_kept_nothing_of_that_time(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(globals(), "MAPS_END_MS", NOW_MS - 80_000)  # the first reduces began 20 s earlier
    row = world.rows()["research", "alice", "daily"]
    assert row["kept_most_mib_s"] == (141 - 4 * 20) * 256


def test_lost_memory_that_is_not_listed_is_that_of_the_history(world: World):
    world.listed = [app(1, numNonAMContainerPreempted=6, preemptedMemorySeconds=-1)]
    assert world.rows()["research", "alice", "daily"]["lost_mib_s"] == 141 * 256
