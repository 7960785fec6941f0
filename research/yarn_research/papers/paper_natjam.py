"""The paper Natjam as one report: every figure, the paper's number beside ours.

Law: the shape is fixed (other tools read it); what a figure shows is defined in its own module, and
follows from the runs alone.

What Fig 3 cannot fix, each choice beside ours with its errors over Figs 4 to 6.

Law: whatever was tried on Figs 4 to 6 is here with its error, ours first; nothing that was tried is
left out. (A second rule of reclaiming, per queue and request instead of per production job, was tried in a
sketch only: the controller has one rule.)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from emulator.experiments.results.folder import Folder, write_whole
from emulator.experiments.results.runs import program_facts
from yarn_research.papers import natjam_deadlines, natjam_micro, natjam_traces
from yarn_research.papers.figures import Figure, errors
from yarn_research.papers.natjam_blocks import natjam_blocks
from yarn_research.papers.natjam_micro import MICRO, Lab
from yarn_research.papers.natjam_variants import Estimate, ResumeOrder, variant
from yarn_research.papers.paper_page import paper_html
from yarn_research.studies.cells import PAPER, CellRuns, Plan, Runner, carry_out
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput

Variant = Callable[[Lab], Lab]


class Alternative(msgspec.Struct, frozen=True):
    """What Fig 3 cannot fix: one choice, and the errors over Figs 4 to 6 that it leads to."""

    constant: str
    choice: str
    ours: bool
    reason: str
    mean_abs_relative_error: float | None
    worst_abs_relative_error: float | None
    claims_failed: int


def _calibrated(**constants: int) -> Variant:
    return lambda lab: msgspec.structs.replace(
        lab, calibration=msgspec.structs.replace(lab.calibration, **constants)
    )


def _chosen(resume_order: ResumeOrder = "suspended first", estimate: Estimate = "exact") -> Variant:
    return lambda lab: msgspec.structs.replace(lab, timing=variant(lab.timing, resume_order, estimate))


def _lab(**fields: str) -> Variant:
    return lambda lab: msgspec.structs.replace(lab, **fields)


ALTERNATIVES: dict[str, tuple[str, dict[str, Variant]]] = {
    "maps per job": (
        "2: not in the paper; it says a fourth of the tasks (12) were suspended, which 1 or 2 give",
        {str(count): _calibrated(maps=count) for count in (1, 3, 4, 6, 8)},
    ),
    "map, shuffle of the fixed overhead": (
        "2 s and 2 s: an empty job's 4 s, halved; the sum is what Fig 3 fixes",
        {
            f"{map_ms / 1000:g} s, {4 - map_ms / 1000:g} s": _calibrated(
                map_ms=map_ms, shuffle_ms=4000 - map_ms
            )
            for map_ms in (1000, 3000)
        },
    ),
    "resume order": (
        "resuming reduces first, in the order they were suspended, as in section 3.2",
        {
            "with the fresh ones": lambda lab: msgspec.structs.replace(
                lab, timing=msgspec.structs.replace(lab.timing, resume_priority=10)
            ),
            "suspended last first": _chosen(resume_order="suspended last"),
            "most work left first": _chosen(resume_order="longest"),
            "by index": _chosen(resume_order="index"),
        },
    ),
    "remaining time": (
        "exact: the paper ranks by remaining time; its code by an estimate that is right for equal ages only",
        {
            "LegacyTaskRuntimeEstimator": _chosen(estimate="legacy"),
            "none: tasks tie": _chosen(estimate="none"),
        },
    ),
    "MR": (
        "re-evaluated after each container, as in section 2.1; the published code lets one job give all",
        {"once a request": _lab(mr="MR-once")},
    ),
    "task lengths": (
        "the generator's fixed table (facts, section 0); the paper says uniform from (0.5, 1.0]",
        {
            "table, shuffled in each run": _lab(lengths="shuffled"),
            "drawn in each run, one the longest": _lab(lengths="drawn"),
        },
    ),
    "kill victim": (
        "SRT: the paper names no rule; killing the shortest is what its 236.5 s (Fig 4) fits",
        {"LRT": _lab(kill_policy="LRT"), "random": _lab(kill_policy="random")},
    ),
}
"""What Fig 3 cannot fix: our choice with its reason, and the other choices that were tried on Figs 4 to 6."""


def alternatives(runs: int, run: Runner) -> list[Alternative]:
    """Run Figs 4 to 6 under every choice that Fig 3 leaves open, ours first."""
    base = Lab(runs=runs)
    choices = [("ours", "2 maps, resuming first, SRT killed", "", base)]
    for constant, (reason, others) in ALTERNATIVES.items():
        choices += [(constant, choice, reason, variant(base)) for choice, variant in others.items()]
    plans = [plan(lab) for *_, lab in choices for plan in MICRO]
    done = iter(carry_out(plans, run))
    found = []
    for constant, choice, reason, _ in choices:
        figures = [next(done) for _ in MICRO]
        failed = sum(not claim.holds for figure in figures for claim in figure.claims)
        ours = constant == "ours"
        found.append(Alternative(constant, choice, ours, reason, *errors(figures), failed))
    return found


CALIBRATED_ON = ["Fig 3 (completion times alone)", "section 5 (1.35 s to suspend, 3.88 s to resume)"]
TITLE = "Natjam's evaluation: the paper's numbers beside ours"

FIGURES: dict[str, Callable[[int], Plan[Figure]]] = {
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

MICRO_NUMBERS = ("4", "5", "6")
"""The figures whose bars count in the mean and the worst relative error."""


def figure_numbers(wanted: str) -> list[str]:
    """Return the figures that ``--figure`` names; raises BadInput with the known ones."""
    if wanted == "all":
        return list(FIGURES)
    if wanted not in FIGURES:
        raise BadInput("--figure", f"{wanted!r} is not reproduced", f"one of {', '.join(FIGURES)}, all")
    return [wanted]


def blocks_numbers(wanted: str, runs: int) -> list[str]:
    """Return the figures to judge over blocks (all: 4 to 6); raises BadInput for others, or one run."""
    numbers = list(MICRO_NUMBERS) if wanted == "all" else figure_numbers(wanted)
    if wrong := [number for number in numbers if number not in MICRO_NUMBERS]:
        raise BadInput(
            "--blocks", f"Fig {wrong[0]} is not judged over blocks", f"one of {', '.join(MICRO_NUMBERS)}, all"
        )
    if runs < 2:
        raise BadInput("--blocks", "one run a bar has no interval", "use --runs 2 or more")
    return numbers


def paper_natjam(numbers: Sequence[str], runs: int, run: Runner, blocks: int = 0) -> dict[str, Any]:
    """Carry out the figures, ``runs`` seeds a bar; return the report.

    With ``blocks`` the same figures are run for so many blocks of other seeds, too; the report has what holds
    over all of them under ``blocks``, and is else that of the first one.
    """
    more: dict[str, Any] = {}
    if blocks:
        found = natjam_blocks(numbers, runs, blocks, run)
        figures, more = found["figures"], {"blocks": found["blocks"]}
    else:
        figures = carry_out([FIGURES[number](runs) for number in numbers], run)
    mean_error, worst_error = errors([figure for figure in figures if figure.figure in MICRO_NUMBERS])
    return {
        "paper": "natjam",
        "calibrated_on": CALIBRATED_ON,
        "figures": figures,
        "mean_abs_relative_error": mean_error,
        "worst_abs_relative_error": worst_error,
        **more,
    }


def in_short(report: Mapping[str, Any]) -> str:
    """Return the report's errors as a sentence; nothing if no row of it counts."""
    mean_error, worst_error = report["mean_abs_relative_error"], report["worst_abs_relative_error"]
    if mean_error is None:
        return ""
    return f"Figs 4 to 6: mean absolute relative error {mean_error:.2%}, worst {worst_error:.2%}"


# --- with a folder and a bar -----------------------------------------------------------------


def report_kept(
    numbers: Sequence[str],
    runs: int,
    *,
    out: Path | None,
    workers: int | None,
    html: Path | None = None,
    blocks: int = 0,
) -> dict[str, Any]:
    """Return the report; with ``out`` keep runs, report and page there, with ``html`` write a page.

    A bar on stderr shows how far it is. Raises BadInput for a place that cannot be written.
    """
    if html is not None and (html.is_dir() or not html.absolute().parent.is_dir()):
        raise BadInput(
            f"--html {html}", "is a folder, or lies in none", "give a file in a folder that exists"
        )
    with _running(out, workers) as (run, folder):
        report = paper_natjam(numbers, runs, run, blocks)
        page = paper_html(TITLE, report["figures"], in_short(report)) if folder or html else ""
        if folder is not None:
            folder.write("results.json", report)
            write_whole(folder.path / "report.html", page.encode())
    if html is not None:
        write_whole(html, page.encode())
    return report


class Open(msgspec.Struct, frozen=True):
    """What Fig 3 leaves open: the choices in Figs 4 to 6, and how the 87 s of Figs 10 and 11 are split."""

    alternatives: list[Alternative]
    splits: list[natjam_deadlines.JobSplit]


def alternatives_kept(runs: int, *, out: Path | None, workers: int | None) -> Open:
    """Return the alternatives, likewise."""
    with _running(out, workers) as (run, folder):
        found = alternatives(runs, run)
        (splits,) = carry_out([natjam_deadlines.splits(runs, Lab().calibration)], run)
        if folder is not None:
            folder.write("alternatives.json", {"alternatives": found, "splits": splits})
    return Open(found, splits)


@contextmanager
def _running(out: Path | None, workers: int | None) -> Iterator[tuple[CellRuns, Folder | None]]:
    """Open the folder if there is one, yield what runs cells, and write ``run.json``."""
    with ProgressBar("runs") as progress:
        if out is None:
            yield CellRuns(None, workers, progress), None
            return
        folder = Folder(out, hashlib.sha256(b"natjam").hexdigest(), PAPER)
        with folder.opened():
            begun = time.perf_counter()
            run = CellRuns(folder, workers, progress)
            yield run, folder
            told = {
                "ran": run.ran,
                "known": len(run.store.known),
                "wall_s": round(time.perf_counter() - begun, 3),
                "runs_s": round(run.cells_s, 3),
            }
            folder.write("run.json", {"paper": "natjam", **told, **program_facts()})
