"""Same seed, same bytes: under other hash seeds, other numbers of workers, and twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.thoroughness import is_thorough

pytestmark = pytest.mark.xdist_group("determinism")  # what is made once for all is made in one worker

ROOT = Path(__file__).parents[2]

SCENARIO = """
production = "synthetic:production-s"
research = "synthetic:research-s"
nodes = 3
slots = 5
job_policy = "PR"
task_policy = "random"
schemes = ["ideal", "soft-cap", "kill", "yarn-tuned", "natjam"]
seed = 7
"""

PROGRAM = "from emulator.cli import main; main()"


def run(scenario: Path, out: Path, hash_seed: str, workers: int) -> dict[str, bytes]:
    """Run the scenario in a process of its own and return the bytes that must not differ."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "run", str(scenario), "--out", str(out), "--workers", str(workers)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    paths = [out / "results.json", out / "report.html", *sorted(out.glob("*/*.json*"))]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, bytes]]:
    """Return the bytes of two runs that differ in hash seed and workers; with ``--thorough`` of four."""
    folder = tmp_path_factory.mktemp("determinism")
    scenario = folder / "scenario.toml"
    scenario.write_text(SCENARIO)
    asked = (("1", 1), ("31415", 2), ("1", 1), ("2718", 1))[: 4 if is_thorough() else 2]
    return [run(scenario, folder / f"out-{i}", *one) for i, one in enumerate(asked)]


def test_there_is_something_to_compare(runs: list[dict[str, bytes]]) -> None:
    assert {"results.json", "natjam/journal.jsonl", "kill/journal.jsonl", "ideal/result.json"} <= set(runs[0])
    assert runs[0]["natjam/journal.jsonl"].count(b'"type":"decision"') > 0


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(1, id="other-hash-seed-and-workers"),
        pytest.param(2, id="twice", marks=pytest.mark.thorough),
        pytest.param(3, id="other-hash-seed", marks=pytest.mark.thorough),
    ],
)
def test_same_seed_same_bytes(runs: list[dict[str, bytes]], other: int) -> None:
    differing = [name for name in runs[0] if runs[other].get(name) != runs[0][name]]
    assert runs[other].keys() == runs[0].keys()
    assert differing == []


def test_no_path_version_or_clock_in_what_must_not_differ(runs: list[dict[str, bytes]]) -> None:
    words = (
        str(ROOT).encode(),
        b"out-0",
        b"wall_s",
        sys.version.split()[0].encode(),
        tempfile.gettempdir().encode(),
    )
    for name, data in runs[0].items():
        assert [word for word in words if word in data] == [], name
