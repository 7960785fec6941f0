"""``yarn-emulator demo``: all schemes on an hour of a recorded Facebook workload, and what it means.

Law: the demo is an ordinary scenario, packaged with the program; nothing in it is tuned to a
scheme. Hours 18 and 21 of FB-2009 are production and research. 50 nodes of 8 containers: large
enough that jobs keep hundreds of tasks, small enough that all seven schemes take seconds. As in
section 6 of the paper, task counts are scaled until production alone just fills the cluster at
its peak (1.0) and research overloads it (1.5).
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import output_option


@click.command("demo")
@click.option(
    "--out",
    default=Path("demo-out"),
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where results go; results of an earlier demo make room.",
)
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@output_option
def command(out: Path, workers: int | None, output: str) -> None:
    """Show what each scheme does to production and to research, on a recorded workload."""
    from emulator.experiments.showing import print_outcome, print_reading, run_shown
    from emulator.scenario import Scenario, prepare

    prepared = prepare(
        Scenario(
            nodes=50,
            slots=8,
            production="packaged:fb2009@18-19",
            research="packaged:fb2009@21-22",
            production_peak=1.0,
            research_peak=1.5,
        )
    )
    if output == "table":
        click.echo("Two hours of a Facebook workload of 2009 on 50 nodes, in virtual time ...", err=True)
    outcome = run_shown(prepared, out=out, workers=workers, replace=True, picture=True)
    if output == "json":
        print_outcome(outcome, output, out)
    else:
        print_reading(outcome, out)
