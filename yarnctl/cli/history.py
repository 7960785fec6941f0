"""``yarnctl history``: the cluster's last week as tables, to replay and to query.

It only reads: the ResourceManager, the history servers, or files. It needs no daemon and no HDFS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.bill import sources_of
from yarnctl.cli.cluster import ClusterOptions, cluster_of, cluster_options
from yarnctl.command_line import ProgressBar, output_option, print_json, print_table
from yarnctl.errors import BadInput
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    from yarnctl.attach.importing.server_import import ServerImport
    from yarnctl.traces.week.week_rows import ImportedJob

DAY_MS = 86_400_000
PROBLEMS_SHOWN = 5
IsKnown = Callable[[str], bool]
"""Says whether the folder holds the job of an id."""


@click.group(no_args_is_help=True)
def command() -> None:
    """Import the jobs that a cluster ran as tables."""


@command.command("import")
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE]...")
@cluster_options
@click.option(
    "--days",
    default=7.0,
    show_default=True,
    type=click.FloatRange(0.001, 3660),
    help="How many days back.",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Folder."
)
@click.option("--history", metavar="URL|off", help="MapReduce history server.  [default: that of /conf]")
@click.option("--spark-history", metavar="URL", help="Spark's history server.")
@click.option(
    "--requests-per-second",
    "requests_per_s",
    default=100.0,
    show_default=True,
    type=click.FloatRange(0.1, 1000),
    help="Maximum rate of requests to the history servers.",
)
@click.option(
    "--with-spark",
    "is_with_spark",
    is_flag=True,
    help="Read each FILE, a path or URL of Hadoop, by a PySpark job on the cluster.",
)
@click.option(
    "--anonymous",
    "is_anonymous",
    is_flag=True,
    help="Replace names of users, jobs and nodes. The key is in DIR.key; do not pass it on.",
)
@output_option
def import_command(
    files: tuple[str, ...],
    cluster: ClusterOptions,
    days: float,
    out: Path,
    history: str | None,
    spark_history: str | None,
    requests_per_s: float,
    is_with_spark: bool,
    is_anonymous: bool,
    output: str,
) -> None:
    """Import ended jobs as Parquet: jobs, tasks and containers.

    They come from the ResourceManager and the history servers, or from each FILE (or folder):
    .jhist, Spark event logs, saved answers of YARN, a ResourceManager's log, and published
    traces (Rumen, SLS, DynoYARN, SWF, SWIM, Alibaba). A second import into the same folder
    reads only jobs that are new. An import that was interrupted continues where it was.
    """
    from yarnctl.attach.bill.collector import Pace
    from yarnctl.attach.importing.server_import import ServerImport
    from yarnctl.traces.week.pseudonyms import anonymous, anonymous_id, key_beside
    from yarnctl.traces.week.week_folder import WeekWriter
    from yarnctl.traces.week.week_rows import why_not_stored

    require_extra("export")
    began_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
    pace = Pace(time.sleep, time.monotonic, requests_per_s)
    servers = None
    if is_with_spark and not files:
        raise BadInput("--with-spark", "requires FILE", "name event logs or job histories in HDFS")
    if files:
        _refuse_servers(cluster, history, spark_history)
    else:
        sources = sources_of(cluster_of(cluster, hdfs=False), history, spark_history, pace)
        servers = ServerImport(sources, now_ms - int(days * DAY_MS), now_ms)
    problems: list[str] = []
    with WeekWriter(out) as week:
        before = len(week.known)
        key = key_beside(out) if is_anonymous else None

        def is_known(job: str) -> bool:
            return job in week.known or (key is not None and anonymous_id(job, key) in week.known)

        if is_with_spark:
            found = _from_spark(files, is_known, problems)
        elif servers is None:
            found = _from_files([Path(file) for file in files], is_known, problems)
        else:
            week.write_nodes(node.pair for node in sources.manager.nodes())
            found = _from_servers(servers, is_known, problems)
        for job in found:
            if problem := why_not_stored(job):
                problems.append(f"{job.job.job}: {problem}")
            else:
                week.add(job if key is None else anonymous(job, key))
    counts = {
        "imported": len(week.known) - before,
        "known_before": before,
        "skipped": len(problems),
        "running": servers.running if servers else 0,
        "requests": pace.requests,
        "seconds": round(time.monotonic() - began_s, 1),
    }
    if output == "json":
        print_json({"out": str(out), **counts, "problems": [plain(problem) for problem in problems]})
    else:
        print_table(("what", "value"), counts.items(), f"{out}: jobs")
    _warn(problems)


def _from_servers(servers: ServerImport, is_known: IsKnown, problems: list[str]) -> Iterator[ImportedJob]:
    """Yield the jobs that the folder does not hold; add to ``problems`` those that cannot be read now."""
    with ProgressBar("reading histories") as bar:
        new = [ended for ended in servers.jobs() if not is_known(ended.row.job)]
        bar.expect(len(new))
        for ended in bar.counted(new):
            found = servers.read(ended)
            if isinstance(found, str):
                problems.append(f"{ended.row.job}: {found}")
            else:
                yield found


def _refuse_servers(cluster: ClusterOptions, history: str | None, spark_history: str | None) -> None:
    """Raise BadInput for a server that is named beside files."""
    given = {"--rm": cluster.managers, "--history": history, "--spark-history": spark_history}
    for option, value in given.items():
        if value:
            raise BadInput(option, "has no effect with files", "import in two steps into the same folder")


def _from_files(files: Sequence[Path], is_known: IsKnown, problems: list[str]) -> Iterator[ImportedJob]:
    """Yield the jobs of files that the folder does not hold.

    A file that is not read is a problem; if it is the only one, it is an error.
    """
    from yarnctl.attach.importing.file_import import files_below, read_file
    from yarnctl.attach.importing.reading import UnreadableJob

    paths = [path for file in files for path in files_below(file)]
    with ProgressBar("reading files", len(paths)) as bar:
        for path in bar.counted(paths):
            try:
                for found in read_file(path):
                    if isinstance(found, UnreadableJob):
                        problems.append(str(found))
                    elif not is_known(found.job.job):
                        yield found
            except BadInput as problem:
                if len(paths) == 1:
                    raise
                problems.append(str(problem))


def _from_spark(places: Sequence[str], is_known: IsKnown, problems: list[str]) -> Iterator[ImportedJob]:
    """Yield the jobs of files in HDFS that the folder does not hold."""
    from yarnctl.attach.importing.spark_import import read_by_spark

    with ProgressBar("jobs read") as bar:
        for found in bar.counted(read_by_spark(places)):
            if isinstance(found, str):
                problems.append(found)
            elif not is_known(found.job.job):
                yield found


def _warn(problems: Iterable[str]) -> None:
    shown = list(problems)
    for problem in shown[:PROBLEMS_SHOWN]:
        click.echo(f"warning: skipped {plain(problem)}", err=True)
    if len(shown) > PROBLEMS_SHOWN:
        click.echo(f"warning: {len(shown) - PROBLEMS_SHOWN} more jobs were skipped", err=True)
