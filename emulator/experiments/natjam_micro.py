"""Natjam, Figs 3 to 6: the microbenchmarks of section 5, on 6 nodes of 8 slots.

Law: every constant is fitted on Fig 3 (and the suspend, resume and schedule times the text
states) and on nothing else; what Fig 3 cannot fix is an entry of ``ALTERNATIVES`` with its reason, and
the error of each other choice is computed beside ours, not hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import msgspec

from emulator.experiments.figures import Claim, Figure, Row, mean, row
from emulator.schemes import SCHEMES, Scheme
from emulator.timing import PAPER as PAPER_TIMING
from emulator.timing import Timing
from emulator.virtual_host import Setup, run_scheme
from emulator.workload.job import Job, JobClass
from emulator.workload.spec import merge
from emulator.workload.synthetic import REDUCES, Calibration, microbenchmark
from yarnctl.deciding.settings import PAPER as PAPER_SETTINGS
from yarnctl.deciding.settings import Settings
from yarnctl.journal.memory import MemoryJournal
from yarnctl.units import Resources

FIG3_S = {
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

Variant = Callable[["Lab"], "Lab"]


class Lab(msgspec.Struct, frozen=True, kw_only=True):
    """The test cluster of section 5 and everything the paper leaves open about it."""

    runs: int = 5
    calibration: Calibration = Calibration()
    timing: Timing = PAPER_TIMING
    settings: Settings = PAPER_SETTINGS
    kill_policy: str = "SRT"

    def setup(self, seed: int, **settings: object) -> Setup:
        """Return the cluster: 6 nodes of 8 slots, queues 99/1, caps 25/75 (section 5)."""
        return Setup(
            nodes=6,
            node_size=Resources(8 * 1024, 8),
            timing=self.timing,
            settings=msgspec.structs.replace(self.settings, seed=seed, **settings),
            shares=(0.99, 0.01),
            caps=(0.25, 0.75),
            seed=seed,
        )

    def job(self, job_class: JobClass, size: str) -> tuple[Job, ...]:
        """Return one job of Fig 3."""
        return microbenchmark(job_class, size, job_class, self.calibration)


def completion_s(lab: Lab, scheme: Scheme, jobs: tuple[Job, ...], **settings: object) -> list[list[float]]:
    """Run ``lab.runs`` seeds; return per job (in the order of ``jobs``) its completion times, s."""
    names = [job.name for job in jobs]
    times: list[list[float]] = [[] for _ in jobs]
    for seed in range(lab.runs):
        result = run_scheme(lab.setup(seed, **settings), jobs, scheme, MemoryJournal())
        found = {each.name: each.completion_ms / 1000 for each in result.jobs}
        for place, name in enumerate(names):
            times[place].append(found[name])
    return times


def figure_3(lab: Lab) -> Figure:
    """Fig 3: each job alone. This is what is calibrated on, so it has no relative error."""
    rows = []
    for (job_class, size), paper in FIG3_S.items():
        jobs = microbenchmark(job_class, size, job_class, lab.calibration)  # type: ignore[arg-type]
        (times,) = completion_s(lab, SCHEMES["soft-cap"], jobs)
        rows.append(row(f"{job_class}-{size}", "completion_s", paper, times, counts=False))
    return Figure("3", "Microbenchmark settings: each job alone (calibrated on)", tuple(rows))


def _pair(lab: Lab, scheme: str, size: str, **settings: object) -> tuple[list[float], list[float]]:
    """Return (production, Research-XL) completion times: Research-XL at 0, production at 50 s."""
    jobs = merge(lab.job("production", size), lab.job("research", "xl"))
    if scheme == "kill":
        settings = {"task_policy": lab.kill_policy, **settings}
    times = dict(
        zip([job.name[0] for job in jobs], completion_s(lab, SCHEMES[scheme], jobs, **settings), strict=True)
    )
    return times["p"], times["r"]


def figure_4(lab: Lab) -> Figure:
    """Fig 4: Natjam against ideal, hard cap, soft cap and killing."""
    ideal_p, ideal_r = _pair(lab, "ideal", "s")
    hard_p, hard_r = _pair(lab, "hard-cap", "s")
    soft_p, soft_r = _pair(lab, "soft-cap", "s")
    kill_p, kill_r = _pair(lab, "kill", "s")
    natjam_p, natjam_r = _pair(lab, "natjam", "s")
    rows = (
        row("ideal", "production_s", 70.4, ideal_p, counts=False),
        row("ideal", "research_s", 192.3, ideal_r, counts=False),
        row("hard-cap", "production_s", 70.4, hard_p, counts=False),
        row("hard-cap", "research_s", 292.3, hard_r),
        row("soft-cap", "production_s", 130.2, soft_p),
        row("soft-cap", "research_s", 192.3, soft_r, counts=False),
        row("kill", "production_s", None, kill_p),
        row("kill", "research_s", 236.5, kill_r),
        row("natjam", "production_s", 75.6, natjam_p),
        row("natjam", "research_s", 197.0, natjam_r),
    )
    ours = {(each.label, each.metric): each.ours for each in rows}
    research = [ours[name, "research_s"] for name in ("ideal", "natjam", "kill", "hard-cap")]
    production = [ours[name, "production_s"] for name in ("ideal", "natjam", "soft-cap")]
    claims = (
        _ordered("research: ideal < natjam < kill < hard cap", research),
        _ordered("production: ideal < natjam < soft cap", production),
        _near("production over ideal, natjam", 1.07, production[1] / production[0], 0.05),
        _near("research over ideal, natjam", 1.02, research[1] / research[0], 0.05),
        _near("research over ideal, kill", 1.23, research[2] / research[0], 0.07),
        _near("research over ideal, hard cap", 1.52, research[3] / research[0], 0.07),
    )
    return Figure("4", "Natjam vs. existing techniques: Research-XL, then Production-S", rows, claims)


def _ordered(claim: str, values: list[float]) -> Claim:
    shown = " < ".join(f"{value:.1f}" for value in values)
    return Claim(claim, "holds", shown, all(a < b for a, b in pairwise(values)))


def _near(claim: str, paper: float, ours: float, tolerance: float) -> Claim:
    return Claim(
        f"{claim} (+- {tolerance:.2f})", f"{paper:.2f}", f"{ours:.2f}", abs(ours - paper) <= tolerance
    )


def figure_5(lab: Lab) -> Figure:
    """Fig 5: task eviction policies; SRT with Production-S repeats Fig 4 and does not count."""
    rows: list[Row] = []
    for (policy, size), (paper_p, paper_r) in FIG5_S.items():
        production, research = _pair(lab, "natjam", size, task_policy=policy)
        counts = (policy, size) != ("SRT", "s")
        rows.append(row(f"{policy} production-{size}", "production_s", paper_p, production, counts))
        rows.append(row(f"{policy} production-{size}", "research_s", paper_r, research, counts))
    ours = {(each.label, each.metric): each.ours for each in rows}
    claims = []
    for size in ("s", "l"):
        times = {
            policy: ours[f"{policy} production-{size}", "research_s"] for policy in ("SRT", "LRT", "random")
        }
        best = times["SRT"] < min(times["LRT"], times["random"])
        shown = ", ".join(f"{policy} {value:.1f}" for policy, value in times.items())
        claims.append(Claim(f"production-{size}: SRT is best for research", "holds", shown, best))
    times_s = [ours[f"{policy} production-s", "research_s"] for policy in ("SRT", "random", "LRT")]
    claims.append(_ordered("production-s: SRT < random < LRT for research", times_s))
    return Figure("5", "Task eviction policies", tuple(rows), tuple(claims))


def _two_research(lab: Lab, size: str) -> tuple[Job, ...]:
    """Return the two research jobs and Production-S; ``size`` "m": two M; "s": L and S."""
    if size == "m":
        first, second = lab.job("research", "m")[0], lab.job("research", "m")[0]
        second = msgspec.structs.replace(second, name="research-m-2")
    else:
        first, second = lab.job("research", "l")[0], lab.job("research", "s")[0]
    return merge(lab.job("production", "s"), (first, second))


def figure_6(lab: Lab) -> Figure:
    """Fig 6: job eviction policies; of two equal jobs the shorter time is compared first."""
    rows: list[Row] = []
    untouched = 0
    for (policy, size), paper in FIG6_S.items():
        jobs = _two_research(lab, size)
        times = dict(
            zip(
                [job.name for job in jobs],
                completion_s(lab, SCHEMES["natjam"], jobs, job_policy=policy),
                strict=True,
            )
        )
        pair = [times[job.name] for job in jobs if job.job_class == "research"]
        if size == "m":
            pair = [
                [min(both) for both in zip(*pair, strict=True)],
                [max(both) for both in zip(*pair, strict=True)],
            ]
        names = ("research-m", "research-m") if size == "m" else ("research-l", "research-s")
        for place, name in enumerate(names):
            label = f"{policy} {'M+M' if size == 'm' else 'L+S'} {name} {place + 1}"
            rows.append(row(label, "research_s", paper[place], pair[place]))
        if (policy, size) == ("MR", "s"):
            untouched = _suspended(lab, jobs, "r-research-s")
    return Figure(
        "6",
        "Job eviction policies: two research jobs, then Production-S",
        tuple(rows),
        _claims_6(rows, untouched),
    )


def _suspended(lab: Lab, jobs: tuple[Job, ...], name: str) -> int:
    """Return how many suspensions the job ``name`` saw in all runs under MR."""
    found = 0
    for seed in range(lab.runs):
        result = run_scheme(lab.setup(seed, job_policy="MR"), jobs, SCHEMES["natjam"], MemoryJournal())
        found += sum(each.suspensions for each in result.jobs if each.name == name)
    return found


def _claims_6(rows: list[Row], untouched: int) -> tuple[Claim, ...]:
    ours = {each.label: each.ours for each in rows}
    last = {policy: ours[f"{policy} M+M research-m 2"] for policy in ("PR", "MR", "LR")}
    small = {policy: ours[f"{policy} L+S research-s 2"] for policy in ("PR", "MR", "LR")}
    return (
        Claim(
            "M+M: LR is worst for one of two equal jobs",
            "228.8 vs 201",
            _shown(last),
            last["LR"] == max(last.values()),
        ),
        Claim(
            "M+M: PR and MR within 5 s of each other",
            "0.6 s",
            f"{abs(last['PR'] - last['MR']):.1f} s",
            abs(last["PR"] - last["MR"]) <= 5,
        ),
        Claim(
            "L+S: MR < PR < LR for the small job",
            "204.8 < 213.8 < 252.4",
            _shown(small),
            small["MR"] < small["PR"] < small["LR"],
        ),
        Claim("L+S: MR evicts no task of Research-S", "0", str(untouched), untouched == 0),
    )


def _shown(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in values.items())


def _maps(count: int) -> Variant:
    return lambda lab: msgspec.structs.replace(
        lab, calibration=msgspec.structs.replace(lab.calibration, maps=count)
    )


ALTERNATIVES: dict[str, tuple[str, dict[str, Variant]]] = {
    "maps per job": (
        "2: not in the paper; it says a fourth of the tasks (12) were suspended, which 1 or 2 give",
        {"1": _maps(1), "3": _maps(3), "4": _maps(4), "6": _maps(6), "8": _maps(8)},
    ),
    "resume order": (
        "resuming reduces first, in the order they were suspended, as in section 3.2",
        {
            "with the fresh ones": lambda lab: msgspec.structs.replace(
                lab, timing=msgspec.structs.replace(lab.timing, resume_priority=10)
            )
        },
    ),
    "kill victim": (
        "SRT: the paper names no rule; killing the shortest is what its 236.5 s fits",
        {
            "LRT": lambda lab: msgspec.structs.replace(lab, kill_policy="LRT"),
            "random": lambda lab: msgspec.structs.replace(lab, kill_policy="random"),
        },
    ),
}
"""What Fig 3 cannot fix: our choice with its reason, and the other choices."""


def micro(lab: Lab) -> tuple[Figure, ...]:
    """Return Figs 4, 5 and 6."""
    return figure_4(lab), figure_5(lab), figure_6(lab)


__all__ = [
    "ALTERNATIVES",
    "FIG3_S",
    "REDUCES",
    "Lab",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "mean",
    "micro",
]
