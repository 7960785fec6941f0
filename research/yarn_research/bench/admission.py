"""Admission on TR2: against a SimPy process per job, as a whole process, on both cores, and fair sharing."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from yarn_research.admission.choices import DEFAULT_CHOICES, Choices
from yarn_research.admission.compiled import replay_compiled
from yarn_research.admission.plain.event_replay import replay
from yarn_research.admission.replays import ReplayOptions, sweep
from yarn_research.admission.traces.generator import TR2, generate
from yarn_research.admission.traces.trace import ReplayOutcome, Trace, deadlines_ms, same
from yarn_research.admission.traces.trace_files import write_trace
from yarn_research.bench.row import Row, cpu_ms, spread
from yarn_research.bench.simpy_admission import Model
from yarnctl.deciding.admission.mechanisms import SIZINGS

CAPACITY = 2500
PREFIX = 40_000
FAIR_PREFIX = 10_000
REBALANCED = Choices(sharing="rebalanced")
RUNS = 5


@cache
def tr2() -> Trace:
    return generate(TR2, 0)


def compiled(trace: Trace, name: str) -> ReplayOutcome:
    """Replay once with the compiled twin; deadlines are twice the optimal time."""
    return replay_compiled(trace, deadlines_ms(trace, "Fixed2x", CAPACITY), CAPACITY, name, DEFAULT_CHOICES)


def admission_simpy(prefix: int = PREFIX) -> Row:
    """PYTHIA, compiled and as a SimPy process per job, turn by turn on the first jobs of TR2."""
    trace = tr2().head(prefix)
    deadline_ms = deadlines_ms(trace, "Fixed2x", CAPACITY)
    columns = (trace.submitted_at_ms, deadline_ms, trace.tasks, trace.work_ms)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    outcome = compiled(trace, "pythia")  # and the compiler is warm
    ours: list[float] = []
    theirs: list[float] = []
    whole: list[float] = []
    for _ in range(3):
        ours += [cpu_ms(lambda: [compiled(trace, "pythia") for _ in range(10)]) / 10]
        model = Model(rows, CAPACITY)
        theirs.append(cpu_ms(model.env.run))
        if model.started != outcome.started_at_ms.tolist() or model.containers != outcome.containers.tolist():
            raise SystemExit("admission-simpy: the two sides disagree")
        whole.append(cpu_ms(lambda: compiled(tr2(), "pythia")))
    us, simpy_us = (spread(each)["median"] * 1000 / prefix for each in (ours, theirs))
    return Row(
        name="admission-simpy",
        what="PYTHIA on TR2, processor time per job, beside a SimPy process per job (same answers)",
        ours=us,
        baseline=simpy_us,
        ratio=simpy_us / us,
        target=">= 60",
        holds=simpy_us / us >= 60,
        unit="us",
        details={
            "jobs": prefix,
            "ours_ms": spread(ours),
            "simpy_ms": spread(theirs),
            "all_of_tr2_ms": spread(whole),
            "all_of_tr2_us_per_job": spread(whole)["median"] * 1000 / len(tr2()),
        },
    )


def admission_cli(jobs: int | None = None, runs: int = RUNS) -> Row:
    """The whole process on TR2 from Parquet, one allocator, beside importing the same libraries."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tr2.parquet"
        write_trace(tr2() if jobs is None else tr2().head(jobs), path)
        words = [
            "admission",
            "--trace",
            f"parquet:{path}",
            "--capacity",
            str(CAPACITY),
            "--allocators",
            "pythia",
        ]
        command = [sys.executable, "-c", "from yarn_research.cli import main; main()", *words, "--json"]
        bare = [sys.executable, "-c", "import numba, pyarrow.parquet, msgspec, click"]
        _process(command)
        walls: list[float] = []
        cpus: list[float] = []
        bares: list[float] = []
        for _ in range(runs):
            wall, cpu = _process(command)
            walls.append(wall)
            cpus.append(cpu)
            bares.append(_process(bare)[0])
    return Row(
        name="admission-cli",
        what="yarn-research admission on TR2 from Parquet, whole process, beside importing its libraries",
        ours=spread(walls)["median"],
        baseline=spread(bares)["median"],
        ratio=spread(bares)["median"] / spread(walls)["median"],
        target="<= 1.5 s",
        holds=spread(walls)["median"] <= 1.5,
        unit="s",
        details={"wall_s": spread(walls), "processor_s": spread(cpus), "imports_wall_s": spread(bares)},
    )


def _process(command: list[str]) -> tuple[float, float]:
    """Return wall and processor time of a whole process in s."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, cpu


def admission_sweep(jobs: int | None = None, sizes: int = 16) -> Row:
    """``sizes`` capacities of TR2 on one core and on both, turn by turn; the best of each counts."""
    capacities = [2500 + 500 * place for place in range(sizes)]
    asked = ReplayOptions(CAPACITY, "Fixed2x", ("pythia",), "compiled", 0)
    sweep(tr2().head(1000), "pythia", asked, capacities[:2], 2)
    trace = tr2() if jobs is None else tr2().head(jobs)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers, found in times.items():
            start = time.perf_counter()
            sweep(trace, "pythia", asked, capacities, workers)
            found.append(time.perf_counter() - start)
    one, two = min(times[1]), min(times[2])
    return Row(
        name="admission-sweep",
        what=f"TR2 at {sizes} capacities with all metrics, wall time on two cores beside one",
        ours=two,
        baseline=one,
        ratio=one / two,
        target=">= 1.8",
        holds=one / two >= 1.8,
        unit="s",
        details={"one_core_s": spread(times[1]), "two_cores_s": spread(times[2])},
    )


def admission_fair_share(prefix: int = FAIR_PREFIX) -> Row:
    """Reactive FS, rebalanced at every event: one clock per group of demand beside every job on its own."""
    trace = tr2().head(prefix)
    deadline_ms = deadlines_ms(trace, "Fixed2x", CAPACITY)
    details: dict[str, Any] = {"jobs": prefix}
    ratios: dict[str, tuple[float, float]] = {}
    for name in ("reactive_fs", "no_drop_fs"):
        twin = partial(replay_compiled, trace, deadline_ms, CAPACITY, name, REBALANCED)
        naive = partial(replay, trace, deadline_ms, CAPACITY, SIZINGS[name], REBALANCED)
        if said := same(twin(), naive()):
            raise SystemExit(f"admission-fair: the two sides disagree: {said}")
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(3):
            ours.append(cpu_ms(partial(_times, twin, 10)) / 10)
            theirs.append(cpu_ms(naive))
        details[name] = {"ours_ms": spread(ours), "naive_ms": spread(theirs)}
        us, naive_us = (spread(each)["median"] * 1000 / prefix for each in (ours, theirs))
        ratios[name] = (us, naive_us)
    us, naive_us = ratios["reactive_fs"]
    details["no_drop_fs"]["ratio"] = ratios["no_drop_fs"][1] / ratios["no_drop_fs"][0]
    return Row(
        name="admission-fair",
        what="max-min at 2,500 CPUs, processor time per job, beside recomputing every job at every event",
        ours=us,
        baseline=naive_us,
        ratio=naive_us / us,
        target=">= 300",
        holds=naive_us / us >= 300,
        unit="us",
        details=details,
    )


def _times(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()
