"""``yarnctl history import`` from servers: rows, incremental, resumable, anonymous."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.attach.week_servers import ENDED_MS, JOBS, WeekServers, app, ended
from yarnctl.attach.importing import server_import
from yarnctl.errors import BadInput
from yarnctl.traces.week import week_folder
from yarnctl.traces.week.week_folder import WeekNodes, WeekWriter, parts_in, read_nodes, read_week
from yarnctl.traces.week.week_rows import ImportedJob, WeekJob


@pytest.fixture
def servers() -> WeekServers:
    return WeekServers()


def many(servers: WeekServers, count: int) -> None:
    servers.listed = [app(number) for number in range(count)]
    servers.kept = {f"job_1_{number:04d}": ended(number) for number in range(count)}


def test_import_writes_each_attempt_as_a_container(servers: WeekServers, tmp_path: Path):
    assert servers.counts(tmp_path / "week")["imported"] == 1
    (imported,) = read_week(tmp_path / "week")
    job = imported.job
    assert (job.job, job.queue, job.user, job.state) == ("application_1_0001", "etl", "alice", "SUCCEEDED")
    assert (job.submitted_at_ms, job.started_at_ms, job.ended_at_ms) == (
        ENDED_MS - 60_000,
        ENDED_MS - 55_000,
        ENDED_MS,
    )
    rows = {one.container.removeprefix("attempt_1_0001_"): one for one in imported.containers}
    spans_s = {name: one.span_ms // 1000 for name, one in rows.items()}
    assert spans_s == {
        "master": 59, "m_000000_0": 10, "m_000001_0": 10, "m_000002_0": 5, "m_000002_1": 10, "r_000003_0": 23,
    }  # fmt: skip
    sizes = {one.kind: (one.memory_mib, one.vcores) for one in imported.containers}
    assert sizes == {"master": (1536, 1), "map": (1024, 2), "reduce": (2048, 1)}
    assert {name: one.ended_by for name, one in rows.items() if one.ended_by} == {"m_000002_0": "preempted"}
    assert rows["r_000003_0"].merged_at_ms == ENDED_MS - 20_000
    assert [(task.kind, task.work_ms) for task in imported.tasks] == [
        ("map", 10_000), ("map", 10_000), ("map", 10_000), ("reduce", 23_000),
    ]  # fmt: skip


def test_import_requests_attempts_of_reduces_and_of_maps_tried_again_only(
    servers: WeekServers, tmp_path: Path
):
    servers.counts(tmp_path / "week")
    read = [path.split("/")[-2] for path in servers.heard if path.endswith("/attempts")]
    assert sorted(read) == ["task_1_0001_m_000002", "task_1_0001_r_000003"]


def test_import_reads_maps_until_all_killed_attempts_are_found(servers: WeekServers, tmp_path: Path):
    servers.is_speculative = True
    servers.kept = {"job_1_0001": ended(1, killedMapAttempts=2)}
    servers.counts(tmp_path / "week")
    (imported,) = read_week(tmp_path / "week")
    causes = {one.container.removeprefix("attempt_1_0001_"): one.ended_by for one in imported.containers}
    assert (causes["m_000001_1"], causes["m_000002_0"]) == ("killed", "preempted")


def test_import_writes_instants_in_microseconds_utc(servers: WeekServers, tmp_path: Path):
    servers.counts(tmp_path / "week")
    for table in ("jobs", "tasks", "containers"):
        schema = pq.read_schema(tmp_path / "week" / "part-00001" / f"{table}.parquet")
        instants = [field.type for field in schema if field.name.endswith("_at")]
        assert set(instants) == {pa.timestamp("us", "UTC")}
        assert not [field.name for field in schema if field.name.endswith("_at_ms")]


def test_second_import_reads_new_jobs_only(servers: WeekServers, tmp_path: Path):
    many(servers, 2)
    assert servers.counts(tmp_path / "week")["imported"] == 2
    servers.listed.append(app(7))
    servers.kept["job_1_0007"] = ended(7)
    found = servers.counts(tmp_path / "week")
    assert (found["imported"], found["known_before"]) == (1, 2)
    assert {path.split("/")[6] for path in servers.heard if path.startswith(f"{JOBS}/")} == {"job_1_0007"}
    assert len(read_week(tmp_path / "week")) == 3


def test_interrupted_import_keeps_whole_jobs_and_continues(
    servers: WeekServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The process dies between two tables of the second part: that part is not there."""
    monkeypatch.setattr(week_folder, "PART_JOBS", 2)
    many(servers, 5)
    written: list[str] = []
    write = week_folder._write

    def dying(kind: type, rows: list, path: Path) -> None:
        written.append(path.name)
        if len(written) == 5:
            raise SystemExit(137)
        write(kind, rows, path)

    monkeypatch.setattr(week_folder, "_write", dying)
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)  # nor is it tidied
    monkeypatch.setattr(WeekWriter, "__exit__", lambda *_: None)
    assert servers.imported(tmp_path / "week").exit_code == 137
    assert [part.name for part in parts_in(tmp_path / "week")] == ["part-00001"]
    assert len(list((tmp_path / "week").glob(".part-*"))) == 1
    monkeypatch.undo()
    assert len(read_week(tmp_path / "week")) == 2
    assert servers.counts(tmp_path / "week")["imported"] == 3
    assert len(read_week(tmp_path / "week")) == 5
    assert list((tmp_path / "week").glob(".part-*")) == []


def test_job_without_a_readable_history_is_skipped_and_read_later(servers: WeekServers, tmp_path: Path):
    many(servers, 2)
    servers.stop_at = lambda path: path.startswith(f"{JOBS}/job_1_0001/tasks")
    result = servers.imported(tmp_path / "week")
    assert result.exit_code == 0
    assert "skipped application_1_0001" in result.stderr
    assert [one.job.job for one in read_week(tmp_path / "week")] == ["application_1_0000"]
    servers.stop_at = lambda path: False
    assert servers.counts(tmp_path / "week")["imported"] == 1


def test_application_without_a_history_is_imported_with_its_sums(
    servers: WeekServers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server_import, "SETTLED_MS", -(10**13))  # every history had its time to arrive
    servers.listed = [app(1), app(2, applicationType="TEZ", numNonAMContainerPreempted=3)]
    servers.kept = {}
    assert servers.counts(tmp_path / "week")["imported"] == 2
    lost, tez = (one.job for one in read_week(tmp_path / "week"))
    assert (lost.detail, tez.detail, tez.held_mib_s, tez.preempted_containers) == ("sums", "sums", 100_000, 3)


def test_job_that_just_ended_waits_for_its_history(servers: WeekServers, tmp_path: Path):
    servers.kept = {}
    found = servers.counts(tmp_path / "week")
    assert (found["imported"], found["skipped"]) == (0, 1)


def test_running_applications_are_counted_and_left_out(servers: WeekServers, tmp_path: Path):
    servers.listed.append(app(2, finishedTime=0, state="RUNNING"))
    found = servers.counts(tmp_path / "week")
    assert (found["imported"], found["running"]) == (1, 1)


def test_jobs_that_the_resource_manager_forgot_come_from_the_history(servers: WeekServers, tmp_path: Path):
    servers.counts(tmp_path / "listed")
    servers.listed = []
    servers.counts(tmp_path / "forgotten")
    listed, forgotten = (read_week(tmp_path / name)[0] for name in ("listed", "forgotten"))
    assert listed.tasks == forgotten.tasks
    assert listed.containers[1:] == forgotten.containers[1:]  # its master is known from its first report on
    assert (forgotten.job.queue, forgotten.job.preempted_containers) == ("etl", None)


def test_spark_application_has_executors_and_stages(servers: WeekServers, tmp_path: Path):
    servers.listed = [app(3, applicationType="SPARK")]
    servers.kept = {}
    servers.counts(tmp_path / "week")
    (imported,) = read_week(tmp_path / "week")
    rows = [
        (one.container, one.node, one.memory_mib, one.vcores, one.ended_by) for one in imported.containers
    ]
    assert rows == [("1", "n7", 1408, 3, "preempted"), ("2", "n8", 1408, 3, "")]
    assert imported.containers[0].span_ms == 60_000
    assert [(task.task, task.count, task.work_ms) for task in imported.tasks] == [("stage 4.1", 12, 90_000)]


def test_anonymous_replaces_names_alike_in_every_import(servers: WeekServers, tmp_path: Path):
    servers.counts(tmp_path / "week", "--anonymous")
    servers.listed.append(app(2))
    servers.kept["job_1_0002"] = ended(2)
    servers.counts(tmp_path / "week", "--anonymous")
    servers.counts(tmp_path / "other", "--anonymous")
    first, second = read_week(tmp_path / "week")
    assert first.job.name == second.job.name  # "daily 1" and "daily 2" are runs of one job
    assert first.job.user == second.job.user != read_week(tmp_path / "other")[0].job.user
    written = b"".join(path.read_bytes() for path in (tmp_path / "week").rglob("*.parquet"))
    table = pq.read_table(tmp_path / "week" / "part-00001" / "containers.parquet").to_pylist()
    assert {row["node"][:5] for row in table if row["node"]} == {"node-"}
    assert not [word for word in (b"alice", b"daily", b"n1.example") if word in written]
    assert first.job.queue == "etl"
    assert (tmp_path / "week.key").stat().st_mode & 0o777 == 0o600


def test_import_counts_the_nodes_of_each_size(servers: WeekServers, tmp_path: Path):
    servers.counts(tmp_path / "week")
    assert read_nodes(tmp_path / "week") == [WeekNodes(nodes=3, memory_mib=8192, vcores=8)]
    servers.counts(tmp_path / "week")
    assert len(read_week(tmp_path / "week")) == 1


def test_folder_with_other_files_is_refused(servers: WeekServers, tmp_path: Path):
    (tmp_path / "mine.txt").touch()
    result = servers.imported(tmp_path)
    assert isinstance(result.exception, BadInput)
    assert "mine.txt" in str(result.exception)


@pytest.mark.parametrize("foreign", ["mine.txt", ".part-download"])
def test_folder_with_other_files_keeps_all_of_them(tmp_path: Path, foreign: str):
    """Nothing is removed before the folder is known to be one of a week."""
    names = {foreign, ".part-00001.77", ".part-nodes.json.77"}
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(BadInput, match="not a folder of a week"):
        WeekWriter(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names
    (tmp_path / foreign).unlink()
    WeekWriter(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_read_week_refuses_a_table_of_another_program(tmp_path: Path):
    with WeekWriter(tmp_path / "week") as week:
        week.add(ImportedJob(WeekJob(job="a", kind="X", queue="q", user="u", name="n", submitted_at_ms=5)))
    file = tmp_path / "week" / "part-00001" / "tasks.parquet"
    pq.write_table(pa.table({"a": [1]}), file)
    with pytest.raises(BadInput, match=r"tasks\.parquet"):
        read_week(tmp_path / "week")
    with pytest.raises(BadInput, match="holds no week"):
        read_week(tmp_path / "none")


def test_import_leaves_out_what_ended_before_its_days(servers: WeekServers, tmp_path: Path):
    servers.listed, servers.kept = [], {"job_1_0001": ended(1, finishTime=1_000_000_000_000)}  # in 2001
    assert servers.counts(tmp_path / "week", "--days", "3")["imported"] == 0
