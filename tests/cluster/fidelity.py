"""``python -m tests.cluster.fidelity``: the emulator against the real cluster, scenario by scenario.

Law: the emulator's spans are read off *one* scenario's recorded attempts (the calibration); every other
scenario is predicted with them, and its deviation is listed. Nothing is fitted on completion times.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from emulator.schemes import SCHEMES
from emulator.timing import HADOOP3, Timing
from emulator.virtual_host import Setup, run_scheme
from emulator.workload.job import Job, JobClass
from tests.cluster.bench import ARRIVES_S, KEY_S, PRODUCTION_LONGEST_S, RESEARCH_LONGEST_S, SLOTS, groups_of
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import Resources

CALIBRATION = "yarnctl"
SLOT = Resources(256, 1)
EMULATED = {
    "production-alone": "soft-cap",
    "research-alone": "soft-cap",
    "hard-cap": "hard-cap",
    "soft-cap": "soft-cap",
    "yarn-defaults": "yarn",
    "yarn-tuned": "yarn-tuned",
    "yarnctl": "natjam",
}
"""A scheme of the bench -> the emulator's."""

SHUFFLE_MS = 500
"""How the span from a reduce's start to its first group is divided between launch and shuffle is of no
consequence: a resumed attempt shuffles again."""


class Fit(NamedTuple):
    """What was read off the calibration: the emulator's timing, a map's length, by job class."""

    timing: Timing
    map_ms: dict[str, int]


def fit(run: dict[str, Any]) -> Fit:
    """Read the spans off one run's timetables (``overhead.timetable``)."""
    tables = {name: run[f"{name}_timetable"] for name in ("production", "research")}
    reduces = [attempt for table in tables.values() for task in table["reduces"] for attempt in task]
    first = [row[3] - max(row[0], _maps_end(tables, row)) for row in reduces if row[3] >= 0]
    launch_ms = max(0, round(statistics.median(first)) - SHUFFLE_MS)
    commits = [row[5] - row[4] for row in reduces if row[6] == "SUCCEEDED" and row[4] >= 0]
    stops = [row[5] - row[4] for row in reduces if row[6] == "KILLED" and row[4] >= 0]
    ends = [
        table["ended_ms"] - max(row[5] for task in table["reduces"] for row in task)
        for table in tables.values()
    ]
    masters = [min(start for start, _ in table["maps"]) for table in tables.values()]
    timing = msgspec.structs.replace(
        HADOOP3,
        launch_ms=launch_ms,
        am_start_ms=max(
            0, round(statistics.mean(masters)) - HADOOP3.am_heartbeat_ms - HADOOP3.nm_heartbeat_ms
        ),
        task_commit_ms=round(statistics.median(commits)),
        job_commit_ms=round(statistics.mean(ends)),
        drain_ms=max(0, round(statistics.median(stops)) - HADOOP3.upload_ms) if stops else HADOOP3.drain_ms,
        submit_ms=0,
    )
    maps = {
        name: max(1, round(statistics.mean(end - start for start, end in table["maps"])) - launch_ms)
        for name, table in tables.items()
    }
    return Fit(timing, maps)


def _maps_end(tables: dict[str, Any], row: Sequence[Any]) -> int:
    """Return when the maps of the job that has this attempt were done: no reduce begins before."""
    table = next(table for table in tables.values() if any(row in task for task in table["reduces"]))
    return max(end for _, end in table["maps"])


def jobs_of(fitted: Fit, scheme: str, arrives_ms: int) -> tuple[Job, ...]:
    """Return the two jobs of the bench (or the one that runs alone) as the emulator takes them."""
    made: list[Job] = []
    for job_class, longest_s, reduces in (
        ("research", RESEARCH_LONGEST_S, SLOTS - 1),
        ("production", PRODUCTION_LONGEST_S, SLOTS // 4),
    ):
        if scheme.endswith("-alone") and not scheme.startswith(job_class):
            continue
        groups = groups_of(longest_s, reduces)
        made.append(
            Job(
                name=job_class,
                job_class=_class(job_class),
                submitted_at_ms=arrives_ms
                if job_class == "production" and scheme != "production-alone"
                else 0,
                map_ms=(fitted.map_ms[job_class],) * 2,
                reduce_ms=tuple(round(count * KEY_S * 1000) for count in groups),
                reduce_keys=groups,
                shuffle_ms=SHUFFLE_MS,
                am_size=SLOT,
                map_size=SLOT,
                reduce_size=SLOT,
            )
        )
    return tuple(sorted(made, key=lambda job: (job.submitted_at_ms, job.name)))


def _class(name: str) -> JobClass:
    return "production" if name == "production" else "research"


def predict(fitted: Fit, scheme: str, arrives_ms: int, seed: int) -> dict[str, float]:
    """Return each job's completion in the emulator, s."""
    setup = Setup(
        nodes=3,
        node_size=Resources(SLOTS // 3 * 256, 8),
        timing=fitted.timing,
        settings=msgspec.structs.replace(DEFAULT, in_flight_least=4, seed=seed),
        shares=(0.95, 0.05),
        caps=(0.25, 0.75),
        am_ratio=0.5,
        seed=seed,
    )
    result = run_scheme(setup, jobs_of(fitted, scheme, arrives_ms), SCHEMES[EMULATED[scheme]])
    return {job.name: job.completion_ms / 1000 for job in result.jobs}


def rows(document: dict[str, Any], seeds: int = 5) -> list[dict[str, Any]]:
    """Return a row for each completion time: real median, predicted mean, deviation."""
    first = next(run for run in document["runs"] if run["scheme"] == CALIBRATION)
    fitted = fit(first)
    found: list[dict[str, Any]] = []
    for scheme in EMULATED:
        runs = [run for run in document["runs"] if run["scheme"] == scheme]
        if not runs:
            continue
        found += _rows(fitted, scheme, runs, seeds)
    return found


def _rows(fitted: Fit, scheme: str, runs: list[dict[str, Any]], seeds: int) -> list[dict[str, Any]]:
    both = [
        run["production_started_ms"] - run["research_started_ms"]
        for run in runs
        if "research_s" in run and "production_s" in run
    ]
    arrives_ms = round(statistics.median(both)) if both else round(ARRIVES_S * 1000)
    predictions = [predict(fitted, scheme, arrives_ms, seed) for seed in range(seeds)]
    found = []
    for name in ("production", "research"):
        if f"{name}_s" not in runs[0]:
            continue
        real = statistics.median(run[f"{name}_s"] for run in runs)
        emulated = statistics.mean(each[name] for each in predictions)
        found.append(
            {
                "scenario": scheme,
                "job": name,
                "cluster_s": round(real, 1),
                "emulator_s": round(emulated, 1),
                "deviation_ratio": round(emulated / real - 1, 4),
                "calibrated": scheme == CALIBRATION,
            }
        )
    return found


def main(arguments: Sequence[str]) -> int:
    """Print every deviation and their mean as JSON."""
    path = Path(arguments[0] if arguments else "bench-hadoop.json")
    found = rows(json.loads(path.read_bytes()))
    free = [abs(row["deviation_ratio"]) for row in found if not row["calibrated"]]
    told = {
        "calibration": CALIBRATION,
        "mean_deviation_ratio": round(statistics.mean(free), 4),
        "predicted": len(free),
        "rows": found,
    }
    print(json.dumps(told, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
