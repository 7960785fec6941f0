"""The paper Natjam as one report: every figure, the paper's number beside ours.

Law: the shape is fixed (other tools read it); what a figure shows is its own module's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from emulator.experiments import natjam_deadlines, natjam_micro, natjam_traces
from emulator.experiments.figures import Figure, errors
from emulator.experiments.natjam_micro import Lab
from yarnctl.errors import BadInput

CALIBRATED_ON = ["Fig 3 (completion times alone)", "section 5 (1.35 s to suspend, 3.88 s to resume)"]

FIGURES: dict[str, Callable[[int], Figure]] = {
    "3": lambda runs: natjam_micro.figure_3(Lab(runs=runs)),
    "4": lambda runs: natjam_micro.figure_4(Lab(runs=runs)),
    "5": lambda runs: natjam_micro.figure_5(Lab(runs=runs)),
    "6": lambda runs: natjam_micro.figure_6(Lab(runs=runs)),
    "7": lambda runs: natjam_traces.figure_7(),
    "8": lambda runs: natjam_traces.figure_8(),
    "9": lambda runs: natjam_traces.figure_9(),
    "10": lambda runs: natjam_deadlines.figure_10(runs, Lab().calibration),
    "11": lambda runs: natjam_deadlines.figure_11(runs, Lab().calibration),
    "12": lambda runs: natjam_traces.figure_12(),
    "13": lambda runs: natjam_traces.figure_13(),
    "14": lambda runs: natjam_traces.figure_14(),
    "15": lambda runs: natjam_traces.figure_15(),
}

MICRO = ("4", "5", "6")
"""The figures whose bars count in the mean and the worst relative error."""


class Alternative(msgspec.Struct, frozen=True):
    """What Fig 3 cannot fix: one choice, and the errors over Figs 4 to 6 that it leads to."""

    constant: str
    choice: str
    ours: bool
    reason: str
    mean_abs_relative_error: float | None
    worst_abs_relative_error: float | None
    claims_failed: int


def paper_natjam(numbers: list[str], runs: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Run the figures; ``progress`` is told each one's name as it begins."""
    figures = []
    for number in numbers:
        progress(f"figure {number}")
        figures.append(FIGURES[number](runs))
    mean_error, worst_error = errors([figure for figure in figures if figure.figure in MICRO])
    return {
        "paper": "natjam",
        "calibrated_on": CALIBRATED_ON,
        "figures": figures,
        "mean_abs_relative_error": mean_error,
        "worst_abs_relative_error": worst_error,
    }


def figure_numbers(wanted: str) -> list[str]:
    """Return the figures that ``--figure`` names; raises BadInput with the known ones."""
    if wanted == "all":
        return list(FIGURES)
    if wanted not in FIGURES:
        raise BadInput("--figure", f"{wanted!r} is not reproduced", f"one of {', '.join(FIGURES)}, all")
    return [wanted]


def alternatives(runs: int, progress: Callable[[str], None]) -> list[Alternative]:
    """Run Figs 4 to 6 under every choice that Fig 3 leaves open, ours first."""
    base = Lab(runs=runs)
    found = [_alternative(base, "ours", "2 maps, resuming first, SRT killed", True, "")]
    for constant, (reason, others) in natjam_micro.ALTERNATIVES.items():
        for choice, variant in others.items():
            progress(f"{constant}: {choice}")
            found.append(_alternative(variant(base), constant, choice, False, reason))
    return found


def _alternative(lab: Lab, constant: str, choice: str, ours: bool, reason: str) -> Alternative:
    figures = natjam_micro.micro(lab)
    failed = sum(not claim.holds for figure in figures for claim in figure.claims)
    return Alternative(constant, choice, ours, reason, *errors(figures), failed)
