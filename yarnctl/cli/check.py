"""``yarnctl check``: check a cluster's configuration.

It only reads. Exit status 0: no check fails; 1: a check fails; 3: no ResourceManager answers.
"""

from __future__ import annotations

import shlex
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.cluster import (
    DEFAULT_REQUESTS,
    DEFAULT_STORE,
    ClusterOptions,
    FolderOptions,
    QueueOptions,
    cluster_of,
    cluster_options,
    folder_options,
    folders_of,
    queue_options,
    queues_of,
)
from yarnctl.cli.gate_options import require_mechanism
from yarnctl.cli.settings_file import shared_with_run
from yarnctl.command_line import output_option, print_json, terminal_columns

if TYPE_CHECKING:
    from yarnctl.attach.check.next_steps import NextSteps
    from yarnctl.attach.check.preflight import CheckResult, Finding
    from yarnctl.attach.connection.connection import YarnPreemption

SEVERITIES = ("ok", "warn", "fail", "unknown")
INDENT = 9  # The column where a finding's text begins
WIDTH_MIN = 40  # The least width of a line in characters, even in a narrower terminal


@click.command()
@cluster_options
@queue_options
@shared_with_run(
    click.option("--allow-priority", is_flag=True, help="Check for yarnctl run --allow-priority.")
)
@shared_with_run(
    click.option("--admission", metavar="ALLOCATOR", help="Check for yarnctl run --admission ALLOCATOR.")
)
@shared_with_run(
    click.option(
        "--budgets",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Check the file of yarnctl run --budgets.",
    )
)
@shared_with_run(
    click.option(
        "--yarn-preemption",
        type=click.Choice(("switch", "beside", "off")),
        default="off",
        show_default=True,
        help="Check for yarnctl run --yarn-preemption.",
    )
)
@folder_options
@click.option("--spark", is_flag=True, help="Check also what decommissioning Spark executors needs.")
@click.option(
    "--spark-fallback",
    metavar="FOLDER",
    help="Check the fallback folder for shuffle blocks of suspended Spark jobs.  [implies: --spark]",
)
@output_option
def command(
    cluster: ClusterOptions,
    queues: QueueOptions,
    allow_priority: bool,
    admission: str | None,
    budgets: Path | None,
    yarn_preemption: YarnPreemption,
    folders: FolderOptions,
    spark: bool,
    spark_fallback: str | None,
    output: str,
) -> int:
    """Check the cluster's configuration and print a fix for each problem."""
    results, steps = examined(
        cluster,
        queues,
        folders,
        allow_priority=allow_priority,
        admission=admission,
        budgets=budgets,
        yarn_preemption=yarn_preemption,
        spark=spark,
        spark_fallback=spark_fallback,
    )
    from yarnctl.attach.check.rules import findings_of

    return _print(findings_of(results), output, steps)


def examined(
    cluster: ClusterOptions,
    queues: QueueOptions,
    folders: FolderOptions,
    *,
    allow_priority: bool = False,
    admission: str | None = None,
    budgets: Path | None = None,
    yarn_preemption: YarnPreemption = "off",
    spark: bool = False,
    spark_fallback: str | None = None,
) -> tuple[Mapping[str, CheckResult], NextSteps | None]:
    """Return the results of all checks, and the steps with the daemon's command line (None: no queues)."""
    import msgspec

    from yarnctl.attach.check.gathering import gather
    from yarnctl.attach.check.next_steps import next_steps
    from yarnctl.attach.check.preflight import Facts, with_every_leaf
    from yarnctl.attach.check.rules import check_results
    from yarnctl.daemon.budget_files import read_budgets

    if admission is not None:
        require_mechanism(admission)
    address, requests_root, store_root = folders_of(cluster_of(cluster), folders)
    preempting, preemptable = queues_of(queues)
    site = None if budgets is None else read_budgets(budgets)
    facts = Facts(
        mode=queues.mode,
        preempting_queues=preempting,
        preemptable_queues=preemptable,
        allow_priority=allow_priority,
        admission=admission,
        budget_queues=None if site is None else site.queues,
        queues_left_alone=() if site is None else site.queues_left_alone,
        yarn_preemption=yarn_preemption,
        requests_root=requests_root,
        store_root=store_root,
        spark=spark or spark_fallback is not None,
        fallback_root=_fallback_root(spark_fallback),
    )
    facts = with_every_leaf(gather(address, facts, lambda: time.time_ns() // 1_000_000))
    results = check_results(facts)
    steps = next_steps(facts, results.values())
    if steps is not None:
        daemons = [word for url in address.resource_managers for word in ("--rm", url)]
        if address.authentication == "basic":  # The addresses in /conf are behind the gateway
            daemons += [word for url in address.name_nodes for word in ("--name-node", url)]
        more = _given(cluster.user, folders, budgets)
        steps = msgspec.structs.replace(steps, run=("yarnctl", "run", *daemons, *steps.run, *more))
    return results, steps


def _given(user: str | None, folders: FolderOptions, budgets: Path | None) -> Iterator[str]:
    """Yield the options of this command line that the daemon needs as well."""
    options = {
        "--user": user,
        "--requests": folders.requests if folders.requests != DEFAULT_REQUESTS else None,
        "--store": folders.store if folders.store != DEFAULT_STORE else None,
        "--budgets": None if budgets is None else str(budgets),
    }
    for option, value in options.items():
        if value:
            yield from (option, value)


def _fallback_root(folder: str | None) -> str:
    from yarnctl.checkpoint.opened_store import checked_root

    if not folder:
        return ""
    path = urlsplit(folder).path if "://" in folder else folder
    return checked_root("--spark-fallback", path.rstrip("/"))


def _print(findings: Sequence[Finding], output: str, steps: NextSteps | None = None) -> int:
    """Print the findings and what to do next; return 1 if a check fails, else 0."""
    counts = {word: sum(one.severity == word for one in findings) for word in SEVERITIES}
    if output == "json":
        print_json({"fit": not counts["fail"], **counts, "findings": findings, "next": steps})
    else:
        click.echo(", ".join(f"{number} {word}" for word, number in counts.items()))
        for one in _grouped(findings):
            click.echo("\n".join(_lines(one, terminal_columns())))
        if steps is not None:
            if steps.apply:
                click.echo(f"{'apply':<{INDENT}}{plain(steps.apply)}")
            click.echo(f"{'run':<{INDENT}}{plain(shlex.join(steps.run))}")
    return 1 if counts["fail"] else 0


def _grouped(findings: Sequence[Finding]) -> Sequence[Finding]:
    import msgspec

    shown: dict[tuple[str, ...], Finding] = {}
    for one in findings:
        is_alike = one.severity == "unknown" and not one.fix
        key = (one.severity, one.seen) if is_alike else (one.id,)
        first = shown.get(key)
        ids = one.id if first is None else f"{first.id}, {one.id}"
        shown[key] = one if first is None else msgspec.structs.replace(first, id=ids, matters="")
    return tuple(shown.values())


def _lines(finding: Finding, width: int | None) -> list[str]:
    """Return a finding's lines: id and what was seen; unless it is ok, also the fix and why it matters.

    The fix stays on one line, so that it can be copied.
    """
    head = _folded(f"{finding.severity + ' ':<{INDENT}}{finding.id}: {plain(finding.seen)}", width)
    if finding.severity == "ok":
        return head
    fix = [f"{'  fix':<{INDENT}}{plain(finding.fix)}"] if finding.fix else []
    why = _folded(f"{'  why':<{INDENT}}{finding.matters}", width) if finding.matters else []
    return [*head, *fix, *why]


def _folded(line: str, width: int | None) -> list[str]:
    """Return a line folded between words to ``width`` columns, with a hanging indent; None: one line."""
    if width is None:
        return [line]
    return textwrap.wrap(
        line,
        max(width, WIDTH_MIN),
        subsequent_indent=" " * INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
