"""Natjam-R, Figs 10 and 11: three and two jobs with deadlines on 7 nodes of 3 slots.

Law: both profiles are shown, on the same cluster. The one constant fitted here is the job
itself: maps and reduces such that it takes the 87 s on an empty cluster that the paper states
(section 7); how those seconds are split between maps and reduces the paper does not say.
"""

from __future__ import annotations

import msgspec

from emulator.experiments.figures import Claim, Figure, Row, mean, row
from emulator.schemes import SCHEMES
from emulator.timing import PAPER
from emulator.virtual_host import Result, Setup, run_scheme
from emulator.workload.job import Job
from emulator.workload.synthetic import FIG10_DEADLINES_MS, Calibration, emulab_jobs, emulab_pair
from yarnctl.deciding.settings import PROFILES
from yarnctl.journal.memory import MemoryJournal
from yarnctl.units import Resources

EPSILONS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZE_RATIOS = (0.4, 0.7, 1.0, 1.5, 2.0)


def deadline_run(jobs: tuple[Job, ...], policy: str, profile: str, seed: int) -> Result:
    """Run jobs with deadlines in one queue on the Emulab cluster of section 7."""
    settings = msgspec.structs.replace(
        PROFILES[profile],
        mode="deadlines",
        job_policy=policy,
        seed=seed,
        hurried_queues=("default",),
        victim_queues=("default",),
    )
    setup = Setup(nodes=7, node_size=Resources(3 * 1024, 3), timing=PAPER, settings=settings, seed=seed)
    return run_scheme(setup, jobs, SCHEMES["natjam"], MemoryJournal())


def finished_s(result: Result) -> list[float]:
    """Return when each job finished, s since 0."""
    return [(job.submitted_at_ms + job.completion_ms) / 1000 for job in result.jobs]


def margins_s(result: Result) -> list[float]:
    """Return each job's margin: deadline - completion, s (negative: missed)."""
    return [
        (job.deadline_at_ms or 0) / 1000 - end
        for job, end in zip(result.jobs, finished_s(result), strict=True)
    ]


def figure_10(runs: int, calibration: Calibration) -> Figure:
    """Fig 10: three equal jobs, the later one more urgent; MDF against MLF."""
    rows: list[Row] = []
    claims: list[Claim] = []
    jobs = emulab_jobs("production", calibration, FIG10_DEADLINES_MS)
    alone = [
        deadline_run(emulab_jobs("production", calibration, (200_000,)), "MDF", "paper", seed).makespan_ms
        / 1000
        for seed in range(runs)
    ]
    rows.append(row("one job alone", "completion_s", 87.0, alone, counts=False))
    for profile in ("paper", "default"):
        results = {
            policy: [deadline_run(jobs, policy, profile, seed) for seed in range(runs)]
            for policy in ("MDF", "MLF")
        }
        spans = {policy: [each.makespan_ms / 1000 for each in found] for policy, found in results.items()}
        for policy, paper in (("MDF", 175.0), ("MLF", 239.0)):
            rows.append(row(f"{policy}, {profile}", "makespan_s", paper, spans[policy], profile == "paper"))
        claims += _claims_10(profile, results, mean(spans["MLF"]) / mean(spans["MDF"]))
    notes = ("deadlines are counted from t = 0", "a job's maps and reduces are fitted on the 87 s alone")
    return Figure("10", "MDF against MLF: three jobs with deadlines", tuple(rows), tuple(claims), notes)


def _claims_10(profile: str, results: dict[str, list[Result]], ratio: float) -> list[Claim]:
    met = {
        policy: sum(margin >= 0 for each in found for margin in margins_s(each))
        for policy, found in results.items()
    }
    wanted = 3 * len(results["MDF"])
    spread = max(max(finished_s(each)) / min(finished_s(each)) for each in results["MLF"])
    return [
        Claim(
            "MDF meets all three deadlines",
            "3 of 3",
            f"{met['MDF']} of {wanted}",
            met["MDF"] == wanted,
            profile,
        ),
        Claim(
            "MLF misses all three deadlines", "0 of 3", f"{met['MLF']} of {wanted}", met["MLF"] == 0, profile
        ),
        Claim(
            "MLF: the jobs run in lockstep (last / first finish <= 1.15)",
            "lockstep",
            f"{spread:.2f}",
            spread <= 1.15,
            profile,
        ),
        Claim("makespan MLF / MDF, +- 0.15", "1.37", f"{ratio:.2f}", abs(ratio - 239 / 175) <= 0.15, profile),
    ]


def figure_11(runs: int, calibration: Calibration) -> Figure:
    """Fig 11: two jobs, the second's deadline 1 s earlier; from which epsilon on are both met?"""
    rows: list[Row] = []
    claims: list[Claim] = []
    clean = deadline_run(emulab_jobs("production", calibration, (200_000,)), "MDF", "paper", 0).makespan_ms
    fitted = msgspec.structs.replace(calibration, emulab_clean_ms=clean)
    for profile in ("paper", "default"):
        first, second = {}, {}
        for epsilon in EPSILONS:
            found = [
                margins_s(deadline_run(emulab_pair("production", fitted, epsilon), "MDF", profile, seed))
                for seed in range(runs)
            ]
            first[epsilon] = [each[0] for each in found]
            second[epsilon] = [each[1] for each in found]
            rows.append(row(f"Job 1, epsilon {epsilon}, {profile}", "margin_s", None, first[epsilon]))
            rows.append(row(f"Job 2, epsilon {epsilon}, {profile}", "margin_s", None, second[epsilon]))
        both = {epsilon: first[epsilon] + second[epsilon] for epsilon in EPSILONS}
        claims.append(_met_from("both deadlines are met", both, 0.8, profile))
        claims.append(_met_from("the shorter deadline is met", second, 0.2, profile))
        claims.append(_size_claim(fitted, profile, runs))
    return Figure("11", "Effect of deadlines: two jobs", tuple(rows), tuple(claims))


def _met_from(claim: str, margins: dict[float, list[float]], paper: float, profile: str) -> Claim:
    """The smallest epsilon from which on all margins are >= 0; it holds at the paper's or below."""
    met = [
        epsilon
        for epsilon in EPSILONS
        if all(min(margins[each]) >= 0 for each in EPSILONS if each >= epsilon)
    ]
    shown = f"from {met[0]} on" if met else "nowhere"
    return Claim(
        f"{claim} from epsilon {paper} on", f"from {paper} on", shown, bool(met) and met[0] <= paper, profile
    )


def _size_claim(calibration: Calibration, profile: str, runs: int) -> Claim:
    """The size of the second job against the first: does it change the more urgent one's margin?"""
    margins = []
    for ratio in SIZE_RATIOS:
        jobs = emulab_pair("production", calibration, 1.0, ratio)
        found = [margins_s(deadline_run(jobs, "MDF", profile, seed))[0] for seed in range(runs)]
        margins.append(mean(found) / (calibration.emulab_clean_ms / 1000))
    return Claim(
        "size of Job 2 from 0.4 to 2.0 of Job 1: Job 1's margin stays >= 0 at epsilon 1.0",
        "little effect",
        ", ".join(f"{each:+.2f}" for each in margins) + " of the clean time",
        min(margins) >= 0,
        profile,
    )
