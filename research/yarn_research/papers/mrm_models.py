"""MRM's models beside ours: Figs 2 to 7 (queueing theory, prices of slots, upper bounds, earliest finish).

Law: research/notes/paper.md (section MRM) has how each claim is judged; it was there before the runs.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from yarn_research.market import queueing_theory as queues
from yarn_research.market import slot_runs, slots
from yarn_research.market.bounds import Both, DeadlineRecord, gaussian, kept
from yarn_research.market.recorded import Table, repeated, source_note, tables
from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, mean, row
from yarnctl.deciding.admission.capacity import Profile
from yarnctl.deciding.admission.pricing.prices import earliest_finish, standing
from yarnctl.deciding.admission.pricing.timeline import Due, earliest, laid_late

BETA = 0.05
REDUCE_RATIO = 0.23
FIG_2B = {"fixed": {0.8: 10.8, 0.95: 43.1}, "occupancy": {0.8: 4.1, 0.95: 7.6}}
FIG_3 = {"fixed": {0.8: 11.0, 0.95: 43.1}, "occupancy": {0.8: 4.7, 0.95: 7.9}}
SLOTS, SLOT_RUNS = 20_000, 10
FIG_5 = ((0.3, 0.5), (0.5, 0.3))
BUDGETS = (0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
FIG_6_JOBS = 200_000
RATES, STDEVS = (0.5, 0.7, 0.9), (0.1, 0.25, 0.5, 0.75, 1.0)


def single(label: str, metric: str, paper: float | None, ours: float, counts: bool = True) -> FigureRow:
    """Make a row of one number."""
    return row(label, metric, paper, [ours], counts)


def near(claim: str, paper: float, ours: float, most: float, unit: str = "") -> PaperClaim:
    """Judge a number by its distance."""
    held = abs(ours - paper) <= most
    return PaperClaim(f"{claim} (within {most:g})", f"{paper:g}{unit}", f"{ours:.4g}{unit}", held)


def figure_2() -> Figure:
    """Conditional sojourn time: a linear function of queue length and violation rate; earliness."""
    betas = [each / 10 for each in range(1, 10)]
    found = queues.fit(betas, 100)
    fitted = found.b0 * BETA + found.b1
    told = -0.36 * BETA + 1.16
    rows = [
        single("slope of beta", "b0", -0.36, found.b0),
        single("intercept", "b1", 1.16, found.b1),
        single("fit", "R^2", 0.998, found.r2),
        single("exact x_0 at beta .05", "services", None, queues.erlang_bound(1, BETA)),
        single("ours x_0 at beta .05 by our fit", "services", None, fitted),
        single("the paper's x_0 at beta .05 by its fit", "services", None, told),
        single("violation rate at the paper's x_0", "ratio", None, math.exp(-told)),
    ]
    claims = [
        near("b0, 2 %", -0.36, found.b0, 0.02 * 0.36),
        near("b1, 2 %", 1.16, found.b1, 0.02 * 1.16),
        PaperClaim("R^2, rounded", "0.998", f"{found.r2:.3f}", round(found.r2, 3) == 0.998),
    ]
    compared = {"fixed": queues.fixed_single, "occupancy": queues.occupied_single}
    for name, function in compared.items():
        for rate, paper in FIG_2B[name].items():
            ours = function(rate, BETA)
            rows.append(single(f"2b: {name}, lambda {rate}", "earliness", paper, ours))
            claims.append(near(f"2b: {name}, lambda {rate}", paper, ours, 0.1))
    return Figure("2", "Deadlines of an M/M/1 queue", tuple(rows), tuple(claims))


def figure_3() -> Figure:
    """Tandem queues."""
    rows, claims = [], []
    compared = {"fixed": queues.fixed_tandem, "occupancy": queues.occupied_tandem}
    for name, function in compared.items():
        for rate, paper in FIG_3[name].items():
            ours = function(rate, BETA, REDUCE_RATIO)
            rows.append(single(f"{name}, lambda {rate}", "earliness", paper, ours))
            claims.append(near(f"{name}, lambda {rate}", paper, ours, 0.1))
    return Figure("3", "Earliness of tandem queues (jobs with a reduce phase)", tuple(rows), tuple(claims))


def figure_4() -> Figure:
    """Eq 11 against all patterns of arrivals."""
    p = 0.3
    worst = slots.worst_difference(10, p)
    empty = slots.prices([False] * 16, p)
    powers = max(abs(each - p ** (k + 1)) for k, each in enumerate(empty))
    text = "0000111100001111"
    told = slots.prices([each == "1" for each in text], p)
    flat = told[4:8] == [told[3]] * 4 and told[12:16] == [told[11]] * 4
    claims = (
        PaperClaim(
            "Eq 11 is brute force, all strings to 10 slots (within 1e-12)",
            "0",
            f"{worst:.2g}",
            worst <= 1e-12,
        ),
        PaperClaim("an empty queue costs p^(k+1) (within 1e-12)", "0", f"{powers:.2g}", powers <= 1e-12),
        PaperClaim("busy slots cost what the empty one before them costs", "4-7, 12-15", text, flat),
    )
    rows = [
        single(f"slot {place}, busy 4-7 and 12-15", "price", None, told[place]) for place in (0, 3, 8, 11)
    ]
    return Figure("4", "Price of a slot, p = .3", tuple(rows), claims)


def figure_5() -> Figure:
    """What tolerant users' purchasing power does."""
    rows, bounded, converged, no_slack = [], [], [], []
    for rate, p in FIG_5:
        for c in BUDGETS:
            runs = [slot_runs.run(rate, p, c, SLOTS, seed) for seed in range(SLOT_RUNS)]
            label = f"lambda {rate}, p {p}, c {c}"
            ratios = [each.rejected_ratio for each in runs]
            slack = [each.slack_slots for each in runs]
            rows += [row(label, "rejected", None, ratios), row(label, "slack, slots", None, slack)]
            if c < p:
                bounded.append(mean(ratios) - c * rate / p)
            else:
                converged.append(abs(mean(ratios) - rate))
                no_slack.append(max(slack))
    claims = (
        PaperClaim("c < p: rejections at most Eq 12's", "<= 0", f"{max(bounded):.4f}", max(bounded) <= 0),
        PaperClaim(
            "c >= p: rejections are lambda (within .01)", "0", f"{max(converged):.4f}", max(converged) <= 0.01
        ),
        PaperClaim("c >= p: no slack", "0", f"{max(no_slack):g}", max(no_slack) == 0),
    )
    return Figure("5", "Rejections and slack by the tolerant users' budget", tuple(rows), claims)


def figure_6(runtimes: Path | None = None, running: str = "left") -> Figure:
    """Summed bounds against the joint distribution."""
    cells: dict[tuple[float, float], Both] = {}
    rows: list[FigureRow] = []
    for rate in RATES:
        for stdev in STDEVS:
            found = gaussian(rate, stdev, FIG_6_JOBS, 0, "left" if running == "left" else "whole")
            cells[rate, stdev] = found
            rows += _kept_rows(f"lambda {rate}, s.d. {stdev}", found)
    pi = max(each.pi.late_ratio for each in cells.values())
    jd = min(each.jd.late_ratio for each in cells.values())
    late = [[cells[rate, stdev].jd.late_ratio for stdev in STDEVS] for rate in RATES]
    rising = all(line == sorted(line) for line in late)
    earlier = min(each.pi.earliness - each.jd.earliness for each in cells.values())
    claims = [
        PaperClaim("summed bounds: at most 3.2 % late in every cell", "<= 3.2 %", f"{pi:.2%}", pi <= 0.032),
        PaperClaim("joint distribution: over 5 % late in every cell", "> 5 %", f"{jd:.2%}", jd > 0.05),
        PaperClaim("joint distribution: late rises with the s.d.", "all loads", str(rising), rising),
        PaperClaim(
            "summed bounds have the larger earliness in every cell", "> 0", f"{earlier:.3f}", earlier > 0
        ),
    ]
    known = tables(runtimes)
    rows_more, more = _trace(known)
    notes = (f"Trace: {source_note(runtimes, known)}",)
    return Figure("6", "Late jobs and earliness, M/G/1", (*rows, *rows_more), (*claims, *more), notes)


def _kept_rows(label: str, found: Both) -> list[FigureRow]:
    named: list[tuple[str, DeadlineRecord]] = [("PI", found.pi), ("JD", found.jd)]
    return [
        each
        for name, kept_by in named
        for each in (
            single(f"{label}, {name}", "late", None, kept_by.late_ratio),
            single(f"{label}, {name}", "earliness", None, kept_by.earliness),
        )
    ]


def _trace(recorded: list[Table]) -> tuple[list[FigureRow], list[PaperClaim]]:
    """Figs 6(c), 6(d): recorded durations (Trace), and Gaussian ones with their mean and s.d. (Random)."""
    known = repeated(recorded)
    rows, claims = [], []
    for name in ("Trace", "Random"):
        found = []
        for rate in RATES:
            chance = np.random.default_rng([0, 7])
            picked = chance.integers(0, len(known.duration), FIG_6_JOBS)
            means, stdevs = known.mean[picked], known.stdev[picked]
            durations = known.duration[picked]
            if name == "Random":
                durations = np.maximum(0.0, chance.normal(means, stdevs))
            arrived = np.cumsum(chance.exponential(durations.mean() / rate, FIG_6_JOBS))
            found.append(kept(arrived, durations, means, stdevs))
            rows += _kept_rows(f"{name}, load {rate}", found[-1])
        fewer = min(each.jd.late_ratio - each.pi.late_ratio for each in found)
        earlier = min(each.pi.earliness - each.jd.earliness for each in found)
        claims += [
            PaperClaim(f"{name}: summed bounds have fewer late", "> 0", f"{fewer:.2%}", fewer > 0),
            PaperClaim(
                f"{name}: summed bounds have the larger earliness", "> 0", f"{earlier:.3f}", earlier > 0
            ),
        ]
    return rows, claims


def figure_7() -> Figure:
    """The earliest finish of C beside A and B, laid late."""
    one = Profile((0,), (1,))
    dues = (Due("A", 10_000, 1, 70_000), Due("B", 20_000, 1, 110_000))
    free = laid_late(one, dues).free
    state = standing(one, dues, 0, 30_000)
    rows, claims = [], []
    for work_s, paper in ((80, 90), (100, 130)):
        ours = earliest(free, work_s * 1000, 1, 0) / 1000
        both = earliest_finish(state, work_s * 1000) == ours * 1000
        rows.append(single(f"C of {work_s} s", "earliest finish, s", paper, ours))
        held = ours == paper and both
        claims.append(PaperClaim(f"C of {work_s} s ends first at", f"{paper} s", f"{ours:g} s", held))
    return Figure("7", "Earliest finish of a new job", tuple(rows), tuple(claims))
