"""What the mechanisms reach of small sets beside the offline optimum (HiGHS).

Law: research/notes/paper.md (section ORiON, Bound) says how it is judged. Nobody may be above an optimum: a claim that
fails is an error of the program or of the replay, and no result.
"""

from __future__ import annotations

from collections.abc import Sequence

from yarn_research.papers.figures import Figure, FigureRow, PaperClaim, mean, row
from yarn_research.placement.placement_optimum import Reached, drawn, optimum, reached
from yarn_research.placement.placement_replay import CHOICES, MECHANISMS, Mechanism
from yarnctl.command_line import ProgressBar
from yarnctl.deciding.admission.mechanisms.orion import OURS, OrionChoices

SETS = 200


def figure_bound(choices: OrionChoices = OURS, sets: int = SETS) -> Figure:
    """Compare each mechanism with the optimum of each set; who asks for no room, with pools without end."""
    best, best_endless = list[Reached](), list[Reached]()
    found: dict[Mechanism, list[Reached]] = {mechanism: [] for mechanism in MECHANISMS}
    with ProgressBar("sets", sets) as progress:
        for seed in progress.counted(range(sets)):
            each = drawn(seed)
            best.append(optimum(each))
            best_endless.append(optimum(each, bounded=False))
            for mechanism, told in found.items():
                told.append(reached(each, mechanism, choices))
    rows, claims, notes = list[FigureRow](), list[PaperClaim](), list[str]()
    for mechanism, told in found.items():
        endless = CHOICES.get(mechanism, choices).capacity == "none"
        beside = best_endless if endless else best
        rows += _rows(mechanism, told, beside)
        claims += _claims(mechanism, told, beside, endless=endless)
        notes.append(f"{mechanism}: {_gap(told, beside)}")
    over = _above(found["literal"], best)
    notes.append(f"literal is above the optimum of pools that have an end in {over} sets: it overbooks them")
    return Figure("bound", "Offline optimum of small sets", tuple(rows), tuple(claims), tuple(notes))


def _above(told: Sequence[Reached], best: Sequence[Reached]) -> int:
    return sum(one.met > most.met for one, most in zip(told, best, strict=True))


def _equals(told: Sequence[Reached], best: Sequence[Reached]) -> list[tuple[Reached, Reached]]:
    """Return the sets of which as many are met as can be, with the optimum."""
    return [(one, most) for one, most in zip(told, best, strict=True) if one.met == most.met]


def _rows(mechanism: str, told: Sequence[Reached], best: Sequence[Reached]) -> list[FigureRow]:
    gaps = [float(most.met - one.met) for one, most in zip(told, best, strict=True)]
    dearer = [
        one.cost_mtokens / most.cost_mtokens - 1 for one, most in _equals(told, best) if most.cost_mtokens
    ]
    found = [row(mechanism, "optimum less met, applications", None, gaps)]
    if dearer:
        found.append(row(f"{mechanism}, cost", "dearer, where as many are met", None, dearer))
    return found


def _claims(
    mechanism: str, told: Sequence[Reached], best: Sequence[Reached], *, endless: bool
) -> list[PaperClaim]:
    above, equals = _above(told, best), _equals(told, best)
    cheaper = sum(one.cost_mtokens < most.cost_mtokens for one, most in equals)
    whose = "pools without end" if endless else "these pools"
    return [
        PaperClaim(
            f"{mechanism}: nowhere above the optimum of {whose}",
            f"0 of {len(told)} sets",
            str(above),
            not above,
        ),
        PaperClaim(
            f"{mechanism}: nowhere cheaper where as many are met",
            f"0 of {len(equals)}",
            str(cheaper),
            not cheaper,
        ),
    ]


def _gap(told: Sequence[Reached], best: Sequence[Reached]) -> str:
    gap = mean([float(most.met - one.met) for one, most in zip(told, best, strict=True)])
    met, most, equal = sum(one.met for one in told), sum(one.met for one in best), len(_equals(told, best))
    return f"mean gap {gap:.3f} applications; {met} met of {most}; all that can be in {equal} sets"
