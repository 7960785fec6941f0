"""``python -m yarn_research.campaigns.load``: what yarnctl adds to a ResourceManager, in requests and processor time.

Law: both are the ResourceManager's own words: its request log names who asked, /proc how long it computed.
Four stretches of the same length on one cluster: nothing runs, or a job that fills it with another waiting;
without yarnctl, and with it enforcing.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.hadoop.attached import Attached, prepare
from tests.hadoop.jobs import LOOK_S, Job
from tests.hadoop.launcher import Cluster
from yarn_research.campaigns.bench import SHAPE, groups_of, production, research
from yarn_research.campaigns.provenance import head, load

TICKS_IN_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, s (proc(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_IN_S


def requests_of(log: Path, agent: str, since: int) -> int:
    """Return how many requests of a user agent the log names beyond its first ``since`` bytes."""
    with log.open("rb") as file:
        file.seek(since)
        return sum(line.rstrip().endswith(f'"{agent}"'.encode()) for line in file)


def stretch(cluster: Cluster, span_s: float) -> dict[str, float]:
    """Let time pass; return processor seconds per second and yarnctl's requests per second."""
    log, pid = cluster.daemons["resourcemanager"].log, cluster.pid("resourcemanager")
    since, before_s, began_s = log.stat().st_size, cpu_s(pid), time.monotonic()
    time.sleep(span_s)
    took_s = time.monotonic() - began_s
    return {
        "rm_cpu_ratio": round((cpu_s(pid) - before_s) / took_s, 4),
        "requests_per_s": round(requests_of(log, "yarnctl", since) / took_s, 2),
    }


def busy(cluster: Cluster, folder: Path, name: str, span_s: float, attached: bool) -> dict[str, float]:
    """Measure while research fills the cluster and production has arrived."""
    patient = Job(cluster, research(attached)._replace(groups=groups_of(span_s + 90, 11)), folder, name)
    while patient.at_work() < len(patient.plan.groups):
        time.sleep(LOOK_S)
    hurried = Job(cluster, production()._replace(groups=groups_of(span_s, 3)), folder, name)
    hurried.row()
    seen = stretch(cluster, span_s)
    hurried.wait()
    patient.wait()
    return seen


def main(arguments: Sequence[str]) -> int:
    """Print the four stretches as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--hadoop", default="3.4.2")
    parser.add_argument("--told", type=Path, help="print what was measured before, instead of measuring")
    given = parser.parse_args(arguments)
    if given.told:
        print(given.told.read_text(encoding="utf-8"))
        return 0
    seen: dict[str, Any] = head("load-hadoop", hadoop=given.hadoop)
    seen |= {"hadoop": given.hadoop, "stretch_s": given.seconds}
    with tempfile.TemporaryDirectory(prefix="load-") as name:
        folder = Path(name)
        with Cluster(replace(SHAPE, version=given.hadoop)) as cluster:
            prepare(cluster)
            seen["idle_without"] = stretch(cluster, given.seconds)
            seen["busy_without"] = busy(cluster, folder, "without", given.seconds, False)
            with Attached(cluster, folder / "state"):
                seen["idle_with"] = stretch(cluster, given.seconds)
                seen["busy_with"] = busy(cluster, folder, "with", given.seconds, True)
    added = seen["busy_with"]["rm_cpu_ratio"] - seen["busy_without"]["rm_cpu_ratio"]
    seen["added_cpu_ratio"] = round(added, 4)
    print(json.dumps(seen | {"load_after": load()}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
