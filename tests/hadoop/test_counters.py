"""Odd counter lines on a real Hadoop: what it counts, with the runner and with a suspension.

Law: the recorded table is what this Hadoop says now, and neither the runner nor a suspension changes it.
"""

from __future__ import annotations

import pytest

from tests.hadoop.configuration import VERSION
from tests.hadoop.launcher import Cluster
from tests.hadoop.odd_lines import KEYS, golden, run

OUTPUT = b"".join(f"{key}\t\n".encode() for key in KEYS)
RUNS = {
    "plain": None,
    "undisturbed": (),
    "suspended": ("--suspend-at", "2", "--exit-when-saved"),
    "in-place": ("--suspend-at", "1,2,3", "--release-wait-ms", "0"),
}


@pytest.mark.parametrize("name", RUNS)
def test_hadoop_counts_the_same(loop_cluster: Cluster, name: str) -> None:
    counters, output, attempts = run(loop_cluster, name, RUNS[name])
    assert output == OUTPUT
    assert counters == golden(VERSION)
    assert attempts == (2 if name == "suspended" else 1)
