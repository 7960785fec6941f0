"""``yarnctl checkpoints``: the content of the checkpoint store; list, show, verify, and collect what is over.

Law: all of it reads, but ``gc --yes``, which deletes whole folders of jobs that ended long enough ago
(``yarnctl.checkpoint.collecting`` decides) and nothing else. What comes from the store is printed safely.
``seen`` queries a running daemon; the others read HDFS themselves.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from yarnctl.api.order_answers import CheckpointOut
from yarnctl.api.paged import Page
from yarnctl.cli.asking import ago, ask_all, limit_option, plain, showing_options, shown
from yarnctl.cli.cluster import CLUSTER_OPTIONS, cluster_of, cluster_options, folder_options, folders_of
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.checkpoint.collecting import JudgedFolder
    from yarnctl.checkpoint.opened_store import OpenedStore
    from yarnctl.config import ClusterAddress

SEEN = ("order", "seen", "attempt", "generation", "keys done", "for")
_SPAN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|m|h|d)")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@click.group(no_args_is_help=True)
def command() -> None:
    """List, show, verify and collect the checkpoints that lie in HDFS."""


def _cluster_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say where the store is, and open it as ``opening``."""

    @functools.wraps(function)
    def with_store(history: str | None, store: str, requests: str, **given: Any) -> Any:
        folders = {"store": store, "requests": requests}
        cluster, requests_root, store_root = folders_of(cluster_of(given), folders)
        roots = store_root, requests_root
        more = {name: value for name, value in given.items() if name not in CLUSTER_OPTIONS}
        return function(opening=_open(cluster, roots, history), **more)

    history = click.option("--history", metavar="URL", help="The MapReduce history server (port 19888).")
    return output_option(cluster_options(history(folder_options(with_store))))


def _open(cluster: ClusterAddress, roots: tuple[str, str], history: str | None) -> OpenedStore:
    """Open the store and the servers that list ended jobs; finds HDFS by /conf if it is not named."""
    import msgspec

    from yarnctl.attach.connection.connection import CheckpointStore, discover_name_nodes, require_name_nodes
    from yarnctl.checkpoint.opened_store import OpenedStore
    from yarnctl.hadoop.history_server import DAEMON
    from yarnctl.hadoop.http.transport import Transport
    from yarnctl.hadoop.resource_manager import ResourceManager

    manager = cluster.transport()
    if not cluster.name_nodes:
        found = discover_name_nodes(ResourceManager(manager), manager.pinned)
        cluster = msgspec.structs.replace(cluster, name_nodes=require_name_nodes(found))
    server = None
    if history:
        ca_file = cluster.ca_file
        server = Transport((history,), cluster.identity, cluster.limits, daemon=DAEMON, ca_file=ca_file)
    hdfs = cluster.store()
    return OpenedStore(
        hdfs, manager, server, CheckpointStore(hdfs, roots[0]), CheckpointStore(hdfs, roots[1])
    )


# --- looking ----------------------------------------------------------------------------------


@command.command("list")
@_cluster_options
def list_command(opening: OpenedStore, output: str) -> None:
    """Show each task's newest generation, what it takes, and whether its application still runs."""
    rows = opening.rows(now_ms())
    _warn(opening)
    if output == "json":
        print_json({"store": opening.checkpoints.root, "checkpoints": rows})
        return
    columns = ("task", "owner", "generation", "groups", "bytes", "age", "application", "problem")
    table = [
        (
            plain(row.task),
            plain(row.owner),
            row.generation,
            row.groups_done,
            row.bytes,
            None if row.age_ms is None else f"{row.age_ms / 1000:.0f} s",
            plain(row.application_state or "unknown"),
            plain(row.problem) or None,
        )
        for row in rows
    ]
    print_table(columns, table, f"{opening.checkpoints.root}: {len(table)} tasks")


@command.command("show")
@click.argument("name", metavar="JOB|TASK")
@_cluster_options
def show_command(opening: OpenedStore, name: str, output: str) -> int:
    """Show the manifests of a job or a task in full."""
    from yarnctl.checkpoint.opened_store import shown_manifest

    found = opening.manifests(name)
    if output == "json":
        print_json({"manifests": [shown_manifest(*one) for one in found]})
    for task, file, manifest in found if output != "json" else ():
        fields = shown_manifest(task, file, manifest)
        told = [(key, _cell(value)) for key, value in fields.items() if key not in ("folder", "file")]
        print_table(("field", "value"), told, plain(f"{task}/{file}"))
    if not found:
        click.echo(
            f"error: {opening.checkpoints.root}: no manifest of {name}; see checkpoints list", err=True
        )
    return 0 if found and not any(isinstance(one[2], str) for one in found) else 1


@command.command("verify")
@click.argument("names", nargs=-1, metavar="[JOB|TASK]...")
@click.option("--quick", is_flag=True, help="Compare sizes only; do not read the bytes.")
@_cluster_options
def verify_command(opening: OpenedStore, names: tuple[str, ...], quick: bool, output: str) -> int:
    """Check seal, ids, owner, fields and every byte; exit status 1 if something is wrong."""
    verdicts = opening.verdicts(names, quick)
    bad = [one for one in verdicts if one.state == "bad"]
    if output == "json":
        print_json({"store": opening.checkpoints.root, "bad": len(bad), "manifests": verdicts})
        return 1 if bad else 0
    rows = [
        (
            plain(v.task),
            plain(v.manifest) or None,
            v.generation,
            v.bytes,
            v.state,
            plain("; ".join(v.problems)),
        )
        for v in verdicts
    ]
    title = f"{opening.checkpoints.root}: {len(verdicts)} looked at, {len(bad)} bad"
    print_table(("task", "manifest", "generation", "bytes", "state", "problems"), rows, title)
    return 1 if bad else 0


@command.command("seen")
@click.option("--application", help="Only of this application.")
@click.option("--attempt", help="Only of this task attempt.")
@limit_option
@showing_options
def seen_command(application: str | None, attempt: str | None, limit: int, url: str, output: str) -> None:
    """Show the newest checkpoints that a running daemon has seen, and for whom they were made."""
    answer = ask_all(url, "v1/checkpoints", {"application": application, "attempt": attempt}, limit)
    if output == "json":
        print_json(answer)
        return
    page = shown(Page[CheckpointOut], answer, url)
    rows = [
        (
            plain(each.order),
            ago(each.at_ms, page.now_ms),
            plain(each.attempt),
            each.generation,
            each.keys_done,
            plain(each.asker),
        )
        for each in page.items
    ]
    print_table(SEEN, rows, f"{page.total} checkpoints")


# --- collecting -------------------------------------------------------------------------------


@command.command("gc")
@click.option("--yes", is_flag=True, help="Delete. Without it only what would be deleted is printed.")
@click.option(
    "--older-than",
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="Since the job's end; a day at least.",
)
@click.option(
    "--unknown-after",
    metavar="SPAN",
    help="Also of jobs that neither ResourceManager nor history server know, so long after their files were"
    " written to; a week at least, only with --history, not where clusters share a store.  [default: never]",
)
@_cluster_options
def gc_command(
    opening: OpenedStore, yes: bool, older_than: str, unknown_after: str | None, output: str
) -> int:
    """Delete checkpoints and requests of jobs that ended long enough ago; says what, unless --yes."""
    from yarnctl.checkpoint.collecting import DAY_MS

    unknown_after_ms = None if unknown_after is None else _unknown_after_ms(opening, unknown_after)
    older_than_ms = span_ms(older_than)
    if older_than_ms < DAY_MS:
        remedy = "give 24h or more: the end that is told may be older or younger than it seems"
        raise BadInput("--older-than", f"{older_than[:40]} is less than a day", remedy)
    by_all_clocks_ms = opening.application_ends.now_ms(now_ms)
    rows = opening.judged(by_all_clocks_ms, older_than_ms, unknown_after_ms)
    _warn(opening)
    failed = opening.delete(rows, by_all_clocks_ms, older_than_ms, unknown_after_ms) if yes else {}
    gone = [row for row in rows if row.delete and (row.what, row.job) not in failed]
    summary = {
        "deleted": yes,
        "jobs": len({row.job for row in gone}),
        "files": sum(row.files for row in gone),
        "bytes": sum(row.bytes for row in gone),
    }
    if output == "json":
        problems = [{"what": what, "job": job, "problem": why} for (what, job), why in failed.items()]
        print_json({"store": opening.checkpoints.root, **summary, "failed": problems, "folders": rows})
    else:
        _print_gc(rows, failed, summary)
    return 1 if failed else 0


def _unknown_after_ms(opening: OpenedStore, text: str) -> int:
    """Return after which span the files of an unknown job may go; BadInput where that could be too soon."""
    from yarnctl.checkpoint.collecting import WEEK_MS

    after_ms = span_ms(text, "--unknown-after")
    if after_ms < WEEK_MS:
        remedy = "give 7d or more: a job that nobody knows here may be another cluster's"
        raise BadInput("--unknown-after", f"{text[:40]} is less than a week", remedy)
    if not opening.application_ends.has_history:
        remedy = "give --history: who asks the ResourceManager alone takes what it forgot for unknown"
        raise BadInput("--unknown-after", "is only judged with the history server's word", remedy)
    return after_ms


def _print_gc(
    rows: tuple[JudgedFolder, ...], failed: dict[tuple[str, str], str], summary: dict[str, Any]
) -> None:
    done = "deleted" if summary["deleted"] else "would delete"
    table = []
    for row in rows:
        problem = failed.get((row.what, row.job))
        word = f"failed: {problem}" if problem else row.why
        table.append(
            (row.job, row.what, done if row.delete and not problem else "keep", row.bytes, plain(word))
        )
    title = f"{done} {summary['files']} files of {summary['jobs']} jobs, {summary['bytes']} bytes"
    hint = "" if summary["deleted"] or not summary["jobs"] else "; give --yes to do it"
    print_table(("job", "what", "decision", "bytes", "why"), table, title + hint)


def span_ms(text: str, option: str = "--older-than") -> int:
    """Return a span like 90s, 30m, 24h or 2d in milliseconds; raises BadInput."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInput(option, f"{text[:40]!r} is no span", "write it like 30m, 24h or 2d")
    return int(float(match[1]) * _UNITS_MS[match[2]])


def now_ms() -> int:
    """Return the present, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _warn(opening: OpenedStore) -> None:
    for problem in opening.application_ends.unreachable:
        click.echo(f"warning: {plain(problem)}; states are unknown", err=True)


def _cell(value: object) -> str:
    import json

    return plain(value if isinstance(value, str) else json.dumps(value))
