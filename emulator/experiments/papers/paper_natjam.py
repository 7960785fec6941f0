"""The paper Natjam as one report: every figure, the paper's number beside ours.

Law: the shape is fixed (other tools read it); what a figure shows is its own module's affair, and
follows from the runs alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from emulator.experiments.papers import natjam_deadlines, natjam_micro, natjam_traces
from emulator.experiments.papers.natjam_alternatives import Alternative, alternatives
from emulator.experiments.papers.natjam_blocks import natjam_blocks
from emulator.experiments.papers.natjam_micro import Lab
from emulator.experiments.report.page import paper_html
from emulator.experiments.results.cell_runs import CellRuns
from emulator.experiments.results.cells import Plan, Runner, carry_out
from emulator.experiments.results.figures import Figure, errors
from emulator.experiments.results.folder import PAPER, Folder, write_whole
from emulator.experiments.results.runs import program_facts
from yarnctl.command_line import ProgressBar
from yarnctl.errors import BadInput

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

MICRO = ("4", "5", "6")
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
    numbers = list(MICRO) if wanted == "all" else figure_numbers(wanted)
    if wrong := [number for number in numbers if number not in MICRO]:
        raise BadInput(
            "--blocks", f"Fig {wrong[0]} is not judged over blocks", f"one of {', '.join(MICRO)}, all"
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
    mean_error, worst_error = errors([figure for figure in figures if figure.figure in MICRO])
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
    splits: list[natjam_deadlines.Split]


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
    """Open the folder if there is one, lend what runs cells, and write ``run.json``."""
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
