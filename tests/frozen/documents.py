"""JSON documents that the commands and the tools of the tests print or write: their keys and types.

Law: what is quick is made here and looked at; what takes minutes is read off its record type, or off the file
that a run of it has left in docs/.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from emulator.cli import PROGRAM as EMULATOR
from emulator.demo.live_act import LiveOutcome
from emulator.virtual.run import Result
from tests.frozen.invoking import invoked
from tests.frozen.schemas import lines_of, shape
from tests.soak import campaigns, equal, io_faults, replay
from tests.unit.checkpoint.test_checkpoints import NOW_MS, Hdfs, manager, put
from tests.unit.gate_played import ADMITTED, JOB, OPTIONS, SIZED
from tests.unit.gate_played import Daemon as GateDaemon
from tests.unit.test_check import GOOD
from yarnctl.attach.check.rules import judge
from yarnctl.cli import check

SMALL = ("--production", "synthetic:production-s", "--research", "synthetic:research-s", "--nodes", "3",
         "--slots", "5", "--workers", "1", "--schemes", "ideal,natjam")  # fmt: skip
NOBODY: Any = None
"""The cluster of a campaign that runs nothing."""


def documents() -> dict[str, Any]:
    """Return every document's lines."""
    return {
        **{name: shape(value) for name, value in {**printed(), **written(), **tools()}.items()},
        **records(),
    }


def parsed(told: dict[str, Any]) -> Any:
    return json.loads("\n".join(told["out"]))


def printed() -> dict[str, Any]:
    """Return what commands print that need no daemon."""
    return {
        "yarn-emulator compare": parsed(invoked("compare", *SMALL, "--json", program=EMULATOR)),
        "yarn-emulator workload": parsed(
            invoked("workload", "synthetic:production-s", "--json", program=EMULATOR)
        ),
        "yarnctl check": parsed(_checked()),
        "yarnctl admit --print": parsed(_admitted()),
        **{f"yarnctl checkpoints {name}": parsed(told) for name, told in _checkpoints().items()},
    }


def _checked() -> dict[str, Any]:
    """Return what ``yarnctl check`` prints of a good cluster."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        check._print(judge(GOOD), "json")
    return {"out": out.getvalue().splitlines()}


def _admitted() -> dict[str, Any]:
    with GateDaemon(ADMITTED) as daemon:
        words = ("admit", "--url", daemon.url, "--print", "--deadline", "1m", "-o", "json", "--")
        return invoked(*words, *JOB, *SIZED, *OPTIONS)


def _checkpoints() -> dict[str, dict[str, Any]]:
    """Return what the commands print of a store with one checkpoint."""
    found: dict[str, dict[str, Any]] = {}
    for words in (("list",), ("show", "JOB"), ("verify",), ("gc",)):
        hdfs = Hdfs()
        job = put(hdfs, 1)
        states = {"application_1700000000000_0001": ("FINISHED", 1)}
        asked = [job if word == "JOB" else word for word in words]
        with (
            hdfs.serve() as store,
            manager(states) as rm,
            patch("yarnctl.cli.checkpoints.now_ms", lambda: NOW_MS),
        ):
            where = ("--rm", rm.url, "--name-node", store.url, "--json")
            found[words[0]] = invoked("checkpoints", *asked, *where)
    return found


def written() -> dict[str, Any]:
    """Return the files that ``yarn-emulator run`` writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        told = invoked("compare", *SMALL, "--out", str(out), program=EMULATOR)
        assert told["status"] == 0, told["err"]
        names = ("results.json", "run.json", "manifest.json", "natjam/result.json")
        return {name: json.loads((out / name).read_bytes()) for name in names}


def tools() -> dict[str, Any]:
    return {
        "tests.soak equal": equal.Campaign(NOBODY, 1, 1, print, 1, {}).summary(),
        "tests.soak io-faults": io_faults.summary([], 0),
    }


def records() -> dict[str, dict[str, str]]:
    """Return the lines of documents that are lists or values of one record type."""
    kinds = {
        "SCHEME/result.json result": Result, "demo live": LiveOutcome,
        "soak-campaigns.json": campaigns.Summary, "soak-equal.json runs[]": equal.Run,
        "tests.soak io-faults verdict": io_faults.Verdict, "tests.soak replay": replay.Summary,
    }  # fmt: skip
    return {name: lines_of(kind) for name, kind in kinds.items()}
