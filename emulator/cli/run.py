"""``yarn-emulator run``: one scenario file, everything kept.

Law: the file says what is run, the command line only where the results go.
"""

from __future__ import annotations

from pathlib import Path

import click

from yarnctl.command_line import output_option


@click.command("run")
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.toml")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The results.")
@click.option("--no-journal", is_flag=True, help="Keep no journals.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@click.option("--validate", is_flag=True, help="Check every invariant after every event (slow).")
@output_option
def command(
    scenario: Path, out: Path, no_journal: bool, workers: int | None, validate: bool, output: str
) -> None:
    """Run a scenario: results.json, run.json, report.html and a journal per scheme in DIR.

    What DIR holds finished already is not run again.
    """
    from emulator.experiments.showing import print_outcome, run_shown
    from emulator.scenario import prepare, read_scenario

    record, where = read_scenario(scenario)
    prepared = prepare(record, where)._replace(validate=validate)
    outcome = run_shown(prepared, out=out, journal=not no_journal, workers=workers)
    print_outcome(outcome, output, out)
