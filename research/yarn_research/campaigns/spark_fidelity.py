"""``python -m yarn_research.campaigns.spark_fidelity FILE [AHEAD]``: the emulator against ``bench-spark-production``.

Law: the plan stands in research/notes/spark.md before the runs. Three spans are read off the runs in which a class is
alone, and when production comes off the others; every other completion time is predicted with them, and its
deviation listed. Nothing else is fitted: how executors leave and come back is what the emulator says. Those
of AHEAD (``bench-spark-ahead``) are predicted with FILE's spans; nothing is read off AHEAD but when
production came.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from emulator.cluster.timing import HADOOP3, Timing
from emulator.virtual.run import Setup, run_scheme
from emulator.virtual.schemes import SCHEMES
from yarn_research.campaigns import spark_ahead
from yarn_research.campaigns.kept_file import read_kept, tell
from yarn_research.campaigns.spark_beside import EXECUTORS, LOADS, PRODUCTION, SHAPE
from yarnctl.deciding.settings import DEFAULT
from yarnctl.traces.job import Job, SparkShape
from yarnctl.units import Resources

SLOT = Resources(SHAPE.container_mib, 1)
SEEDS = 21
"""Draws of the heartbeats' phases; a prediction is their median, as the cluster's figure is its runs'."""
TWINS = {"soft-cap": "soft-cap", "yarn-tuned": "yarn-tuned", "signal": "mix", "plugin": "mix"}
"""The emulator's scheme for one of the bench's."""
AHEAD_MAX = dict.fromkeys(("signal", "plugin"), int(spark_ahead.AHEAD[-1]))
"""``--predicted-demand`` of the schemes of ``bench-spark-ahead``, which has the queue capped there, too."""


class Fit(NamedTuple):
    """What is read off runs alone, ms: a launch, an executor's start after it, and what a task adds."""

    launch_ms: int
    start_ms: int
    task_ms: int


def research(load: str, fitted: Fit, route: str) -> Job:
    """Return the bench's application as the emulator takes it."""
    work = LOADS[load]
    tasks = work.reduce_tasks
    keys_of_task = work.keys // tasks
    return Job(
        name="research",
        job_class="research",
        submitted_at_ms=0,
        map_ms=(round(work.map_s * 1000) + fitted.task_ms,) * work.maps,
        reduce_ms=(round(keys_of_task * work.key_s * 1000) + fitted.task_ms,) * tasks,
        reduce_keys=(keys_of_task,) * tasks,
        am_size=SLOT,
        map_size=SLOT,
        reduce_size=SLOT,
        spark=SparkShape(
            executors=EXECUTORS,
            block_mib=0,
            start_ms=fitted.start_ms,
            route="plugin" if route == "plugin" else "signal",
        ),
    )


def production(arrives_ms: int) -> Job:
    """Return the bench's production job."""
    lengths_ms = tuple(round(count * PRODUCTION.key_s * 1000) for count in PRODUCTION.groups)
    return Job(
        name="production",
        job_class="production",
        submitted_at_ms=arrives_ms,
        map_ms=(0,) * PRODUCTION.maps,
        reduce_ms=lengths_ms,
        reduce_keys=PRODUCTION.groups,
        shuffle_ms=0,  # read off together with the launch
        am_size=SLOT,
        map_size=SLOT,
        reduce_size=SLOT,
    )


def timing_of(fitted: Fit) -> Timing:
    """Return the spans of a cluster."""
    return msgspec.structs.replace(HADOOP3, launch_ms=fitted.launch_ms)


def setup_of(scheme: str, fitted: Fit, seed: int, ahead_max: int = 0) -> Setup:
    """Return the bench's cluster under one of its schemes."""
    return Setup(
        nodes=SHAPE.nodes,
        node_size=Resources(SHAPE.node_memory_mib, SHAPE.node_vcores),
        timing=timing_of(fitted),
        settings=msgspec.structs.replace(DEFAULT, in_flight_ratio_max=0.1, in_flight_least=1, seed=seed),
        caps=(0.33, 0.67),
        am_ratio=0.5,
        seed=seed,
        hold=scheme == "signal" or ahead_max > 0,
        ahead_max=ahead_max,
        may_lose_ratio=0.1,
        room_within_ms=15_000,
    )


def completions_s(jobs: Iterable[Job], scheme: str, fitted: Fit, ahead_max: int = 0) -> dict[str, float]:
    """Return each job's completion, s: the median over seeds."""
    by_arrival = tuple(sorted(jobs, key=lambda job: job.submitted_at_ms))
    twin = SCHEMES[TWINS.get(scheme, "yarn-tuned")]
    found: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        for job in run_scheme(setup_of(scheme, fitted, seed, ahead_max), by_arrival, twin).jobs:
            found.setdefault(job.name, []).append(job.completion_ms / 1000)
    return {name: statistics.median(times) for name, times in found.items()}


def predicted_s(
    load: str, scheme: str, fitted: Fit, arrives_s: float, ahead_max: int = 0
) -> dict[str, float]:
    """Return what the emulator says of both jobs; production comes ``arrives_s`` after research."""
    jobs = (research(load, fitted, scheme), production(round(arrives_s * 1000)))
    return completions_s(jobs, scheme, fitted, ahead_max)


# --- what is read off runs alone ------------------------------------------------------------------


def medians_s(runs: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], float]:
    """Return the median completion of each load, scheme and job; a run that is left out does not count."""
    times: dict[tuple[str, str, str], list[float]] = {}
    for run in runs:
        for job in ("production", "research"):
            if "left_out" not in run and job in run:
                times.setdefault((run["load"], run["scheme"], job), []).append(run[job]["took_s"])
    return {key: statistics.median(found) for key, found in times.items()}


def arrived_s(runs: Sequence[Mapping[str, Any]], load: str) -> float:
    """Return when production came on a load, s after research: the median over runs."""
    return statistics.median(
        run["arrived_s"]
        for run in runs
        if run["load"] == load and "left_out" not in run and "arrived_s" in run
    )


def fit(real_s: Mapping[tuple[str, str, str], float]) -> Fit:
    """Read three spans off runs alone: both loads do the same work in other numbers of tasks."""
    alone_s = statistics.mean(real_s[load, "production-alone", "production"] for load in LOADS)
    launch_ms = _launch_ms(alone_s)
    took_s = {load: real_s[load, "research-alone", "research"] for load in LOADS}
    rounds = {load: (work.maps + work.reduce_tasks) / EXECUTORS for load, work in LOADS.items()}
    (many, few) = sorted(LOADS, key=lambda load: -rounds[load])
    task_ms = max(0, round(1000 * (took_s[many] - took_s[few]) / (rounds[many] - rounds[few])))
    bare = Fit(launch_ms, 0, task_ms)
    bare_s = {load: completions_s((research(load, bare, ""),), "", bare)["research"] for load in LOADS}
    rest_s = [took_s[load] - bare_s[load] for load in LOADS]
    return bare._replace(start_ms=max(0, round(1000 * statistics.mean(rest_s))))


def _launch_ms(alone_s: float) -> int:
    """Return how long a launch takes; production alone has two, one after the other, and its master's."""
    bare, longer = Fit(0, 0, 0), Fit(1000, 0, 0)
    none_s = completions_s((production(0),), "", bare)["production"]
    more_s = completions_s((production(0),), "", longer)["production"]
    return max(0, round(1000 * (alone_s - none_s) / max(0.001, more_s - none_s)))


# --- the comparison -------------------------------------------------------------------------------


def compared(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the spans, a row for each completion time that was not fitted on, and their mean deviation."""
    real_s = medians_s(runs)
    fitted = fit(real_s)
    rows: list[dict[str, Any]] = []
    for load in LOADS:
        for scheme in TWINS:
            told_s = predicted_s(load, scheme, fitted, arrived_s(runs, load))
            rows += _deviations(real_s, load, scheme, told_s)
    return _told(fitted, rows)


def compared_ahead(runs: Sequence[Mapping[str, Any]], ahead: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the same of the rounds with predicted demand, with the spans that ``runs`` tell."""
    fitted, real_s = fit(medians_s(runs)), medians_s(ahead)
    arrives_s = arrived_s(ahead, spark_ahead.LOAD)
    rows: list[dict[str, Any]] = []
    for scheme in TWINS.keys() & spark_ahead.SET.keys():
        told_s = predicted_s(spark_ahead.AS, scheme, fitted, arrives_s, AHEAD_MAX.get(scheme, 0))
        rows += _deviations(real_s, spark_ahead.LOAD, scheme, told_s)
    rows.sort(key=lambda row: (row["scheme"], row["job"]))
    return _told(fitted, rows)


def _deviations(
    real_s: Mapping[tuple[str, str, str], float], load: str, scheme: str, told_s: Mapping[str, float]
) -> list[dict[str, Any]]:
    return [
        {
            "load": load,
            "scheme": scheme,
            "job": job,
            "cluster_s": round(real_s[load, scheme, job], 1),
            "emulator_s": round(emulated_s, 1),
            "deviation_ratio": round(emulated_s / real_s[load, scheme, job] - 1, 4),
        }
        for job, emulated_s in told_s.items()
    ]


def _told(fitted: Fit, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    mean_ratio = statistics.mean(abs(row["deviation_ratio"]) for row in rows)
    return {"fitted": fitted._asdict(), "mean_deviation_ratio": round(mean_ratio, 4), "rows": rows}


def main(arguments: Sequence[str]) -> int:
    """Compare with a kept file, or with a second one by the spans of the first; print what came out."""
    if len(arguments) < 2:
        return tell(arguments, "spark-production", lambda held: compared(held["runs"]))
    first, *rest = arguments
    return tell(rest, "spark-ahead", lambda held: compared_ahead(read_kept(first)["runs"], held["runs"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
