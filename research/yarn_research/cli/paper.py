"""``yarn-research paper``: a paper's figures, its numbers beside ours."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

_NUMBERS = attrgetter("label", "metric", "paper", "ours", "stdev", "runs")


@click.group()
def command() -> None:
    """Run a paper's figures and print its numbers beside ours."""


@command.command()
@click.option("--figure", default="all", show_default=True, help="A figure's number, or all.")
@click.option("--runs", default=20, show_default=True, type=click.IntRange(1, 1000), help="Seeds per bar.")
@click.option(
    "--alternatives",
    "open_choices",
    is_flag=True,
    help="Show what Fig 3 cannot fix, each choice with its error.",
)
@click.option(
    "--blocks",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Judge Figs 4 to 6 over N blocks of --runs seeds each.",
)
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with plots, too.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep runs, results, report.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@output_option
def natjam(
    figure: str,
    runs: int,
    open_choices: bool,
    blocks: int | None,
    html: Path | None,
    out: Path | None,
    workers: int | None,
    output: str,
) -> None:
    """Natjam (Cho et al., SoCC 2013): Figs 3 to 15.

    A run that DIR holds already is not run again, whichever figures asked for it.
    """
    from yarn_research.papers.paper_natjam import (
        alternatives_kept,
        blocks_numbers,
        figure_numbers,
        report_kept,
    )

    if open_choices:
        if blocks:
            raise BadInput("--blocks", "alternatives are compared on one block", "leave one of the two out")
        _show_alternatives(alternatives_kept(runs, out=out, workers=workers), output)
        return
    numbers = blocks_numbers(figure, runs) if blocks else figure_numbers(figure)
    report = report_kept(numbers, runs, out=out, workers=workers, html=html, blocks=blocks or 0)
    _tell(report, output)


def replay_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add what a replay of generated traces takes."""
    options = (
        click.option("--figure", default="all", show_default=True, help="A figure's number, or all."),
        click.option(
            "--runs", default=1, show_default=True, type=click.IntRange(1, 100), help="Generated traces."
        ),
        click.option(
            "--jobs",
            default=100_000,
            show_default=True,
            type=click.IntRange(1, 10**7),
            metavar="N",
            help="First jobs of each trace; TR1 has 159194, TR2 1140064.",
        ),
        click.option(
            "--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]"
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command()
@replay_options
@output_option
def pythia(figure: str, runs: int, jobs: int, workers: int | None, output: str) -> None:
    """PYTHIA (Dimopoulos et al., UCSB 2017-02): Table I, Figs 1 to 5."""
    from yarn_research.papers.paper_pythia import paper_pythia

    report = paper_pythia(figure, runs, jobs, workers)
    _tell(report, output)


@command.command()
@replay_options
@click.option("--alternatives", "open_choices", is_flag=True, help="Show what the paper leaves open.")
@output_option
def justice(figure: str, runs: int, jobs: int, workers: int | None, open_choices: bool, output: str) -> None:
    """Justice (Dimopoulos et al., UCSB 2019-09): Table 1, Figs 1 to 8."""
    from yarn_research.papers.paper_justice import paper_justice, readings

    if open_choices:
        _show_readings(readings(runs, jobs, workers), output)
        return
    report = paper_justice(figure, runs, jobs, workers)
    _tell(report, output)


@command.command()
@click.option("--figure", default="all", show_default=True, help="2 to 7, 9, 10, t2 to t8, all; certified.")
@click.option(
    "--runtimes",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Recorded run times, for Fig 6's Trace and for certified.  [twelve packaged tables]",
)
@click.option(
    "--choose", "chosen", multiple=True, metavar="NAME=VALUE", help="Read the paper otherwise; repeat."
)
@click.option("--alternatives", "open_choices", is_flag=True, help="Show what the paper leaves open.")
@output_option
def mrm(
    figure: str,
    runtimes: Path | None,
    chosen: tuple[str, ...],
    open_choices: bool,
    output: str,
) -> None:
    """MRM (Moshref et al.): Figs 2 to 7, 9, 10, Tables 2 to 8."""
    from yarn_research.papers.paper_mrm import alternatives, mrm_choices, paper_mrm

    choices = mrm_choices(chosen) if chosen else None
    if open_choices:
        if choices is not None:
            raise BadInput("--choose", "alternatives are each reading by itself", "leave one of the two out")
        _show_readings(alternatives(), output)
        return
    _tell(paper_mrm(figure, runtimes, choices), output)


@command.command()
@click.option("--figure", default="all", show_default=True, help="3 to 14, all; certified, bound.")
@click.option(
    "--runtimes",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Recorded run times, for Figs 4, 5 and certified.  [twelve packaged tables]",
)
@click.option("--choose", "chosen", multiple=True, metavar="NAME=VALUE", help="Read Alg 2 otherwise; repeat.")
@click.option("--alternatives", "open_choices", is_flag=True, help="Show what the paper leaves open.")
@output_option
def orion(
    figure: str, runtimes: Path | None, chosen: tuple[str, ...], open_choices: bool, output: str
) -> None:
    """ORiON (Xekalaki et al.): Figs 3 to 14."""
    from yarn_research.papers.orion.paper_orion import paper_orion
    from yarn_research.papers.orion.placement_alternatives import placement_alternatives
    from yarn_research.placement.placement_readings import orion_choices

    choices = orion_choices(chosen) if chosen else None
    if open_choices:
        if choices is not None:
            raise BadInput("--choose", "alternatives are each reading by itself", "leave one of the two out")
        _show_placement_readings(placement_alternatives(), output)
        return
    _tell(paper_orion(figure, runtimes, choices), output)


def _show_placement_readings(found: list[Any], output: str) -> None:
    if output == "table":
        rows = [
            (each.choice, *(f"{share:.1%}" for share in each.met_ratio.values()), each.claims_failed)
            for each in found
        ]
        columns = ("reading", *(f"{gap} s" for gap in found[0].met_ratio), "claims failed")
        print_table(columns, rows, "Deadlines met of 75 applications, by gap")
    _show_readings(found, output)


def _show_readings(found: list[Any], output: str) -> None:
    if output == "json":
        print_json({"alternatives": found})
        return
    rows = [(each.choice, each.claims_failed, "; ".join(each.failed)) for each in found]
    print_table(("reading", "claims failed", "which"), rows, "What the paper leaves open")


def _tell(report: dict[str, Any], output: str) -> None:
    if output == "json":
        print_json(report)
        return
    for figure in report["figures"]:
        if figure.rows:
            rows = [(*_NUMBERS(each), _percent(each.relative_error)) for each in figure.rows]
            columns = ("what", "metric", "paper", "ours", "s.d.", "runs", "error")
            print_table(columns, rows, f"Fig {figure.figure}: {figure.title}")
        if figure.claims:
            claims = [
                (each.claim, each.paper, each.ours, "holds" if each.holds else "does NOT hold", each.profile)
                for each in figure.claims
            ]
            print_table(("claim", "paper", "ours", "", "profile"), claims)
        for note in figure.notes:
            click.echo(f"note: {note}")
    if "blocks" in report:
        _show_blocks(report["blocks"])
    from yarn_research.papers.paper_natjam import in_short

    if report["paper"] == "natjam" and (said := in_short(report)):
        click.echo(said)


def _show_blocks(blocks: dict[str, Any]) -> None:
    """Show what holds over all blocks; the figures above are those of the first one."""
    rows = [
        (
            each.figure,
            each.claim,
            each.verdict,
            f"{each.blocks_hold} / {each.blocks_tie} / {each.blocks_fail}",
            "; ".join(
                f"{one.what} {one.min:.4g} .. {one.median:.4g} .. {one.max:.4g}" for one in each.measured
            ),
        )
        for each in blocks["claims"]
    ]
    title = f"{blocks['count']} blocks of {blocks['runs']} seeds (above: the first)"
    columns = ("Fig", "claim", "over all", "holds / tie / fails", "smallest .. median .. largest")
    print_table(columns, rows, title)
    mean, worst = blocks["mean_abs_relative_error"], blocks["worst_abs_relative_error"]
    click.echo(
        f"mean error {mean.min:.2%} .. {mean.median:.2%} .. {mean.max:.2%},"
        f" worst {worst.min:.2%} .. {worst.median:.2%} .. {worst.max:.2%} over the blocks"
    )


def _show_alternatives(open_choices: Any, output: str) -> None:
    if output == "json":
        print_json(open_choices)
        return
    found = open_choices.alternatives
    rows = [
        (
            each.constant,
            each.choice,
            _percent(each.mean_abs_relative_error),
            _percent(each.worst_abs_relative_error),
            each.claims_failed,
            each.reason,
        )
        for each in found
    ]
    columns = ("constant", "choice", "mean error", "worst", "orderings wrong", "why ours")
    print_table(columns, rows, "What Fig 3 cannot fix")
    splits = [
        (
            f"{each.map_s:g} s, {each.longest_reduce_s:g} s{' (ours)' if each.ours else ''}",
            each.alone_s,
            each.mdf_s,
            each.mlf_s,
            "; ".join(each.failed),
        )
        for each in open_choices.splits
    ]
    names = ("map, longest reduce", "alone (87 s)", "MDF (175 s)", "MLF (239 s)", "claims that fail")
    print_table(names, splits, "Figs 10 and 11: how a job's 87 s are split")


def _percent(error: float | None) -> str | None:
    return None if error is None else f"{error:+.1%}"
