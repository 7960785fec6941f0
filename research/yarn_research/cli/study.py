"""``yarn-research study``: every pair of recorded hours under several schemes, kept and summed up.

Law: research/notes/levers.md fixes which hours are paired and what is compared; no option changes it. A
finished run is not repeated. Bad input is rejected under the option's name before anything is run or
written.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from emulator.cli.compare import option_of, schemes_of
from yarnctl.amounts import part_of, span_ms_of
from yarnctl.command_line import ProgressBar, output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarn_research.studies.hour_pairs import HourPair

DEFAULT_SCHEMES = "soft-cap,yarn-tuned,natjam"
DEFAULT_MAY_LOSE = "0%,2%"
MAX_SEEDS = 1000
LINE_EVERY_S = 10

_HOUR = re.compile(r"[0-9]{1,6}", re.ASCII)


@click.command("study")
@click.option("--production", required=True, metavar="SPEC", help="Trace of the production workload.")
@click.option("--research", required=True, metavar="SPEC", help="Trace of the research workload.")
@click.option("--hours", default="all", show_default=True, metavar="all|A,B", help="Hours of production.")
@click.option(
    "--pairs", metavar="A/B,C/D", help="Pairs of a plan, production/research, not those by the rule."
)
@click.option("--nodes", required=True, type=int, metavar="N", help="How many nodes.")
@click.option("--slots", required=True, type=int, metavar="N", help="Containers of each node.")
@click.option("--schemes", default=DEFAULT_SCHEMES, show_default=True, metavar="A,B", help="Some of them.")
@click.option(
    "--seeds",
    default=3,
    show_default=True,
    type=click.IntRange(1, MAX_SEEDS),
    metavar="N",
    help="Each pair is run with the seeds 1 to N.",
)
@click.option(
    "--may-lose",
    metavar="P,P",
    help=f"Loss budgets of the scheme mix, a row each.  [default: {DEFAULT_MAY_LOSE}]",
)
@click.option("--room-within", metavar="SPAN", help="mix takes levers that give room within it: 3s.")
@click.option(
    "--second-worth",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0, 1000),
    metavar="W",
    help="mix: seconds of lost work that one second of a waiting container is worth (0: no price).",
)
@click.option(
    "--kills-max",
    default=1,
    show_default=True,
    type=click.IntRange(1, 100),
    metavar="N",
    help="mix: how often one task may be killed in the budget's window.",
)
@click.option(
    "--production-peak",
    default=1.0,
    show_default=True,
    type=float,
    metavar="X",
    help="Scale each hour's task counts to this peak offered load (1: the whole cluster).",
)
@click.option("--research-peak", default=1.5, show_default=True, type=float, metavar="X", help="The same.")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Keep every run.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@output_option
def command(
    production: str,
    research: str,
    hours: str,
    pairs: str | None,
    nodes: int,
    slots: int,
    schemes: str,
    seeds: int,
    may_lose: str | None,
    room_within: str | None,
    second_worth: float,
    kills_max: int,
    production_peak: float,
    research_peak: float,
    out: Path,
    workers: int | None,
    output: str,
) -> None:
    """Run every pair of recorded hours under several schemes and print what each class takes, in the mean.

    Each hour with work is production once, beside the next hour but eleven as research.
    Runs that DIR holds already are not run again: repeat the command to continue an interrupted study.
    """  # fmt: skip
    from emulator.experiments.results.folder import Folder
    from emulator.scenario import Scenario, check
    from yarn_research.studies.cells import STUDY
    from yarn_research.studies.study_figures import TABLE_COLUMNS, study_json, table_rows
    from yarn_research.studies.study_rows import rows_of
    from yarn_research.studies.study_runs import prepare_study, run_study

    scenario = Scenario(
        nodes=nodes,
        slots=slots,
        production=production,
        research=research,
        production_peak=production_peak,
        research_peak=research_peak,
        schemes=schemes_of(schemes),
    )
    check(scenario, option_of)
    budgets, room_within_ms = mix_options(scenario.schemes, may_lose, room_within)
    rows = rows_of(scenario.schemes, budgets, room_within_ms, second_worth, kills_max)
    named = None if pairs is None else pairs_named(pairs)
    study = prepare_study(scenario, rows, seeds, hours_named(hours), named)
    Folder(out, study.identity, STUDY).require_ours()
    with StudyProgress("runs") as progress:
        answer = run_study(study, out, workers, progress, lambda results: study_json(study, results))
    for note in study.notes:
        click.echo(f"note: {note}", err=True)
    if output == "json":
        print_json(answer)
        return
    title = f"Means over {len(study.jobs)} pairs of hours, seeds 1 to {seeds}"
    print_table(TABLE_COLUMNS, table_rows(answer["summary"]), title)
    click.echo(f"every pair: {out / 'results.json'}")


def hours_named(text: str) -> tuple[int, ...] | None:
    """Return the hours that ``--hours`` names; None for all."""
    if text.strip() == "all":
        return None
    named = [part.strip() for part in text.split(",")]
    for part in named:
        if _HOUR.fullmatch(part) is None:
            raise BadInput("--hours", f"{part[:40]!r} is not an hour", "give all, or hours like 0,5,13")
    found = tuple(int(part) for part in named)
    if len(set(found)) < len(found):
        raise BadInput("--hours", "an hour stands twice", "name each once")
    return found


def pairs_named(text: str) -> tuple[HourPair, ...]:
    """Return the pairs that ``--pairs`` names."""
    from yarn_research.studies.hour_pairs import HourPair

    found = []
    for part in text.split(","):
        hours = part.strip().split("/")
        if len(hours) != 2 or not all(_HOUR.fullmatch(hour) for hour in hours):
            raise BadInput("--pairs", f"{part[:40]!r} is not a pair", "use for example 12/18,13/19")
        found.append(HourPair(int(hours[0]), int(hours[1])))
    if len(set(found)) < len(found):
        raise BadInput("--pairs", "a pair stands twice", "name each once")
    return tuple(found)


def mix_options(
    schemes: tuple[str, ...], may_lose: str | None, room_within: str | None
) -> tuple[tuple[float, ...], int | None]:
    """Return what the scheme ``mix`` may lose, row by row, and within which span, ms, it makes room."""
    for option, text in (("--may-lose", may_lose), ("--room-within", room_within)):
        if text is not None and "mix" not in schemes:
            raise BadInput(option, "the scheme mix is not played", "name it in --schemes")
    budgets = DEFAULT_MAY_LOSE if may_lose is None else may_lose
    ratios = tuple(part_of("--may-lose", part.strip()) for part in budgets.split(","))
    if len(set(ratios)) < len(ratios):
        raise BadInput("--may-lose", "a budget stands twice", "name each once")
    return ratios, None if room_within is None else span_ms_of("--room-within", room_within.strip())


class StudyProgress(ProgressBar):
    """A bar on a terminal; elsewhere a line every ten seconds, since a study may take hours."""

    def __init__(self, doing: str) -> None:
        super().__init__(doing)
        self._runs = 0
        self._started_s = self._said_s = time.monotonic()

    def expect(self, more: int) -> None:
        """Say that there are so many runs more than was known."""
        super().expect(more)
        self._runs += more

    def step(self, doing: str | None = None, by: int = 1) -> None:
        """Count runs that are done."""
        super().step(doing, by)
        now_s = time.monotonic()
        if now_s - self._said_s >= LINE_EVERY_S and not sys.stderr.isatty():
            self._said_s = now_s
            click.echo(f"{self.done} of {self._runs} runs, {now_s - self._started_s:.0f} s", err=True)
