"""``yarn-emulator compare``: one workload under several schemes.

Law: every option is a field of the scenario under the name a user expects; a value that cannot
be is refused under the option's own name before anything is run or written.

``yarn-emulator run``: one scenario file, everything kept.

Law: the file says what is run, the command line only where the results go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from emulator.cli.mix_options import may_lose_option, room_within_option
from emulator.scenario import TIMINGS, Scenario, check, prepare
from emulator.virtual.schemes import BY_DEFAULT, SCHEMES
from yarnctl.amounts import part_of, span_ms_of
from yarnctl.command_line import output_option
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES
from yarnctl.errors import BadInput

OPTIONS = {"job_policy": "--policy", "task_policy": "--task-policy", "room_within_ms": "--room-within"}


def option_of(field: str) -> str:
    """Return the option that gives a field of the scenario."""
    return OPTIONS.get(field, "--" + field.replace("_", "-"))


def schemes_of(text: str) -> tuple[str, ...]:
    """Return the schemes named, in the order in which they are always shown."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SCHEMES:
            raise BadInput("--schemes", f"unknown: {name[:40]!r}", f"some of {', '.join(SCHEMES)}")
    return tuple(name for name in SCHEMES if name in names)


@click.command("compare")
@click.option("--production", required=True, metavar="SPEC", help="The hurried workload.")
@click.option("--research", required=True, metavar="SPEC", help="The patient workload.")
@click.option("--nodes", required=True, type=int, metavar="N", help="How many nodes.")
@click.option("--slots", required=True, type=int, metavar="N", help="Containers of each node.")
@click.option(
    "--schemes", default=",".join(BY_DEFAULT), metavar="A,B", help="Some of them.  [default: all but mix]"
)
@may_lose_option
@room_within_option
@click.option(
    "--policy",
    "job_policy",
    default="MR",
    show_default=True,
    type=click.Choice(list(JOB_POLICIES)),
    help="Which job gives.",
)
@click.option(
    "--task-policy",
    default="SRT",
    show_default=True,
    type=click.Choice(list(TASK_POLICIES)),
    help="Which of its tasks.",
)
@click.option("--seed", default=0, show_default=True, type=int, metavar="K", help="All chance comes from it.")
@click.option("--load", default=1.0, show_default=True, metavar="X", help="Multiplies arrival rates.")
@click.option(
    "--production-peak",
    type=float,
    metavar="X",
    help="Scale task counts until the peak offered load of production is X (1: the whole cluster).",
)
@click.option("--research-peak", type=float, metavar="X", help="The same for research; the paper has 1.5.")
@click.option(
    "--profile",
    default="default",
    show_default=True,
    type=click.Choice(list(PROFILES)),
    help="Guards on, or as in the paper.",
)
@click.option(
    "--timing",
    default="hadoop3",
    show_default=True,
    type=click.Choice(list(TIMINGS)),
    help="Which cluster's own times.",
)
@click.option(
    "--am-ratio", default=0.5, show_default=True, metavar="X", help="Part of a queue that masters may hold."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep results, journals, report.")
@click.option("--no-journal", is_flag=True, help="With --out: keep no journals.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@click.option("--validate", is_flag=True, help="Check every invariant after every event (slow).")
@output_option
def command(
    output: str, out: Path | None, no_journal: bool, workers: int | None, validate: bool, **fields: Any
) -> None:
    """Run one workload under several schemes and print what each class waits, and what is lost.

    SPEC is swim:PATH[@FROM-TO] (hours), rumen:PATH, synthetic:NAME, parquet:PATH or
    packaged:NAME[@FROM-TO]. Queue shares are 95/5, caps 80/20.
    """  # fmt: skip
    from emulator.experiments.showing import print_outcome, run_shown

    within = fields.pop("room_within")
    fields["room_within_ms"] = None if within is None else span_ms_of("--room-within", within)
    fields["may_lose"] = part_of("--may-lose", fields["may_lose"])
    scenario = Scenario(**{**fields, "schemes": schemes_of(fields["schemes"])})
    check(scenario, option_of)
    prepared = prepare(scenario)._replace(validate=validate)
    outcome = run_shown(prepared, out=out, journal=not no_journal, workers=workers)
    print_outcome(outcome, output, out)


@click.command("run")
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.toml")
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The results.")
@click.option("--no-journal", is_flag=True, help="Keep no journals.")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", help="Processes.  [default: all cores]")
@click.option("--validate", is_flag=True, help="Check every invariant after every event (slow).")
@output_option
def run_file(
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
