"""Natjam, Figs 3 to 6: the microbenchmarks of section 5, on 6 nodes of 8 slots.

Law: every constant is fitted on Fig 3 (and the suspend, resume and schedule times the text
states) and on nothing else; what Fig 3 cannot fix is a field of ``Lab`` or its calibration and is in
``natjam_alternatives`` with the error of each other choice, not hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from emulator.cluster.timing import PAPER as PAPER_TIMING
from emulator.cluster.timing import Timing
from emulator.virtual.run import Result, Setup
from emulator.virtual.schemes import SCHEMES
from emulator.workload.spec import merge
from emulator.workload.synthetic import Calibration, microbenchmark
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, row
from yarn_research.studies.cells import Cell, Plan, gather
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.settings import PAPER as PAPER_SETTINGS
from yarnctl.deciding.settings import Settings
from yarnctl.traces.job import KEY_GROUP_MS, Job, JobClass, key_groups
from yarnctl.units import Resources

FIG3_S: dict[tuple[JobClass, str], float] = {
    ("research", "xl"): 192.3,
    ("research", "l"): 193.8,
    ("research", "m"): 195.6,
    ("research", "s"): 202.6,
    ("production", "xl"): 67.2,
    ("production", "l"): 67.0,
    ("production", "m"): 67.6,
    ("production", "s"): 70.4,
}
"""Fig 3: completion time of each job alone, s."""

FIG4_S: dict[tuple[str, str], tuple[float | None, bool]] = {
    ("ideal", "production"): (70.4, False),
    ("ideal", "research"): (192.3, False),
    ("hard-cap", "production"): (70.4, False),
    ("hard-cap", "research"): (292.3, True),
    ("soft-cap", "production"): (130.2, True),
    ("soft-cap", "research"): (192.3, False),
    ("kill", "production"): (None, True),
    ("kill", "research"): (236.5, True),
    ("natjam", "production"): (75.6, True),
    ("natjam", "research"): (197.0, True),
}
"""Fig 4: by scheme and class, s, and whether it counts: what repeats Fig 3 adds nothing."""

CHAINS_4: dict[JobClass, tuple[str, ...]] = {
    "research": ("ideal", "natjam", "kill", "hard-cap"),
    "production": ("ideal", "natjam", "soft-cap"),
}
"""Fig 4: the orderings, the shortest time first."""

SIZES_4: tuple[tuple[JobClass, str, str, float, float], ...] = (
    ("production", "natjam", "natjam", 1.07, 0.05),
    ("research", "natjam", "natjam", 1.02, 0.05),
    ("research", "kill", "kill", 1.23, 0.07),
    ("research", "hard-cap", "hard cap", 1.52, 0.07),
)
"""Fig 4: completion over ideal: class, scheme, its words, the paper's, +- our tolerance."""

SCHEMES_4 = tuple(dict.fromkeys(name for name, _ in FIG4_S))

FIG5_S = {
    ("random", "s"): (76.6, 237.6),
    ("LRT", "s"): (78.8, 247.2),
    ("SRT", "s"): (75.6, 197.0),
    ("random", "l"): (75.0, 244.2),
    ("LRT", "l"): (75.8, 246.6),
    ("SRT", "l"): (74.2, 234.6),
}
"""Fig 5: (production, Research-XL) by task policy and size of the production job, s."""

FIG6_S = {
    ("PR", "m"): (195.8, 201.2),
    ("MR", "m"): (196.2, 200.6),
    ("LR", "m"): (200.6, 228.8),
    ("PR", "s"): (201.6, 213.8),
    ("MR", "s"): (195.8, 204.8),
    ("LR", "s"): (195.8, 252.4),
}
"""Fig 6: ("m": the two Research-M, the shorter time first; "s": Research-L, Research-S), s."""


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    """The test cluster of section 5 and everything the paper leaves open about it."""

    runs: int = 5
    first_seed: int = 0
    calibration: Calibration = Calibration()
    timing: Timing = PAPER_TIMING
    settings: Settings = PAPER_SETTINGS
    kill_policy: str = "SRT"
    mr: str = "MR"
    lengths: Literal["table", "shuffled", "drawn"] = "table"

    def setup(self, seed: int, task_policy: str = "SRT", job_policy: str = "MR") -> Setup:
        """Return the cluster: 6 nodes of 8 slots, queues 99/1, caps 25/75 (section 5)."""
        return Setup(
            nodes=6,
            node_size=Resources(8 * 1024, 8),
            timing=self.timing,
            settings=msgspec.structs.replace(
                self.settings, seed=seed, task_policy=task_policy, job_policy=job_policy
            ),
            shares=(0.99, 0.01),
            caps=(0.25, 0.75),
            seed=seed,
        )

    def job(self, job_class: JobClass, size: str) -> tuple[Job, ...]:
        """Return one job of Fig 3."""
        return microbenchmark(job_class, size, job_class, self.calibration)

    def cells(
        self, scheme: str, jobs: tuple[Job, ...], task_policy: str = "SRT", job_policy: str = "MR"
    ) -> list[Cell]:
        """Return one run per seed; the scheme "kill" has a task policy of its own."""
        if scheme == "kill":
            task_policy = self.kill_policy
        if job_policy == "MR":
            job_policy = self.mr
        seeds = range(self.first_seed, self.first_seed + self.runs)
        return [
            Cell(
                self.setup(seed, task_policy, job_policy),
                _with_lengths(jobs, self.lengths, seed),
                SCHEMES[scheme],
            )
            for seed in seeds
        ]

    def pair(self, size: str) -> tuple[Job, ...]:
        """Return Research-XL at 0 and a production job at 50 s (Figs 4 and 5)."""
        return merge(self.job("production", size), self.job("research", "xl"))


def _with_lengths(jobs: tuple[Job, ...], lengths: str, seed: int) -> tuple[Job, ...]:
    """Return the jobs with other lengths of reduces in each run; the longest stays what Fig 3 fixes."""
    if lengths == "table":
        return jobs
    return tuple(_with_other_lengths(job, lengths, seed) for job in jobs)


def _with_other_lengths(job: Job, lengths: str, seed: int) -> Job:
    draws = [uniform(seed, named(job.name), place) for place in range(len(job.reduce_ms))]
    order = sorted(range(len(draws)), key=draws.__getitem__)
    if lengths == "shuffled":
        reduce_ms = tuple(job.reduce_ms[place] for place in order)
    else:
        longest_ms = max(job.reduce_ms)
        drawn = [longest_ms - (longest_ms // 2 * draw >> 64) for draw in draws]
        drawn[order[0]] = longest_ms
        reduce_ms = tuple(drawn)
    keys = key_groups(reduce_ms, KEY_GROUP_MS)
    return msgspec.structs.replace(job, reduce_ms=reduce_ms, reduce_keys=keys)


def completion_s(results: Sequence[Result], job_class: str) -> list[float]:
    """Return the completion times of the one job of a class, one per run, s."""
    return [job.completion_ms / 1000 for each in results for job in each.jobs if job.job_class == job_class]


def figure_3(lab: Lab) -> Plan[Figure]:
    """Fig 3: each job alone. This is what is calibrated on, so it has no relative error."""
    found = yield from gather({key: lab.cells("soft-cap", lab.job(*key)) for key in FIG3_S})
    rows = tuple(
        row(f"{key[0]}-{key[1]}", "completion_s", paper, completion_s(found[key], key[0]), counts=False)
        for key, paper in FIG3_S.items()
    )
    return Figure("3", "Microbenchmark settings: each job alone (calibrated on)", rows)


def figure_4(lab: Lab) -> Plan[Figure]:
    """Fig 4: Natjam against ideal, hard cap, soft cap and killing."""
    return of_figure_4((yield from runs_4(lab)))


def runs_4(lab: Lab) -> Plan[dict[str, list[Result]]]:
    """Run Fig 4: by scheme."""
    jobs = lab.pair("s")
    return (yield from gather({name: lab.cells(name, jobs) for name in SCHEMES_4}))


def of_figure_4(found: Mapping[str, Sequence[Result]]) -> Figure:
    """Return Fig 4 of the runs of each scheme; claims need them all."""
    rows = tuple(
        row(name, f"{job_class}_s", paper, completion_s(found[name], job_class), counts)
        for (name, job_class), (paper, counts) in FIG4_S.items()
        if name in found
    )
    claims = _claims_4(rows) if all(name in found for name in SCHEMES_4) else ()
    return Figure("4", "Natjam vs. existing techniques: Research-XL, then Production-S", rows, claims)


def _claims_4(rows: Sequence[FigureRow]) -> tuple[PaperClaim, ...]:
    ours = {(each.label, each.metric): each.ours for each in rows}
    times = {
        job_class: [ours[name, f"{job_class}_s"] for name in chain] for job_class, chain in CHAINS_4.items()
    }
    return (
        *(_ordered(_chain_words(job_class), times[job_class]) for job_class in CHAINS_4),
        *(
            _near(
                f"{job_class} over ideal, {words}",
                paper,
                ours[name, f"{job_class}_s"] / ours["ideal", f"{job_class}_s"],
                tolerance,
            )
            for job_class, name, words, paper, tolerance in SIZES_4
        ),
    )


def _chain_words(job_class: JobClass) -> str:
    return f"{job_class}: {' < '.join(name.replace('-', ' ') for name in CHAINS_4[job_class])}"


def _ordered(claim: str, values: list[float]) -> PaperClaim:
    shown = " < ".join(f"{value:.1f}" for value in values)
    return PaperClaim(claim, "holds", shown, all(a < b for a, b in pairwise(values)))


def _near(claim: str, paper: float, ours: float, tolerance: float) -> PaperClaim:
    return PaperClaim(
        f"{claim} (+- {tolerance:.2f})", f"{paper:.2f}", f"{ours:.2f}", abs(ours - paper) <= tolerance
    )


def figure_5(lab: Lab) -> Plan[Figure]:
    """Fig 5: task eviction policies; SRT with Production-S repeats Fig 4 and does not count."""
    return of_figure_5((yield from runs_5(lab)))


def runs_5(lab: Lab) -> Plan[dict[tuple[str, str], list[Result]]]:
    """Run Fig 5: by (task policy, size of the production job)."""
    cells = {key: lab.cells("natjam", lab.pair(key[1]), task_policy=key[0]) for key in FIG5_S}
    return (yield from gather(cells))


def of_figure_5(found: Mapping[tuple[str, str], Sequence[Result]]) -> Figure:
    """Return Fig 5 of the runs of each (task policy, size of the production job); claims need them all."""
    rows: list[FigureRow] = []
    for key, papers in FIG5_S.items():
        for job_class, paper in zip(("production", "research"), papers, strict=True):
            if key in found:
                label, times = f"{key[0]} production-{key[1]}", completion_s(found[key], job_class)
                rows.append(row(label, f"{job_class}_s", paper, times, key != ("SRT", "s")))
    claims = _claims_5(rows) if len(found) == len(FIG5_S) else ()
    return Figure("5", "Task eviction policies", tuple(rows), claims)


def _claims_5(rows: Sequence[FigureRow]) -> tuple[PaperClaim, ...]:
    ours = {(each.label, each.metric): each.ours for each in rows}
    claims = []
    for size in ("s", "l"):
        times = {
            policy: ours[f"{policy} production-{size}", "research_s"] for policy in ("SRT", "LRT", "random")
        }
        best = times["SRT"] < min(times["LRT"], times["random"])
        claims.append(
            PaperClaim(f"production-{size}: SRT is best for research", "holds", _shown(times), best)
        )
    times_s = [ours[f"{policy} production-s", "research_s"] for policy in ("SRT", "random", "LRT")]
    claims.append(_ordered("production-s: SRT < random < LRT for research", times_s))
    return tuple(claims)


def _two_research(lab: Lab, size: str) -> tuple[Job, ...]:
    """Return the two research jobs and Production-S; ``size`` "m": two M; "s": L and S."""
    if size == "m":
        first, second = lab.job("research", "m")[0], lab.job("research", "m")[0]
        second = msgspec.structs.replace(second, name="research-m-2")
    else:
        first, second = lab.job("research", "l")[0], lab.job("research", "s")[0]
    return merge(lab.job("production", "s"), (first, second))


def figure_6(lab: Lab) -> Plan[Figure]:
    """Fig 6: job eviction policies; of two equal jobs the shorter time is compared first."""
    return of_figure_6(lab, (yield from runs_6(lab)))


def runs_6(lab: Lab) -> Plan[dict[tuple[str, str], list[Result]]]:
    """Run Fig 6: by (job policy, "m" or "s")."""
    cells = {key: lab.cells("natjam", _two_research(lab, key[1]), job_policy=key[0]) for key in FIG6_S}
    return (yield from gather(cells))


def times_6(lab: Lab, size: str, results: Sequence[Result]) -> list[list[float]]:
    """Return the completion times of both research jobs, s, one per run; of equal jobs the shorter first."""
    names = [job.name for job in _two_research(lab, size) if job.job_class == "research"]
    pair = [[_completion_s(each, name) for each in results] for name in names]
    if size != "m":
        return pair
    both = list(zip(*pair, strict=True))
    return [[min(times) for times in both], [max(times) for times in both]]


def evicted_of_small(results: Sequence[Result]) -> int:
    """Return how many tasks of Research-S were suspended over all runs."""
    return sum(job.suspensions for each in results for job in each.jobs if job.name == "r-research-s")


def of_figure_6(lab: Lab, found: Mapping[tuple[str, str], Sequence[Result]]) -> Figure:
    """Return Fig 6 of its runs."""
    rows: list[FigureRow] = []
    for (policy, size), papers in FIG6_S.items():
        pair = times_6(lab, size, found[policy, size])
        names = ("research-m", "research-m") if size == "m" else ("research-l", "research-s")
        for place, name in enumerate(names):
            label = f"{policy} {'M+M' if size == 'm' else 'L+S'} {name} {place + 1}"
            rows.append(row(label, "research_s", papers[place], pair[place]))
    evicted = evicted_of_small(found["MR", "s"])
    title = "Job eviction policies: two research jobs, then Production-S"
    return Figure("6", title, tuple(rows), _claims_6(rows, evicted))


def _completion_s(result: Result, name: str) -> float:
    return next(job.completion_ms for job in result.jobs if job.name == name) / 1000


def _claims_6(rows: list[FigureRow], untouched: int) -> tuple[PaperClaim, ...]:
    ours = {each.label: each.ours for each in rows}
    last = {policy: ours[f"{policy} M+M research-m 2"] for policy in ("PR", "MR", "LR")}
    small = {policy: ours[f"{policy} L+S research-s 2"] for policy in ("PR", "MR", "LR")}
    return (
        PaperClaim(
            "M+M: LR is worst for one of two equal jobs",
            "228.8 vs 201",
            _shown(last),
            last["LR"] == max(last.values()),
        ),
        PaperClaim(
            "M+M: PR and MR within 5 s of each other",
            "0.6 s",
            f"{abs(last['PR'] - last['MR']):.1f} s",
            abs(last["PR"] - last["MR"]) <= 5,
        ),
        PaperClaim(
            "L+S: MR < PR < LR for the small job",
            "204.8 < 213.8 < 252.4",
            _shown(small),
            small["MR"] < small["PR"] < small["LR"],
        ),
        PaperClaim("L+S: MR evicts no task of Research-S", "0", str(untouched), untouched == 0),
    )


def _shown(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())


MICRO: tuple[Callable[[Lab], Plan[Figure]], ...] = (figure_4, figure_5, figure_6)
"""The figures whose bars count in the mean and the worst relative error."""


# --- a run that is one of the paper's --------------------------------------------------------


def figures_of(setup: Setup, jobs: tuple[Job, ...], results: Mapping[str, Result]) -> tuple[Figure, ...]:
    """Return what Figs 4 and 5 say of a run, if it is one of theirs under some seed; mostly nothing.

    ``results`` are by scheme. Nothing but the seed may differ, and what decides no result.
    """
    lab = Lab(runs=1)
    plain = msgspec.structs.replace(setup, validate=False)
    sizes = [size for size in ("s", "l") if jobs == lab.pair(size)]
    policies = [name for name in ("random", "LRT", "SRT") if plain == lab.setup(setup.seed, task_policy=name)]
    keys = [(policy, size) for policy in policies for size in sizes]
    figures = []
    if ("SRT", "s") in keys and (found := {name: [results[name]] for name in SCHEMES_4 if name in results}):
        figures.append(of_figure_4(found))
    elif keys and "natjam" in results:
        figures.append(of_figure_5({key: [results["natjam"]] for key in keys}))
    return tuple(figures)
