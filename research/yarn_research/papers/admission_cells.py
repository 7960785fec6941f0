"""Replays for the papers on admission: each cell is run once, for all figures.

Law: a cell is known by what decides alone (trace, seed, capacity, deadlines, allocator, and the
readings of the paper where the allocator has any); results do not depend on how many processes
ran them. How a claim is judged is in its words (research/notes/paper.md, "How a claim is
judged"): orderings and signs by the interval over the traces, bounds by the mean. How large a difference
is depends on traces that are not published, so both numbers are beside it.

Table I and Fig. 1 of both papers: what is published of the traces, and what ours have.

Law: these rows are what the generator is fitted on; they count in no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from typing import Literal, NamedTuple

from emulator.experiments.results.workers import spread
from yarn_research.admission.choices import DEFAULT_CHOICES, Choices
from yarn_research.admission.metrics import Scores
from yarn_research.admission.replays import ReplayOptions, one
from yarn_research.admission.traces.generator import HOUR_MS, PUBLISHED, generate, in_flight
from yarn_research.admission.traces.trace import Trace
from yarn_research.papers.figures import (
    Figure,
    FigureRow,
    PaperClaim,
    Verdict,
    above_zero,
    mean,
    row,
    worst,
)
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.admission.mechanisms import SIZINGS

TIGHT, MODERATE = {"tr1": 2250, "tr2": 2500}, {"tr1": 4500, "tr2": 5000}
"""The two capacities of Justice's graphs, and PYTHIA's for variable deadlines, in CPUs."""

Metric = Callable[[Scores], float]


class ReplayCell(NamedTuple):
    """One replay."""

    trace: str
    capacity: int
    deadlines: str
    allocator: str


@lru_cache(maxsize=4)
def made(name: str, seed: int) -> Trace:
    """Return one of the generated traces."""
    return generate(PUBLISHED[name], seed)


class JudgedClaim(PaperClaim, frozen=True, kw_only=True):
    """A claim, by what it is judged, and its verdict: a tie is a tie, and does not hold."""

    judged: Literal["ordering", "sign", "bound", "range"]
    verdict: Verdict


class CellOrder(NamedTuple):
    """One cell on the first jobs of the trace with that seed, under readings of the paper."""

    cell: ReplayCell
    seed: int
    jobs: int
    choices: Choices


def replayed_cell(order: CellOrder) -> tuple[CellOrder, Scores]:
    """Return the metrics of a cell."""
    cell, seed, jobs, choices = order
    asked = ReplayOptions(cell.capacity, cell.deadlines, (), seed, choices)
    return order, one(made(cell.trace, seed).head(jobs), cell.allocator, asked)


class ReplayLab:
    """Runs cells on the first ``jobs`` jobs of ``runs`` traces each, and keeps their results.

    ``workers``: the most processes (None: one per core).
    """

    def __init__(self, runs: int, jobs: int, workers: int | None = None) -> None:
        self.runs, self.jobs, self.workers = runs, jobs, workers
        self.choices = DEFAULT_CHOICES
        self.known: dict[CellOrder, Scores] = {}

    def scores(self, cell: ReplayCell) -> list[Scores]:
        """Return the metrics of a cell, one per seed."""
        return [self._one(cell, seed) for seed in range(self.runs)]

    def values(self, cell: ReplayCell, metric: Metric) -> list[float]:
        """Return one metric of a cell, one value per seed."""
        return [metric(each) for each in self.scores(cell)]

    def mean(self, cell: ReplayCell, metric: Metric) -> float:
        """Return the mean of one metric over the seeds."""
        return mean(self.values(cell, metric))

    def more(self, cell: ReplayCell, other: str, metric: Metric) -> float:
        """Return by how many percent a cell's metric is above that of another allocator."""
        return percent_above(self.mean(cell, metric), self.mean(cell._replace(allocator=other), metric))

    def more_each(self, cell: ReplayCell, other: str, metric: Metric) -> list[float]:
        """Return, trace by trace, by how many percent a cell's metric is above that of another allocator."""
        ours, theirs = self.values(cell, metric), self.values(cell._replace(allocator=other), metric)
        return [percent_above(*pair) for pair in zip(ours, theirs, strict=True)]

    def prepare(self, cells: Iterable[ReplayCell], progress: ProgressBar) -> None:
        """Run cells ahead, on several processes."""
        orders = [self._order(cell, seed) for seed in range(self.runs) for cell in dict.fromkeys(cells)]
        orders = [order for order in orders if order not in self.known]
        orders.sort(key=lambda order: (order.seed, order.cell.trace))  # a process makes each trace once
        progress.expect(len(orders))
        for order, scores in spread(replayed_cell, orders, self.workers):
            self.known[order] = scores
            progress.step()

    def _one(self, cell: ReplayCell, seed: int) -> Scores:
        order = self._order(cell, seed)
        if order not in self.known:
            self.known[order] = replayed_cell(order)[1]
        return self.known[order]

    def _order(self, cell: ReplayCell, seed: int) -> CellOrder:
        read = SIZINGS[cell.allocator].learn is SIZINGS["justice"].learn
        return CellOrder(cell, seed, self.jobs, self.choices if read else DEFAULT_CHOICES)


def percent_above(ours: float, theirs: float) -> float:
    """Return (ours / theirs - 1) in percent; endless if theirs is nothing."""
    if theirs == 0:
        return 0.0 if ours == 0 else float("inf")
    return (ours / theirs - 1) * 100


def bar(lab: ReplayLab, cell: ReplayCell, name: str, metric: Metric) -> FigureRow:
    """Return one bar of a graph: the papers print no numbers beside them."""
    label = f"{cell.trace} {cell.capacity} {cell.deadlines} {cell.allocator}"
    return row(label, name, None, lab.values(cell, metric))


def percent(value: float) -> str:
    """Return a difference in percent, with its sign."""
    return f"{value:+.0f} %"


def direction(values: Sequence[float], sign: int = 1) -> Verdict:
    """Say whether a difference has a sign (1 or -1), by the interval over the traces.

    Where one is endless (the other allocator had nothing at all) all of them must have the sign.
    """
    signed = [sign * value for value in values]
    if all(map(isfinite, signed)):
        return above_zero(signed)
    return "holds" if min(signed) > 0 else "fails"


def by_interval(
    said: str, kind: Literal["ordering", "sign"], paper: str, values: Sequence[float], sign: int = 1
) -> JudgedClaim:
    """Return a claim about a sign; ``values``: percent, one per trace."""
    verdict = direction(values, sign)
    told = percent(mean(values))
    return JudgedClaim(f"{said} ({kind})", paper, told, verdict == "holds", judged=kind, verdict=verdict)


def reaches(said: str, paper_percent: float, ours: Sequence[float], most: bool = False) -> JudgedClaim:
    """Return a claim "by so many percent", of which the sign is judged; ``most``: the paper has "up to"."""
    paper = f"{'up to ' if most else ''}{percent(paper_percent)}"
    return by_interval(said, "sign", paper, ours, 1 if paper_percent > 0 else -1)


def all_bars(said: str, bars: Sequence[Sequence[float]], sign: int = 1) -> JudgedClaim:
    """Return an ordering of many bars, each judged by itself; it holds if every one does."""
    verdicts = [direction(values, sign) for values in bars]
    told = f"{verdicts.count('holds')} of {len(bars)} bars"
    if ties := verdicts.count("tie"):
        told += f", {ties} ties"
    verdict = worst(verdicts)
    claim = f"{said} (ordering)"
    return JudgedClaim(claim, "always", told, verdict == "holds", judged="ordering", verdict=verdict)


def bound(said: str, paper: str, told: str, holds: bool) -> JudgedClaim:
    """Return a claim whose words contain the bound that the mean over the traces must keep."""
    return JudgedClaim(said, paper, told, holds, judged="bound", verdict="holds" if holds else "fails")


# The metrics that figures show, each of one replay.
sdr: Metric = attrgetter("sdr")
"""Satisfied deadlines ratio."""
ptr: Metric = attrgetter("ptr")
"""Productive time ratio."""
wtr: Metric = attrgetter("wtr")
"""Wasted time ratio."""
utilisation: Metric = attrgetter("utilisation")
"""Part of the containers in use while the trace lasts."""
fairness: Metric = attrgetter("fairness.mean")
"""Jain's index of the fraction of demand."""
equality: Metric = attrgetter("equality.mean")
"""Jain's index of allocations within classes of demand."""
fairness_bar: Metric = attrgetter("fairness.bar")
"""Half the width of the 0.95 confidence interval of the fairness."""
equality_bar: Metric = attrgetter("equality.bar")
"""The same of the equality."""

PUBLISHED_NUMBERS: dict[str, tuple[float, ...]] = {
    "tr1": (9345, 159_194, 8_585_673, 58, 0.1, 13, 98, 70, 70),
    "tr2": (24_721, 1_140_064, 13_301_659, 62, 0.3, 3, 94, 80, 80),
}
NAMES = (
    "peak CPUs",
    "jobs",
    "computation hours",
    "1-task jobs %",
    "1-task computation %",
    "jobs above 1000 tasks %",
    "their computation %",
    "jobs below 10 tasks %",
    "jobs below 1000 CPU s %",
)


def table_1(runs: int) -> Figure:
    """Return Table I with the figures of the text around Fig. 1."""
    rows: list[FigureRow] = []
    for name, numbers in PUBLISHED_NUMBERS.items():
        ours = [_measured(made(name, seed)) for seed in range(runs)]
        for place, paper in enumerate(numbers):
            rows.append(row(name, NAMES[place], paper, [each[place] for each in ours], counts=False))
    tr1 = made("tr1", 0)
    below_100_s = (tr1.work_ms < 100_000).mean() * 100
    notes = (
        "the traces are not public: generated ones pin these numbers, see"
        " research/yarn_research/admission/traces/generator.py",
        f"40 % of TR1's jobs compute less than 100 s by Justice 5.4, {below_100_s:.0f} % of ours: section 4 "
        "of both papers (80 % of 58 % with one task, 60 % of 12 % with 2 to 9) alone makes 54 %",
    )
    return Figure("1", "Table I and Fig. 1: the traces", tuple(rows), (), notes)


def _measured(trace: Trace) -> tuple[float, ...]:
    work, tasks = trace.work_ms, trace.tasks
    total = work.sum()
    return (
        float(in_flight(trace.submitted_at_ms, tasks, work).max()),
        float(len(trace)),
        float(total / HOUR_MS),
        float((tasks == 1).mean() * 100),
        float(work[tasks == 1].sum() / total * 100),
        float((tasks > 1000).mean() * 100),
        float(work[tasks > 1000].sum() / total * 100),
        float((tasks < 10).mean() * 100),
        float((work < 1_000_000).mean() * 100),
    )
