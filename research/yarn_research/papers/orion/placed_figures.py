"""ORiON's figures on placement: deadlines met and containers used, beside Least Loaded (Figs 6 to 14).

Law: research/notes/paper.md (section ORiON) says how each claim is judged; times and deadlines are fixed in
``research/yarn_research/placement/placement_set``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, mean, row
from yarn_research.placement.placement_replay import Mechanism, PlacementFigures, PlacementReplay, measured
from yarn_research.placement.placement_set import NODES, POOLS, submissions
from yarnctl.deciding.admission.mechanisms.orion import HOUR_S, OURS, OrionChoices, PlacementPool

Cells = tuple[PlacementFigures, ...]
SEEDS = 10
COUNTS, GAPS_S = (25, 50, 75, 100), (10.0, 20.0, 30.0)
LONGER_S = (10.0, 30.0, 50.0, 70.0, 90.0)
ALL_MET = 0.99
TIMES, TOLERANCE, FLAT = 1.3, 0.02, 0.02
LATE_RATIO = 0.05
ONE_KIND = {kind: (PlacementPool(kind, 3 * NODES, (kind,)),) for kind in ("spark", "flink")}


class PlacementReading(NamedTuple):
    """How ORiON reads Alg 2, and its pools' hourly budget in containers (None: no bound)."""

    choices: OrionChoices = OURS
    hourly_containers: int | None = None

    def pools(self, alone: str) -> tuple[PlacementPool, ...]:
        """Return three pools of 7, or one of this framework."""
        found = ONE_KIND[alone] if alone else POOLS
        if self.hourly_containers is None:
            return found
        hourly = HOUR_S * self.hourly_containers
        return tuple(replace(pool, hourly_mtokens=hourly * pool.cost_mtokens) for pool in found)


OUR_READING = PlacementReading()


@cache
def played(count: int, gap_s: float, reading: PlacementReading, alone: str = "") -> Cells:
    """Replay ORiON under each seed; ``alone``: one pool of this framework."""
    return _seeds("orion", count, gap_s, reading, alone)


@cache
def _beside(mechanism: Mechanism, count: int, gap_s: float) -> Cells:
    """Replay another mechanism under each seed: it has no readings."""
    return _seeds(mechanism, count, gap_s, OUR_READING, "")


def _seeds(mechanism: Mechanism, count: int, gap_s: float, reading: PlacementReading, alone: str) -> Cells:
    pools = reading.pools(alone)
    found = []
    for seed in range(SEEDS):
        replay = PlacementReplay(pools, mechanism, LATE_RATIO, reading.choices)
        found.append(measured(replay.play(submissions(count, gap_s, seed)), pools))
    return tuple(found)


def met_mean(found: Cells) -> float:
    """Return the share of deadlines that is met, mean of the seeds."""
    return mean([each.met_ratio for each in found])


def _rows(label: str, paper: float | None, found: Cells) -> list[FigureRow]:
    return [
        row(label, "met", paper, [each.met_ratio for each in found], counts=False),
        row(label, "containers", None, [each.containers_mean for each in found]),
        row(label, "late of the admitted", None, [each.late_of_admitted_ratio for each in found]),
    ]


def figure_6(reading: PlacementReading = OUR_READING) -> Figure:
    """Fig 6: deadlines met, by number of applications."""
    rows, worse, times = list[FigureRow](), list[str](), list[float]()
    for gap_s in GAPS_S:
        for count in COUNTS:
            at_75 = count == 75 and gap_s == 30
            found, other = played(count, gap_s, reading), _beside("least_loaded", count, gap_s)
            rows += _rows(f"orion, {count}, {gap_s:g} s", 0.70 if at_75 else None, found)
            rows += _rows(f"least_loaded, {count}, {gap_s:g} s", 0.31 if at_75 else None, other)
            ours, theirs = met_mean(found), met_mean(other)
            times.append(ours / theirs if theirs else float("inf"))
            if ours < theirs - TOLERANCE:
                worse.append(f"{count}, {gap_s:g} s")
    told = ", ".join(worse) or "in every cell"
    claims = (
        PaperClaim("no less than Least Loaded - .02", "every cell", told, not worse),
        PaperClaim("ratio to Least Loaded", ">= 1.3", f"{min(times):.2f} at least", min(times) >= TIMES),
    )
    return Figure("6", "Deadlines met, three pools of 7", tuple(rows), claims)


def figure_7(reading: PlacementReading = OUR_READING) -> Figure:
    """Fig 7: containers in use, 50 applications."""
    rows, pairs = list[FigureRow](), list[tuple[float, float]]()
    for gap_s in GAPS_S:
        found = {}
        cells = {"orion": played(50, gap_s, reading), "least_loaded": _beside("least_loaded", 50, gap_s)}
        for mechanism, cell in cells.items():
            used = [each.containers_mean for each in cell]
            rows.append(row(f"{mechanism}, {gap_s:g} s", "containers", None, used))
            found[mechanism] = mean(used)
        pairs.append((found["orion"], found["least_loaded"]))
    told = ", ".join(f"{ours:.1f} / {theirs:.1f}" for ours, theirs in pairs)
    claim = PaperClaim(
        "fewer containers, each gap", "fewer", told, all(ours < other for ours, other in pairs)
    )
    return Figure("7", "Containers in use, 50 applications", tuple(rows), (claim,))


def figure_8(reading: PlacementReading = OUR_READING) -> Figure:
    """Fig 8: which frameworks are used, 50 applications."""
    rows, least = list[FigureRow](), float("inf")
    for gap_s in GAPS_S:
        found = played(50, gap_s, reading)
        for pool in POOLS:
            used = [float(each.by_kind.get(pool.name, 0)) for each in found]
            rows.append(row(f"{pool.name}, {gap_s:g} s", "applications", None, used))
            least = min(least, *used)
    claim = PaperClaim("every framework is used", "all three", f"{least:g} at least", least > 0)
    return Figure("8", "Applications by framework, 50 applications", tuple(rows), (claim,))


def figure_9(reading: PlacementReading = OUR_READING) -> Figure:
    """Figs 9 and 10: one framework on all nodes."""
    rows, fewer = list[FigureRow](), list[str]()
    for count in COUNTS:
        ours = played(count, 20.0, reading)
        rows += _rows(f"three frameworks, {count}", None, ours)
        for kind in ONE_KIND:
            found = played(count, 20.0, reading, kind)
            rows += _rows(f"{kind} alone, {count}", None, found)
            if met_mean(found) >= met_mean(ours):
                fewer.append(f"{kind}, {count}")
    told = ", ".join(fewer) or "with each number"
    claim = PaperClaim("three frameworks meet more than one", "with each number", told, not fewer)
    return Figure("9", "21 nodes of one framework, 20 s apart", tuple(rows), (claim,))


def figure_12(reading: PlacementReading = OUR_READING) -> Figure:
    """Figs 12 to 14: longer gaps."""
    rows, met = list[FigureRow](), dict[str, list[float]]()
    for mechanism in ("orion", "literal"):
        for gap_s in LONGER_S:
            as_read = mechanism == "orion"
            found = played(75, gap_s, reading) if as_read else _beside("literal", 75, gap_s)
            rows += _rows(f"{mechanism}, {gap_s:g} s", None, found)
            met.setdefault(mechanism, []).append(met_mean(found))
    ours, literal = met["orion"], met["literal"]
    rises = all(after > before or before >= ALL_MET for before, after in pairwise(ours))
    claims = (
        PaperClaim("more met with every longer gap", "more", _list(ours), rises),
        PaperClaim("as printed: flat", "<= .02", _list(literal), max(literal) - min(literal) <= FLAT),
    )
    return Figure("12", "75 applications, longer gaps", tuple(rows), claims)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


FIGURES: dict[str, Callable[[PlacementReading], Figure]] = {
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
    "10": figure_9,
    "11": figure_9,
    "12": figure_12,
    "13": figure_12,
    "14": figure_12,
}
"""By the paper's number; one of ours may answer several."""
