"""``yarnctl wrap``: change a submit command so that yarnctl can suspend or shrink the job."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import click

from yarnctl.amounts import part_of
from yarnctl.cli.taking_place import require_program, run_in_place
from yarnctl.command_line import option_group, printable
from yarnctl.errors import BadInput, Different
from yarnctl.frameworks.command_words import program_in, refuse_hidden, shown_program
from yarnctl.hadoop.wire.tags import MAY_LOSE_TAG

if TYPE_CHECKING:
    from yarnctl.frameworks.spark.leaving_options import Leaving
    from yarnctl.task_runner.wrapping import CommandLine


class StreamingOptions(NamedTuple):
    """What the submitter of a streaming job promises, and commands for a stateful reducer."""

    restartable: bool = False
    group_fields: int | None = None
    save: str = ""
    load: str = ""

    def commands(self) -> list[str]:
        """Return the task runner's options for a stateful reducer, none for another; raises BadInput."""
        if bool(self.save) != bool(self.load):
            raise BadInput("--save, --load", "one is given without the other", "give both or none")
        return ["--save", self.save, "--load", self.load] if self.save else []


class PlaceOptions(NamedTuple):
    """The folders in HDFS, and the account from which requests are accepted."""

    store: str = ""
    requests: str = ""
    requests_owner: str = "yarnctl"


class VerifyOptions(NamedTuple):
    """``--verify`` and its limits; ``settings`` are NAME=VALUE of the job."""

    verify: Path | None = None
    rounds: int = 8
    time_limit_s: int = 300
    memory_limit_mib: int = 4096
    seed: int = 1
    settings: tuple[str, ...] = ()


class FlinkOptions(NamedTuple):
    """``--flink``, and ``--batch``: the job's code makes it a batch job."""

    flink: bool = False
    batch: bool = False


class SparkOptions(NamedTuple):
    """``--spark`` and the options that require it; None, "" or False: not given."""

    spark: bool = False
    route: Literal["signal", "plugin"] | None = None
    plugin: str | None = None
    fallback: str | None = None
    uses_pipe: bool = False
    charge: Literal["expected", "bound"] | None = None

    def refuse_given(self, problem: str, remedy: str) -> None:
        """Raise BadInput if one of these options is given."""
        for name, value in self._asdict().items():
            if value not in (None, False, ""):
                raise BadInput("--" + name.replace("_", "-"), problem, remedy)


class DefaultsOptions(NamedTuple):
    """``--print-defaults``, and the part of its container time that each job may lose."""

    print_defaults: bool = False
    may_lose: str | None = None

    def tag(self) -> str:
        """Return the tag that allows each job's loss, "" for none; raises BadInput."""
        if self.may_lose is None:
            return ""
        return f"{MAY_LOSE_TAG}{round(part_of('--may-lose', self.may_lose) * 100, 4):g}%"


_DOORS = {
    "mapreduce": ("", "a job of Hadoop streaming"),
    "spark": ("--spark", "an application of Spark"),
    "flink": ("--flink", "a job of flink run"),
}
"""Each framework's option, and what it wraps."""

_STREAMING = (
    click.option(
        "--restartable", is_flag=True, help="Promise that the reducer keeps no state between key groups."
    ),
    click.option(
        "--group-fields", type=click.IntRange(1), help="Promise that it groups by the first N key fields."
    ),
    click.option("--save", default="", help="Command that prints the state of a stateful reducer."),
    click.option("--load", default="", help="Command that restores this state."),
)
_PLACE = (
    click.option(
        "--store",
        default="",
        envvar="YARNCTL_STORE",
        help="Folder for checkpoints: webhdfs://HOST:PORT/FOLDER.",
    ),
    click.option(
        "--requests",
        default="",
        envvar="YARNCTL_REQUESTS",
        help="URL of the daemon's folder for requests.  [default: requests, beside the store]",
    ),
    click.option(
        "--requests-owner",
        default="yarnctl",
        show_default=True,
        envvar="YARNCTL_REQUESTS_OWNER",
        help="Account of the daemon. Requests of any other account are ignored.",
    ),
)
_VERIFY = (
    click.option(
        "--verify",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Test the promise on a file with a sorted sample of the reducer's input.",
    ),
    click.option(
        "--rounds",
        default=8,
        show_default=True,
        type=click.IntRange(1),
        help="With --verify: number of runs with suspensions.",
    ),
    click.option(
        "--time-limit-s",
        default=300,
        show_default=True,
        type=click.IntRange(1),
        help="With --verify: maximum seconds for each run of the reducer.",
    ),
    click.option(
        "--memory-limit-mib",
        default=4096,
        show_default=True,
        type=click.IntRange(0),
        help="With --verify: maximum address space of each of its processes; 0: no limit.",
    ),
    click.option(
        "--seed", default=1, show_default=True, help="With --verify: seed that places the suspensions."
    ),
    click.option(
        "-D", "settings", multiple=True, metavar="NAME=VALUE", help="With --verify: a setting of the job."
    ),
)
_FLINK = (
    click.option(
        "--flink", is_flag=True, help="WORDS are a flink run-application; let its workers be released."
    ),
    click.option("--batch", is_flag=True, help="With --flink: the job's code makes it a batch job."),
)
_SPARK = (
    click.option(
        "--spark", is_flag=True, help="WORDS are a spark-submit; let its executors be decommissioned."
    ),
    click.option(
        "--route",
        type=click.Choice(["signal", "plugin"]),
        help="With --spark: how executors receive orders, by a signal or by a plugin in the driver.",
    ),
    click.option(
        "--plugin", metavar="JAR", help="With --spark: the driver plugin (see yarnctl spark-plugin)."
    ),
    click.option(
        "--fallback",
        metavar="URL",
        help="With --plugin: folder for the blocks of a job suspended completely; not with localCheckpoint.",
    ),
    click.option(
        "--uses-pipe", is_flag=True, help="With --spark: tasks start programs (rdd.pipe, TRANSFORM)."
    ),
    click.option(
        "--charge",
        type=click.Choice(["expected", "bound"]),
        help="With --spark: charge the expected work that runs twice, or its bound.  [expected]",
    ),
)
_DEFAULTS = (
    click.option(
        "--print-defaults",
        is_flag=True,
        help="Print settings for mapred-site.xml, with --spark for spark-defaults.conf, and exit.",
    ),
    click.option(
        "--may-lose",
        metavar="P",
        help="With --print-defaults: share of its container time that each job may lose, for example 2%.",
    ),
)


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@option_group(StreamingOptions, "streaming", _STREAMING)
@option_group(PlaceOptions, "places", _PLACE)
@click.option("--exec", "run_it", is_flag=True, help="Run the command instead of printing it.")
@option_group(VerifyOptions, "verifying", _VERIFY)
@option_group(FlinkOptions, "flink_options", _FLINK)
@option_group(SparkOptions, "spark_options", _SPARK)
@option_group(DefaultsOptions, "defaults", _DEFAULTS)
@click.option(
    "--min-executors",
    type=click.IntRange(1),
    help="With --spark, --flink: minimum number of workers that keep running.  [1]",
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def command(
    words: tuple[str, ...],
    streaming: StreamingOptions,
    places: PlaceOptions,
    run_it: bool,
    verifying: VerifyOptions,
    flink_options: FlinkOptions,
    spark_options: SparkOptions,
    defaults: DefaultsOptions,
    min_executors: int | None,
) -> None:
    """Wrap the submit command WORDS so that yarnctl can suspend or shrink the job; print the new command.

    WORDS are a streaming command, with --spark a spark-submit, with --flink a flink run-application. wrap
    fails and names any setting that prevents it. With --verify, WORDS are the reducer alone, which is
    suspended at random key groups of the sample.
    """
    if not defaults.print_defaults and defaults.may_lose is not None:
        remedy = f"add it, or set the tag {MAY_LOSE_TAG}{defaults.may_lose} of the job"
        raise BadInput("--may-lose", "requires --print-defaults", remedy)
    if defaults.print_defaults:
        _refuse_beside_defaults(words, streaming, flink_options, run_it)
    if flink_options.flink:
        spark_options.refuse_given("cannot be combined with --flink", "remove it, or --flink")
        if streaming.restartable:
            raise BadInput("--restartable", "cannot be combined with --flink", "remove it, or --flink")
        wrap_flink(words, min_executors or 1, flink_options.batch, run_it)
        return
    if flink_options.batch:
        raise BadInput("--batch", "requires --flink", "add --flink")
    if spark_options.spark:
        wrap_spark(words, spark_options, defaults, min_executors, places, run_it)
        return
    spark_options.refuse_given("requires --spark", "add --spark")
    if min_executors is not None:
        raise BadInput("--min-executors", "requires --spark or --flink", "add --spark or --flink")
    if defaults.print_defaults:
        if not (tag := defaults.tag()):
            raise BadInput(
                "--print-defaults", "MapReduce has no default without --may-lose", "add --may-lose 2%"
            )
        click.echo(f"<property>\n  <name>mapreduce.job.tags</name>\n  <value>{tag}</value>\n</property>")
        return
    if not words:
        raise BadInput("command line", "is missing", "add -- hadoop jar .../hadoop-streaming.jar ...")
    if verifying.verify is not None:
        check_promise(verifying.verify, words, streaming, verifying)
        return
    wrap_streaming(words, streaming, places, run_it)


def _refuse_beside_defaults(
    words: Sequence[str], streaming: StreamingOptions, flink_options: FlinkOptions, run_it: bool
) -> None:
    """Raise BadInput for what concerns one job, a promise about its reducer above all."""
    if words or run_it:
        raise BadInput("--print-defaults", "requires no command", "remove the command and --exec")
    if streaming != StreamingOptions():
        problem = "cannot be a default of all jobs: only the author of a reducer can promise it"
        raise BadInput("--restartable, --group-fields, --save, --load", problem, "wrap that job alone")
    if flink_options.flink:
        raise BadInput("--print-defaults", "cannot be combined with --flink", "wrap each job of Flink")


def wrap_streaming(
    words: Sequence[str], streaming: StreamingOptions, places: PlaceOptions, run_it: bool
) -> None:
    """Print, or run, a streaming command with the task runner in it, with notes on stderr."""
    from yarnctl.task_runner.wrapping import CommandLine, refuse_address, wrap

    more, group_fields = streaming.commands(), streaming.group_fields or 0
    refuse_address("--store", places.store)
    refuse_address("--requests", places.requests)
    with left_alone(words, run_it):
        refuse_program(words, "mapreduce")
        line = CommandLine(words)
        configured = settings_of_files(line)
        wrap(words, False, 0, "", (), configured=configured)
    wrapped = wrap(
        words,
        streaming.restartable,
        group_fields,
        places.store,
        more,
        places.requests,
        places.requests_owner,
        configured,
    )
    if not streaming.restartable:
        click.echo("note: without --restartable no reduce of this job can be suspended", err=True)
    elif run_it:
        if not any(word.startswith("YARNCTL_STORE=") for word in wrapped):
            raise BadInput(
                "--exec --restartable",
                "no folder for checkpoints",
                "set YARNCTL_STORE=webhdfs://NAMENODE:9870/yarnctl/checkpoints, or remove --restartable",
            )
        click.echo(untested(line, {**configured, **line.settings()}, group_fields, more), err=True)
    elif not places.store:
        click.echo("note: no folder for checkpoints; add --store or set YARNCTL_STORE", err=True)
    _finish(wrapped, (), run_it)


def settings_of_files(line: CommandLine) -> dict[str, str]:
    """Return the settings of the files that a command line names; as in Hadoop, a missing file has none."""
    names = (*line.values("-conf"), *line.values("-additionalconfspec"))
    paths = [path for name in names if (path := Path(name.removeprefix("file://"))).is_file()]
    if not paths:
        return {}
    # Imported here: a host that only wraps commands has no msgspec.
    from yarnctl.hadoop.site_xml import HadoopSite, SiteEntry, merge, read_file
    from yarnctl.task_runner.hadoop_words import configured

    entries: dict[str, SiteEntry] = {}
    for path in paths:
        merge(entries, read_file(path))
    site = HadoopSite(entries)
    return configured({name: site.text(name) for name in entries})


def untested(line: CommandLine, settings: Mapping[str, str], group_fields: int, more: Sequence[str]) -> str:
    """Return the note that a promise was not tested, with the command that tests this job's reducer."""
    from yarnctl.task_runner.wrapping import promise_test

    return (
        "note: --restartable was not tested; if the promise is false, the job succeeds with wrong output."
        f" Test it: {shlex.join(promise_test(line, settings, group_fields, more))}"
    )


def check_promise(
    sample: Path, reducer: Sequence[str], streaming: StreamingOptions, options: VerifyOptions
) -> None:
    """Suspend the reducer at random key groups of the sample; raises Different if its output changes."""
    from yarnctl.task_runner.verifying import Limits, verify

    job = dict(pair.partition("=")[::2] for pair in options.settings)
    verdict = verify(
        sample,
        reducer,
        streaming.group_fields or 0,
        job,
        streaming.commands(),
        options.rounds,
        options.seed,
        Limits(options.time_limit_s, options.memory_limit_mib),
    )
    if verdict.reported:
        click.echo(f"note: {verdict.reported} in a run without suspension", err=True)
    if not verdict.holds:
        raise Different(f"not restartable: {verdict.story}")
    suspensions = f"{verdict.suspensions} suspensions in {verdict.rounds} runs"
    click.echo(f"output identical: {verdict.groups} groups, {suspensions}")


def wrap_flink(words: Sequence[str], min_executors: int, is_batch: bool, run_it: bool) -> None:
    """Print, or run, the wrapped command line."""
    from yarnctl.frameworks.flink.wrapping import wrap

    if not words:
        raise BadInput("command line", "is missing", "add -- flink run-application -t yarn-application ...")
    with left_alone(words, run_it):
        refuse_program(words, "flink")
        wrapped, notes = wrap(words, min_executors, is_batch)
    _finish(wrapped, notes, run_it)


def wrap_spark(
    words: Sequence[str],
    options: SparkOptions,
    defaults: DefaultsOptions,
    min_executors: int | None,
    places: PlaceOptions,
    run_it: bool,
) -> None:
    """Print, or run, the wrapped command line; or print the lines for spark-defaults.conf."""
    from yarnctl.frameworks.spark.leaving_options import Leaving, default_lines, refuse_options, site_of
    from yarnctl.frameworks.spark.submission import SparkWords
    from yarnctl.frameworks.spark.wrapping import installed, wrap

    if defaults.print_defaults:
        leaving = chosen(Leaving(), options, min_executors, places)
        click.echo("\n".join(default_lines(leaving, defaults.tag())))
        return
    if not words:
        raise BadInput("command line", "is missing", "add -- spark-submit --master yarn ...")
    with left_alone(words, run_it):
        refuse_program(words, "spark")
        line = SparkWords(words)
        configured, version = installed(line)
    leaving = chosen(site_of(configured) or Leaving(), options, min_executors, places)
    refuse_options(leaving)
    with left_alone(words, run_it):
        wrapped, notes = wrap(line, leaving, configured, version)
    _finish(wrapped, notes, run_it)


def chosen(
    site_leaving: Leaving, options: SparkOptions, min_executors: int | None, places: PlaceOptions
) -> Leaving:
    """Return the choices of a site with those that were typed in place of them."""
    route = options.route or ("plugin" if options.plugin else site_leaving.route)
    owner = places.requests_owner
    return site_leaving._replace(
        route=route,
        plugin_jar=options.plugin or "",
        min_executors=min_executors or site_leaving.min_executors,
        fallback=options.fallback or (site_leaving.fallback if route == "plugin" else ""),
        uses_pipe=options.uses_pipe,
        requests=urlsplit(places.requests).path.rstrip("/") or site_leaving.requests,
        owner=site_leaving.owner if owner == PlaceOptions().requests_owner else owner,
        charge=options.charge or site_leaving.charge,
        site_has_jar=site_leaving.site_has_jar and route == "plugin" and not options.plugin,
    )


@contextlib.contextmanager
def left_alone(words: Sequence[str], run_it: bool) -> Iterator[None]:
    """With ``--exec`` run a command that cannot be wrapped as it is, and print why; else raise BadInput."""
    try:
        yield
    except BadInput as error:
        if not run_it:
            raise
        require_program(words)
        why = f"{error.where}: {error.problem}" if "without yarnctl wrap" in error.remedy else str(error)
        click.echo(f"note: the command runs without yarnctl: {printable(why)}", err=True)
        run_in_place(words)


def refuse_program(words: Sequence[str], kind: str) -> None:
    """Raise BadInput for a command that is not of this framework, with the option for the one it is of."""
    program = program_in(words)
    if program is not None and program.kind == kind:
        return
    refuse_hidden(words, "yarnctl wrap")
    mine, noun = _DOORS[kind]
    if program is None:
        remedy = "submit it without yarnctl wrap; yarnctl run --eviction mix can preempt its MapReduce tasks"
    elif mine:
        remedy = f"replace {mine} by {other}" if (other := _DOORS[program.kind][0]) else f"remove {mine}"
    else:
        remedy = f"add {_DOORS[program.kind][0]}"
    raise BadInput(shown_program(words), f"is not {noun}", remedy)


def _finish(wrapped: Sequence[str], notes: Iterable[str], run_it: bool) -> None:
    """Print the notes, then run or print the wrapped command line."""
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if run_it:
        run_in_place(wrapped)
    click.echo(shlex.join(wrapped))
