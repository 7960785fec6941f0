"""Outputs of bundled scenarios: the results of each, and the digest of every journal it writes.

Law: the same scenario, seed and code give the same bytes. What stands in a journal is summed up beside its
digest, so that a difference can be read; the journal itself is written by ``yarn-emulator run``.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from emulator.cli import PROGRAM as EMULATOR
from tests.frozen.invoking import invoked
from tests.frozen.journals import records
from tests.frozen.pieces import Piece

SCENARIOS = Path(__file__).parents[2] / "docs/scenarios"
SMALL = """
production = "synthetic:production-s"
research = "synthetic:research-s"
nodes = 3
slots = 5
job_policy = "PR"
task_policy = "random"
seed = 7
"""
SLOW = ("facebook-2009", "steady-250", "deadlines", "faults")
"""Scenarios that take seconds: only the thorough tests run them."""


def scenarios() -> dict[str, str]:
    """Return the text of every scenario: those that are shipped, and a small one under all schemes."""
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SCENARIOS.glob("*.toml"))}
    return {**shipped, "small": SMALL}


def output(name: str) -> dict[str, Any]:
    """Run a scenario; return its results, and of each file that must not differ the digest."""
    with tempfile.TemporaryDirectory() as folder:
        scenario, out = Path(folder) / "scenario.toml", Path(folder) / "out"
        scenario.write_text(scenarios()[name], encoding="utf-8")
        told = invoked(
            "run", str(scenario), "--out", str(out), "--workers", "1", program=EMULATOR, hidden=folder
        )
        assert told["status"] == 0, told["err"]
        results = out / "results.json"
        journals = sorted(out.glob("*/journal.jsonl"))
        return {
            "results": json.loads(results.read_bytes()),
            "journals": {path.parent.name: _summed_up(path.read_bytes()) for path in journals},
            "sha256": {path.relative_to(out).as_posix(): _sha256(path) for path in (results, *journals)},
        }


def _summed_up(data: bytes) -> dict[str, Any]:
    """Return how many records of each kind a journal holds, and when it ends."""
    found = records(data)
    instants = [record["at_ms"] for record in found if "at_ms" in record]
    return {
        "records": dict(sorted(Counter(record["type"] for record in found).items())),
        "last_at_ms": instants[-1] if instants else None,
    }


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pieces() -> list[Piece]:
    return [Piece(f"scenarios/{name}", partial(output, name), slow=name in SLOW) for name in scenarios()]
