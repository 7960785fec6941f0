"""Natjam, Figs 7 to 9 and 12 to 15: recorded workloads instead of the paper's private trace.

Law: the paper's trace cannot be had, so its numbers cannot be matched; what is tested is sign and
magnitude. The five windows were fixed before anything was run, and results are pooled over all
of them. A number holds when ours has the paper's sign and is within a factor of ten of it.

Each window overlays one hour of FB-2009 as production, scaled to a peak load of 1.0, and another
as research, scaled to 1.5, as section 6 describes its own scaling.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from emulator.cluster.timing import PAPER
from emulator.virtual.run import Result, Setup
from emulator.virtual.schemes import SCHEMES
from emulator.workload.scaling import scale_to_load
from emulator.workload.spec import load, merge
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, mean, quantile, row, share
from yarn_research.studies.cells import Cell, Plan, gather
from yarnctl.deciding.draws import named, uniform
from yarnctl.deciding.settings import PAPER as PAPER_SETTINGS
from yarnctl.traces.job import Job, JobClass
from yarnctl.units import Resources

WINDOWS = (("18-19", "21-22"), ("6-7", "7-8"), ("8-9", "9-10"), ("19-20", "10-11"), ("20-21", "17-18"))
"""(production hour, research hour) of FB-2009, fixed beforehand."""

PRODUCTION_PEAK, RESEARCH_PEAK, DEADLINE_PEAK = 1.0, 1.5, 1.5
AM_RATIO = 0.5
"""The paper's configuration has 1.0; with this many small jobs the masters alone would then fill
72 slots and nothing could ever run, so half is kept for tasks."""

SMALL, LARGE = (6, 12), (250, 8)
"""Nodes and slots per node: the test cluster of section 6, the datacenter of section 8."""

SHARED = ("natjam", "soft-cap", "kill")
"""The schemes under which both classes of a window are run."""


Times = dict[str, dict[str, float]]
"""Completion of each job, s, by scheme and the job's name."""


class WindowTimes(msgspec.Struct, frozen=True):
    """The result of one window."""

    production: Times
    research: Times


@lru_cache(maxsize=64)
def _hour(hours: str, job_class: JobClass, slots: int, peak: float) -> tuple[Job, ...]:
    return scale_to_load(load(f"packaged:fb2009-day@{hours}", job_class).jobs, slots, peak).jobs


def _setup(size: tuple[int, int]) -> Setup:
    nodes, slots = size
    return Setup(
        nodes=nodes,
        node_size=Resources(slots * 1024, slots),
        timing=PAPER,
        settings=PAPER_SETTINGS,
        shares=(0.99, 0.01),
        caps=(0.8, 0.2),
        am_ratio=AM_RATIO,
    )


def _completion_s(result: Result, job_class: str) -> dict[str, float]:
    return {job.name: job.completion_ms / 1000 for job in result.jobs if job.job_class == job_class}


def _cells(size: tuple[int, int], place: int) -> list[Cell]:
    """Return window number ``place`` under each of ``SHARED``, and production alone."""
    nodes, slots = size
    production_hour, research_hour = WINDOWS[place]
    production = _hour(production_hour, "production", nodes * slots, PRODUCTION_PEAK)
    research = _hour(research_hour, "research", nodes * slots, RESEARCH_PEAK)
    jobs = merge(production, research)
    shared = [Cell(_setup(size), jobs, SCHEMES[name]) for name in SHARED]
    return [*shared, Cell(_setup(size), merge(production, ()), SCHEMES["soft-cap"])]


def windows(size: tuple[int, int]) -> Plan[list[WindowTimes]]:
    """Run all windows on a cluster of so many nodes and slots per node."""
    found = yield from gather({place: _cells(size, place) for place in range(len(WINDOWS))})
    return [_trace(results) for results in found.values()]


def _trace(results: Sequence[Result]) -> WindowTimes:
    runs = dict(zip(SHARED, results, strict=False))
    production = {name: _completion_s(run, "production") for name, run in runs.items()}
    return WindowTimes(
        {**production, "alone": _completion_s(results[-1], "production")},
        {name: _completion_s(run, "research") for name, run in runs.items()},
    )


def differences(traces: Sequence[WindowTimes], job_class: JobClass, other: str) -> list[float]:
    """Return completion under Natjam minus completion under ``other``, s, of every job of all windows."""
    found: list[float] = []
    for trace in traces:
        times: Times = getattr(trace, job_class)
        found += [times["natjam"][name] - times[other][name] for name in times["natjam"]]
    return found


def _both(size: tuple[int, int], other: str) -> Plan[tuple[list[float], list[float]]]:
    """Return the differences of production, and of research."""
    traces = yield from windows(size)
    return differences(traces, "production", other), differences(traces, "research", other)


SAME_KIND = "same sign, within a factor of ten"


def same_kind(paper: float, ours: float) -> bool:
    """Return whether ``ours`` has the sign of ``paper`` and is within a factor of ten of it."""
    return paper * ours > 0 and abs(paper) / 10 <= abs(ours) <= abs(paper) * 10


def _at(values: list[float], what: str, ratio: float, paper: float) -> tuple[FigureRow, PaperClaim]:
    ours = quantile(values, ratio)
    label = f"{what}: {ratio:.0%} of jobs at or below"
    return (
        row(label, "difference_s", paper, [ours], counts=False),
        PaperClaim(f"{label} ({SAME_KIND})", f"{paper:+g} s", f"{ours:+.1f} s", same_kind(paper, ours)),
    )


def _within(values: float, what: str, paper: float) -> tuple[FigureRow, PaperClaim]:
    """The paper has something within +- ``paper`` s: ours may be ten times as far, or nearer."""
    return (
        row(what, "difference_s", paper, [values], counts=False),
        PaperClaim(
            f"{what}: at most ten times the paper's",
            f"within {paper:g} s",
            f"{values:+.2f} s",
            abs(values) <= 10 * paper,
        ),
    )


def _most(values: list[float], what: str, least_s: float, paper: float) -> tuple[FigureRow, PaperClaim]:
    """In the paper only the share ``paper`` is ``least_s`` or more later."""
    ours = 1 - share(values, least_s - 1e-9)
    label = f"{what}: share of jobs {least_s:g} s or more later"
    return (
        row(label, "share", paper, [ours], counts=False),
        PaperClaim(
            f"{label}: at most ten times the paper's", f"{paper:.0%}", f"{ours:.1%}", ours <= 10 * paper
        ),
    )


def _figure(number: str, title: str, pairs: list[tuple[FigureRow, PaperClaim]]) -> Figure:
    notes = (f"five windows of FB-2009, hours (production, research): {WINDOWS}; pooled",)
    return Figure(number, title, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), notes)


def figure_7() -> Plan[Figure]:
    """Fig 7: Natjam against soft cap, 72 slots."""
    production, research = yield from _both(SMALL, "soft-cap")
    pairs = [
        _at(production, "production", ratio, paper)
        for ratio, paper in ((0.4, -5.0), (0.2, -35.0), (0.1, -60.0))
    ]
    pairs.append(_most(production, "production", 5, 0.03))
    pairs.append(_at(research, "research", 0.6, 30.0))
    return _figure("7", "Small deployment: Natjam vs. soft cap", pairs)


def figure_8() -> Plan[Figure]:
    """Fig 8: Natjam against killing, 72 slots."""
    production, research = yield from _both(SMALL, "kill")
    pairs = [
        _at(research, "research", 0.36, -1000.0),
        _within(mean(production), "production, mean difference", 1.0),
        _within(quantile(production, 0.5), "production, median difference", 1.0),
        _within(quantile(production, 0.01), "production, 1st percentile", 2.0),
        _within(quantile(production, 0.99), "production, 99th percentile", 2.0),
    ]
    return _figure("8", "Small deployment: Natjam vs. killing", pairs)


def figure_9() -> Plan[Figure]:
    """Fig 9: Natjam against production only, 72 slots."""
    production = differences((yield from windows(SMALL)), "production", "alone")
    pairs = [
        _within(quantile(production, 0.5), "production, median difference", 3.0),
        _within(mean(production), "production, mean difference", 4.5),
        _within(max(production), "production, largest difference", 36.0),
    ]
    return _figure("9", "Small deployment: Natjam vs. production only", pairs)


def figure_13() -> Plan[Figure]:
    """Fig 13: Natjam against soft cap, 2,000 slots."""
    production, research = yield from _both(LARGE, "soft-cap")
    pairs = [
        _at(production, "production", ratio, paper)
        for ratio, paper in ((0.12, -5.0), (0.05, -20.0), (0.02, -60.0), (0.01, -80.0))
    ]
    pairs.append(_at(production, "production, best", 0.0, -150.0))
    pairs.append(_most(production, "production", 5, 0.03))
    earlier = (share(production, -0.001), share(research, -0.001))
    for name, paper, ours in (("production", 0.53, earlier[0]), ("research", 0.63, earlier[1])):
        label = f"{name}: share of jobs that complete earlier"
        pairs.append(
            (
                row(label, "share", paper, [ours], counts=False),
                PaperClaim(f"{label} ({SAME_KIND})", f"{paper:.0%}", f"{ours:.0%}", same_kind(paper, ours)),
            )
        )
    pairs.append(_at(research, "research, worst", 1.0, 390.0))
    return _figure("13", "Large deployment: Natjam vs. soft cap", pairs)


def figure_14() -> Plan[Figure]:
    """Fig 14: Natjam against killing, 2,000 slots."""
    production, research = yield from _both(LARGE, "kill")
    pairs = [
        _at(research, "research", 0.38, -100.0),
        _at(research, "research", 0.05, -750.0),
        _at(research, "research, best", 0.0, -1880.0),
        _within(quantile(production, 0.01), "production, 1st percentile", 1.0),
        _within(quantile(production, 0.99), "production, 99th percentile", 1.0),
    ]
    return _figure("14", "Large deployment: Natjam vs. killing", pairs)


def figure_15() -> Plan[Figure]:
    """Fig 15: Natjam against production only, 2,000 slots (common random numbers in both)."""
    production = differences((yield from windows(LARGE)), "production", "alone")
    pairs = [
        _within(quantile(production, 0.5), "production, median difference", 0.04),
        _within(mean(production), "production, mean difference", 0.2),
    ]
    return _figure("15", "Large deployment: Natjam vs. production only", pairs)


def _with_deadline(job: Job, clean_ms: int) -> Job:
    """Give a job a deadline: clean compute time x (1 + epsilon), epsilon ~ U[0, 2] by its name."""
    epsilon_ppm = uniform(12, named(job.name)) * 2_000_000 >> 64
    deadline_ms = job.submitted_at_ms + clean_ms + clean_ms * epsilon_ppm // 1_000_000
    return msgspec.structs.replace(job, deadline_at_ms=deadline_ms)


def figure_12() -> Plan[Figure]:
    """Fig 12: Natjam-R (MDF) against soft cap, an overloaded production trace with deadlines, 21 slots."""
    settings = msgspec.structs.replace(
        PAPER_SETTINGS,
        mode="deadlines",
        job_policy="MDF",
        preempting_queues=("default",),
        preemptable_queues=("default",),
    )
    setup = msgspec.structs.replace(_setup((7, 3)), settings=settings)
    hours = {hour: _hour(hour, "production", 21, DEADLINE_PEAK) for hour, _ in WINDOWS}
    alone = yield from gather(
        {
            hour: [Cell(setup, (_at_once(job),), SCHEMES["soft-cap"]) for job in jobs]
            for hour, jobs in hours.items()
        }
    )
    groups = {}
    for hour, jobs in hours.items():
        clean_ms = [each.makespan_ms for each in alone[hour]]
        dated = tuple(_with_deadline(*pair) for pair in zip(jobs, clean_ms, strict=True))
        groups[hour] = [Cell(setup, dated, SCHEMES[name]) for name in ("natjam", "soft-cap")]
    gains: list[float] = []
    for natjam, soft in (yield from gather(groups)).values():
        natjam_s, soft_s = _completion_s(natjam, "production"), _completion_s(soft, "production")
        gains += [soft_s[name] - natjam_s[name] for name in natjam_s]
    return _figure_12(gains)


def _at_once(job: Job) -> Job:
    return msgspec.structs.replace(job, submitted_at_ms=0)


def _figure_12(gains: Sequence[float]) -> Figure:
    """Return Fig 12 of what each job gained in margin, s."""
    better = sum(gain > 0 for gain in gains) / len(gains)
    best, worst = max(gains), min(gains)
    rows = (
        row("share of jobs with a better margin", "share", 0.69, [better], counts=False),
        row("best gain in margin", "difference_s", 366.0, [best], counts=False),
        row("worst loss in margin", "difference_s", -1000.0, [worst], counts=False),
    )
    claims = (
        PaperClaim(
            "Natjam-R's margin is better for most jobs (more than half)",
            "69 %",
            f"{better:.0%}",
            better > 0.5,
        ),
        PaperClaim(f"best gain in margin ({SAME_KIND})", "366 s", f"{best:.0f} s", same_kind(366.0, best)),
        PaperClaim(
            f"worst loss in margin ({SAME_KIND})", "-1000 s", f"{worst:.0f} s", same_kind(-1000.0, worst)
        ),
    )
    hours = tuple(production for production, _ in WINDOWS)
    notes = (f"production hours {hours} of FB-2009 at peak load {DEADLINE_PEAK}; pooled",)
    return Figure("12", "Natjam-R vs. soft cap, deadlines on a recorded workload", rows, claims, notes)
