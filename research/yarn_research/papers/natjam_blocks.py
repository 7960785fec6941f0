"""Figs 4 to 6 over blocks of seeds: how often each claim holds, and how far the errors vary.

Law: as research/notes/paper.md, "How a claim is judged", says. No two blocks share a seed; a claim holds over
the blocks if it holds in at least 95 % of them, and a tie is reported as a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

import msgspec

from emulator.virtual.run import Result
from yarn_research.papers.figures import Figure, FigureRow, Verdict, above_zero, errors, mean, worst
from yarn_research.papers.natjam_micro import (
    CHAINS_4,
    FIG5_S,
    FIG6_S,
    SIZES_4,
    Lab,
    completion_s,
    evicted_of_small,
    of_figure_4,
    of_figure_5,
    of_figure_6,
    runs_4,
    runs_5,
    runs_6,
    times_6,
)
from yarn_research.studies.cells import Plan, Runner, carry_out

RESOLUTION_S = 0.1
"""The last digit that the paper prints: a smaller difference is a tie, whatever its interval."""
HELD_RATIO = 0.95
MEAN_ERROR, WORST_ERROR = 0.02, 0.07


class Judged(msgspec.Struct, frozen=True):
    """One claim in one block: its verdict, and the figures behind it by what they are."""

    verdict: Verdict
    measured: dict[str, float]


class Block(msgspec.Struct, frozen=True):
    """One figure in one block."""

    figure: Figure
    judged: tuple[Judged, ...]


class Spread(msgspec.Struct, frozen=True):
    """A figure's values over the blocks."""

    what: str
    min: float
    median: float
    max: float


class OverBlocks(msgspec.Struct, frozen=True):
    """What became of one claim over all blocks."""

    figure: str
    claim: str
    paper: str
    holds: bool
    verdict: Verdict
    blocks_hold: int
    blocks_tie: int
    blocks_fail: int
    held_ratio: float
    measured: tuple[Spread, ...]


# --- one block -------------------------------------------------------------------------------


def ordered(series: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str]]) -> Judged:
    """Judge that of each pair the first is less than the second, seed by seed."""
    gaps = {
        f"{more} - {less}, s": [b - a for a, b in zip(series[less], series[more], strict=True)]
        for less, more in pairs
    }
    verdict = worst([above_zero(gap, RESOLUTION_S) for gap in gaps.values()])
    return Judged(verdict, {what: round(mean(gap), 3) for what, gap in gaps.items()})


def within(what: str, ours: float, paper: float, tolerance: float) -> Judged:
    """Judge that a figure is within +- ``tolerance`` of the paper's."""
    return Judged("holds" if abs(ours - paper) <= tolerance else "fails", {what: round(ours, 4)})


def judged_4(found: Mapping[str, Sequence[Result]]) -> Iterator[Judged]:
    """Judge the claims of Fig 4 in their order."""
    for job_class, chain in CHAINS_4.items():
        series = {name: completion_s(found[name], job_class) for name in chain}
        yield ordered(series, list(pairwise(chain)))
    for job_class, name, _, paper, tolerance in SIZES_4:
        ours = mean(completion_s(found[name], job_class)) / mean(completion_s(found["ideal"], job_class))
        yield within("ratio", ours, paper, tolerance)


def judged_5(found: Mapping[tuple[str, str], Sequence[Result]]) -> Iterator[Judged]:
    """Judge the claims of Fig 5 in their order."""
    for size in ("s", "l"):
        series = {
            policy: completion_s(found[policy, size], "research") for policy, each in FIG5_S if each == size
        }
        yield ordered(series, [("SRT", "LRT"), ("SRT", "random")])
    series = {policy: completion_s(found[policy, "s"], "research") for policy in ("SRT", "random", "LRT")}
    yield ordered(series, [("SRT", "random"), ("random", "LRT")])


def judged_6(lab: Lab, found: Mapping[tuple[str, str], Sequence[Result]]) -> Iterator[Judged]:
    """Judge the claims of Fig 6 in their order."""
    last = {
        size: {policy: times_6(lab, size, found[policy, size])[1] for policy, each in FIG6_S if each == size}
        for size in ("m", "s")
    }
    yield ordered(last["m"], [("PR", "LR"), ("MR", "LR")])
    yield within("PR - MR, s", mean(last["m"]["PR"]) - mean(last["m"]["MR"]), 0.0, 5.0)
    yield ordered(last["s"], [("MR", "PR"), ("PR", "LR")])
    evicted = evicted_of_small(found["MR", "s"])
    yield Judged("fails" if evicted else "holds", {"tasks evicted": evicted})


def block_4(lab: Lab) -> Plan[Block]:
    """Fig 4 in one block."""
    found = yield from runs_4(lab)
    return Block(of_figure_4(found), tuple(judged_4(found)))


def block_5(lab: Lab) -> Plan[Block]:
    """Fig 5 in one block."""
    found = yield from runs_5(lab)
    return Block(of_figure_5(found), tuple(judged_5(found)))


def block_6(lab: Lab) -> Plan[Block]:
    """Fig 6 in one block."""
    found = yield from runs_6(lab)
    return Block(of_figure_6(lab, found), tuple(judged_6(lab, found)))


BLOCKS: dict[str, Callable[[Lab], Plan[Block]]] = {"4": block_4, "5": block_5, "6": block_6}


# --- all blocks ------------------------------------------------------------------------------


def natjam_blocks(numbers: Sequence[str], runs: int, count: int, run: Runner) -> dict[str, Any]:
    """Run ``count`` blocks of ``runs`` seeds a bar; return the first one's figures, what holds in all."""
    labs = [Lab(runs=runs, first_seed=place * runs) for place in range(count)]
    done = iter(carry_out([BLOCKS[number](lab) for lab in labs for number in numbers], run))
    blocks = [[next(done) for _ in numbers] for _ in labs]
    each = [errors([block.figure for block in row]) for row in blocks]
    claims = [claim for place in range(len(numbers)) for claim in _claims([row[place] for row in blocks])]
    if set(numbers) == set(BLOCKS):
        claims += _error_claims([(found or 0.0, most or 0.0) for found, most in each])
    told = {
        "count": count,
        "runs": runs,
        "seeds": [0, count * runs - 1],
        "mean_abs_relative_error": spread("", [found or 0.0 for found, _ in each]),
        "worst_abs_relative_error": spread("", [most or 0.0 for _, most in each]),
        "all_seeds": dict(
            zip(("mean_abs_relative_error", "worst_abs_relative_error"), _pooled(blocks), strict=True)
        ),
        "claims": claims,
        "each": [
            {"first_seed": lab.first_seed, "mean_abs_relative_error": found, "worst_abs_relative_error": most}
            for lab, (found, most) in zip(labs, each, strict=True)
        ],
    }
    return {"figures": [block.figure for block in blocks[0]], "blocks": told}


def spread(what: str, values: Sequence[float]) -> Spread:
    """Return smallest, median and largest."""
    return Spread(what, min(values), round(median(values), 5), max(values))


def over_blocks(figure: str, claim: str, paper: str, judged: Sequence[Judged]) -> OverBlocks:
    """Say what became of a claim over its blocks."""
    count = {name: sum(each.verdict == name for each in judged) for name in ("holds", "tie", "fails")}
    least = HELD_RATIO * len(judged)
    holds = count["holds"] >= least
    verdict: Verdict = "holds" if holds else "tie" if count["holds"] + count["tie"] >= least else "fails"
    return OverBlocks(
        figure=figure,
        claim=claim,
        paper=paper,
        holds=holds,
        verdict=verdict,
        blocks_hold=count["holds"],
        blocks_tie=count["tie"],
        blocks_fail=count["fails"],
        held_ratio=round(count["holds"] / len(judged), 4),
        measured=tuple(spread(what, [each.measured[what] for each in judged]) for what in judged[0].measured),
    )


def _claims(blocks: Sequence[Block]) -> Iterator[OverBlocks]:
    """Judge the claims of one figure over its blocks."""
    figure = blocks[0].figure
    for place, claim in enumerate(figure.claims):
        yield over_blocks(figure.figure, claim.claim, claim.paper, [each.judged[place] for each in blocks])


def _error_claims(each: Sequence[tuple[float, float]]) -> Iterator[OverBlocks]:
    """Judge the two errors over all three figures, block by block."""
    kinds = (
        ("mean", MEAN_ERROR, [found for found, _ in each]),
        ("worst", WORST_ERROR, [most for _, most in each]),
    )
    for name, most, values in kinds:
        judged = [Judged("holds" if value <= most else "fails", {"error": value}) for value in values]
        yield over_blocks("4 to 6", f"{name} absolute relative error at most {most:.0%}", "-", judged)


def _pooled(blocks: Sequence[Sequence[Block]]) -> tuple[float | None, float | None]:
    """Return the errors of the bars over all seeds: blocks are of equal size."""
    figures = []
    for place, block in enumerate(blocks[0]):
        same = [row[place].figure.rows for row in blocks]
        rows = tuple(_over_all(bars) for bars in zip(*same, strict=True))
        figures.append(Figure(block.figure.figure, block.figure.title, rows))
    return errors(figures)


def _over_all(bars: Sequence[FigureRow]) -> FigureRow:
    ours, paper = mean([bar.ours for bar in bars]), bars[0].paper
    error = None if bars[0].relative_error is None or not paper else round((ours - paper) / paper, 5)
    return msgspec.structs.replace(bars[0], ours=round(ours, 3), relative_error=error)
