"""``yarn-emulator paper``: a paper's figures, its numbers beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from yarnctl.command_line import output_option, print_json, print_table


def _say(message: str) -> None:
    click.echo(f"{message} ...", err=True)


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
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with plots, too.")
@output_option
def natjam(figure: str, runs: int, open_choices: bool, html: Path | None, output: str) -> None:
    """Natjam (Cho et al., SoCC 2013): Figs 3 to 15."""
    from emulator.experiments.paper_natjam import alternatives, figure_numbers, paper_natjam

    if open_choices:
        _show_alternatives(alternatives(runs, _say), output)
        return
    report = paper_natjam(figure_numbers(figure), runs, _say)
    if html is not None:
        _write_page(html, report)
    if output == "json":
        print_json(report)
    else:
        _show(report)


def _write_page(path: Path, report: dict[str, Any]) -> None:
    import msgspec

    from emulator.experiments.folder import write_whole
    from emulator.experiments.report import paper_html

    title = "Natjam's evaluation: the paper's numbers beside ours"
    write_whole(path, paper_html(title, msgspec.to_builtins(report["figures"])).encode())


def _show(report: dict[str, Any]) -> None:
    for figure in report["figures"]:
        if figure.rows:
            rows = [
                (
                    each.label,
                    each.metric,
                    each.paper,
                    each.ours,
                    each.stdev,
                    each.runs,
                    _percent(each.relative_error),
                )
                for each in figure.rows
            ]
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
    if report["mean_abs_relative_error"] is not None:
        mean, worst = report["mean_abs_relative_error"], report["worst_abs_relative_error"]
        click.echo(f"Figs 4 to 6: mean absolute relative error {mean:.2%}, worst {worst:.2%}")


def _show_alternatives(found: list[Any], output: str) -> None:
    if output == "json":
        print_json({"alternatives": found})
        return
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


def _percent(error: float | None) -> str | None:
    return None if error is None else f"{error:+.1%}"
