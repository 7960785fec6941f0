"""``yarnctl report``: what yarnctl gained and what it cost, from a running daemon or from a journal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from yarnctl.api.report_answers import ReportOut, WaitedLess
from yarnctl.cli.asking import client_at, plain, short
from yarnctl.cli.bill import gib_hours
from yarnctl.cli.checkpoints import span_ms
from yarnctl.client.requesting import DEFAULT_URL
from yarnctl.command_line import ProgressBar, lines_in, output_option, print_json, print_table
from yarnctl.errors import BadInput

GAINS = ("production", "user", "decisions", "needed", "ordered", "received", "not found", "waited less")
LOSSES = ("research", "user", "containers", "how", "kept", "lost", "unknown")
REASONS_SHOWN = 10
METHOD = (
    "Waited less is an estimate with its 90 % interval, in container time. It assumes that without yarnctl"
    " production receives containers as fast as the tasks of research end by themselves."
)


@click.command()
@click.option("--since", default="1d", show_default=True, metavar="SPAN", help="How far back: 30m, 24h, 7d.")
@click.option("--journal", type=click.Path(path_type=Path), help="Read this journal, not a daemon.")
@click.option(
    "--url",
    help="Address of the daemon.  [env: YARNCTL_URL; default: http://127.0.0.1:8188]",
)
@output_option
def command(since: str, journal: Path | None, url: str | None, output: str) -> None:
    """Show decisions, containers, the time that production waited less, and work kept and lost.

    A daemon that only observes shows what it would do. A journal's span counts back from its last record.
    """
    back_ms = span_ms(since, "--since")
    if journal is not None and url is not None:
        raise BadInput("--url", "cannot be combined with --journal", "give one of them")
    if journal is not None:
        answer = _of_journal(journal, back_ms)
    else:
        address = url or os.environ.get("YARNCTL_URL") or DEFAULT_URL
        since_ms = max(0, time.time_ns() // 1_000_000 - back_ms)
        answer = client_at(address).report(since_ms)
    if output == "json":
        print_json(answer)
    else:
        _print(answer)


def _of_journal(journal: Path, back_ms: int) -> ReportOut:
    from yarnctl.daemon.view.reporting import reported
    from yarnctl.journal.file import journal_at, read
    from yarnctl.journal.pruned import left_of

    with ProgressBar("records read", lambda: lines_in(*left_of(journal_at(journal)).files)) as progress:
        return reported((line.record for line in progress.counted(read(journal))), back_ms)


def _print(report: ReportOut) -> None:
    would = "would wait" if report.would else "waited"
    gains = [
        (
            plain(short(each.queue)),
            plain(each.user) or None,
            each.decisions,
            each.needed,
            each.ordered,
            each.received,
            each.unmet,
            interval(each.waited_less),
        )
        for each in report.gains
    ]
    print_table(GAINS, gains, f"Production {would} {interval(report.waited_less)} less, in container time")
    losses = [
        (
            plain(short(each.queue)),
            plain(each.user) or None,
            each.containers,
            ", ".join(f"{count} {verb}" for verb, count in each.verbs.items()),
            gib_hours(each.kept_mib_ms // 1000),
            gib_hours(each.lost_mib_ms // 1000),
            each.unknown,
        )
        for each in report.losses
    ]
    print_table(LOSSES, losses, "What research gave; work in GiB h")
    reasons = [
        (plain(short(each.queue)), plain(each.user) or None, each.kind, each.code, each.times)
        for each in report.not_taken[:REASONS_SHOWN]
    ]
    print_table(("queue", "user", "of", "reason", "times"), reasons, "What was not taken, and why")
    if gains:
        click.echo(METHOD)


def interval(less: WaitedLess) -> str:
    """Return an estimate with its interval as text."""
    if not less.estimated:
        return "-"
    return f"{less.estimate_ms / 1000:.0f} s ({less.least_ms / 1000:.0f} to {less.most_ms / 1000:.0f})"
