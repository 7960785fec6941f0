"""``yarnctl checkpoints``: list, show, verify and delete checkpoints in HDFS.

Only ``gc --yes`` changes anything: it deletes whole folders of jobs that ended long enough ago. Text from the
store is printed without control characters.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from yarnctl.cli.asking import ago, client_at, limit_option, plain, showing_options
from yarnctl.cli.cluster import (
    ClusterOptions,
    FolderOptions,
    cluster_of,
    cluster_options,
    folder_options,
    folders_of,
)
from yarnctl.command_line import output_option, print_json, print_table
from yarnctl.errors import BadInput

if TYPE_CHECKING:
    from yarnctl.checkpoint.collecting import JudgedFolder
    from yarnctl.checkpoint.opened_store import OpenedStore

SEEN = ("order", "age", "attempt", "generation", "keys done", "for")
_SPAN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(s|m|h|d)")
_UNITS_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@click.group(no_args_is_help=True)
def command() -> None:
    """List, show, verify and delete checkpoints in HDFS."""


def _store_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name the store: ``cluster``, ``folders``, ``history``, ``output``."""
    history = click.option("--history", metavar="URL", help="MapReduce history server (port 19888).")
    return output_option(cluster_options(history(folder_options(function))))


def _open(options: ClusterOptions, folders: FolderOptions, history: str | None) -> OpenedStore:
    import msgspec

    from yarnctl.attach.connection.connection import CheckpointStore, discover_name_nodes, require_name_nodes
    from yarnctl.checkpoint.opened_store import OpenedStore
    from yarnctl.frameworks.mapreduce.history_server import DAEMON
    from yarnctl.hadoop.http.transport import Transport
    from yarnctl.hadoop.resource_manager import ResourceManager

    cluster, requests_root, store_root = folders_of(cluster_of(options), folders)
    manager = cluster.transport()
    if not cluster.name_nodes:
        found = discover_name_nodes(cluster, ResourceManager(manager), manager.pinned)
        cluster = msgspec.structs.replace(cluster, name_nodes=require_name_nodes(found))
    server = None
    if history:
        ca_file = cluster.ca_file
        server = Transport((history,), cluster.identity, cluster.limits, daemon=DAEMON, ca_file=ca_file)
    hdfs = cluster.store()
    return OpenedStore(
        hdfs, manager, server, CheckpointStore(hdfs, store_root), CheckpointStore(hdfs, requests_root)
    )


# --- reading ----------------------------------------------------------------------------------


@command.command("list")
@_store_options
def list_command(cluster: ClusterOptions, folders: FolderOptions, history: str | None, output: str) -> None:
    """List each task's newest generation, its size, and its application's state."""
    store = _open(cluster, folders, history)
    rows = store.rows(now_ms())
    _warn(store)
    if output == "json":
        print_json({"store": store.checkpoints.root, "checkpoints": rows})
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
    print_table(columns, table, f"{store.checkpoints.root}: {len(table)} tasks")


@command.command("show")
@click.argument("name", metavar="JOB|TASK")
@_store_options
def show_command(
    name: str, cluster: ClusterOptions, folders: FolderOptions, history: str | None, output: str
) -> int:
    """Show all fields of the manifests of a job or a task."""
    from yarnctl.checkpoint.opened_store import shown_manifest

    store = _open(cluster, folders, history)
    found = store.manifests(name)
    if output == "json":
        print_json({"manifests": [shown_manifest(task, file, manifest) for task, file, manifest in found]})
    for task, file, manifest in found if output != "json" else ():
        fields = shown_manifest(task, file, manifest)
        rows = [(key, _cell(value)) for key, value in fields.items() if key not in ("folder", "file")]
        print_table(("field", "value"), rows, plain(f"{task}/{file}"))
    if not found:
        click.echo(
            f"error: {store.checkpoints.root}: no manifest of {name}; run yarnctl checkpoints list", err=True
        )
    return 0 if found and not any(isinstance(one[2], str) for one in found) else 1


@command.command("verify")
@click.argument("names", nargs=-1, metavar="[JOB|TASK]...")
@click.option("--quick", is_flag=True, help="Compare sizes only; do not read the bytes.")
@_store_options
def verify_command(
    names: tuple[str, ...],
    quick: bool,
    cluster: ClusterOptions,
    folders: FolderOptions,
    history: str | None,
    output: str,
) -> int:
    """Verify seal, ids, owner, fields and every byte; exit with 1 if a manifest is bad."""
    store = _open(cluster, folders, history)
    verdicts = store.verdicts(names, quick)
    bad = [one for one in verdicts if one.state == "bad"]
    if output == "json":
        print_json({"store": store.checkpoints.root, "bad": len(bad), "manifests": verdicts})
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
    title = f"{store.checkpoints.root}: {len(verdicts)} verified, {len(bad)} bad"
    print_table(("task", "manifest", "generation", "bytes", "state", "problems"), rows, title)
    return 1 if bad else 0


@command.command("seen")
@click.option("--application", help="Show only checkpoints of this application.")
@click.option("--attempt", help="Show only checkpoints of this task attempt.")
@limit_option
@showing_options
def seen_command(application: str | None, attempt: str | None, limit: int, url: str, output: str) -> None:
    """Show the newest checkpoints seen by a running daemon, and the applications that needed the
    containers.
    """
    page = client_at(url).checkpoints(application, attempt, limit)
    if output == "json":
        print_json(page)
        return
    rows = [
        (
            plain(each.order),
            ago(each.at_ms, page.now_ms),
            plain(each.attempt),
            each.generation,
            each.keys_done,
            plain(each.requester),
        )
        for each in page.items
    ]
    print_table(SEEN, rows, f"{page.total} checkpoints")


@command.command("gc")
@click.option("--yes", is_flag=True, help="Delete. Without it, only print what would be deleted.")
@click.option(
    "--older-than",
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="Minimum time since the job's end; at least 24h.",
)
@click.option(
    "--unknown-after",
    metavar="SPAN",
    help="Delete also files of jobs that neither ResourceManager nor history server know, this long after the"
    " last write; at least 7d. Requires --history. Do not use it where clusters share a store."
    "  [default: never]",
)
@_store_options
def gc_command(
    yes: bool,
    older_than: str,
    unknown_after: str | None,
    cluster: ClusterOptions,
    folders: FolderOptions,
    history: str | None,
    output: str,
) -> int:
    """Delete checkpoints and requests of ended jobs; without --yes print what would be deleted."""
    from yarnctl.checkpoint.collecting import DAY_MS

    store = _open(cluster, folders, history)
    unknown_after_ms = None if unknown_after is None else _unknown_after_ms(store, unknown_after)
    older_than_ms = span_ms(older_than)
    if older_than_ms < DAY_MS:
        remedy = "use 24h or more, because reported end times are not exact"
        raise BadInput("--older-than", f"{older_than[:40]} is less than a day", remedy)
    by_all_clocks_ms = store.application_ends.now_ms(now_ms)
    rows = store.judged(by_all_clocks_ms, older_than_ms, unknown_after_ms)
    _warn(store)
    failed = store.delete(rows, by_all_clocks_ms, older_than_ms, unknown_after_ms) if yes else {}
    gone = [row for row in rows if row.delete and (row.what, row.job) not in failed]
    summary = {
        "deleted": yes,
        "jobs": len({row.job for row in gone}),
        "files": sum(row.files for row in gone),
        "bytes": sum(row.bytes for row in gone),
    }
    if output == "json":
        problems = [{"what": what, "job": job, "problem": why} for (what, job), why in failed.items()]
        print_json({"store": store.checkpoints.root, **summary, "failed": problems, "folders": rows})
    else:
        _print_gc(rows, failed, summary)
    return 1 if failed else 0


def _unknown_after_ms(store: OpenedStore, text: str) -> int:
    from yarnctl.checkpoint.collecting import WEEK_MS

    after_ms = span_ms(text, "--unknown-after")
    if after_ms < WEEK_MS:
        remedy = "use 7d or more, because an unknown job may belong to another cluster"
        raise BadInput("--unknown-after", f"{text[:40]} is less than a week", remedy)
    if not store.application_ends.has_history:
        problem = "requires --history, because the ResourceManager forgets ended jobs"
        raise BadInput("--unknown-after", problem, "add --history URL")
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
    hint = "" if summary["deleted"] or not summary["jobs"] else "; add --yes to delete them"
    print_table(("job", "what", "decision", "bytes", "why"), table, title + hint)


def span_ms(text: str, option: str = "--older-than") -> int:
    """Return a duration such as 90s, 30m, 24h or 2d in milliseconds; raises BadInput."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        raise BadInput(option, f"{text[:40]!r} is not a duration", "use for example 30m, 24h or 2d")
    return int(float(match[1]) * _UNITS_MS[match[2]])


def now_ms() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _warn(store: OpenedStore) -> None:
    for problem in store.application_ends.unreachable:
        click.echo(f"warning: {plain(problem)}; application states are unknown", err=True)


def _cell(value: object) -> str:
    import json

    return plain(value if isinstance(value, str) else json.dumps(value))
