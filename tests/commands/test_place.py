"""``yarnctl place`` and ``profile``: what is refused before anything is asked or run, and what is kept."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.service.test_admissions import Daemon
from tests.unit.daemon.at_the_desk import AtTheDesk
from tests.unit.service.conftest import TOKEN
from yarnctl.cli import PROGRAM
from yarnctl.cli.place import application_at
from yarnctl.cli.profile import ProfileCell, Watched, cells_of, missing, numbers_of
from yarnctl.cli.runs import keep_run, kept_runs
from yarnctl.command_line import exit_status_of
from yarnctl.daemon.admission.pool_files import PoolSettings
from yarnctl.errors import Different
from yarnctl.hadoop.wire import yarn
from yarnctl.prediction.application_runs import KnownRun

APP = """
name = "wordcount"
features = { input_mib = 64 }
[spark]
command = ["spark-submit", "--master", "yarn", "--deploy-mode", "cluster", "a.jar", "/out-{run}"]
tunables = { "spark.executor.memory" = ["640m", "1g"] }
[flink]
command = ["flink", "run-application", "-t", "yarn-application", "a.jar"]
"""
POOLS = (
    PoolSettings(name="fast", queue="root.fast", kinds=("spark",), capacity=4),
    PoolSettings(name="slow", queue="root.slow", kinds=("flink",), capacity=4),
)


def run(workers: int, kind: str = "spark", number: int = 0, memory: str = "1g") -> KnownRun:
    settings = {"spark.executor.memory": memory} if kind == "spark" else {}
    return KnownRun(
        "wordcount", kind, {"input_mib": 64.0}, settings, workers + 1, 60_000 // workers + number,
        f"profile:{number}",
    )  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of an APP.toml and a store with runs of both kinds."""
    file, store = tmp_path / "wordcount.toml", tmp_path / "runs.jsonl"
    file.write_text(APP)
    for number in range(4):
        for workers in (1, 2, 3):
            keep_run(store, run(workers, "spark", number, "1g" if number % 2 else "640m"))
            keep_run(store, run(workers, "flink", number))
    return file, store


def placed(url: str, file: Path, store: Path, *words: str) -> int:
    told = ["place", str(file), "--store", str(store), "--url", url, "--user", "ann", *words]
    return exit_status_of(PROGRAM, told)


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    served = Daemon(there=AtTheDesk("orion", pools=POOLS, history=False))
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(token))
    yield served
    served.stop()


def test_the_chosen_command_carries_what_the_white_lists_allow(daemon, written, capsys) -> None:
    assert placed(daemon.url, *written, "--deadline", "10m", "--kind", "spark", "--print", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    line = answer["command"]
    plan = answer["admission"]["placement"]
    assert (plan["kind"], plan["pool"]) == ("spark", "fast")
    said = {line[at + 1] for at, word in enumerate(line) if word == "--conf"}
    executors = f"spark.executor.instances={plan['containers'] - 1}"
    assert {executors, "spark.yarn.queue=root.fast", "spark.dynamicAllocation.enabled=false"} <= said
    assert [word for word in said if word.startswith("spark.executor.memory=")]
    assert [word for word in said if f"yarnctl-admission-{answer['admission']['id']}" in word]
    assert len(said) == 5
    assert line[-1].startswith("/out-")
    assert "{run}" not in line[-1]


@pytest.mark.parametrize("late", ["1e-310", "1e-17", "0.1%", "49.9%"])
def test_any_chance_makes_a_bound(late: str, daemon, written, capsys) -> None:
    told = ("--deadline", "10m", "--late", late, "--print", "--json")
    assert placed(daemon.url, *written, *told) == 0
    plan = json.loads(capsys.readouterr().out)["admission"]["placement"]
    assert plan["verdict"] == "admit"


def test_what_cannot_be_in_time_is_rejected_with_what_would_do(daemon, written, capsys) -> None:
    assert placed(daemon.url, *written, "--deadline", "5s", "--print") == 1
    told = capsys.readouterr().err
    assert "no option meets the deadline; the earliest possible end is" in told
    assert daemon.there.book.open("waiting") == []


def test_without_waiting_it_leaves_with_75(daemon, written, capsys) -> None:
    held = ("--deadline", "90s", "--kind", "spark", "--print", "--late", "point")
    assert placed(daemon.url, *written, *held) == 0
    while placed(daemon.url, *written, *held, "--no-wait") == 0:
        assert len(daemon.there.book.admissions) < 5
    assert "reserved from" in capsys.readouterr().out
    assert [each.state for each in daemon.there.book.admissions.values()][-1] == "withdrawn"


CASES: dict[str, tuple[tuple[str, str], tuple[str, ...], str]] = {
    "a kind that the file has not": (("", ""), ("--kind", "tez"), "--kind: the file has no section [tez]"),
    "a chance of nothing": (("", ""), ("--late", "0"), "--late: '0' is not between 0 and 50%"),
    "a chance that is NaN": (("", ""), ("--late", "nan"), "--late: 'nan' is not between 0 and 50%"),
    "a deadline in no unit": (("", ""), ("--deadline", "-3"), "--deadline"),
    "an application without runs": (('"wordcount"', '"grep"'), (), "yarnctl profile"),
    "a feature that the runs have": (("input_mib = 64", "rows = 7"), (), "features: input_mib: is missing"),
    "no program": (("", ""), (), "program not found in PATH"),
}


@pytest.mark.parametrize("case", list(CASES))
def test_what_is_refused_before_anything_is_asked(case, daemon, written, capsys) -> None:
    (before, after), words, said = CASES[case]
    file, store = written
    file.write_text(APP.replace(before, after, 1) if before else APP)
    show = () if case == "no program" else ("--print",)
    deadline = () if "--deadline" in words else ("--deadline", "10m")
    assert placed(daemon.url, file, store, *deadline, *show, *words) == 2
    assert said in capsys.readouterr().err
    assert daemon.there.book.admissions == {}


def test_a_kind_without_a_pool_and_a_queue_that_contradicts_are_refused(daemon, written, capsys) -> None:
    file, store = written
    file.write_text(APP.replace('"cluster", "a.jar"', '"cluster", "--queue", "root.slow", "a.jar"'))
    assert placed(daemon.url, file, store, "--deadline", "10m", "--print") == 2
    assert (
        "[spark] queue root.slow: belongs to no pool that accepts spark; use root.fast"
        in capsys.readouterr().err
    )
    file.write_text(APP + '[mapreduce]\ncommand = ["hadoop", "jar", "e.jar", "wordcount"]\n')
    for number in range(3):
        keep_run(store, run(2, "mapreduce", number))
    assert placed(daemon.url, file, store, "--deadline", "10m", "--print") == 2
    assert "[mapreduce]: no pool accepts mapreduce" in capsys.readouterr().err
    assert daemon.there.book.admissions == {}


def test_a_gate_without_pools_is_refused(written, tmp_path, monkeypatch, capsys) -> None:
    served = Daemon()
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    monkeypatch.setenv("YARNCTL_TOKEN_FILE", str(token))
    try:
        assert placed(served.url, *written, "--deadline", "10m", "--print") == 2
    finally:
        served.stop()
    assert "admission does not place applications" in capsys.readouterr().err


# --- profile ----------------------------------------------------------------------------------------------


def test_what_was_run_before_is_not_run_again(written) -> None:
    file, store = written
    app = application_at(file)
    cells = cells_of(app, numbers_of("1,2,4"))
    assert [str(cell) for cell in cells][:3] == [
        "spark, 4 + 1 containers, spark.executor.memory=640m",
        "spark, 2 + 1 containers, spark.executor.memory=640m",
        "spark, 1 + 1 containers, spark.executor.memory=640m",
    ]
    times = {str(cell): count for cell, count in missing(app, cells, 3, kept_runs(store))}
    assert times["spark, 1 + 1 containers, spark.executor.memory=640m"] == 1
    assert times["spark, 4 + 1 containers, spark.executor.memory=1g"] == 3
    assert times["flink, 2 + 1 containers"] == 0
    other = app._replace(features={"input_mib": 65.0})
    assert all(count == 3 for _, count in missing(other, cells, 3, kept_runs(store)))
    assert isinstance(cells[0], ProfileCell)


@pytest.mark.parametrize("text", ["", "0", "1,", "1,x", "-1", "1.5", "2000"])
def test_numbers_of_containers_that_are_none_are_refused(text: str, written, capsys) -> None:
    assert exit_status_of(PROGRAM, ["profile", str(written[0]), "--containers", text]) == 2
    assert "--containers" in capsys.readouterr().err


def test_nothing_is_run_where_no_resource_manager_answers(written, tmp_path, monkeypatch, capsys) -> None:
    tried: list[object] = []
    monkeypatch.setattr("yarnctl.cli.profile.require_programs", lambda *_, **__: None)
    monkeypatch.setattr("subprocess.Popen", lambda *words, **_: tried.append(words))
    nobody = ("--rm", "http://127.0.0.1:9", "--store", str(tmp_path / "none.jsonl"))
    assert exit_status_of(PROGRAM, ["profile", str(written[0]), *nobody]) == 3
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert tried == []


class Listing:
    """A ResourceManager that lists an application from a look on; it ran for 40 s."""

    def __init__(self, first: int) -> None:
        self.left = first

    def tagged(self, _tag: str) -> tuple[yarn.AppInfo, ...]:
        self.left -= 1
        return () if self.left >= 0 else (yarn.AppInfo(application="application_1_0001", state="FINISHED"),)

    def ended_application(self, name: str) -> yarn.EndedApplication:
        return yarn.EndedApplication(
            application=name, final_status="SUCCEEDED", submitted_at_ms=1_000, ended_at_ms=41_000
        )


@pytest.mark.parametrize(
    ("status", "first", "appears_s", "found"),
    [
        (0, 3, 120.0, "application_1_0001"),  # a command may end before its application is listed
        (None, 3, 0.0, "application_1_0001"),  # a command that runs may take its time
        (0, 1 << 60, 0.0, "no application was submitted (exit status 0)"),
        (1, 3, 120.0, "no application was submitted (exit status 1)"),
    ],
)
def test_profile_waits_for_an_application_whose_command_has_ended(
    monkeypatch, status: int | None, first: int, appears_s: float, found: str
) -> None:
    monkeypatch.setattr("yarnctl.cli.profile.POLL_S", 0.001)
    monkeypatch.setattr("yarnctl.cli.profile.APPEARS_S", appears_s)
    process: Any = SimpleNamespace(poll=lambda: status, returncode=status)
    manager: Any = Listing(first)
    try:
        name, elapsed_ms = Watched(manager, "tag", process, time.monotonic()).until_ended()
    except Different as error:
        name = str(error)
    else:
        assert 40_000 <= elapsed_ms < 60_000
    assert name == found


def test_who_answers_without_runs_is_no_yarnctl(monkeypatch, tmp_path, capsys) -> None:
    page = {"items": [{"application": 3}], "now_ms": 0, "version": 0, "total": 1, "next": None}
    monkeypatch.setattr("yarnctl.client.daemon_client.send", lambda *_: page)
    words = ["runs", "--url", "http://127.0.0.1:9", "--store", str(tmp_path / "none.jsonl")]
    assert exit_status_of(PROGRAM, words) == 3
    assert "unexpected answer" in capsys.readouterr().err


def test_options_of_a_gate_are_refused_under_their_own_names(tmp_path, capsys) -> None:
    pools = tmp_path / "pools.toml"
    pools.write_text('[[pool]]\nname = "fast"\nqueue = "root.fast"\n')
    start = ["run", "--rm", "http://127.0.0.1:9", "--state-dir", str(tmp_path / "state")]
    for words, said in (
        (("--pools", str(pools)), "--pools: requires --admission"),
        (("--runs", "x"), "--runs: requires --admission"),
        (("--admission-queue", "a"), "--admission-queue: requires --admission"),
        (
            ("--admission", "orion", "--pools", str(pools), "--runs", str(tmp_path / "no")),
            "no: file not found",
        ),
        (("--admission", "orion", "--pools", str(pools), "--runs", str(pools)), "pools.toml: line 1"),
    ):
        assert exit_status_of(PROGRAM, [*start, *words]) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "state").exists()


def test_runs_say_how_well_they_are_predicted(written, capsys: Any) -> None:
    _, store = written
    assert exit_status_of(PROGRAM, ["runs", "--store", str(store)]) == 0
    assert "below bound" in capsys.readouterr().out
    assert exit_status_of(PROGRAM, ["runs", "--store", str(store), "--quality", "--json"]) == 0
    found = {each["kind"]: each for each in json.loads(capsys.readouterr().out)}
    assert sorted(found) == ["flink", "spark"]
    assert found["spark"]["runs"] == 12
    assert 0 <= found["spark"]["covered_ratio"] <= 1
