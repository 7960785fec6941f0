"""``yarn-emulator compare``: one workload under several schemes.

Every option is a field of the scenario. A value that a scenario cannot have is an error under the option's
name, before anything runs or is written.

``yarn-emulator run``: one scenario file, with journal and report of every scheme.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from emulator.scenario import TIMINGS, Scenario, check, prepare
from emulator.scenario.checking import FILE_SCHEMES
from emulator.scenario.record import WorkloadEntry
from emulator.virtual.schemes import SCHEMES
from yarnctl.amounts import part_of, span_ms_of
from yarnctl.deciding.policies import JOB_POLICIES, TASK_POLICIES
from yarnctl.deciding.settings import PROFILES, RATIO_MAX
from yarnctl.deciding.waiting_worth import ROOM_SUSPENSIONS, SECOND_WORTH_RATIO
from yarnctl.errors import BadInput

Function = TypeVar("Function", bound=Callable[..., Any])

OPTIONS = {"job_policy": "--policy", "task_policy": "--task-policy", "room_within_ms": "--room-within"}

MAY_LOSE = 0.02
"""What the scheme mix may lose in ``compare`` and in the demo, where nothing else is given."""

PLACES = ("out", "no_journal", "workers", "validate", "output", "date")
"""Parameters that do not change what is computed: the command in the report leaves them out."""

workers_option = click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Number of processes.  [default: all cores]"
)
date_option = click.option(
    "--date",
    type=click.DateTime(("%Y-%m-%d",)),
    metavar="YYYY-MM-DD",
    help="Date that the report shows.  [default: today]",
)


def outcome_options(function: Function) -> Function:
    """Add ``--validate``, ``--date``, ``-o table|wide|json`` and ``--json``."""
    for add in reversed(
        (
            click.option("--validate", is_flag=True, help="Check every invariant after every event (slow)."),
            date_option,
            click.option(
                "-o",
                "output",
                type=click.Choice(("table", "wide", "json")),
                default="table",
                show_default=True,
                help="Output format. table: a column per scheme; wide: a line per scheme.",
            ),
            click.option("--json", "output", flag_value="json", help="The same as -o json."),
        )
    ):
        function = add(function)
    return function


def option_of(field: str) -> str:
    """Return the option that gives a field of the scenario."""
    return OPTIONS.get(field, "--" + field.replace("_", "-"))


def schemes_of(text: str) -> tuple[str, ...]:
    """Return the named schemes, in the order in which they are always shown. Raises BadInput."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in SCHEMES:
            raise BadInput("--schemes", f"unknown: {name[:40]!r}", f"use some of {', '.join(SCHEMES)}")
    return tuple(name for name in SCHEMES if name in names)


def date_of(date: datetime | None) -> str:
    """Return the date of a report as ISO 8601; today if none is given."""
    return (date or datetime.now()).date().isoformat()


def repeated(context: click.Context) -> str:
    """Return the command line with which a shell computes the same again: the options that were given."""
    words = ["yarn-emulator", context.info_name or ""]
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in PLACES or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        words += [*parameter.opts[:1], str(context.params[name])]
    return shlex.join(words)


@click.command("compare")
@click.option("--production", metavar="SPEC", help="Workload of the production queue.")
@click.option("--research", metavar="SPEC", help="Workload of the research queue.")
@click.option(
    "--week",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Replay what yarnctl history import wrote, on the cluster's own nodes, first as it was."
    " Requires --scheduler-xml.",
)
@click.option(
    "--as-it-was",
    type=click.Choice(("soft-cap", "yarn", "yarn-tuned")),
    help="Scheme that the week ran under.  [default: yarn if YARN preempted containers, else soft-cap]",
)
@click.option("--nodes", type=int, metavar="N", help="Number of nodes.  [with --week: the cluster's]")
@click.option(
    "--slots", type=int, metavar="N", help="Number of containers of a node.  [with --week: the node's size]"
)
@click.option(
    "--schemes", default=",".join(SCHEMES), metavar="A,B", help="Schemes to compare.  [default: all]"
)
@click.option(
    "--may-lose",
    metavar="P",
    help="Scheme mix: lose at most this part of research's container time of the last hour."
    f"  [default: {MAY_LOSE:.0%}]",
)
@click.option(
    "--room-within",
    metavar="SPAN",
    help="Scheme mix: time within which a lever must free a container, for example 3s."
    f"  [default: {ROOM_SUSPENSIONS} times that of a suspension; with --second-worth 0: once]",
)
@click.option(
    "--second-worth",
    default=SECOND_WORTH_RATIO,
    show_default=True,
    type=click.FloatRange(0, RATIO_MAX),
    metavar="W",
    help="Scheme mix: seconds of lost work that one second of a waiting container is worth. 0: the least"
    " lost work counts alone.",
)
@click.option(
    "--policy",
    "job_policy",
    default="MR",
    show_default=True,
    type=click.Choice(list(JOB_POLICIES)),
    help="Order in which jobs of research give up containers.",
)
@click.option(
    "--task-policy",
    default="SRT",
    show_default=True,
    type=click.Choice(list(TASK_POLICIES)),
    help="Order of the tasks of such a job.",
)
@click.option("--seed", default=0, show_default=True, type=int, metavar="K", help="Seed of all random draws.")
@click.option("--load", default=1.0, show_default=True, metavar="X", help="Factor of the arrival rates.")
@click.option(
    "--production-peak",
    type=float,
    metavar="X",
    help="Scale task counts until the peak offered load of production is X (1: the whole cluster).",
)
@click.option("--research-peak", type=float, metavar="X", help="The same for research (the paper: 1.5).")
@click.option(
    "--profile",
    default="default",
    show_default=True,
    type=click.Choice(list(PROFILES)),
    help="Settings of yarnctl: its defaults, or those of the paper.",
)
@click.option(
    "--timing",
    default="hadoop3",
    show_default=True,
    type=click.Choice(list(TIMINGS)),
    help="Times of the emulated cluster.",
)
@click.option(
    "--am-ratio", default=0.5, show_default=True, metavar="X", help="Part of a queue that masters may use."
)
@click.option(
    "--scheduler-xml",
    metavar="FILE",
    help="Read the queues from a capacity-scheduler.xml. Schemes: soft-cap, kill, natjam, mix.",
)
@click.option(
    "--production-queue",
    default="production",
    show_default=True,
    metavar="NAME",
    help="Leaf of --scheduler-xml for production.",
)
@click.option(
    "--research-queue",
    default="research",
    show_default=True,
    metavar="NAME",
    help="Leaf of --scheduler-xml for research.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep results, journals and report in DIR."
)
@click.option("--no-journal", is_flag=True, help="Write no journals into DIR.")
@workers_option
@outcome_options
@click.pass_context
def command(
    context: click.Context,
    production: str | None,
    research: str | None,
    week: Path | None,
    as_it_was: str | None,
    nodes: int | None,
    slots: int | None,
    schemes: str,
    may_lose: str | None,
    room_within: str | None,
    second_worth: float,
    job_policy: str,
    task_policy: str,
    seed: int,
    load: float,
    production_peak: float | None,
    research_peak: float | None,
    profile: str,
    timing: str,
    am_ratio: float,
    scheduler_xml: str | None,
    production_queue: str,
    research_queue: str,
    out: Path | None,
    no_journal: bool,
    workers: int | None,
    validate: bool,
    date: datetime | None,
    output: str,
) -> None:
    """Run one workload under several schemes; print each class's times and the lost work.

    SPEC is swim:PATH[@FROM-TO] (hours), rumen:PATH, synthetic:NAME, parquet:PATH or
    packaged:NAME[@FROM-TO]. Queue shares are 95/5, caps 80/20.
    """  # fmt: skip
    from emulator.cli.week_replay import compare_week, refuse_with_week, week_schemes
    from emulator.experiments.showing import print_outcome, run_shown

    given = context.get_parameter_source("schemes") is not ParameterSource.DEFAULT
    if week is not None:
        refuse_with_week(context)
        names = week_schemes(schemes if given else "")
    else:
        _require(context, ("production", "research", "nodes", "slots"))
        names = schemes_of(schemes)
        if scheduler_xml is not None and not given:
            names = FILE_SCHEMES
    lost_ratio = MAY_LOSE if "mix" in names else 0.0
    scenario = Scenario(
        nodes=nodes or 1,
        slots=slots,
        production=production,
        research=research,
        production_peak=production_peak,
        research_peak=research_peak,
        load=load,
        schemes=tuple(name for name in names if name in SCHEMES),
        workloads=() if week is None else (WorkloadEntry(spec=f"week:{week}"),),
        job_policy=job_policy,
        task_policy=task_policy,
        profile=profile,
        timing=timing,
        am_ratio=am_ratio,
        seed=seed,
        scheduler_xml=scheduler_xml,
        production_queue=production_queue,
        research_queue=research_queue,
        may_lose=lost_ratio if may_lose is None else part_of("--may-lose", may_lose),
        room_within_ms=None if room_within is None else span_ms_of("--room-within", room_within),
        second_worth=second_worth if "mix" in names else 0.0,
    )
    if week is not None:
        compare_week(
            scenario, week, names, was=as_it_was, workers=workers, output=output, sized=nodes is not None
        )
        return
    check(scenario, option_of)
    prepared = prepare(scenario)._replace(validate=validate)
    outcome = run_shown(
        prepared,
        command=repeated(context),
        date=date_of(date),
        out=out,
        journal=not no_journal,
        workers=workers,
    )
    print_outcome(outcome, output, out)


def _require(context: click.Context, names: Sequence[str]) -> None:
    """Raise a usage error for the first option that is missing."""
    for parameter in context.command.params:
        if parameter.name in names and context.params[parameter.name] is None:
            raise click.MissingParameter(ctx=context, param=parameter)


@click.command("run")
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.toml")
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of the results."
)
@click.option("--no-journal", is_flag=True, help="Write no journals.")
@workers_option
@outcome_options
def run_file(
    scenario: Path,
    out: Path,
    no_journal: bool,
    workers: int | None,
    validate: bool,
    date: datetime | None,
    output: str,
) -> None:
    """Run a scenario file; write results, report.html and a journal per scheme into DIR.

    A scheme that DIR holds complete does not run again.
    """
    from emulator.experiments.showing import print_outcome, run_shown
    from emulator.scenario import prepare, read_scenario

    record, where = read_scenario(scenario)
    prepared = prepare(record, where)._replace(validate=validate)
    outcome = run_shown(
        prepared,
        command=shlex.join(("yarn-emulator", "run", scenario.name, "--out", "DIR")),
        date=date_of(date),
        out=out,
        journal=not no_journal,
        workers=workers,
    )
    print_outcome(outcome, output, out)
