"""``yarn-emulator compare --week``: the cluster's week as it was, then under other schemes."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec
from click.core import ParameterSource

from emulator.experiments.results.runs import run_experiment
from emulator.experiments.showing import shown_progress
from emulator.experiments.week.as_it_was import OFF_MAX, AsItWas, replay_as_it_was, scheme_of
from emulator.experiments.week.week_comparison import (
    AS_IT_WAS,
    ContainerTime,
    Enrolment,
    QueueOutcome,
    enrolments,
    outcomes,
    predictions,
)
from emulator.experiments.week.week_scenario import nodes_of, prepare_week
from emulator.scenario import Scenario, check
from emulator.scenario.checking import FILE_SCHEMES
from emulator.virtual.run import Result
from yarnctl.command_line import print_json, print_table
from yarnctl.errors import BadInput, nearest
from yarnctl.traces.week.week_folder import read_nodes, read_week

SCHEMES_OF_WEEK = (AS_IT_WAS, "yarn-tuned", "natjam", "mix")
WORST_SHOWN = 10
NOT_WITH_WEEK = {
    "production": "--production",
    "research": "--research",
    "production_peak": "--production-peak",
    "research_peak": "--research-peak",
    "load": "--load",
    "timing": "--timing",
    "am_ratio": "--am-ratio",
    "out": "--out",
    "no_journal": "--no-journal",
}
"""Options of ``compare`` that a week has no use for."""


def week_schemes(text: str) -> tuple[str, ...]:
    """Return the named schemes of a week, as it was first; "": the usual ones. Raises BadInput."""
    names = [name.strip() for name in text.split(",") if name.strip()] or list(SCHEMES_OF_WEEK)
    for name in names:
        if name not in (AS_IT_WAS, *FILE_SCHEMES):
            remedy = nearest(name, (AS_IT_WAS, *FILE_SCHEMES), f"use some of {', '.join(SCHEMES_OF_WEEK)}")
            raise BadInput("--schemes", f"unknown: {name[:40]!r}", remedy)
    return (AS_IT_WAS, *(name for name in FILE_SCHEMES if name in names))


def refuse_with_week(context: click.Context) -> None:
    """Raise BadInput for an option that has no effect beside ``--week``."""
    for name, option in NOT_WITH_WEEK.items():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise BadInput(option, "has no effect with --week", "remove one of them")
    if context.params["scheduler_xml"] is None:
        raise BadInput("--week", "needs the queues of the cluster", "give --scheduler-xml FILE")


def compare_week(
    scenario: Scenario,
    folder: Path,
    names: tuple[str, ...],
    *,
    was: str | None,
    workers: int | None,
    output: str,
    sized: bool,
) -> None:
    """Replay a week and print the comparison; exit with status 1 if the week is not reproduced.

    ``was``: the scheme that it ran under (None: by what was preempted). ``sized``: the scenario has the nodes
    that the user gave. Raises BadInput.
    """
    notes = []
    week = read_week(folder)
    if not sized:
        count, size, note = nodes_of(read_nodes(folder))
        scenario = msgspec.structs.replace(
            scenario, nodes=count, slots=None, node_memory_mib=size.memory_mib, node_vcores=size.vcores
        )
        notes += [note] if note else []
    check(msgspec.structs.replace(scenario, schemes=(*scenario.schemes, "soft-cap")), "--{}".format)
    prepared = prepare_week(scenario, week)
    as_it_was = replay_as_it_was(prepared, week, was or scheme_of(week))
    for note in (*notes, *prepared.notes):
        click.echo(f"note: {note}", err=True)
    if not as_it_was.is_reproduced:
        print_deviation(as_it_was, output)
        raise click.exceptions.Exit(1)
    with shown_progress(len(scenario.schemes)) as progress:
        comparison = run_experiment(prepared, workers=workers, progress=progress)
    results = {AS_IT_WAS: as_it_was.result, **comparison.results}
    enrolled = {name: enrolments(as_it_was, result) for name, result in results.items() if result.suspensions}
    print_week(as_it_was, {name: results[name] for name in names}, enrolled, output)


def print_deviation(as_it_was: AsItWas, output: str) -> None:
    """Print where the replay is off."""
    worst = sorted(as_it_was.jobs, key=lambda one: (-one.off, one.job))[:WORST_SHOWN]
    if output == "json":
        print_json({"as_it_was": _as_it_was_json(as_it_was), "worst": worst})
        return
    click.echo(
        f"The week is not reproduced: completion times are off by {as_it_was.completion_off:.1%} in the "
        f"median, preempted container time by {as_it_was.preempted_off:.1%}; at most {OFF_MAX:.0%} may be."
    )
    rows = [
        (queue, len(jobs), f"{sorted(one.off for one in jobs)[len(jobs) // 2]:.1%}")
        for queue, jobs in as_it_was.by_queue().items()
    ]
    print_table(("queue", "jobs", "off (median)"), rows, "Completion times by queue")
    if as_it_was.preempted:
        print_table(
            ("queue", "measured s", "replayed s"),
            [(one.queue, one.measured_ms // 1000, one.replayed_ms // 1000) for one in as_it_was.preempted],
            "Preempted container time",
        )
    print_table(
        ("job", "queue", "measured s", "replayed s", "off"),
        [
            (one.job, one.queue, one.measured_ms / 1000, one.replayed_ms / 1000, f"{one.off:.1%}")
            for one in worst
        ],
        "The jobs that are off most",
    )
    click.echo("No comparison is printed: a prediction needs a week that is reproduced.")


def print_week(
    as_it_was: AsItWas,
    results: dict[str, Result],
    enrolled: dict[str, list[Enrolment]],
    output: str,
) -> None:
    """Print a week that is reproduced, under each scheme."""
    rows = outcomes(as_it_was, results)
    if output == "json":
        print_json(
            {
                "as_it_was": _as_it_was_json(as_it_was),
                "queues": rows,
                "jobs": predictions(as_it_was, results),
                "enrol": enrolled,
            }
        )
        return
    click.echo(
        f"As it was: completion times are off by {as_it_was.completion_off:.1%} in the median, "
        f"preempted container time by {as_it_was.preempted_off:.1%}."
    )
    print_table(
        ("queue", "scheme", "jobs", "measured s", "mean s", "from", "to"),
        [_outcome_row(row) for row in rows],
        "Mean completion time by queue; 90 % interval by what the replay as it was is off",
    )
    print_table(
        ("queue", "scheme", "lost h", "from", "to", "waited h", "from", "to"),
        [(row.queue, row.scheme, *_hours(row.lost), *_hours(row.waited)) for row in rows],
        "Container time that was lost, and that production waited; intervals as above",
    )
    print_table(
        ("scheme", "suspensions", "kills"),
        [(name, one.suspensions, one.kills) for name, one in results.items()],
        "Orders",
    )
    for name, jobs in enrolled.items():
        print_table(
            ("queue", "user", "name", "runs", "suspensions"),
            [(one.queue, one.user, one.name, one.runs, one.suspensions) for one in jobs],
            f"Jobs to enrol for {name}",
        )


def _outcome_row(outcome: QueueOutcome) -> tuple[object, ...]:
    spans = (outcome.measured_ms, outcome.mean_ms, outcome.least_ms, outcome.most_ms)
    return (outcome.queue, outcome.scheme, outcome.jobs, *(round(span_ms / 1000, 1) for span_ms in spans))


def _hours(time: ContainerTime | None) -> tuple[float | None, ...]:
    """Return predicted, least and most container time in hours."""
    if time is None:
        return None, None, None
    return tuple(round(span_ms / 3_600_000, 3) for span_ms in msgspec.structs.astuple(time))


def _as_it_was_json(as_it_was: AsItWas) -> dict[str, object]:
    return {
        "reproduced": as_it_was.is_reproduced,
        "scheme": as_it_was.scheme,
        "completion_off_ratio": round(as_it_was.completion_off, 4),
        "preempted_off_ratio": round(as_it_was.preempted_off, 4),
        "jobs": as_it_was.jobs,
        "preempted": as_it_was.preempted,
    }
