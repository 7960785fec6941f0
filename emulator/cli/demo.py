"""``yarn-emulator demo``: all schemes on an hour of a recorded Facebook workload; then the live loop.

Law: the demo is an ordinary scenario, packaged with the program; nothing in it is tuned to a
scheme. Hours 18 and 21 of FB-2009 are production and research. 50 nodes of 8 containers: large
enough that jobs keep hundreds of tasks, small enough that all seven schemes take seconds. As in
section 6 of the paper, task counts are scaled until production alone just fills the cluster at
its peak (1.0) and research overloads it (1.5).

The last act (``emulator.demo``) is real: a live cluster, processes, yarnctl over HTTP. Exit status 1 if the
output of the job that was suspended differs from that of the same job undisturbed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.command_line import output_option, print_json
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    from emulator.demo.live_act import LiveOutcome


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
@click.option(
    "--live/--no-live", default=True, show_default=True, help="End with the live loop and real processes."
)
@output_option
def command(out: Path, workers: int | None, live: bool, output: str) -> int:
    """Show what each scheme does to production and to research; then a live loop with real processes."""
    require_extra("emulator")
    require_extra("report")
    from emulator.experiments.results.runs import compare_json
    from emulator.experiments.showing import print_reading, run_shown
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
    if output == "table":
        print_reading(outcome, out)
    acted = play_live() if live else None
    if output == "json":
        shown: dict[str, Any] = compare_json(outcome)
        if acted is not None:
            shown["live"] = acted
        print_json(shown)
    elif acted is not None:
        print_verdict(acted)
    return 0 if acted is None or acted.identical else 1


def play_live() -> LiveOutcome | None:
    """Play the live act, telling on stderr what happens; None where there is no Linux to play it on."""
    if sys.platform != "linux":
        click.echo("note: the live act is left out: its processes need Linux", err=True)
        return None
    from emulator.demo.live_act import LivePlan, play

    click.echo("\nThe live loop: yarnctl attached over HTTP, your own reducer, real processes ...", err=True)
    return play(LivePlan(), lambda text: click.echo(text, err=True))


def print_verdict(acted: LiveOutcome) -> None:
    """Print what the live act came to; its last line is the verdict on the bytes."""
    saved = acted.request_to_manifest_s
    median = "" if saved is None else f" (median {saved:.1f} s from request to manifest)"
    click.echo(
        f"\nLive: production took {acted.production_s:.0f} s; {acted.suspensions} reduces of research were"
        f" suspended{median}, {acted.resumed} seen to resume; {acted.bytes_compared} bytes compared."
    )
    click.echo("output identical" if acted.identical else "OUTPUT DIFFERS")
