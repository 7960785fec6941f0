"""An observing daemon on a live cluster, beside an enforcing controller on the same case in virtual time.

Law: what was sent is read from the cluster: its attempts and its HDFS. (A live twin that enforces depends on
how fast this machine answers.)
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from emulator.cluster.timing import HADOOP3
from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from emulator.virtual.run import Setup
from tests.daemon_plans import plan_for
from tests.http_client import get
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import AM_RATIO, Case, program, read_records, told
from tests.unit import test_virtual_observing
from yarnctl.command_line import exit_status_of
from yarnctl.deciding.records import Decision, Lowering, Transition
from yarnctl.traces.job import ONE_SLOT
from yarnctl.units import times

SPEED = 5.0
CASE = Case(
    "observing",
    nodes=3,
    slots=4,
    jobs=(job("research", 0, [100] * 9, [4]), job("production", 40, [30] * 5, [3])),
)
"""Research's master and nine maps leave two containers: production's master and one map of five."""

WORDS = ("--eviction", "mix", "--may-lose", "90%")


def enforced_orders() -> int:
    """Return how many orders the enforcing twin sends."""
    plan = plan_for(*told(CASE, "http://127.0.0.1:1", Path("unused")), *WORDS)
    setup = Setup(
        nodes=CASE.nodes, node_size=times(ONE_SLOT, CASE.slots), timing=HADOOP3, settings=plan.settings,
        am_ratio=AM_RATIO, may_lose_ratio=0.9, validate=True,
    )  # fmt: skip
    twin = test_virtual_observing.play(CASE.jobs, "mix", observe=False, setup=setup)
    assert twin.result.kills > 0
    return twin.orders


def test_observing_orders_as_enforcing_does_and_sends_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As many orders within a factor of two: the two see the cluster at other instants."""
    from yarnctl.cli import PROGRAM

    cluster = ("serve", "--nodes", str(CASE.nodes), "--slots", str(CASE.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(SPEED), "--work", str(tmp_path / "work"))
    with program("emulator.cli", *cluster, *how, log=tmp_path / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        words = (*(word for word in told(CASE, url, tmp_path / "state") if word != "--enforce"), *WORDS)
        with program("tests.soak.virtual_live_sides", str(SPEED), *words, log=tmp_path / "yarnctl.log"):
            client = Client(url, "harness")
            rows = {row.name: row for row in play(client, CASE.jobs, SPEED)}
            research = rows["research"].application.replace("application", "job")
            history = get(f"{url}/ws/v1/history/mapreduce/jobs/{research}").json()["job"]
            lock = get(f"http://{client.webhdfs()}/webhdfs/v1/yarnctl/lock?op=GETFILESTATUS")
    assert {row.final_status for row in rows.values()} == {"SUCCEEDED"}
    assert (history["killedMapAttempts"], history["killedReduceAttempts"]) == (0, 0)
    assert lock.status_code == 404
    journal = tmp_path / "state" / "journal.jsonl"
    records = read_records(journal)
    assert not [each for each in records if isinstance(each, Lowering)]
    orders = sum(len(each.orders) for each in records if isinstance(each, Decision))
    assert enforced_orders() / 2 <= orders <= enforced_orders() * 2
    moves = [each.target for each in records if isinstance(each, Transition)]
    assert moves.count("simulated") >= orders / 2
    assert exit_status_of(PROGRAM, ["replay", str(journal)]) == 0
    capfd.readouterr()
    assert exit_status_of(PROGRAM, ["explain", "o-000001", "--journal", str(journal)]) == 0
    assert "none: the order was not sent" in capfd.readouterr().out
