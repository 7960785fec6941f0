"""ORiON's figures on placement: deadlines met and containers used, beside Least Loaded (Figs 6 to 14).

Law: docs/paper.md (section ORiON) says how each claim is judged; times and deadlines are fixed in
``emulator/placement/placement_set``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise

from emulator.experiments.results.figures import Figure, FigureRow, PaperClaim, mean, row
from emulator.placement.placement_replay import Mechanism, PlacementFigures, PlacementReplay, measured
from emulator.placement.placement_set import NODES, POOLS, submissions
from yarnctl.deciding.admission.mechanisms.orion import PlacementPool

SEEDS = 10
COUNTS, GAPS_S = (25, 50, 75, 100), (10.0, 20.0, 30.0)
LONGER_S = (10.0, 30.0, 50.0, 70.0, 90.0)
ALL_MET = 0.99
TIMES, TOLERANCE, FLAT = 1.3, 0.02, 0.02
LATE_RATIO = 0.05
ONE_KIND = {kind: (PlacementPool(kind, 3 * NODES, (kind,)),) for kind in ("spark", "flink")}


@cache
def _played(mechanism: Mechanism, count: int, gap_s: float, alone: str = "") -> tuple[PlacementFigures, ...]:
    """PlacementReplay each seed; ``alone``: one pool of this framework."""
    pools = ONE_KIND[alone] if alone else POOLS
    return tuple(
        measured(PlacementReplay(pools, mechanism, LATE_RATIO).play(submissions(count, gap_s, seed)), pools)
        for seed in range(SEEDS)
    )


def _met(mechanism: Mechanism, count: int, gap_s: float, alone: str = "") -> float:
    return mean([each.met_ratio for each in _played(mechanism, count, gap_s, alone)])


def _rows(label: str, paper: float | None, found: Sequence[PlacementFigures]) -> list[FigureRow]:
    return [
        row(label, "met", paper, [each.met_ratio for each in found], counts=False),
        row(label, "containers", None, [each.containers_mean for each in found]),
        row(label, "late of the admitted", None, [each.late_of_admitted_ratio for each in found]),
    ]


def figure_6() -> Figure:
    """Fig 6: deadlines met, by number of applications."""
    rows, worse, times = list[FigureRow](), list[str](), list[float]()
    for gap_s in GAPS_S:
        for count in COUNTS:
            at_75 = count == 75 and gap_s == 30
            for mechanism, paper in (("orion", 0.70), ("least_loaded", 0.31)):
                label = f"{mechanism}, {count}, {gap_s:g} s"
                found = _played(mechanism, count, gap_s)
                rows += _rows(label, paper if at_75 else None, found)
            ours, theirs = _met("orion", count, gap_s), _met("least_loaded", count, gap_s)
            times.append(ours / theirs if theirs else float("inf"))
            if ours < theirs - TOLERANCE:
                worse.append(f"{count}, {gap_s:g} s")
    told = ", ".join(worse) or "in every cell"
    claims = (
        PaperClaim("no less than Least Loaded - .02", "every cell", told, not worse),
        PaperClaim("so many times Least Loaded", ">= 1.3", f"{min(times):.2f} at least", min(times) >= TIMES),
    )
    return Figure("6", "Deadlines met, three pools of 7", tuple(rows), claims)


def figure_7() -> Figure:
    """Fig 7: containers in use, 50 applications."""
    rows, pairs = list[FigureRow](), list[tuple[float, float]]()
    for gap_s in GAPS_S:
        found = {}
        for mechanism in ("orion", "least_loaded"):
            used = [each.containers_mean for each in _played(mechanism, 50, gap_s)]
            rows.append(row(f"{mechanism}, {gap_s:g} s", "containers", None, used))
            found[mechanism] = mean(used)
        pairs.append((found["orion"], found["least_loaded"]))
    told = ", ".join(f"{ours:.1f} / {theirs:.1f}" for ours, theirs in pairs)
    claim = PaperClaim(
        "fewer containers, each gap", "fewer", told, all(ours < other for ours, other in pairs)
    )
    return Figure("7", "Containers in use, 50 applications", tuple(rows), (claim,))


def figure_8() -> Figure:
    """Fig 8: which frameworks are used, 50 applications."""
    rows, least = list[FigureRow](), float("inf")
    for gap_s in GAPS_S:
        found = _played("orion", 50, gap_s)
        for pool in POOLS:
            used = [float(each.by_kind.get(pool.name, 0)) for each in found]
            rows.append(row(f"{pool.name}, {gap_s:g} s", "applications", None, used))
            least = min(least, *used)
    claim = PaperClaim("every framework is used", "all three", f"{least:g} at least", least > 0)
    return Figure("8", "Applications by framework, 50 applications", tuple(rows), (claim,))


def figure_9() -> Figure:
    """Figs 9 and 10: one framework on all nodes."""
    rows, fewer = list[FigureRow](), list[str]()
    for count in COUNTS:
        ours = _met("orion", count, 20.0)
        rows += _rows(f"three frameworks, {count}", None, _played("orion", count, 20.0))
        for kind in ONE_KIND:
            found = _played("orion", count, 20.0, kind)
            rows += _rows(f"{kind} alone, {count}", None, found)
            if _met("orion", count, 20.0, kind) >= ours:
                fewer.append(f"{kind}, {count}")
    told = ", ".join(fewer) or "with each number"
    claim = PaperClaim("three frameworks meet more than one", "with each number", told, not fewer)
    return Figure("9", "21 nodes of one framework, 20 s apart", tuple(rows), (claim,))


def figure_12() -> Figure:
    """Figs 12 to 14: longer gaps."""
    rows, met = list[FigureRow](), dict[str, list[float]]()
    for mechanism in ("orion", "literal"):
        for gap_s in LONGER_S:
            found = _played(mechanism, 75, gap_s)
            rows += _rows(f"{mechanism}, {gap_s:g} s", None, found)
            met.setdefault(mechanism, []).append(mean([each.met_ratio for each in found]))
    ours, literal = met["orion"], met["literal"]
    rises = all(after > before or before >= ALL_MET for before, after in pairwise(ours))
    claims = (
        PaperClaim("more met with every longer gap", "more", _list(ours), rises),
        PaperClaim("as printed: flat", "<= .02", _list(literal), max(literal) - min(literal) <= FLAT),
    )
    return Figure("12", "75 applications, longer gaps", tuple(rows), claims)


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


FIGURES: dict[str, Callable[[], Figure]] = {
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
