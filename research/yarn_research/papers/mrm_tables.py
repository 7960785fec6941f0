"""MRM's Tables 2 and 3: phase durations of emulated jobs, predicted by every model of ``yarnctl/prediction``.

Law: research/notes/paper.md (section MRM) gives the task times and how each claim is judged; it stood there before the
runs. A model gets the four features of a job and the durations of the training runs, nothing else.
"""

from __future__ import annotations

import random
from functools import cache
from importlib.util import find_spec
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from emulator.cluster.timing import HADOOP3
from emulator.virtual.run import Run, Setup
from emulator.virtual.schemes import SCHEMES
from yarn_research.market.job_features import JobFeatures, RecordedRun, training
from yarn_research.market.regressions import fitted, r2
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, row
from yarnctl.deciding.settings import PROFILES
from yarnctl.traces.job import Job, key_groups
from yarnctl.units import Resources

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = (
    (38, 1, 1, 0),
    (16, 2, 6, 0),
    (14, 7, 30, 0),
    (8, 31, 60, 6),
    (6, 61, 120, 12),
    (6, 121, 180, 15),
    (4, 181, 240, 18),
    (4, 241, 360, 24),
    (4, 361, 480, 30),
)
"""Table 1: jobs of 100, fewest and most maps, reduces."""
LOADS = (16, 32, 50, 100, 200)
"""Mean inter-arrival times in s, a run each."""
NODES, CONTAINERS, JOBS = 40, 4, 100
BLOCK_MB, SHUFFLED_MB_S, REDUCE_START_S = 64.0, 20.0, 1.0
TASK_SD, JOB_SD = 0.15, 0.10
PI_STEPS = (1, 2, 4)
MODELS = ("ols", "ridge", "cca", "kridge", "kcca", "gp", "bin")
TABLE_2 = {
    "ols": (0.99, 0.96),
    "ridge": (0.99, 0.97),
    "cca": (0.99, 0.97),
    "kridge": (0.99, 0.94),
    "kcca": (0.99, 0.98),
    "gp": (0.99, 0.98),
    "bin": (0.92, 0.87),
}
TABLE_3 = {"ols": ((4, 222), (1, 107)), "gp": ((3.4, 112), (1.2, 44)), "bin": ((2.6, 530), (2.2, 53))}
"""Outside the interval in %, mean length of the interval in s; maps, reduces."""
TWO_SIDED = NormalDist().inv_cdf(0.975)
MOST_OUTSIDE = 7.0
PHASES = ("map", "reduce")
R2_TITLE, INTERVAL_TITLE = "Predicted durations: R^2", "Predicted intervals of 95 %"
NOTES = (
    "task times are ours (research/notes/paper.md): the paper's numbers stand beside them and are not judged",
)
NOT_REPEATED = "not repeated: scikit-learn is not installed (pip install 'yarnctl[prediction]')"


class JobKind(NamedTuple):
    """What a type of job does with a block: time of a map, sizes after each phase, time of reducing."""

    map_s: float
    map_ratio: float
    reduce_ratio: float
    reduce_s_mb: float


KINDS = {
    "grep": JobKind(18.0, 0.001, 1.0, 0.02),
    "sort": JobKind(22.0, 1.0, 1.0, 0.05),
    "wordcount": JobKind(45.0, 0.3, 0.2, 0.03),
    "pi": JobKind(12.0, 0.5, 0.5, 0.02),
}


class PhaseWatch:
    """Notes when each job's first map has a container and when its last map is done."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.first_map_ms: dict[str, int] = {}
        self.maps_done_ms: dict[str, int] = {}

    def after_event(self) -> None:
        """Note what has changed with the jobs that are running."""
        now_ms = self._run.cluster.kernel.now_ms
        for master in self._run.cluster.masters:
            name = master.job.name
            if master.alive and name not in self.maps_done_ms:
                if master.running:
                    self.first_map_ms.setdefault(name, now_ms)
                if not master.maps_left:
                    self.maps_done_ms[name] = now_ms


class Durations(NamedTuple):
    """What was observed of one phase: features and durations (s) to learn from, and those to predict."""

    features: NDArray[np.float64]
    durations: NDArray[np.float64]
    asked: NDArray[np.float64]
    observed: NDArray[np.float64]


def drawn_job(chance: random.Random, name: str, kind: JobKind, bin_of: tuple[int, ...], at_ms: int) -> Job:
    """Draw one job of a bin."""
    _, fewest, most, reduces = bin_of
    maps = chance.randint(fewest, most)
    scale = chance.lognormvariate(0, JOB_SD)
    scale *= chance.choice(PI_STEPS) if kind is KINDS["pi"] else 1

    def spans(count: int, length_s: float) -> tuple[int, ...]:
        return tuple(
            max(1, round(1000 * length_s * scale * chance.lognormvariate(0, TASK_SD))) for _ in range(count)
        )

    each_mb = maps * BLOCK_MB * kind.map_ratio / max(1, reduces)
    reduce_ms = spans(reduces, REDUCE_START_S + each_mb * kind.reduce_s_mb)
    return Job(
        name=name,
        job_class="production",
        submitted_at_ms=at_ms,
        map_ms=spans(maps, kind.map_s),
        reduce_ms=reduce_ms,
        reduce_keys=key_groups(reduce_ms),
        shuffle_ms=2000 + round(1000 * each_mb / SHUFFLED_MB_S),
    )


def drawn_run(seed: int, load_s: int) -> tuple[tuple[Job, ...], dict[str, JobFeatures]]:
    """Draw the 100 jobs of one run, and their features."""
    chance = random.Random(f"mrm-tables-{seed}-{load_s}")
    bins = [each for each in BINS for _ in range(each[0])]
    kinds = [kind for kind in KINDS.values() for _ in range(JOBS // len(KINDS))]
    chance.shuffle(bins)
    chance.shuffle(kinds)
    jobs, features, at_s = [], {}, 0.0
    for number, (bin_of, kind) in enumerate(zip(bins, kinds, strict=True)):
        at_s += chance.expovariate(1 / load_s)
        job = drawn_job(chance, f"job-{number:03d}", kind, bin_of, round(1000 * at_s))
        jobs.append(job)
        maps, reduces = len(job.map_ms), len(job.reduce_ms)
        features[job.name] = JobFeatures(maps, reduces, kind.map_ratio, kind.reduce_ratio if reduces else 0.0)
    return tuple(jobs), features


def played(
    jobs: tuple[Job, ...], features: dict[str, JobFeatures], seed: int
) -> tuple[list[RecordedRun], list[int]]:
    """Run jobs on the emulated cluster; return their phases' durations and when each ended, ms."""
    settings = msgspec.structs.replace(
        PROFILES["default"], mode="deadlines", preempting_queues=("default",), preemptable_queues=("default",)
    )
    size = Resources(1024 * CONTAINERS, CONTAINERS)
    setup = Setup(nodes=NODES, node_size=size, timing=HADOOP3, settings=settings, seed=seed)
    run = Run(setup, jobs, SCHEMES["soft-cap"])
    watch = PhaseWatch(run)
    result = run.go(watch.after_event)
    found, ended_ms = [], []
    for job in result.jobs:
        maps_done_ms = watch.maps_done_ms[job.name]
        ended_ms.append(job.submitted_at_ms + job.completion_ms)
        map_ms = maps_done_ms - watch.first_map_ms[job.name]
        found.append(RecordedRun(features[job.name], map_ms, ended_ms[-1] - maps_done_ms))
    return found, ended_ms


def observed_runs(seed: int, load_s: int) -> list[RecordedRun]:
    """Draw a run and play it; return its jobs' phases."""
    jobs, features = drawn_run(seed, load_s)
    return played(jobs, features, seed)[0]


@cache
def observed(seed: int) -> tuple[Durations, Durations]:
    """Run the training and the test runs; return the map and the reduce phases."""
    learned = [each for load in LOADS for each in observed_runs(2 * seed, load)]
    tested = [each for load in LOADS for each in observed_runs(2 * seed + 1, load)]
    phases = []
    for place, _ in enumerate(PHASES):
        parts = []
        for runs in (learned, tested):
            features, spans_ms = training(
                runs if place == 0 else [each for each in runs if each.features.reduces]
            )
            parts += [features, spans_ms[:, place] / 1000]
        phases.append(Durations(*parts))
    return phases[0], phases[1]


class Judged(NamedTuple):
    """One model on one phase."""

    r2: float
    outside_percent: float
    length_s: float
    length_ratio: float


@cache
def judged(model: str, place: int, seed: int = 0) -> Judged:
    """Fit a model to the training runs and compare it with the test runs."""
    return compared(model, observed(seed)[place])


def compared(model: str, phase: Durations) -> Judged:
    """Fit a model to what is learned from, and compare it with what was observed of what is asked for."""
    found = fitted(model, phase.features, phase.durations)(phase.asked)
    off = np.abs(found.deviations(phase.observed)) > TWO_SIDED
    length = found.at(TWO_SIDED) - found.at(-TWO_SIDED)
    return Judged(
        r2(found.at(0.0), phase.observed),
        100 * float(off.mean()),
        float(length.mean()),
        float((length / phase.observed).mean()),
    )


def table_2(seed: int = 0) -> Figure:
    """R^2 of every model."""
    if find_spec("sklearn") is None:
        return Figure("t2", R2_TITLE, (), (), (NOT_REPEATED,))
    rows: list[FigureRow] = []
    claims: list[PaperClaim] = []
    for place, phase in enumerate(PHASES):
        ours = {model: judged(model, place, seed).r2 for model in MODELS}
        for model, each in ours.items():
            rows.append(row(f"{phase} phase, {model}", "R^2", TABLE_2[model][place], [each], counts=False))
        shown = ", ".join(f"{model} {ours[model]:.3f}" for model in ("gp", "ols", "bin"))
        claims += [
            PaperClaim(f"{phase}: gp at least ols less .01", "yes", shown, ours["gp"] >= ours["ols"] - 0.01),
            PaperClaim(f"{phase}: gp above bin", "yes", shown, ours["gp"] > ours["bin"]),
        ]
    return Figure("t2", R2_TITLE, tuple(rows), tuple(claims), NOTES)


def table_3(seed: int = 0) -> Figure:
    """Intervals of 95 %: how often a duration is outside, and how long they are."""
    if find_spec("sklearn") is None:
        return Figure("t3", INTERVAL_TITLE, (), (), (NOT_REPEATED,))
    rows: list[FigureRow] = []
    claims: list[PaperClaim] = []
    for place, phase in enumerate(PHASES):
        ours = {model: judged(model, place, seed) for model in TABLE_3}
        for model, each in ours.items():
            outside, length_s = TABLE_3[model][place]
            rows += [
                row(f"{phase} phase, {model}", "% outside", outside, [each.outside_percent], counts=False),
                row(f"{phase} phase, {model}", "length, s", length_s, [each.length_s], counts=False),
                row(f"{phase} phase, {model}", "length / duration", None, [each.length_ratio], counts=False),
            ]
        shown = ", ".join(f"{model} {each.length_ratio:.2f}" for model, each in ours.items())
        shorter = ours["gp"].length_ratio < min(ours["ols"].length_ratio, ours["bin"].length_ratio)
        outside_percent = ours["gp"].outside_percent
        claims += [
            PaperClaim(f"{phase}: gp's interval over the duration is the shortest", "yes", shown, shorter),
            PaperClaim(
                f"{phase}: outside gp's interval",
                f"<= {MOST_OUTSIDE:g} %",
                f"{outside_percent:.1f} %",
                outside_percent <= MOST_OUTSIDE,
            ),
        ]
    return Figure("t3", INTERVAL_TITLE, tuple(rows), tuple(claims), NOTES)
