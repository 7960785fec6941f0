"""``yarn-emulator demo``: all schemes on two hours of a recorded Facebook workload, then the live loop.

The scenario is an ordinary one, with nothing tuned to a scheme. 50 nodes of 8 containers are large enough for
jobs of hundreds of tasks and small enough that all schemes take seconds. As in section 6 of the paper, task
counts are scaled until production alone just fills the cluster at its peak (1.0) and research overloads it
(1.5).

The live loop (``emulator.demo``) has a live cluster, real processes, and yarnctl attached over HTTP. Exit
status 1 if the output of the suspended job differs from that of the same job undisturbed.
"""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from emulator.cli.compare import MAY_LOSE, date_of, date_option, workers_option
from emulator.virtual.schemes import SCHEMES
from yarnctl.command_line import output_option, print_json
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    from emulator.demo.live_act import LiveOutcome

MIX_HOURS = (*range(11), 17, 18, 19, 20, 21)
"""Hours of the day on which a rule or a constant of the mix was chosen: "How the mix was made" of
research/notes/levers.md, and "Tuning" of plan-second-worth.md beside it. Hour 11 has no jobs."""

PRODUCTION_HOUR, RESEARCH_HOUR = 23, 12
"""The first pair, in the order of ``study``, without an hour of ``MIX_HOURS``."""

NOTE = (
    f"hour {PRODUCTION_HOUR} of the day is production and hour {RESEARCH_HOUR} research. No constant"
    " of the mix was chosen on these hours; studies judged it on both. One pair is an example,"
    " research/notes/levers.md has all pairs of the day."
)


@click.command("demo")
@click.option(
    "--out",
    default=Path("demo-out"),
    show_default=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the results; results of an earlier demo in it are replaced.",
)
@workers_option
@click.option(
    "--live/--no-live", default=True, show_default=True, help="End with the live loop and real processes."
)
@date_option
@output_option
def command(out: Path, workers: int | None, live: bool, date: datetime | None, output: str) -> int:
    """Compare all schemes on a recorded workload, then run the live loop with real processes."""
    require_extra("emulator")
    require_extra("report")
    from emulator.experiments.results.runs import compare_json
    from emulator.experiments.showing import print_outcome, run_shown
    from emulator.scenario import Scenario, prepare
    from yarnctl.deciding.waiting_worth import SECOND_WORTH_RATIO

    prepared = prepare(
        Scenario(
            nodes=50,
            slots=8,
            production=f"packaged:fb2009-day@{PRODUCTION_HOUR}-{PRODUCTION_HOUR + 1}",
            research=f"packaged:fb2009-day@{RESEARCH_HOUR}-{RESEARCH_HOUR + 1}",
            production_peak=1.0,
            research_peak=1.5,
            schemes=tuple(SCHEMES),
            may_lose=MAY_LOSE,
            second_worth=SECOND_WORTH_RATIO,
        )
    )
    prepared = prepared._replace(notes=(*prepared.notes, NOTE))
    if output == "table":
        click.echo("Two hours of a Facebook workload of 2009 on 50 nodes, in virtual time ...", err=True)
    outcome = run_shown(
        prepared,
        command="yarn-emulator demo",
        date=date_of(date),
        out=out,
        workers=workers,
        replace=True,
        picture=True,
    )
    if output == "table":
        print_outcome(outcome, output, out)
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
    """Run the live loop with its progress on stderr; None on another system than Linux."""
    if sys.platform != "linux":
        click.echo("note: the live loop does not run: its processes need Linux", err=True)
        return None
    from emulator.demo.live_act import LivePlan, play

    click.echo("\nThe live loop: yarnctl attached over HTTP, your own reducer, real processes ...", err=True)
    return play(LivePlan(), lambda text: click.echo(text, err=True))


def print_verdict(outcome: LiveOutcome) -> None:
    """Print the result of the live loop; the last line compares the outputs."""
    saved = outcome.request_to_manifest_s
    median = "" if saved is None else f" (median {saved:.1f} s from request to manifest)"
    click.echo(
        f"\nLive: production took {outcome.production_s:.0f} s. {outcome.suspensions} reduces of research"
        f" were suspended{median} and {outcome.resumed} of them resumed."
        f" {outcome.bytes_compared} bytes compared:"
    )
    click.echo("output identical" if outcome.identical else "OUTPUT DIFFERS")
