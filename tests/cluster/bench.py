"""``make bench-hadoop``: the paper's Fig 4 on a real Hadoop, every scheme in turn, every run's raw times.

Law: schemes take turns within a round, so that what changes on the machine hits all of them; each run is
written down as it ends, and a run that was begun again later goes on where the file stops. A completion time
is the ResourceManager's own (finishedTime - startedTime).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulator.workload.java_random import length_table
from tests.cluster.attached import QUEUES, Attached, prepare
from tests.cluster.configuration import Shape
from tests.cluster.jobs import LOOK_S, RESTARTABLE, Finished, Job, Plan
from tests.cluster.launcher import Cluster
from tests.cluster.overhead import interruptions, timetable
from tests.cluster.schemes import ALL, SCHEMES, Scheme

SLOTS = 12
KEY_S = 0.1
RESEARCH_LONGEST_S = 120.0
PRODUCTION_LONGEST_S = 30.0
WARMING = ("01", "02")
SHAPE = Shape(node_memory_mib=SLOTS // 3 * 256)


def groups_of(longest_s: float, reduces: int) -> tuple[int, ...]:
    """Return key groups per reduce by the paper's table of lengths (facts/natjam.md, section 1)."""
    return tuple(round(longest_s * ratio / KEY_S) for ratio in length_table()[:reduces])


def research(attached: bool) -> Plan:
    """Return the job that fills the cluster: its master and a reduce for each other container."""
    wrap = RESTARTABLE if attached else ()
    return Plan("research", "research", groups_of(RESEARCH_LONGEST_S, SLOTS - 1), KEY_S, wrap=wrap)


def production() -> Plan:
    """Return the job of a quarter of the cluster."""
    return Plan("production", "production", groups_of(PRODUCTION_LONGEST_S, SLOTS // 4), KEY_S, user="bob")


def run_once(cluster: Cluster, scheme: Scheme, folder: Path, number: str) -> dict[str, Any]:
    """Run one scheme once; return what was seen, with digests of both outputs."""
    cluster.restart_manager(scheme.changes())
    if not scheme.attached:
        return _both(cluster, scheme, folder, number)
    with Attached(cluster, folder / f"state-{number}", (*QUEUES, *scheme.options)) as daemon:
        seen = _both(cluster, scheme, folder, number)
        seen["suspensions"] = len(daemon.reached("freed"))
        seen["orders"] = len(daemon.asked())
    return seen


def warm_up(cluster: Cluster, folder: Path) -> None:
    """Run the production job, short, and do not count it: the first jobs on a new cluster begin late.

    From then on it is a job that has run before, which is what yarnctl foresees by (``--ahead``).
    """
    for number in WARMING:
        Job(cluster, production()._replace(groups=(5,) * (SLOTS // 4)), folder, number).wait()


def _both(cluster: Cluster, scheme: Scheme, folder: Path, number: str) -> dict[str, Any]:
    seen: dict[str, Any] = {"suspensions": 0}
    patient = Job(cluster, research(scheme.attached), folder, number) if scheme.with_research else None
    if patient is not None:
        arrives_ms = patient.row()["startedTime"] + scheme.arrives_s * 1000
        while scheme.with_production and time.time() * 1000 < arrives_ms - patient.submitting_s * 1000:
            time.sleep(LOOK_S)
    hurried = Job(cluster, production(), folder, number) if scheme.with_production else None
    if hurried is not None:
        _note(seen, "production", hurried, hurried.wait())
        seen["production_timetable"] = timetable(hurried, cluster.history_url)
    if patient is not None:
        _note(seen, "research", patient, patient.wait())
        seen["research_timetable"] = timetable(patient, cluster.history_url)
        costs = [one.overhead_s for one in interruptions(patient, cluster.history_url)]
        seen["overhead_s"] = [round(cost, 2) for cost in costs]
    return seen


def _note(seen: dict[str, Any], name: str, job: Job, finished: Finished) -> None:
    if finished.state != "SUCCEEDED":
        raise AssertionError(f"{job.name} {finished.state}: {job.said()}")
    seen[f"{name}_s"] = finished.took_s
    seen[f"{name}_started_ms"] = job.row()["startedTime"]
    seen[f"{name}_am_wait_s"] = finished.am_wait_s
    seen[f"{name}_digests"] = job.digests()
    seen[f"{name}_twice"] = job.groups_twice()
    seen[f"{name}_killed"] = finished.preempted


def summary(version: str, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the document: per scheme the raw times, and whether every output was the undisturbed one's."""
    references: dict[str, Any] = {}
    schemes: dict[str, Any] = {}
    for run in runs:
        for name in ("production", "research"):
            if run["scheme"] == f"{name}-alone":
                references.setdefault(name, run[f"{name}_digests"])
    for run in runs:
        into = schemes.setdefault(run["scheme"], {"identical": True})
        for name in ("production_s", "research_s", "suspensions"):
            if name in run:
                into.setdefault(name, []).append(run[name])
        into.setdefault("killed", []).append(run.get("research_killed", 0))
        into.setdefault("groups_twice", []).append(run.get("research_twice", 0))
        into.setdefault("overhead_s", []).append(run.get("overhead_s", []))
        for name, digests in references.items():
            into["identical"] &= run.get(f"{name}_digests", digests) == digests
    waits = [run["production_am_wait_s"] for run in runs if run["scheme"] == "yarnctl"]
    return {"hadoop": version, "schemes": schemes, "am_wait_s": waits, "runs": list(runs)}


def told(document: dict[str, Any]) -> str:
    """Return the table that people read: medians, spread, and both against each job alone."""
    schemes = document["schemes"]
    alone = {
        name: statistics.median(schemes[f"{name}-alone"][f"{name}_s"])
        for name in ("production", "research")
        if f"{name}-alone" in schemes
    }
    lines = [f"Hadoop {document['hadoop']}: medians in s (least to most), and against each job alone"]
    for scheme, found in schemes.items():
        cells = [f"{scheme:17}"]
        for name in ("production", "research"):
            times = found.get(f"{name}_s")
            cells.append(f"{name} {_cell(times, alone.get(name)) if times else '    - -':34}")
        cells.append(f"twice {sum(found['groups_twice']):5} killed {sum(found['killed']):3}")
        cells.append("identical" if found["identical"] else "OUTPUT DIFFERS")
        lines.append("  ".join(cells))
    return "\n".join(lines)


def _cell(times: list[float], alone_s: float | None) -> str:
    middle = statistics.median(times)
    ratio = f"{middle / alone_s:5.2f}" if alone_s else "    -"
    return f"{ratio} {middle:6.1f} ({min(times):.1f} to {max(times):.1f})"


def _read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    found: list[dict[str, Any]] = json.loads(path.read_bytes())["runs"]
    return found


def main(arguments: Sequence[str]) -> int:
    """Run rounds until every scheme has as many runs as asked for."""
    parser = argparse.ArgumentParser(prog="make bench-hadoop", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hadoop", default="3.4.2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    parser.add_argument("--output", type=Path, default=Path("bench-hadoop.json"))
    given = parser.parse_args(arguments)
    wanted = given.schemes.split(",")
    runs = _read(given.output)
    folder = Path(tempfile.mkdtemp(prefix="bench-hadoop-"))
    with Cluster(Shape(given.hadoop, node_memory_mib=SHAPE.node_memory_mib)) as cluster:
        prepare(cluster)
        warm_up(cluster, folder)
        for number in range(given.rounds):
            for scheme in wanted:
                if sum(run["scheme"] == scheme for run in runs) > number:
                    continue
                began_s = time.monotonic()
                seen = run_once(cluster, ALL[scheme], folder, str(len(runs) + len(WARMING) + 1))
                runs.append({"scheme": scheme, **seen})
                _write(given.output, summary(given.hadoop, runs))
                _progress(number, given.rounds, seen, scheme, time.monotonic() - began_s)
    shutil.rmtree(folder)
    print(told(summary(given.hadoop, runs)))
    return 0


def _progress(number: int, rounds: int, seen: dict[str, Any], scheme: str, took_s: float) -> None:
    shown = {key: value for key, value in seen.items() if not key.endswith(("digests", "_ms", "timetable"))}
    print(f"[{number + 1}/{rounds}] {scheme}: {shown} ({took_s:.0f} s)", file=sys.stderr, flush=True)


def _write(path: Path, document: dict[str, Any]) -> None:
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
