"""How many files a reader opens to follow one kill, from the ResourceManager's answer to the request to kill.

Law: the list is traced while yarnctl runs against a live cluster over HTTP, not written down.
"""

from __future__ import annotations

import json

import pytest

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, program, told

MOST_FILES = 60
SPEED = 10.0
SMALL = Case(
    "one-kill",
    nodes=1,
    slots=4,
    jobs=(job("research", 0, [2], [60, 80, 100]), job("production", 15, [2], [2])),
)
THROUGH = (
    "yarnctl/deciding/controller.py",
    "yarnctl/attach/eligibility/permission.py",
    "yarnctl/attach/orders/performing.py",
    "yarnctl/hadoop/app_master.py",
)
"""What no trace of a kill can leave out: the decision, the permission check, the request."""


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("one-kill")
    output = folder / "files.json"
    cluster = ("serve", "--nodes", str(SMALL.nodes), "--slots", str(SMALL.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(SPEED), "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        arguments = (str(output), str(SPEED), *told(SMALL, url, folder / "state"))
        with program("tests.live.one_kill", *arguments, log=folder / "yarnctl.log"):
            play(Client(url, "harness"), SMALL.jobs, SPEED)
    assert output.exists(), (folder / "yarnctl.log").read_text()
    found: list[str] = json.loads(output.read_text())
    return found


def test_the_trace_goes_through_what_a_kill_needs(entered: list[str]) -> None:
    assert set(THROUGH) <= set(entered)


def test_one_kill_goes_through_few_files(entered: list[str]) -> None:
    print(f"one kill, attached: {len(entered)} files entered (target {MOST_FILES})", *entered, sep="\n  ")
    assert len(entered) <= MOST_FILES
