"""The paper Justice as one report: every figure and claim, on traces with the published marginals.

Law: as ``paper_pythia``. The readings that the paper leaves open can be run beside ours; each says
how many claims fail under it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from yarn_research.admission.choices import DEFAULT_CHOICES
from yarn_research.admission.event_replay import replay
from yarn_research.admission.metrics import idle_groups
from yarn_research.admission.traces.trace import DEADLINES, ReplayOutcome, Trace, deadlines_ms
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
    by_interval,
    direction,
    equality,
    equality_bar,
    fairness,
    fairness_bar,
    made,
    percent,
    ptr,
    reaches,
    sdr,
    table_1,
    utilisation,
    wtr,
)
from yarn_research.papers.figures import Figure, mean, row, worst
from yarn_research.papers.paper_pythia import UNKNOWN, extremes, figure_numbers, replayed
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.admission.mechanisms.justice import JUSTICE

ALL = ("no_drop_fs", "reactive_fs", "oracle", "justice")
FAIR = ("no_drop_fs", "reactive_fs")
TITLE = "Justice's evaluation: the paper's numbers beside ours"

IDLE = {10: (0.81, 0.68, 0.59, 0.98), 100: (0.80, 0.52, 0.41, 0.76)}
"""Section 5.4: shares of idle groups beyond 100, 500 and 1000 s, and how probable it is that one is there."""


def ours_at(trace: str, capacity: int) -> list[ReplayCell]:
    """Return Justice's cells of one graph."""
    return [ReplayCell(trace, capacity, each, "justice") for each in DEADLINES]


def graphs() -> list[tuple[str, int]]:
    """Return trace and capacity of each of a figure's four graphs."""
    return [(trace, size[trace]) for trace in TIGHT for size in (TIGHT, MODERATE)]


def cells_of(numbers: Sequence[str]) -> list[ReplayCell]:
    """Return what the figures will ask for."""
    if not set(numbers) - {"1", "8"}:
        return []
    return [cell._replace(allocator=name) for place in graphs() for cell in ours_at(*place) for name in ALL]


def _rows(lab: ReplayLab, name: str, metric: Metric) -> tuple[Any, ...]:
    return tuple(bar(lab, cell, name, metric) for cell in cells_of((name,)))


Bars = dict[str, list[float]]
"""By deadlines: how many percent Justice is above another allocator, trace by trace."""


def _over(lab: ReplayLab, other: str, metric: Metric, trace: str, capacity: int) -> Bars:
    return {cell.deadlines: lab.more_each(cell, other, metric) for cell in ours_at(trace, capacity)}


def _tight_bars(lab: ReplayLab, metric: Metric) -> list[list[float]]:
    """Return Justice against both fair sharers in every graph of the smaller capacities."""
    places = [(trace, TIGHT[trace]) for trace in TIGHT]
    return [bar for place in places for other in FAIR for bar in _over(lab, other, metric, *place).values()]


def figure_2(lab: ReplayLab) -> Figure:
    """Fairness."""
    oracle = _over(lab, "oracle", fairness, "tr1", TIGHT["tr1"])["Aria1x3x"]
    reactive = [
        lab.more_each(ReplayCell("tr1", TIGHT["tr1"], each, "reactive_fs"), "no_drop_fs", fairness)
        for each in DEADLINES
    ]
    baseline = [
        lab.more_each(ReplayCell("tr2", TIGHT["tr2"], each, "no_drop_fs"), "reactive_fs", fairness)
        for each in DEADLINES
    ]
    claims = (
        all_bars("fairer than Baseline and Reactive FS where capacity is tight", _tight_bars(lab, fairness)),
        all_bars("TR1: Reactive FS fairer than Baseline FS, all deadlines", reactive),
        all_bars("TR2: Baseline FS fairer than Reactive FS, all deadlines", baseline),
        by_interval("fairer than the Oracle for Aria1x3x", "ordering", "fairer", oracle),
    )
    return Figure(
        "2",
        "Fairness (Jain's index of A/D)",
        (*_rows(lab, "fairness", fairness), *_rows(lab, "fairness 0.95 bar", fairness_bar)),
        claims,
        (UNKNOWN,),
    )


def figure_3(lab: ReplayLab) -> Figure:
    """Equality."""
    claims = []
    for size, most in ((TIGHT, 23), (MODERATE, 17)):
        found = [
            values for other in FAIR for values in _over(lab, other, equality, "tr1", size["tr1"]).values()
        ]
        said = f"TR1, {size['tr1']} CPUs: more equal than fair sharing where it is most"
        claims.append(reaches(said, most, extremes(max, found), most=True))
    return Figure(
        "3",
        "Equality within classes of demand",
        (*_rows(lab, "equality", equality), *_rows(lab, "equality 0.95 bar", equality_bar)),
        tuple(claims),
        (UNKNOWN,),
    )


def figure_4(lab: ReplayLab) -> Figure:
    """Satisfied deadlines."""
    claims = []
    for trace in TIGHT:
        over = {
            other: list(_over(lab, other, sdr, trace, TIGHT[trace]).values()) for other in (*FAIR, "oracle")
        }
        least = mean(extremes(min, over["no_drop_fs"]))
        oracle = mean(extremes(min, over["oracle"]))
        claims += [
            bound(
                f"{trace}: at least 88 % more deadlines than Baseline FS",
                "+88 %",
                percent(least),
                least >= 88,
            ),
            _between(f"{trace}: more deadlines than Reactive FS", (83, 207), over["reactive_fs"]),
            bound(
                f"{trace}: similar to the Oracle (at most 20 % below)",
                "alike",
                percent(oracle) + " at worst",
                oracle >= -20,
            ),
        ]
    moderate = _over(lab, "reactive_fs", sdr, "tr1", MODERATE["tr1"])
    for name, said in (("Jockey1x2x", 44), ("Aria1x3x", 33)):
        claims.append(
            reaches(f"TR1, 4500 CPUs, {name}: more deadlines than Reactive FS", said, moderate[name])
        )
    return Figure("4", "Satisfied deadlines", _rows(lab, "sdr", sdr), tuple(claims), (UNKNOWN,))


def _between(said: str, paper: tuple[int, int], bars: Sequence[Sequence[float]]) -> JudgedClaim:
    """Return a claim "from a to b percent", of which the sign is judged, bar by bar."""
    means = [mean(values) for values in bars]
    verdict = worst([direction(values) for values in bars])
    told = f"{percent(min(means))} to {percent(max(means))}"
    words = f"{percent(paper[0])} to {percent(paper[1])}"
    return JudgedClaim(f"{said} (sign)", words, told, verdict == "holds", judged="sign", verdict=verdict)


def figure_5(lab: ReplayLab) -> Figure:
    """Productive time."""
    tight = {other: _over(lab, other, ptr, "tr1", TIGHT["tr1"]) for other in ("reactive_fs", "oracle")}
    moderate = {other: _over(lab, other, ptr, "tr1", MODERATE["tr1"]) for other in (*FAIR, "oracle")}
    below = mean(extremes(min, list(tight["oracle"].values())))
    alike = mean(extremes(min, [moderate["oracle"][name] for name in ("Fixed1x", "Fixed2x", "90loose")]))
    baseline = max(lab.mean(ReplayCell("tr1", TIGHT["tr1"], each, "no_drop_fs"), ptr) for each in DEADLINES)
    most = {
        "tight": extremes(max, list(tight["reactive_fs"].values())),
        "moderate": extremes(max, list(moderate["reactive_fs"].values())),
    }
    claims = (
        reaches("2250 CPUs: more than Reactive FS where it is most", 221, most["tight"], most=True),
        bound("2250 CPUs: at most 33 % under the Oracle", "-33 %", percent(below), below >= -33),
        reaches("4500 CPUs, Aria2x4x: more than Baseline FS", 146, moderate["no_drop_fs"]["Aria2x4x"]),
        reaches("4500 CPUs, Fixed1x: more than Baseline FS", 926, moderate["no_drop_fs"]["Fixed1x"]),
        reaches("4500 CPUs: more than Reactive FS where it is most", 72, most["moderate"], most=True),
        bound(
            "4500 CPUs: similar to the Oracle for Fixed and 90loose (at most 10 % below)",
            "alike",
            percent(alike) + " at worst",
            alike >= -10,
        ),
        reaches("4500 CPUs, Jockey1x2x: less than Reactive FS", -14, moderate["reactive_fs"]["Jockey1x2x"]),
        reaches("4500 CPUs, Aria1x3x: less than Reactive FS", -44, moderate["reactive_fs"]["Aria1x3x"]),
        bound(
            "Baseline FS spends a very small ratio productively at 2250 CPUs (below 0.05)",
            "near 0",
            f"{baseline:.3f}",
            baseline < 0.05,
        ),
    )
    return Figure("5", "Productive time", _rows(lab, "ptr", ptr), claims, (UNKNOWN,))


def figure_6(lab: ReplayLab) -> Figure:
    """Wasted time."""
    lower = mean(extremes(min, list(_over(lab, "reactive_fs", wtr, "tr1", TIGHT["tr1"]).values())))
    missed = min(
        lab.mean(ReplayCell(*place, each, "no_drop_fs"), wtr) for place in graphs()[::2] for each in DEADLINES
    )
    claims = (
        bound(
            "2250 CPUs: at least 90 % lower waste than Reactive FS where it is most",
            "up to -100 %",
            percent(lower),
            lower <= -90,
        ),
        bound(
            "tight: Baseline FS spends almost all on missed deadlines (above 90 %)",
            "almost all",
            f"{missed:.1%} at least",
            missed > 0.9,
        ),
    )
    return Figure("6", "Wasted time", _rows(lab, "wtr", wtr), claims, (UNKNOWN,))


def figure_7(lab: ReplayLab) -> Figure:
    """Utilisation."""
    bars = _tight_bars(lab, utilisation)
    claim = all_bars("tight: lower utilisation than the fair sharers", bars, sign=-1)
    return Figure("7", "Utilisation", _rows(lab, "utilisation", utilisation), (claim,), (UNKNOWN,))


def figure_8(lab: ReplayLab) -> Figure:
    """Idle times of groups of CPUs: all of TR1, 2250 CPUs, Aria1x3x."""
    rows = []
    outcomes = [(made("tr1", seed), _tight(lab, seed)) for seed in range(lab.runs)]
    for size, paper in IDLE.items():
        found = [_idle(*each, size) for each in outcomes]
        names = ("beyond 100 s", "beyond 500 s", "beyond 1000 s", "one is there")
        for place, name in enumerate(names):
            rows.append(row(f"groups of {size}", name, paper[place], [each[place] for each in found]))
    notes = (
        "the paper gives no rule for which idle CPUs are a group: ours are the i-th tens or hundreds",
        UNKNOWN,
    )
    return Figure("8", "Idle times of groups of CPUs", tuple(rows), (), notes)


def _tight(lab: ReplayLab, seed: int) -> ReplayOutcome:
    trace, capacity = made("tr1", seed), TIGHT["tr1"]
    deadline_ms = deadlines_ms(trace, "Aria1x3x", capacity, seed)
    return replay(trace, deadline_ms, capacity, JUSTICE, lab.choices)


def _idle(trace: Trace, outcome: ReplayOutcome, size: int) -> tuple[float, ...]:
    groups = idle_groups(trace, outcome, size)
    return (*(groups.longer_than(seconds * 1000) for seconds in (100, 500, 1000)), groups.present_ratio)


FIGURES: dict[str, Callable[[ReplayLab], Figure]] = {
    "1": lambda lab: table_1(lab.runs),
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
}


def paper_justice(wanted: str, runs: int, jobs: int, workers: int | None) -> dict[str, Any]:
    """Run the figures, ``runs`` traces each; return the report."""
    return replayed(
        "justice",
        FIGURES,
        cells_of,
        figure_numbers(wanted, list(FIGURES)),
        ReplayLab(runs, jobs, workers),
    )


# --- what the paper leaves open ---------------------------------------------------------------


class PaperReading(msgspec.Struct, frozen=True):
    """One reading of the paper: what is chosen, and how many of the claims of Figs 2 to 7 fail under it."""

    choice: str
    ours: bool
    claims_failed: int
    failed: tuple[str, ...]


READINGS: dict[str, dict[str, Any]] = {
    "ours": {},
    "fraction observed (Alg. 1 line 8)": {"fraction": "observed"},
    "errors surplus (text of 2.1)": {"errors": "surplus"},
    "errors surplus, fraction observed": {"errors": "surplus", "fraction": "observed"},
    "errors weighted exponentially": {"weighting": "exponential"},
    "order: fewest tasks, latest deadline (2.2)": {"order": "tasks"},
    "order: earliest deadline": {"order": "earliest"},
    "late jobs are never ended": {"drop_above_tasks": None},
    "every late job is ended (section 3)": {"drop_above_tasks": 0},
    "fraction of requested tasks (text of 2.1)": {"reach": "requested"},
    "time in the queue ignored": {"queue_time": "ignored"},
}
"""Readings by their name, as changes to our choices."""


def readings(runs: int, jobs: int, workers: int | None) -> list[PaperReading]:
    """Run Figs 2 to 7 under every reading that the paper allows, ours first."""
    lab = ReplayLab(runs, jobs, workers)
    found = []
    with ProgressBar("replays") as progress:
        for name, changes in READINGS.items():
            lab.choices = msgspec.structs.replace(DEFAULT_CHOICES, **changes)
            lab.prepare(cells_of(("2",)), progress)
            claims = [claim for number in "234567" for claim in FIGURES[number](lab).claims]
            failed = tuple(claim.claim for claim in claims if not claim.holds)
            found.append(PaperReading(name, not changes, len(failed), failed))
    return found
