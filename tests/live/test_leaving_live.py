"""Executors of a modelled application of Spark leave for production on the live emulator, and come back.

Law: everything goes over HTTP by the programs that users type: the wrapper, spark-submit, ``yarnctl run``.
What was done is read from the journal, what became of the executors from the driver's REST.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from research.tests.live.test_admission_live import until
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import ROOT, program, read_records
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.model import Drain, Grow
from yarnctl.deciding.records import Record, Requests, Transition
from yarnctl.frameworks.spark.driver import SparkDriver
from yarnctl.frameworks.spark.rest import Executor, left_well
from yarnctl.hadoop.http.transport import Transport
from yarnctl.hadoop.proxied import Absent

EXECUTORS = 7
"""With the driver they fill two nodes of four slots."""
PATIENCE_S = 120.0


class Lived(NamedTuple):
    """What came of it: what research's driver said once production had its room, and at research's end."""

    told: tuple[Executor, ...]
    at_end: tuple[Executor, ...]
    records: list[Record]
    journal: Path
    status: int


@contextmanager
def submitted(url: str, words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Submit research through the wrapper; end its client at the end of the block."""
    wrap = (sys.executable, "-c", "from yarnctl.cli import main; main()", "wrap", "--spark", "--exec", *words)
    submit = ("--", str(Path(sys.executable).with_name("yarn-emulator")), "spark-submit")
    how = ("--master", "yarn", "--name", "research", "--num-executors", str(EXECUTORS), "--queue", "research")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "YARN_EMULATOR_RM": url, "SPARK_HOME": ""}
    with (folder / "submit.log").open("w") as said:
        client = subprocess.Popen(
            (*wrap, *submit, *how, "modelled:2+700"), env=env, stdout=said, stderr=said, text=True
        )
    try:
        yield client
    finally:
        client.kill()
        client.wait(PATIENCE_S)


def executors_of(url: str, application: str) -> tuple[Executor, ...]:
    """Return what the driver says of its executors; () while it does not answer."""
    with Transport([url]) as to:
        found = SparkDriver(to, application).executors()
    return () if isinstance(found, Absent) else tuple(each for each in found if not each.is_driver)


def whole(url: str, application: str) -> tuple[Executor, ...]:
    """Return what the driver says while all of its executors work; () otherwise."""
    found = executors_of(url, application)
    return found if sum(each.is_active for each in found) == EXECUTORS else ()


def live(folder: Path, route: str) -> Lived:
    """Let production come while research fills the cluster."""
    plugin = folder / "leave.jar"
    plugin.write_bytes(b"")
    wrap = ("--plugin", str(plugin)) if route == "plugin" else ("--route", "signal")
    cluster = ("serve", "--nodes", "2", "--slots", "4", "--port", "0", "--json")
    how = ("--containers", "modelled", "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        state = ("--rm", url, "--enforce", "--listen", "off", "--state-dir", str(folder / "state"))
        mix = ("--eviction", "mix", "--may-lose", "40%", "--room-within", "30s", "--cap-queue")
        harness = Client(url, "harness")
        with (
            program("yarnctl.cli", "run", *state, *mix, log=folder / "yarnctl.log"),
            submitted(url, wrap, folder) as client,
        ):
            until(lambda: bool(harness.applications()), "submitted")
            research = str(harness.applications()[0]["id"])
            until(lambda: whole(url, research), "full")
            rows = play(harness, (job("production", 0, [6], [4]),), 1.0)
            told = executors_of(url, research)
            at_end = until(lambda: whole(url, research), "whole again")
            status = client.wait(PATIENCE_S)
    assert [row.final_status for row in rows] == ["SUCCEEDED"]
    journal = folder / "state" / "journal.jsonl"
    return Lived(told, at_end, read_records(journal), journal, status)


@pytest.fixture(scope="module", params=["plugin", pytest.param("signal", marks=pytest.mark.thorough)])
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return live(tmp_path_factory.mktemp(f"leaving-{request.param}"), request.param)


def requested(lived: Lived, kind: type[Any]) -> list[Any]:
    found = [each for each in lived.records if isinstance(each, Requests)]
    return [action for each in found for action in each.actions if isinstance(action, kind)]


@pytest.mark.xdist_group("leaving-live")
def test_executors_leave_production_gets_their_room_and_they_come_back(lived: Lived) -> None:
    assert lived.status == 0, "research succeeds"
    drains = requested(lived, Drain)
    assert drains
    gone = [each for each in lived.told if not each.is_active]
    assert 1 <= len(gone) <= len(drains)
    assert all(left_well(each.remove_reason) for each in gone), gone
    assert len(lived.at_end) == EXECUTORS + len(drains), "as many came back as left"
    ends = [each.target for each in lived.records if isinstance(each, Transition)]
    assert ends.count("granted") >= 1
    assert "timed-out" not in ends


@pytest.mark.xdist_group("leaving-live")
def test_each_order_is_explained_and_the_journal_replays(
    lived: Lived, capfd: pytest.CaptureFixture[str]
) -> None:
    from yarnctl.cli import PROGRAM

    assert exit_status_of(PROGRAM, ["replay", str(lived.journal)]) == 0
    for drain in requested(lived, Drain):
        capfd.readouterr()
        assert exit_status_of(PROGRAM, ["explain", drain.order, "--journal", str(lived.journal)]) == 0
        assert "drain" in capfd.readouterr().out
    assert {number for grow in requested(lived, Grow) for number in grow.decisions} <= {
        drain.decision for drain in requested(lived, Drain)
    }
