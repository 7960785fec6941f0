"""The paper PYTHIA as one report: every figure and claim, on traces with the published marginals.

Law: the shape is that of ``paper_natjam``. The graphs print no numbers, so bars stand without the
paper's; a statement of its text is a claim, with the paper's number and ours, whether it holds or not, and
by what that is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from yarn_research.papers.admission_cells import (
    MODERATE,
    TIGHT,
    JudgedClaim,
    Metric,
    ReplayCell,
    ReplayLab,
    all_bars,
    bar,
    bound,
    direction,
    percent,
    ptr,
    reaches,
    sdr,
    table_1,
    wtr,
)
from yarn_research.papers.figures import Figure, Verdict, errors, mean, row
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput

ALL = ("no_drop_fs", "reactive_fs", "oracle", "pythia")
CAPACITIES = {"tr1": (2250, 4500, 9000, 15_000), "tr2": (2500, 5000, 10_000, 25_000)}
"""Figs 2 and 3: "from 2250 to 15000"; the other points cannot be read off the text."""
VARIABLE = ("Jockey1x2x", "Jockey2x4x", "Aria1x3x", "Aria2x4x")
CALIBRATED_ON = ["Table I and the text around Fig. 1 (the traces' marginals)"]
TITLE = "PYTHIA's evaluation: the paper's numbers beside ours"

UNKNOWN = (
    "how large a difference is depends on what is not published (when jobs came, how computation is shared "
    "among the jobs above 1000 tasks), so ordering and sign are judged; research/notes/paper.md says how"
)


def fixed(trace: str) -> list[ReplayCell]:
    """Return the cells of Figs 2 and 3."""
    return [ReplayCell(trace, each, "Fixed2x", name) for each in CAPACITIES[trace] for name in ALL]


def variable(capacity: int) -> list[ReplayCell]:
    """Return the cells of one graph of Figs 4 and 5."""
    return [ReplayCell("tr1", capacity, each, name) for each in VARIABLE for name in ALL]


def tightest(trace: str, allocator: str = "pythia") -> ReplayCell:
    """Return the cell of the smallest capacity."""
    return ReplayCell(trace, TIGHT[trace], "Fixed2x", allocator)


def figure_2(lab: ReplayLab) -> Figure:
    """SDR with fixed deadlines, over capacities."""
    rows = [bar(lab, cell, "sdr", sdr) for trace in TIGHT for cell in fixed(trace)]
    no_drop = tightest("tr1", "no_drop_fs")
    rows.append(row("tr1 2250 Fixed2x no_drop_fs, as the text has it", "sdr", 0.20, lab.values(no_drop, sdr)))
    claims = []
    for trace in TIGHT:
        cell = tightest(trace)
        claims += [
            reaches(
                f"{trace}: more deadlines than NoDrop FS at the smallest capacity",
                295,
                lab.more_each(cell, "no_drop_fs", sdr),
            ),
            reaches(
                f"{trace}: more deadlines than Reactive FS at the smallest capacity",
                143,
                lab.more_each(cell, "reactive_fs", sdr),
            ),
            _near_oracle(lab, [each for each in fixed(trace) if each.allocator == "pythia"], trace),
            _alike(lab, trace),
        ]
    return Figure("2", "Satisfied deadlines, fixed deadlines of 2x", tuple(rows), tuple(claims), (UNKNOWN,))


def extremes(pick: Callable[[Sequence[float]], float], columns: Sequence[Sequence[float]]) -> list[float]:
    """Return the smallest (or largest) of several figures on each trace by itself."""
    return [pick(values) for values in zip(*columns, strict=True)]


def _near_oracle(lab: ReplayLab, cells: Sequence[ReplayCell], trace: str) -> JudgedClaim:
    worst = mean(extremes(min, [lab.more_each(cell, "oracle", sdr) for cell in cells]))
    return bound(f"{trace}: similar to the Oracle (within 5 %)", "-5 % at worst", percent(worst), worst >= -5)


def _alike(lab: ReplayLab, trace: str) -> JudgedClaim:
    cells = [ReplayCell(trace, CAPACITIES[trace][-1], "Fixed2x", name) for name in ALL]
    found = [lab.mean(cell, sdr) for cell in cells]
    told = f"{min(found):.3f} to {max(found):.3f}"
    return bound(
        f"{trace}: unconstrained, all perform similarly (within 0.02)",
        "alike",
        told,
        max(found) - min(found) < 0.02,
    )


def figure_3(lab: ReplayLab) -> Figure:
    """PTR with fixed deadlines, over capacities."""
    rows = [bar(lab, cell, "ptr", ptr) for trace in TIGHT for cell in fixed(trace)]
    ours = [cell for trace in TIGHT for cell in fixed(trace) if cell.allocator == "pythia"]
    over = {
        other: [lab.more_each(cell, other, ptr) for cell in ours]
        for other in ("reactive_fs", "no_drop_fs", "oracle")
    }
    oracle = mean(extremes(min, over["oracle"]))
    idle = max(lab.mean(tightest(trace, "no_drop_fs"), ptr) for trace in TIGHT)
    claims = (
        reaches(
            "more productive time than Reactive FS where it is most",
            93,
            extremes(max, over["reactive_fs"]),
            most=True,
        ),
        all_bars(
            "outperforms both fair share allocators at every capacity",
            over["reactive_fs"] + over["no_drop_fs"],
        ),
        bound(
            "similar to the Oracle (at most 10 % below)",
            "alike",
            f"{percent(oracle)} at worst",
            oracle >= -10,
        ),
        bound(
            "almost no useful work with NoDrop FS at the smallest capacity (below 0.05)",
            "near 0",
            f"{idle:.3f}",
            idle < 0.05,
        ),
    )
    return Figure("3", "Productive time, fixed deadlines of 2x", tuple(rows), claims, (UNKNOWN,))


def _graphs(lab: ReplayLab, name: str, metric: Metric) -> Iterator[Any]:
    for capacity in (TIGHT["tr1"], MODERATE["tr1"]):
        for cell in variable(capacity):
            yield bar(lab, cell, name, metric)


def figure_4(lab: ReplayLab) -> Figure:
    """SDR with variable deadlines."""
    claims = []
    for capacity, most in ((TIGHT["tr1"], 177), (MODERATE["tr1"], 58)):
        cells = [cell for cell in variable(capacity) if cell.allocator == "pythia"]
        claims.append(_near_oracle(lab, cells, f"{capacity} CPUs"))
        best = extremes(max, [lab.more_each(cell, "reactive_fs", sdr) for cell in cells])
        said = f"{capacity} CPUs: more deadlines than Reactive FS where it is most"
        claims.append(reaches(said, most, best, most=True))
    return Figure(
        "4",
        "Satisfied deadlines, variable deadlines, TR1",
        tuple(_graphs(lab, "sdr", sdr)),
        tuple(claims),
        (UNKNOWN,),
    )


def figure_5(lab: ReplayLab) -> Figure:
    """PTR with variable deadlines, and the waste that its text gives."""
    rows = [*_graphs(lab, "ptr", ptr), *_graphs(lab, "wtr", wtr)]
    ours = [
        cell for size in (TIGHT, MODERATE) for cell in variable(size["tr1"]) if cell.allocator == "pythia"
    ]
    claims = [
        _subset([direction(lab.more_each(cell, "reactive_fs", ptr)) for cell in ours]),
        *(
            _waste(lab, name, size["tr1"], low, high)
            for name, size, low, high in (
                ("reactive_fs", TIGHT, 24, 30),
                ("reactive_fs", MODERATE, 12, 30),
                ("no_drop_fs", TIGHT, 99, 99),
                ("no_drop_fs", MODERATE, 84, 93),
            )
        ),
    ]
    most = max(lab.mean(cell, wtr) for cell in ours)
    claims.append(
        bound("PYTHIA keeps wasted work near 0 % (below 1 %)", "near 0 %", f"{most:.2%} at most", most < 0.01)
    )
    return Figure("5", "Productive time, variable deadlines, TR1", tuple(rows), tuple(claims), (UNKNOWN,))


def _subset(verdicts: Sequence[Verdict]) -> JudgedClaim:
    """Some deadlines have it above Reactive FS, and some below."""
    above, below = verdicts.count("holds"), verdicts.count("fails")
    verdict: Verdict = "holds" if above and below else "fails" if len(verdicts) in (above, below) else "tie"
    said = "more productive than Reactive FS only for a subset of deadlines (ordering)"
    told = f"above for {above} of {len(verdicts)}, below for {below}"
    return JudgedClaim(said, "some", told, verdict == "holds", judged="ordering", verdict=verdict)


def _waste(lab: ReplayLab, name: str, capacity: int, low: int, high: int) -> JudgedClaim:
    """A range of waste in whole percent (WTR): all of ours are in it."""
    found = [round(lab.mean(ReplayCell("tr1", capacity, each, name), wtr) * 100) for each in VARIABLE]
    said = f"{name} wastes so much of all computation at {capacity} CPUs (range)"
    holds = low <= min(found) and max(found) <= high
    verdict: Verdict = "holds" if holds else "fails"
    told = f"{min(found)} to {max(found)} %"
    return JudgedClaim(said, f"{low} to {high} %", told, holds, judged="range", verdict=verdict)


FIGURES: dict[str, Callable[[ReplayLab], Figure]] = {
    "1": lambda lab: table_1(lab.runs),
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
}


def cells_of(numbers: Sequence[str]) -> list[ReplayCell]:
    """Return what the figures will ask for."""
    found: list[ReplayCell] = []
    if {"2", "3"} & set(numbers):
        found += [cell for trace in TIGHT for cell in fixed(trace)]
    if {"4", "5"} & set(numbers):
        found += [cell for size in (TIGHT, MODERATE) for cell in variable(size["tr1"])]
    return found


def figure_numbers(wanted: str, known: Sequence[str], ours: Sequence[str] = ()) -> list[str]:
    """Return the figures that ``--figure`` names; raises BadInput with the known ones.

    ``ours`` are named alone: they are not of the paper, and not among ``all``.
    """
    if wanted == "all":
        return list(known)
    if wanted not in (*known, *ours):
        every = ", ".join((*known, "all", *ours))
        raise BadInput("--figure", f"{wanted[:40]!r} is not reproduced", f"one of {every}")
    return [wanted]


def paper_pythia(wanted: str, runs: int, jobs: int, workers: int | None) -> dict[str, Any]:
    """Run the figures, ``runs`` traces each; return the report."""
    return replayed(
        "pythia",
        FIGURES,
        cells_of,
        figure_numbers(wanted, list(FIGURES)),
        ReplayLab(runs, jobs, workers),
    )


def replayed(
    paper: str,
    figures: Mapping[str, Callable[[ReplayLab], Figure]],
    cells: Callable[[Sequence[str]], list[ReplayCell]],
    numbers: Sequence[str],
    lab: ReplayLab,
) -> dict[str, Any]:
    """Replay all cells of these figures at once, then make the figures; return the report."""
    with ProgressBar("replays") as progress:
        lab.prepare(cells(numbers), progress)
        made = [figures[number](lab) for number in numbers]
    return report(paper, made)


def report(paper: str, figures: list[Figure]) -> dict[str, Any]:
    """Return the report of a paper in the shape that other tools read."""
    mean_error, worst_error = errors(figures)
    return {
        "paper": paper,
        "calibrated_on": CALIBRATED_ON,
        "figures": figures,
        "mean_abs_relative_error": mean_error,
        "worst_abs_relative_error": worst_error,
    }
