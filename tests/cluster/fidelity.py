"""``python -m tests.cluster.fidelity``: the emulator against the real cluster, scenario by scenario.

Law: the emulator's spans are read off *one* scenario's recorded attempts (the calibration, ``spans.py``);
every other scenario is predicted with them, and its deviation is listed. Nothing is fitted on completion
times. The calibration is what a cluster shows before yarnctl is attached: two jobs under plain queues, with
launches in a crowd and alone. What leaving and coming back cost is then what ``HADOOP3`` says, and the task
runner costs nothing; with yarnctl itself as calibration its start and the others' cannot be told apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from emulator.schemes import SCHEMES, Scheme
from emulator.virtual_host import Setup, run_scheme
from emulator.workload.job import Job
from tests.cluster.bench import SHAPE, production, research
from tests.cluster.schemes import ALL
from tests.cluster.schemes import Scheme as Benched
from tests.cluster.spans import JOBS, Fit, fit
from yarnctl.deciding.settings import DEFAULT
from yarnctl.units import Resources

CALIBRATION = "soft-cap"
SLOT = Resources(256, 1)
SEEDS = 21
"""Draws of the heartbeats' phases; a prediction is their median, as the cluster's figure is its runs'."""


def twin(benched: Benched) -> Scheme:
    """Return the emulator's scheme for one of the bench's."""
    if benched.attached:
        return SCHEMES["natjam"]
    if benched.monitored:
        return SCHEMES["yarn-tuned" if benched.settings else "yarn"]
    return SCHEMES["hard-cap" if benched.research_most < 100 else "soft-cap"]


def jobs_of(fitted: Fit, benched: Benched, arrives_ms: int) -> tuple[Job, ...]:
    """Return the two jobs of the bench (or the one that runs alone) as the emulator takes them."""
    made: list[Job] = []
    for plan in (research(attached=False), production()):
        hurried = plan.name == "production"
        if not (benched.with_production if hurried else benched.with_research):
            continue
        wrapped = benched.attached and not hurried
        group_ms = plan.key_s * 1000 * (fitted.wrapped_ratio if wrapped else fitted.plain_ratio)
        made.append(
            Job(
                name=plan.name,
                job_class="production" if hurried else "research",
                submitted_at_ms=arrives_ms if hurried and benched.with_research else 0,
                map_ms=(fitted.map_ms,) * plan.maps,
                reduce_ms=tuple(round(count * group_ms) for count in plan.groups),
                reduce_keys=plan.groups,
                shuffle_ms=0,  # read off together with the launch: a resumed attempt shuffles again
                am_size=SLOT,
                map_size=SLOT,
                reduce_size=SLOT,
            )
        )
    return tuple(sorted(made, key=lambda job: (job.submitted_at_ms, job.name)))


def setup_of(fitted: Fit, benched: Benched, seed: int) -> Setup:
    """Return the bench's cluster in virtual time, under one scheme of the bench."""
    shares = (benched.production / 100, benched.research / 100)
    policy = "LRT" if "LRT" in benched.options else DEFAULT.task_policy
    return Setup(
        nodes=SHAPE.nodes,
        node_size=Resources(SHAPE.node_memory_mib, SHAPE.node_vcores),
        timing=fitted.timing,
        settings=msgspec.structs.replace(DEFAULT, in_flight_least=4, task_policy=policy, seed=seed),
        shares=shares,
        caps=shares,
        am_ratio=0.5,
        seed=seed,
        hold="--hold-queue" in benched.options,
        ahead_max=int(benched.options[-1]) if "--ahead" in benched.options else 0,
    )


def predict(fitted: Fit, benched: Benched, arrives_ms: int, seed: int) -> dict[str, float]:
    """Return each job's completion in the emulator, s."""
    jobs = jobs_of(fitted, benched, arrives_ms)
    result = run_scheme(setup_of(fitted, benched, seed), jobs, twin(benched))
    return {job.name: job.completion_ms / 1000 for job in result.jobs}


def rows(
    document: Mapping[str, Any], calibration: str = CALIBRATION, seeds: int = SEEDS
) -> list[dict[str, Any]]:
    """Return a row for each completion time: real median, predicted mean, deviation."""
    runs: dict[str, list[dict[str, Any]]] = {}
    for run in document["runs"]:
        runs.setdefault(run["scheme"], []).append(run)
    if calibration not in runs:
        raise SystemExit(f"no run of {calibration} is recorded; recorded are {', '.join(runs) or 'none'}")
    fitted = fit(runs[calibration])
    return [
        row
        for scheme in ALL
        if scheme in runs
        for row in _rows(fitted, scheme, runs[scheme], seeds, calibration)
    ]


def _rows(
    fitted: Fit, scheme: str, runs: Sequence[Mapping[str, Any]], seeds: int, calibration: str
) -> list[dict[str, Any]]:
    both = [
        run["production_started_ms"] - run["research_started_ms"]
        for run in runs
        if all(f"{name}_s" in run for name in JOBS)
    ]
    arrives_ms = round(statistics.median(both)) if both else 0
    predictions = [predict(fitted, ALL[scheme], arrives_ms, seed) for seed in range(seeds)]
    found = []
    for name in JOBS:
        if f"{name}_s" not in runs[0]:
            continue
        times = [run[f"{name}_s"] for run in runs]
        found.append(_row(scheme, name, times, [each[name] for each in predictions], scheme == calibration))
    return found


def _row(
    scheme: str, name: str, times: Sequence[float], predicted: Sequence[float], calibrated: bool
) -> dict[str, Any]:
    """Return one completion time's row.

    ``spread_ratio`` is half the range of the runs, ``noise_ratio`` how far their median must be expected to
    lie from the true one (standard deviation over the root of their number), both against the median.
    """
    real, emulated = statistics.median(times), statistics.median(predicted)
    several = len(times) > 1
    return {
        "scenario": scheme,
        "job": name,
        "runs": len(times),
        "cluster_s": round(real, 1),
        "spread_ratio": round((max(times) - min(times)) / 2 / real, 4) if several else None,
        "noise_ratio": round(statistics.stdev(times) / len(times) ** 0.5 / real, 4) if several else None,
        "emulator_s": round(emulated, 1),
        "emulator_spread_ratio": round((max(predicted) - min(predicted)) / 2 / emulated, 4),
        "deviation_ratio": round(emulated / real - 1, 4),
        "calibrated": calibrated,
    }


def told(found: Sequence[Mapping[str, Any]], calibration: str) -> dict[str, Any]:
    """Return the document: the mean over all completion times that were not fitted on, and every row."""
    free = [row for row in found if not row["calibrated"]]
    noise = [row["noise_ratio"] for row in free if row["noise_ratio"] is not None]
    return {
        "calibration": calibration,
        "mean_deviation_ratio": round(statistics.mean(abs(row["deviation_ratio"]) for row in free), 4),
        "mean_noise_ratio": round(statistics.mean(noise), 4) if noise else None,
        "predicted": len(free),
        "scenarios": len({row["scenario"] for row in free}),
        "rows": list(found),
    }


def main(arguments: Sequence[str]) -> int:
    """Print every deviation and their mean as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.fidelity")
    parser.add_argument("recorded", type=Path, nargs="?", default=Path("bench-hadoop.json"))
    parser.add_argument("--calibration", default=CALIBRATION)
    parser.add_argument("--each", action="store_true", help="calibrate on each scenario in turn as well")
    given = parser.parse_args(arguments)
    document = json.loads(given.recorded.read_bytes())
    answer = told(rows(document, given.calibration), given.calibration)
    if given.each:
        names = dict.fromkeys(run["scheme"] for run in document["runs"])
        means = {name: told(rows(document, name), name)["mean_deviation_ratio"] for name in names}
        answer["mean_deviation_ratio_by_calibration"] = means
    print(json.dumps(answer, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
