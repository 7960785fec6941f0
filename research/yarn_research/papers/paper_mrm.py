"""The paper MRM as one report: every figure and table that is repeated, its claims beside ours.

Law: research/notes/paper.md (section MRM) has how each claim is judged; it was there before the runs. A row that
repeats the calibration has no relative error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from yarn_research.market.certified import above, promises_late
from yarn_research.market.market_figures import MarketFigures, cell
from yarn_research.market.priced_jobs import OURS, MarketOrder, Readings, readings
from yarn_research.market.recorded import source_note, tables
from yarn_research.papers.figures import Figure, PaperClaim, errors, mean, row
from yarn_research.papers.mrm_models import (
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    single,
)
from yarn_research.papers.mrm_promises import table_4
from yarn_research.papers.mrm_tables import table_2, table_3
from yarn_research.papers.paper_justice import PaperReading
from yarn_research.papers.paper_pythia import figure_numbers
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput

LOADS = (50, 100, 200)
"""Inter-arrival times in seconds: high, medium and low load."""
ALPHAS = (2.0, 1.5, 1.1)
JOBS, COMPARED_JOBS = 100_000, 40_000
"""research/notes/paper.md has the figures of five times as many; every claim has the same verdict."""
HIGH = (40, 44, 50)
SPLITS, REPLAYED_JOBS = 50, 20_000
SLOW_JOBS = 10_000
"""For the one reading that tries deadlines one by one."""

TABLE_5 = {2.0: (1.3, 2.2, 2.5), 1.5: (0.01, 0.01, 0.01), 1.1: (0.0, 0.0, 0.0)}
TABLE_6 = {
    2.0: ((0, 37.9), (0, 9.6), (0, 0)),
    1.5: ((14.7, 50.2), (14.7, 24.6), (14.7, 14.7)),
    1.1: ((35.9, 65.9), (35.9, 40), (35.9, 35.9)),
}
TABLE_7 = {
    2.0: ((43.9, 56.1), (43.87, 43.9), (43.87, 43.9)),
    1.5: ((43.9, 60.6), (43.87, 44.03), (43.87, 43.9)),
    1.1: ((43.9, 68.4), (43.87, 43.9), (43.87, 43.9)),
}
TABLE_8 = {2.0: ((2.4, 2.98), (1.2, 1.49)), 1.5: ((1.8, 2.23), (1.2, 1.49)), 1.1: ((1.31, 1.64), (1.2, 1.49))}
MEDIAN_S, PAID, P95_S, LATE_POINTS = 0.3, 0.05, 1.0, 0.6
P95_RATIO = {50: 0.30, 100: 0.15, 200: 0.15}
FIG_10 = tuple((alpha, kappa) for alpha in (5.0, 2.0, 1.5) for kappa in (2.0, 4.0))
FIG_10_LOADS = (40, 44, 50, 100)
CALIBRATED_ON = [
    "Table 8, tolerant: the 95th percentile of paid over used (the spread of durations)",
    "Table 7: the slack in an empty queue, which is the mean estimate (the mean of durations)",
]


class Shop:
    """The cells of section 6.3, each replayed once."""

    def __init__(self, readings: Readings = OURS, jobs: int = 0) -> None:
        self.readings, self.jobs = readings, jobs
        self._cells: dict[MarketOrder, MarketFigures] = {}

    def cell(
        self,
        jobs: int,
        inter_arrival_s: float,
        alpha: float,
        kappa: float = 2.0,
        tolerant: float = 1.0,
        scheduler: str = "mrm",
    ) -> MarketFigures:
        """Return one cell; the arguments are those of ``MarketOrder``."""
        asked = MarketOrder(
            self.jobs or jobs,
            inter_arrival_s,
            alpha,
            kappa=kappa,
            tolerant=tolerant,
            scheduler=scheduler,
            readings=self.readings,
        )
        if asked not in self._cells:
            self._cells[asked] = cell(asked)
        return self._cells[asked]


def shop_of(read: Readings) -> Shop:
    """Return the cells under a reading; the slow one takes fewer jobs."""
    return Shop(read, SLOW_JOBS if read.slack_from == "finish" else 0)


def table_5(shop: Shop) -> Figure:
    """Late jobs."""
    rows, claims = [], []
    for alpha in ALPHAS:
        late = [100 * shop.cell(JOBS, load, alpha).late_ratio for load in LOADS]
        for load, paper, ours in zip(LOADS, TABLE_5[alpha], late, strict=True):
            label = f"alpha {alpha:g}, {load} s"
            rows.append(single(label, "% late", paper, ours, counts=False))
            held = abs(ours - paper) <= LATE_POINTS
            claims.append(
                PaperClaim(
                    f"{label}: late (within {LATE_POINTS} points)", f"{paper:g} %", f"{ours:.2f} %", held
                )
            )
        fewer = late == sorted(late)
        told = ", ".join(f"{each:.3f}" for each in late)
        claims.append(
            PaperClaim(f"alpha {alpha:g}: no more late under more load", "50 <= 100 <= 200 s", told, fewer)
        )
    return Figure("t5", "Late jobs", tuple(rows), tuple(claims))


def _slack(shop: Shop, number: str, tolerant: bool) -> Figure:
    rows, claims = [], []
    table = TABLE_7 if tolerant else TABLE_6
    for alpha in ALPHAS:
        for load, (median, p95) in zip(LOADS, table[alpha], strict=True):
            found = shop.cell(JOBS, load, alpha)
            group = found.tolerant if tolerant else found.sensitive
            label = f"alpha {alpha:g}, {load} s"
            counts = not (tolerant and load == 200)
            rows.append(single(label, "median slack, s", median, group.slack_median_s, counts))
            rows.append(single(label, "95th slack, s", p95, group.slack_p95_s, counts))
            distance = abs(group.slack_median_s - median)
            claims.append(
                PaperClaim(
                    f"{label}: median slack (within {MEDIAN_S} s)",
                    f"{median:g} s",
                    f"{group.slack_median_s:.2f} s",
                    distance <= MEDIAN_S,
                )
            )
            most_s = P95_RATIO[load] * p95 if load == 50 else max(P95_S, P95_RATIO[load] * p95)
            held = abs(group.slack_p95_s - p95) <= most_s
            claims.append(
                PaperClaim(
                    f"{label}: 95th of slack (within {most_s:.2f} s)",
                    f"{p95:g} s",
                    f"{group.slack_p95_s:.2f} s",
                    held,
                )
            )
    who = "tolerant" if tolerant else "sensitive"
    return Figure(number, f"Slack of {who} jobs", tuple(rows), tuple(claims))


def table_8(shop: Shop) -> Figure:
    """Paid over used."""
    rows, claims = [], []
    for alpha in ALPHAS:
        for load in LOADS:
            found = shop.cell(JOBS, load, alpha)
            for who, group, (median, p95) in zip(
                ("sensitive", "tolerant"), (found.sensitive, found.tolerant), TABLE_8[alpha], strict=True
            ):
                label, counts = f"{who}, alpha {alpha:g}, {load} s", who == "sensitive"
                ours, ours_p95 = group.paid_median or 0.0, group.paid_p95 or 0.0
                rows.append(single(label, "median paid / used", median, ours, counts))
                rows.append(single(label, "95th paid / used", p95, ours_p95, counts))
                claims.append(
                    PaperClaim(
                        f"{label}: median paid over used (within {PAID})",
                        f"{median:g}",
                        f"{ours:.3f}",
                        abs(ours - median) <= PAID,
                    )
                )
                held = abs(ours_p95 - p95) <= P95_RATIO[load] * p95
                claims.append(
                    PaperClaim(
                        f"{label}: 95th of paid over used (within {P95_RATIO[load]:.0%})",
                        f"{p95:g}",
                        f"{ours_p95:.3f}",
                        held,
                    )
                )
    return Figure("t8", "Paid over used", tuple(rows), tuple(claims))


def figure_9(shop: Shop) -> Figure:
    """Against other schedulers."""
    rows, claims = [], []
    for budget in (1.0, 0.5):
        for load in HIGH:
            found = {
                name: shop.cell(COMPARED_JOBS, load, 2.0, tolerant=budget, scheduler=name)
                for name in ("priority", "mrm", "fcfs")
            }
            label = f"{load} s, tolerant budget {budget:g}"
            for name, each in found.items():
                rows += [
                    single(f"{label}, {name}", "sensitive wait, s", None, each.sensitive.wait_s),
                    single(f"{label}, {name}", "sensitive wait 5th, s", None, each.sensitive.wait_p05_s),
                    single(f"{label}, {name}", "sensitive wait 95th, s", None, each.sensitive.wait_p95_s),
                    single(f"{label}, {name}", "tolerant late", None, each.tolerant.late_ratio),
                    single(f"{label}, {name}", "earliness, s", None, each.earliness_s),
                ]
            claims += _compared(label, found)
    low, high = (shop.cell(COMPARED_JOBS, 40, 2.0, tolerant=each).sensitive for each in (1.0, 0.5))
    for what, paper, ends in (
        ("jumped", 0.354, (low.jumped_ratio, high.jumped_ratio)),
        (
            "jumped, of jobs that saw a tolerant job waiting",
            0.477,
            (low.jumped_of_those_who_could_ratio, high.jumped_of_those_who_could_ratio),
        ),
    ):
        told = f"{ends[0]:.1%} .. {ends[1]:.1%}"
        held = min(ends) <= paper <= max(ends)
        claims.append(PaperClaim(f"40 s: {what}, between the budgets'", f"{paper:.1%}", told, held))
    return Figure("9", "Against FCFS and priorities", tuple(rows), tuple(claims))


def _compared(label: str, found: dict[str, MarketFigures]) -> list[PaperClaim]:
    waits = [found[name].sensitive.wait_s for name in ("priority", "mrm", "fcfs")]
    late = {name: each.tolerant.late_ratio for name, each in found.items()}
    early = {name: each.earliness_s for name, each in found.items()}
    told = " < ".join(f"{each:.1f}" for each in waits)
    return [
        PaperClaim(
            f"{label}: sensitive wait priority < MRM < FCFS", "in order", told, waits[0] < waits[1] < waits[2]
        ),
        PaperClaim(
            f"{label}: priority, tolerant late", "> 25 %", f"{late['priority']:.1%}", late["priority"] > 0.25
        ),
        PaperClaim(
            f"{label}: tolerant late, MRM at most FCFS",
            f"<= {late['fcfs']:.2%}",
            f"{late['mrm']:.2%}",
            late["mrm"] <= late["fcfs"],
        ),
        PaperClaim(
            f"{label}: earliness is largest under MRM",
            "largest",
            ", ".join(f"{name} {each:.1f}" for name, each in early.items()),
            early["mrm"] > max(early["fcfs"], early["priority"]),
        ),
    ]


def figure_10(shop: Shop) -> Figure:
    """Purchasing powers."""
    rows, claims = [], []
    for alpha, kappa in FIG_10:
        found = [shop.cell(COMPARED_JOBS, load, alpha, kappa=kappa, tolerant=0.5) for load in FIG_10_LOADS]
        label = f"alpha {alpha:g}, kappa {kappa:g}"
        for load, each in zip(FIG_10_LOADS, found, strict=True):
            rows += [
                single(f"{label}, {load} s", "sensitive wait, s", None, each.sensitive.wait_s),
                single(f"{label}, {load} s", "earliness, s", None, each.earliness_s),
                single(f"{label}, {load} s", "late", None, each.late_ratio),
            ]
        early = [each.earliness_s for each in found]
        told = ", ".join(f"{each:.1f}" for each in early)
        if alpha < kappa:
            late = max(each.late_ratio for each in found)
            claims.append(
                PaperClaim(f"{label}: no late jobs (below .05 %)", "0", f"{late:.3%}", late < 0.0005)
            )
        if (alpha, kappa) == (5.0, 4.0):
            held = early == sorted(early)
            claims.append(PaperClaim(f"{label}: earliness falls as load grows", "falls", told, held))
        if kappa == 2.0 and alpha <= 2:
            held = early == sorted(early, reverse=True)
            claims.append(PaperClaim(f"{label}: earliness grows as load grows", "grows", told, held))
    notes = ("loads are 40, 44, 50, 100 s, in this order; cells without a claim are shown and not judged",)
    return Figure("10", "Purchasing powers (tolerant budget .5)", tuple(rows), tuple(claims), notes)


def certified(runtimes: Path | None, splits: int = SPLITS) -> Figure:
    """Upper bounds on recorded run times: how often they are exceeded."""
    known = tables(runtimes)
    found = {table.name: above(table, range(splits)) for table in known}
    rows = [row(name, "above the bound", None, ratios) for name, ratios in found.items()]
    means = {name: mean(ratios) for name, ratios in found.items()}
    over = mean(list(means.values()))
    worst = max(means, key=lambda name: means[name])
    late = promises_late(known, REPLAYED_JOBS)
    rows.append(single(f"{REPLAYED_JOBS} jobs replayed", "late", None, late))
    claims = (
        PaperClaim(
            "durations above their bound, all tables", "5 % +- 1.5", f"{over:.2%}", abs(over - 0.05) <= 0.015
        ),
        PaperClaim("no table above 9 %", "<= 9 %", f"{means[worst]:.2%} ({worst})", means[worst] <= 0.09),
        PaperClaim("promises late", "<= 5 %", f"{late:.2%}", late <= 0.05),
    )
    title = f"95 % bounds, {splits} splits a table"
    return Figure("certified", title, tuple(rows), claims, (source_note(runtimes, known),))


TABLES: dict[str, Callable[[Shop], Figure]] = {
    "t5": table_5,
    "t6": partial(_slack, number="t6", tolerant=False),
    "t7": partial(_slack, number="t7", tolerant=True),
    "t8": table_8,
    "9": figure_9,
    "10": figure_10,
}
MODELS: dict[str, Callable[[], Figure]] = {
    "2": figure_2,
    "3": figure_3,
    "4": figure_4,
    "5": figure_5,
    "7": figure_7,
    "t2": table_2,
    "t3": table_3,
    "t4": table_4,
}
FIGURES = ("2", "3", "4", "5", "6", "7", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "9", "10")


class PaperChoices(NamedTuple):
    """How the paper is read: section 6.3, and what is left of the running job in Fig 6 (``running``)."""

    market: Readings = OURS
    running: str = "left"


RUNNING = ("left", "whole")


def mrm_choices(chosen: Sequence[str]) -> PaperChoices:
    """Read NAME=VALUE of ``--choose``; raises BadInput for what is not known."""
    found = PaperChoices()
    others = []
    for each in chosen:
        name, _, value = each.partition("=")
        if name != "running":
            others.append(each)
        elif value in RUNNING:
            found = found._replace(running=value)
        else:
            raise BadInput(f"--choose {each[:40]!r}", "is not known", f"running={' or '.join(RUNNING)}")
    return found._replace(market=readings(others))


def _refuse_unread(wanted: str, choices: PaperChoices) -> None:
    """Refuse a reading where no figure that is asked for reads it."""
    for chosen, figures in (
        (choices.running != RUNNING[0], ("6",)),
        (choices.market != OURS, tuple(TABLES)),
    ):
        if chosen and wanted not in (*figures, "all"):
            remedy = f"one of {', '.join(figures)}, all"
            raise BadInput("--choose", f"figure {wanted} reads nothing of it", remedy)


def paper_mrm(
    wanted: str, runtimes: Path | None = None, choices: PaperChoices | None = None
) -> dict[str, Any]:
    """Run the figures; return the report. ``choices``: how the paper is read (None: as we do)."""
    numbers = figure_numbers(wanted, FIGURES, ("certified",))
    read = choices or PaperChoices()
    _refuse_unread(wanted, read)
    shop, found = shop_of(read.market), list[Figure]()
    with ProgressBar("figures", len(numbers)) as progress:
        for number in progress.counted(numbers):
            if number == "certified":
                found.append(certified(runtimes))
            elif number == "6":
                found.append(figure_6(runtimes, read.running))
            else:
                found.append(TABLES[number](shop) if number in TABLES else MODELS[number]())
    mean_error, worst_error = errors(found)
    return {
        "paper": "mrm",
        "calibrated_on": CALIBRATED_ON,
        "figures": found,
        "mean_abs_relative_error": mean_error,
        "worst_abs_relative_error": worst_error,
    }


# --- what the paper leaves open ---------------------------------------------------------------

READINGS: dict[str, dict[str, Any]] = {
    "ours": {},
    "Q of Eq 13: all": {"queue": "all"},
    "slack of i from its earliest finish": {"slack_from": "finish"},
    "noise: half-normal, 95 % one way": {"noise": "half-normal"},
}
"""Readings of section 6.3 by their name, as changes to ours."""


def alternatives() -> list[PaperReading]:
    """Run Tables 5 to 8 under every reading, and Fig 6 with the running job's whole bound."""
    found = []
    with ProgressBar("readings", len(READINGS) + 1) as progress:
        for name in progress.counted(READINGS):
            changes = READINGS[name]
            shop = shop_of(msgspec.structs.replace(OURS, **changes))
            claims = [claim for number in ("t5", "t6", "t7", "t8") for claim in TABLES[number](shop).claims]
            found.append(_reading(name, not changes, claims))
        found.append(
            _reading("Fig 6: the running job counts whole", False, list(figure_6(None, "whole").claims))
        )
    return found


def _reading(name: str, ours: bool, claims: list[PaperClaim]) -> PaperReading:
    failed = tuple(f"{claim.claim}: {claim.ours}" for claim in claims if not claim.holds)
    return PaperReading(name, ours, len(failed), failed)
