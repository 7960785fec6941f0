"""``yarn-research admission``: replay a trace of jobs with deadlines under several allocators.

Law: everything is checked before the first replay; results follow from the options alone, times do not.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import output_option, print_json, print_table


@click.command("admission")
@click.option(
    "--trace",
    "spec",
    required=True,
    metavar="SPEC",
    help="tr1, tr2, packaged:fb2009, or swim|rumen|alibaba|parquet:PATH.",
)
@click.option("--capacity", required=True, type=click.IntRange(1, 10**7), metavar="N", help="Containers.")
@click.option(
    "--deadlines", default="Fixed2x", show_default=True, metavar="NAME", help="As the papers name them."
)
@click.option("--allocators", default="all", show_default=True, metavar="A,B", help="Names, or all.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**32), help="Of tr1, tr2, deadlines."
)
@click.option("--choose", multiple=True, metavar="NAME=VALUE", help="Read a paper otherwise; repeat.")
@click.option(
    "--save", type=click.Path(path_type=Path), metavar="FILE", help="Write the trace as Parquet, too."
)
@output_option
def command(
    spec: str,
    capacity: int,
    deadlines: str,
    allocators: str,
    seed: int,
    choose: tuple[str, ...],
    save: Path | None,
    output: str,
) -> None:
    """Replay SPEC on N containers and measure deadlines met, work wasted and fairness."""
    from yarn_research.admission.replays import admission, check_options

    asked = check_options(capacity, deadlines, allocators, seed, choose)
    found = admission(spec, asked, save)
    if output == "json":
        print_json(found)
        return
    ratios = ("sdr", "ptr", "wtr", "fairness", "equality", "utilisation")
    columns = ("allocator", "SDR", "PTR", "WTR", *ratios[3:5], "in use", "met", "missed", "dropped", "s")
    rows = []
    for name, told in found["allocators"].items():
        shown = [f"{told[key]:.3f}" for key in ratios]
        rows.append((name, *shown, told["met"], told["missed"], told["dropped"], told["wall_s"]))
    on = f"{capacity} containers, {asked.deadlines}"
    print_table(columns, rows, f"{found['trace']}: {found['jobs']} jobs, {on}")
