"""JSON that the live emulator's programs print: the lines that say they are ready, and a job's outcome.

Law: the programs are those that a user starts, on ports of their own; only keys and types are looked at.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from emulator.cli import PROGRAM as EMULATOR
from tests.frozen.invoking import invoked
from tests.frozen.schemas import shape
from tests.soak.virtual_live_sides import program

SERVE = ("--nodes", "1", "--slots", "4", "--containers", "modelled", "--speed", "20")
JOB = ("--modelled", "1x1,1x1", "--queue", "research", "--user", "ann")
WORKLOAD = ("--workload", "synthetic:production-s", "--queue", "production", "--speed", "20", "--no-wait")


def live_documents() -> dict[str, Any]:
    """Return the lines of what ``serve``, ``submit``, ``rm`` and ``nm`` print as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        where = ("--port", "0", "--json", "--work", str(folder / "serve"))
        with program("emulator.cli", "serve", *SERVE, *where, log=folder / "serve.log") as serve:
            found = {"yarn-emulator serve": ready(serve)}
            found |= submitted(found["yarn-emulator serve"]["url"])
        found |= apart(folder)
        return {command: shape(document) for command, document in found.items()}


def ready(process: subprocess.Popen[str]) -> Any:
    """Return what a program prints once it is ready."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def submitted(url: str) -> dict[str, Any]:
    """Return what ``submit`` prints of a job that ends, of one it does not wait for, and of a workload."""
    commands = {
        "yarn-emulator submit": JOB,
        "yarn-emulator submit --no-wait": (*JOB, "--no-wait"),
        "yarn-emulator submit --workload": WORKLOAD,
    }
    found = {}
    for command, words in commands.items():
        answer = invoked("submit", "--rm", url, *words, "--json", program=EMULATOR)
        assert answer["status"] == 0, answer["err"]
        found[command] = json.loads("\n".join(answer["out"]))
    return found


def apart(folder: Path) -> dict[str, Any]:
    """Return what a ResourceManager and a node print that are processes of their own."""
    work = ("--work", str(folder / "apart"))
    where = ("--port", "0", "--json", *work)
    with program("emulator.cli", "rm", *where, log=folder / "rm.log") as manager:
        told = ready(manager)
        node = ("--rm", told["url"], "--json", "--containers", "modelled", *work)
        with program("emulator.cli", "nm", *node, log=folder / "nm.log") as node_manager:
            return {"yarn-emulator rm": told, "yarn-emulator nm": ready(node_manager)}
