"""How many files a reader opens to follow one kill, from the ResourceManager's answer to the request to kill.

Law: the list is traced while yarnctl runs against a live cluster over HTTP (``traced_daemon``), not written
down. ``python -m tests.live.one_kill`` prints it as JSON.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from emulator.live.jobs.submission_client import Client
from emulator.live.jobs.workload_replay import play
from tests.soak.virtual_live import job
from tests.soak.virtual_live_sides import Case, first_look_ms, program, told

SPEED = 10.0
SMALL = Case(
    "one-kill",
    nodes=1,
    slots=4,
    jobs=(job("research", 0, [2], [60, 80, 100]), job("production", 15, [2], [2])),
)


def files_entered(folder: Path) -> list[str]:
    """Run the case and return the product's files that one kill went through, in order of their names."""
    output = folder / "files.json"
    cluster = ("serve", "--nodes", str(SMALL.nodes), "--slots", str(SMALL.slots), "--port", "0", "--json")
    how = ("--containers", "modelled", "--speed", str(SPEED), "--work", str(folder / "work"))
    with program("emulator.cli", *cluster, *how, log=folder / "serve.log") as serve:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        arguments = (str(output), str(SPEED), *told(SMALL, url, folder / "state"))
        with program("tests.live.traced_daemon", *arguments, log=folder / "yarnctl.log"):
            first_look_ms(folder / "state" / "journal.jsonl")  # it starts more slowly than the workload ends
            play(Client(url, "harness"), SMALL.jobs, SPEED)
    assert output.exists(), (folder / "yarnctl.log").read_text(encoding="utf-8")
    found: list[str] = json.loads(output.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        entered = files_entered(Path(made))
    print(json.dumps({"entered": len(entered), "files": entered}, indent=2))
