"""The runner counts key groups alike under every Python that the system has: nodes have their own.

Debian 12 has 3.11.2, whose possessive quantifiers match what they must not (CPython issue 106052): a key
seemed to end in its middle, and a border of groups where there is none is where a checkpoint may be cut.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runner.running import RUNNER

PYTHONS = sorted(
    {
        str(Path(found).resolve())
        for name in ("python3", *(f"python3.{minor}" for minor in range(8, 20)))
        if (found := shutil.which(name, path="/usr/bin:/usr/local/bin:/bin"))
    }
    | {sys.executable}
)
COUNTS = """
import importlib.util, random, sys
place = importlib.util.spec_from_file_location("yarnctl_task", sys.argv[1])
task = importlib.util.module_from_spec(place)
sys.modules["yarnctl_task"] = task
place.loader.exec_module(task)
keys = sorted(b"%d" % number for number in range(300))
lines = b"".join(b"%s\\t%d\\n" % (key, value) for key in keys for value in (107, 1, 644, 12, 3531))
for seed in range(50):
    chance, scanner, at = random.Random(seed), task.Scanner(task.KeyRule()), 0
    while at < len(lines):
        size = chance.choice([1, 5, 50, 500, 5000])
        scanner.take(lines[at : at + size])
        at += size
    scanner.finish()
    print(scanner.groups, scanner.sorted, scanner.digest())
"""


@pytest.mark.parametrize("python", PYTHONS)
def test_groups_are_counted_alike_wherever_pieces_end(python):
    done = subprocess.run([python, "-c", COUNTS, str(RUNNER)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (told,) = set(done.stdout.splitlines())
    assert told.startswith("300 True ")
