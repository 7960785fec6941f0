"""``python -m tests.acceptance.trial``: the newcomer's trial by lines, and the tests that stand for each.

Law: a line that is mended names a test that shows it, one that is answered says why; an open one is counted,
and the row misses. What needs a real Hadoop is counted apart and left to ``make test-hadoop``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import msgspec

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).parent / "trial.toml"
ON_HADOOP = "tests/cluster/"


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that hurt, and what became of it."""

    says: str
    state: Literal["mended", "answered", "open"]
    why: str = ""
    tests: tuple[str, ...] = ()


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    line: tuple[Line, ...]


def lines(path: Path = TABLE) -> tuple[Line, ...]:
    """Return the trial's lines, in its order."""
    return msgspec.toml.decode(path.read_bytes(), type=_Table).line


def main() -> int:
    """Run the tests that need no Hadoop; print the counts as JSON; 1 if one fails."""
    found = lines()
    ids = list(dict.fromkeys(test for line in found for test in line.tests))
    here = [test for test in ids if not test.startswith(ON_HADOOP)]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:anyio", *here]
    done = subprocess.run(words, cwd=ROOT, stdout=sys.stderr, check=False)
    counts = {state: sum(line.state == state for line in found) for state in ("mended", "answered", "open")}
    told = {"lines": len(found), **counts, "tests": len(here), "on-hadoop": len(ids) - len(here)}
    json.dump({**told, "passed": done.returncode == 0}, sys.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
