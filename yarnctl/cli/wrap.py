"""``yarnctl wrap``: make a usual streaming job one whose reduces can be suspended."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yarnctl.errors import BadInput, Different

if TYPE_CHECKING:
    from yarnctl.task_runner.wrapping import CommandLine


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--restartable", is_flag=True, help="Promise: the reducer keeps nothing between key groups.")
@click.option("--group-fields", type=click.IntRange(1), help="Promise: it groups by the first N fields.")
@click.option("--save", default="", help="Command that prints a stateful reducer's state.")
@click.option("--load", default="", help="Command that takes that state back.")
@click.option(
    "--store", default="", envvar="YARNCTL_STORE", help="webhdfs://HOST:PORT/FOLDER for checkpoints."
)
@click.option(
    "--requests",
    default="",
    envvar="YARNCTL_REQUESTS",
    help="URL of the daemon's folder.  [default: requests, beside the store]",
)
@click.option(
    "--requests-owner",
    default="yarnctl",
    show_default=True,
    envvar="YARNCTL_REQUESTS_OWNER",
    help="Account that the daemon runs as: nobody else's requests are obeyed.",
)
@click.option("--exec", "run_it", is_flag=True, help="Run the command instead of printing it.")
@click.option(
    "--verify", type=click.Path(path_type=Path, dir_okay=False), help="Test the promise on a sorted sample."
)
@click.option(
    "--rounds", default=8, show_default=True, type=click.IntRange(1), help="With --verify: runs with cuts."
)
@click.option(
    "--time-limit-s",
    default=300,
    show_default=True,
    type=click.IntRange(1),
    help="With --verify: seconds for each run of the reducer.",
)
@click.option(
    "--memory-limit-mib",
    default=4096,
    show_default=True,
    type=click.IntRange(0),
    help="With --verify: address space of each of its processes; 0: no limit.",
)
@click.option("--seed", default=1, show_default=True, help="With --verify: where the cuts fall.")
@click.option(
    "-D", "settings", multiple=True, metavar="NAME=VALUE", help="With --verify: a setting of the job."
)
@click.option("--flink", is_flag=True, help="WORDS are a flink run-application: let its workers leave.")
@click.option("--batch", is_flag=True, help="With --flink: the job's code makes it a batch job.")
@click.option("--spark", is_flag=True, help="WORDS are a spark-submit: let its executors leave.")
@click.option("--route", type=click.Choice(["signal", "plugin"]), help="With --spark: how they are asked.")
@click.option("--plugin", metavar="JAR", help="With --spark: the driver's plugin (yarnctl spark-plugin).")
@click.option(
    "--min-executors", type=click.IntRange(1), help="With --spark, --flink: so many always stay.  [1]"
)
@click.option("--fallback", metavar="URL", help="With --plugin: a folder where all may leave their blocks.")
@click.option("--uses-pipe", is_flag=True, help="With --spark: the application calls rdd.pipe.")
@click.option("--print-defaults", is_flag=True, help="With --spark: print lines of spark-defaults.conf.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(words: tuple[str, ...], save: str, load: str, **given: Any) -> None:
    """Print the streaming command WORDS with the task runner in it, or say why it must not go there.

    With --verify, WORDS are the reducer alone: it is cut at random key groups of the sample. With --spark,
    WORDS are a spark-submit whose executors may then be asked to leave; with --flink, a flink
    run-application whose job may then be asked to go on with fewer workers.
    """
    from yarnctl.cli.wrap_flink import wrap_flink
    from yarnctl.cli.wrap_spark import refuse_without_spark, wrap_spark

    if given["flink"]:
        wrap_flink(words, given)
        return
    if given["batch"]:
        raise BadInput("--batch", "is for Flink", "write --flink, too")
    if given["spark"]:
        wrap_spark(words, given, given["run_it"])
        return
    refuse_without_spark(given)
    if not words:
        raise BadInput("command line", "is missing", "write -- hadoop jar .../hadoop-streaming.jar ...")
    if bool(save) != bool(load):
        raise BadInput("--save, --load", "one without the other", "give both or none")
    more = [word for name, value in (("--save", save), ("--load", load)) if value for word in (name, value)]
    group_fields: int = given["group_fields"] or 0
    if given["verify"] is not None:
        check_promise(words, group_fields, more, given)
        return
    from yarnctl.cli.taking_place import run_in_place
    from yarnctl.task_runner.wrapping import CommandLine, wrap

    line = CommandLine(words)
    configured = settings_of_files(line)
    folders = (given["requests"], given["requests_owner"])
    wrapped = wrap(words, given["restartable"], group_fields, given["store"], more, *folders, configured)
    if not given["restartable"]:
        click.echo("note: without --restartable no reduce of this job is ever suspended", err=True)
    elif given["run_it"]:
        refuse_nowhere(wrapped)
        click.echo(untested(line, {**configured, **line.settings()}, group_fields, more), err=True)
    elif not given["store"]:
        click.echo("note: without --store (or YARNCTL_STORE) there is nowhere to write checkpoints", err=True)
    if given["run_it"]:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))


def settings_of_files(line: CommandLine) -> dict[str, str]:
    """Return the settings of the files that a line names; as for Hadoop, a file that is missing has none."""
    names = (*line.values("-conf"), *line.values("-additionalconfspec"))
    paths = [path for name in names if (path := Path(name.removeprefix("file://"))).is_file()]
    if not paths:
        return {}
    # Read here: a host that only wraps commands has no msgspec.
    from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file
    from yarnctl.task_runner.hadoop_words import configured

    entries: dict[str, SiteEntry] = {}
    for path in paths:
        merge(entries, read_file(path))
    site = HadoopSite(entries)
    return configured({name: site.text(name) for name in entries})


def refuse_nowhere(wrapped: list[str]) -> None:
    """Refuse to submit a job that is promised to be restartable and whose checkpoints have nowhere to go."""
    if not any(word.startswith("YARNCTL_STORE=") for word in wrapped):
        raise BadInput(
            "--exec --restartable",
            "without --store (or YARNCTL_STORE) there is nowhere to write checkpoints",
            "set YARNCTL_STORE=webhdfs://NAMENODE:9870/yarnctl/checkpoints, or wrap it without --restartable",
        )


def untested(line: CommandLine, settings: Mapping[str, str], group_fields: int, more: Sequence[str]) -> str:
    """Return the reminder that a promise can be tested, with the command for this job's reducer."""
    from yarnctl.task_runner.wrapping import promise_test

    return (
        "note: the promise --restartable was not tested; a false one gives a wrong output with status 0."
        f" Test it: {shlex.join(promise_test(line, settings, group_fields, more))}"
    )


def check_promise(
    reducer: tuple[str, ...], group_fields: int, more: list[str], given: Mapping[str, Any]
) -> None:
    """Cut the sample and say whether the output stayed the same."""
    from yarnctl.task_runner.verifying import Limits, verify

    sample, rounds, seed = given["verify"], given["rounds"], given["seed"]
    job = dict(pair.partition("=")[::2] for pair in given["settings"])
    limits = Limits(given["time_limit_s"], given["memory_limit_mib"])
    verdict = verify(sample, reducer, group_fields, job, more, rounds, seed, limits)
    if verdict.reported:
        click.echo(f"note: {verdict.reported} in an undisturbed run", err=True)
    if not verdict.holds:
        raise Different(f"not restartable: {verdict.story}")
    cuts = f"{verdict.suspensions} suspensions in {verdict.rounds} runs"
    click.echo(f"output identical: {verdict.groups} groups, {cuts}")
