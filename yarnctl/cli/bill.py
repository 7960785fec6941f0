"""``yarnctl bill``: what YARN's own preemption ended and threw away, by queue, user and job.

It only reads: the ResourceManager, the history server, and Spark's history server or event logs. It needs no
daemon, no HDFS and no right but to see applications.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.checkpoints import span_ms
from yarnctl.cli.cluster import ClusterOptions, cluster_of, cluster_options
from yarnctl.command_line import ProgressBar, print_json, print_table
from yarnctl.errors import BadInput, YarnctlError, nearest
from yarnctl.extras import require_extra

if TYPE_CHECKING:
    import msgspec

    from yarnctl.attach.bill.collector import Collector, Pace, Sources
    from yarnctl.attach.bill.preempted import BilledJob, BillRow, Giving
    from yarnctl.cli.bill_files import Shown
    from yarnctl.config import ClusterAddress

GIB_HOUR_MIB_S = 1024 * 3600
PROBLEMS_SHOWN = 5
NUMBERS = ("jobs", "containers", "masters", "lost", "of held", "again", "kept", "unattributed")


@click.command()
@cluster_options
@click.option("--since", default="7d", show_default=True, metavar="SPAN", help="How far back: 30m, 24h, 7d.")
@click.option(
    "--by",
    default="queue,user,name",
    show_default=True,
    metavar="KEY,...",
    help="Group by day, queue, user, name, kind or application.",
)
@click.option("--history", metavar="URL|off", help="MapReduce history server.  [default: that of /conf]")
@click.option("--spark-history", metavar="URL", help="Spark's history server.")
@click.option(
    "--event-logs",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Read Spark's event logs in this folder instead.",
)
@click.option(
    "--requests-per-second",
    "requests_per_s",
    default=100.0,
    show_default=True,
    type=click.FloatRange(0.1, 1000),
    help="Maximum rate of requests to the history servers.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep in this file what was read of ended jobs, and do not read it again.",
)
@click.option(
    "--oversized", is_flag=True, help="Show memory of MapReduce jobs that was requested and never used."
)
@click.option("--idle", is_flag=True, help="Show Spark sessions that hold executors without work.")
@click.option(
    "--html",
    "page_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the tables to this file, a page that needs no other file.",
)
@click.option(
    "-o",
    "output",
    type=click.Choice(("table", "json", "csv", "parquet")),
    default="table",
    show_default=True,
    help="Set the output format.",
)
@click.option("--json", "as_json", is_flag=True, help="Same as -o json.")
def command(
    cluster: ClusterOptions,
    since: str,
    by: str,
    history: str | None,
    spark_history: str | None,
    event_logs: Path | None,
    requests_per_s: float,
    resume: Path | None,
    oversized: bool,
    idle: bool,
    page_file: Path | None,
    output: str,
    as_json: bool,
) -> None:
    """Show the containers that YARN's own preemption ended, and the work that was lost with them.

    Lost is exact. Kept is what checkpoints and drains would have kept of it, from and to.
    Work is in GiB hours in the table, in MiB seconds in JSON, CSV and Parquet. Parquet goes to
    the standard output. CSV and Parquet have the bill's rows only; JSON has each queue's work, too.
    """
    from yarnctl.attach.bill.collector import Collector, KeptJobs, Pace
    from yarnctl.attach.bill.preempted import ASSUMPTIONS, BillRow, bill, giving
    from yarnctl.attach.importing.event_logs import read_event_logs
    from yarnctl.cli.bill_files import page

    keys = keys_of(by)
    began_s, now_ms = time.monotonic(), time.time_ns() // 1_000_000
    pace = Pace(time.sleep, time.monotonic, requests_per_s)
    output = "json" if as_json else output
    if output == "parquet":
        require_extra("export")
    _refuse_two({"--event-logs": event_logs, "--idle": idle, "--oversized": oversized})
    _refuse_two({"--event-logs": event_logs, "--spark-history": spark_history})
    sources = sources_of(cluster_of(cluster, hdfs=False), history, spark_history, pace)
    unread: list[str] = []
    if event_logs is not None:
        logs, unread = read_event_logs(event_logs)
        sources = sources._replace(logs=logs)
    collector = Collector(sources, KeptJobs(resume), now_ms - span_ms(since, "--since"), now_ms)
    if oversized or idle:
        if page_file is not None:
            raise BadInput("--html", "is of the bill only", "leave out --idle and --oversized")
        (_idle if idle else _oversized)(collector, output)
        return
    jobs = explained_jobs(collector)
    rows, givers = bill(jobs, keys), giving(jobs, lambda job: "yarnctl-" in job.tags)
    problems = [f"{job.application}: {job.problem}" for job in jobs if job.problem]
    problems += collector.problems + unread
    if output == "json":
        spent = {"requests": pace.requests, "seconds": round(time.monotonic() - began_s, 1)}
        print_json({"by": keys, "rows": rows, "giving": givers, "problems": problems, **spent})
    elif output in ("csv", "parquet"):
        _file(output, keys, BillRow, rows)
    else:
        for shown in tables_of(keys, rows, givers):
            print_table(shown.columns, shown.rows, shown.title)
        if rows:
            click.echo(ASSUMPTIONS)
        spent_s = time.monotonic() - began_s
        click.echo(f"{len(jobs)} jobs, {pace.requests} requests to histories, {spent_s:.1f} s")
    if page_file is not None:
        title, notes = "What YARN's own preemption cost", (ASSUMPTIONS, *problems)
        try:
            page_file.write_text(page(title, tables_of(keys, rows, givers), notes), encoding="utf-8")
        except OSError as error:
            problem = f"cannot be written: {error.strerror}"
            raise BadInput(str(page_file), problem, "check the folder") from None
    _warn(problems)


def _refuse_two(options: Mapping[str, object]) -> None:
    """Raise BadInput if more than one of the options is given."""
    given = [option for option, value in options.items() if value]
    if len(given) > 1:
        raise BadInput(given[0], f"cannot be combined with {given[1]}", "give one of them")


def _file(
    output: str, keys: Sequence[str], kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]
) -> None:
    """Write rows to the standard output as CSV or Parquet."""
    from yarnctl.cli.bill_files import csv_text, parquet_bytes

    if output == "csv":
        click.echo(csv_text(keys, kind, rows), nl=False)
    else:
        click.echo(parquet_bytes(keys, kind, rows), nl=False)


def keys_of(text: str) -> tuple[str, ...]:
    """Return the keys of ``--by``; raises BadInput."""
    from yarnctl.attach.bill.preempted import KEYS

    keys = tuple(word.strip() for word in text.split(","))
    for key in keys:
        if key not in KEYS:
            remedy = nearest(key, KEYS, f"use {', '.join(KEYS)}")
            raise BadInput("--by", f"unknown key {key[:40]!r}", remedy)
    return keys


def sources_of(
    cluster: ClusterAddress, history: str | None, spark_history: str | None, pace: Pace
) -> Sources:
    """Return the servers to ask; raises BadInput where no history server is known."""
    from yarnctl.attach.bill.collector import Sources
    from yarnctl.attach.connection.connection import history_server_in, refuse_discovery
    from yarnctl.frameworks.mapreduce.history_server import DAEMON, HistoryServer
    from yarnctl.frameworks.spark import history_server as spark
    from yarnctl.hadoop.http.transport import Transport

    manager = cluster.resource_manager()
    manager.identify()
    if history is None:
        refuse_discovery(cluster, "--history", "set it to its address at the gateway, or to off")
        history = history_server_in(manager.configuration(), cluster.resource_managers[0])
        if not history:
            raise BadInput("--history", "the ResourceManager names no history server", "set its URL, or off")

    def transport(url: str, daemon: str) -> Transport:
        return Transport(
            (url,),
            cluster.identity,
            cluster.limits,
            ca_file=cluster.ca_file,
            daemon=daemon,
            before_read=pace.wait,
        )

    return Sources(
        manager,
        None if history == "off" else HistoryServer(transport(history, DAEMON)),
        spark.SparkHistory(transport(spark_history, spark.DAEMON)) if spark_history else None,
    )


def explained_jobs(collector: Collector) -> list[BilledJob]:
    """Return all jobs, each with what its history shows."""
    found = []
    with ProgressBar("reading histories") as bar:
        known = collector.jobs()
        bar.expect(sum(1 for _, is_open in known if is_open))
        for job, is_open in known:
            found.append(collector.explained(job) if is_open else job)
            if is_open:
                bar.step()
    return found


def _oversized(collector: Collector, output: str) -> None:
    """Print memory that was requested and never used."""
    from yarnctl.attach.bill.oversized import Oversized, oversized

    known, problems = [], []
    jobs = collector.memory_jobs()
    with ProgressBar("reading counters", len(jobs)) as bar:
        for job in bar.counted(jobs):
            try:
                known += collector.memory_used(job)
            except YarnctlError as problem:
                problems.append(f"{job.job}: {problem}")
    rows = oversized(known, collector.least_mib)
    if output == "json":
        print_json({"jobs": len(jobs), "rows": rows, "problems": problems})
    elif output != "table":
        _file(output, (), Oversized, rows)
    else:
        lines = [
            (
                plain(one.queue),
                plain(one.user),
                plain(one.name),
                one.runs,
                one.requested_mib,
                one.peak_mib,
                gib_hours(one.slack_mib_s),
                f"{one.exceeds_ratio:.0%}",
                one.setting,
            )
            for one in rows
        ]
        columns = ("queue", "user", "name", "runs", "MiB", "peak", "slack", "chance to exceed", "setting")
        print_table(columns, lines, f"{len(jobs)} jobs; slack in GiB h")
        if rows:
            click.echo("A job that sets -Xmx in its java.opts must lower that, too.")
    _warn(problems)


def _idle(collector: Collector, output: str) -> None:
    """Print Spark sessions that hold executors without work."""
    from yarnctl.attach.bill.idle import IdleSession, ranked
    from yarnctl.frameworks.spark.rest import KIND

    found, problems = [], []
    jobs = [job for job, _ in collector.jobs() if job.kind == KIND]
    with ProgressBar("reading executors", len(jobs)) as bar:
        for job in bar.counted(jobs):
            try:
                found.append(collector.idle(job))
            except YarnctlError as problem:
                problems.append(f"{job.application}: {problem}")
    rows = ranked(one for one in found if one is not None)
    if output == "json":
        print_json({"sessions": len(jobs), "rows": rows, "problems": problems})
    elif output != "table":
        _file(output, (), IdleSession, rows)
    else:
        lines = [
            (
                plain(one.queue),
                plain(one.user),
                plain(one.name),
                plain(one.application),
                "running" if one.running else "ended",
                one.executors,
                gib_hours(one.held_mib_s),
                gib_hours(one.idle_mib_s),
                f"{one.idle_ratio:.0%}",
                plain(one.setting),
            )
            for one in rows
        ]
        columns = ("queue", "user", "name", "application", "state", "executors", "held", "idle", "of held",
                   "setting")  # fmt: skip
        print_table(columns, lines, f"{len(jobs)} Spark sessions; held and idle in GiB h")
    _warn(problems)


def tables_of(keys: Sequence[str], rows: Sequence[BillRow], givers: Sequence[Giving]) -> tuple[Shown, Shown]:
    """Return the tables of the bill, and of the queues that could give containers."""
    from yarnctl.cli.bill_files import Shown

    lines = [
        (
            *map(plain, row.keys),
            row.jobs,
            row.containers,
            row.masters,
            gib_hours(row.lost_mib_s),
            None if row.lost_ratio is None else f"{row.lost_ratio:.1%}",
            gib_hours(row.again_mib_s),
            f"{gib_hours(row.kept_least_mib_s)} to {gib_hours(row.kept_most_mib_s)}",
            row.unattributed,
        )
        for row in rows
    ]
    lost = sum(row.lost_mib_s for row in rows)
    title = f"YARN preempted {sum(row.containers for row in rows)} containers; lost {gib_hours(lost)} GiB h"
    work = [
        (plain(one.queue), plain(one.kind), gib_hours(one.held_mib_s), f"{one.held_ratio:.0%}",
         f"{one.enrolled_ratio:.0%}", one.lever)
        for one in givers
    ]  # fmt: skip
    columns = ("queue", "kind", "held", "of queue", "enrolled", "lever")
    giving = Shown(
        "Work of each queue that could give containers, at most, and the lever for it", columns, work
    )
    return Shown(title, (*keys, *NUMBERS), lines), giving


def gib_hours(mib_s: int) -> str:
    """Return work in GiB hours, with four digits after the point below 1."""
    hours = mib_s / GIB_HOUR_MIB_S
    return f"{hours:.4f}" if hours < 1 else f"{hours:,.1f}"


def _warn(problems: Sequence[str]) -> None:
    for problem in problems[:PROBLEMS_SHOWN]:
        click.echo(f"warning: {plain(problem)}", err=True)
    if len(problems) > PROBLEMS_SHOWN:
        click.echo(f"warning: {len(problems) - PROBLEMS_SHOWN} more; -o json has all", err=True)
