"""What a real Hadoop makes of odd counter lines: a reducer writes them, the history server tells the sums.

Law: the expectation is Hadoop's own word. ``python -m tests.hadoop.odd_lines record`` asks it again and
writes ``tests/hadoop/counters/hadoop-VERSION.json``; what the runner and the emulator make of the same lines
is compared with that file (``tests/runner/test_counters.py``) and, on a real Hadoop, with and without a
suspension (``test_counters.py`` here).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.hadoop.hdfs import Hdfs
from tests.hadoop.history import counters_of, reduce_attempts
from tests.hadoop.jobs import PROGRAM
from tests.hadoop.launcher import Cluster
from tests.hadoop.one_reduce import USER, run_one_reduce

DATA = Path(__file__).with_name("counters")
LINES = DATA / "odd_lines.json"
REDUCER = PROGRAM.with_name("odd_lines.py")
KEYS = ("k1", "k2", "k3", "k4")
"""Every line is written for each of them: what a line adds is told four times."""
CUT = 2
FRAMEWORK = ("org.apache.hadoop.", "Shuffle Errors")
"""Groups that Hadoop counts in by itself."""

Counters = dict[str, dict[str, int]]


def golden(version: str) -> Counters:
    """Return the counters that a version of Hadoop had after an undisturbed run of the reducer."""
    found: dict[str, Any] = json.loads((DATA / f"hadoop-{version}.json").read_text(encoding="utf-8"))
    counters: Counters = found["counters"]
    return counters


def all_bytes() -> bytes:
    """Return all that is written for one key, without its pauses."""
    lines = json.loads(LINES.read_text(encoding="utf-8"))
    items = (item for line in lines for item in line["write"])
    texts = (item if isinstance(item, str) else item.get("of", "") * item.get("times", 0) for item in items)
    return "".join(texts).encode("latin-1")


def run(cluster: Cluster, name: str, runner: Sequence[str] | None = None) -> tuple[Counters, bytes, int]:
    """Run the reducer as a job of one reduce; return its counters, its output and how many attempts it took.

    ``runner``: options of the task runner; none: Hadoop's PipeMapRed has the reducer itself.
    """
    job, output = run_one_reduce(cluster, f"odd-{name}", KEYS, (REDUCER, LINES), runner)
    counters = {
        group: inside
        for group, inside in counters_of(cluster, job).items()
        if not group.startswith(FRAMEWORK)
    }
    return counters, Hdfs(cluster.hdfs_url, USER).read(f"{output}/part-00000"), reduce_attempts(cluster, job)


def record(version: str) -> Path:
    """Start a Hadoop, ask it, write down what it says."""
    from tests.hadoop.attached import prepare
    from tests.hadoop.configuration import Shape

    with Cluster(Shape(version, nodes=1)) as cluster:
        prepare(cluster)
        counters, _, _ = run(cluster, "recorded")
    path = DATA / f"hadoop-{version}.json"
    told = {"hadoop": version, "groups_reduced": len(KEYS), "counters": counters}
    path.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    if sys.argv[1:2] != ["record"]:
        sys.exit("usage: python -m tests.hadoop.odd_lines record [VERSION]")
    print(record(sys.argv[2] if len(sys.argv) > 2 else "3.4.2"))
