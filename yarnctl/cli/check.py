"""``yarnctl check``: is this cluster fit, and what is to be mended where it is not?

Law: it only reads. Exit status 0: nothing fails; 1: something does; 3: no ResourceManager answers.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from yarnctl.cli.asking import plain
from yarnctl.cli.cluster import (
    cluster_of,
    cluster_options,
    folder_options,
    folders_of,
    queue_options,
    queues_of,
)
from yarnctl.cli.gate_options import require_mechanism
from yarnctl.command_line import output_option, print_json, terminal_columns

if TYPE_CHECKING:
    from yarnctl.attach.check.preflight import Finding

INDENT = 9
"""Where the text of a finding begins."""
ROOM_MIN = 40
"""How many characters a line has at least, however narrow the terminal is."""


@click.command()
@cluster_options
@queue_options
@click.option("--allow-priority", is_flag=True, help="Judge as yarnctl run --allow-priority needs it.")
@click.option("--admission", metavar="ALLOCATOR", help="Judge as yarnctl run --admission needs it.")
@folder_options
@click.option("--spark", is_flag=True, help="Judge as executors of Spark need it that are to leave.")
@click.option(
    "--spark-fallback",
    metavar="FOLDER",
    help="Judge the folder for shuffle blocks of jobs that are suspended whole.  [implies: --spark]",
)
@output_option
def command(output: str, **given: Any) -> int:
    """Say whether a cluster is fit for checkpoint preemption, and how to mend what is not."""
    from yarnctl.attach.check.gathering import gather
    from yarnctl.attach.check.preflight import Facts
    from yarnctl.attach.check.rules import judge

    if given["admission"] is not None:
        require_mechanism(given["admission"])
    cluster, requests_root, store_root = folders_of(cluster_of(given), given)
    hurried, victims = queues_of(given)
    begin = Facts(
        mode=given["mode"],
        preempting_queues=hurried,
        preemptable_queues=victims,
        allow_priority=given["allow_priority"],
        admission=given["admission"],
        requests_root=requests_root,
        store_root=store_root,
        spark=given["spark"] or given["spark_fallback"] is not None,
        fallback_root=_folder(given["spark_fallback"]),
    )
    return _print(judge(gather(cluster, begin, lambda: time.time_ns() // 1_000_000)), output)


def _folder(named: str | None) -> str:
    """Return the path within HDFS of a folder that was named by a path or an address ("": none was)."""
    from yarnctl.checkpoint.opened_store import checked_root

    if not named:
        return ""
    path = urlsplit(named).path if "://" in named else named
    return checked_root("--spark-fallback", path.rstrip("/"))


def _print(findings: Sequence[Finding], output: str) -> int:
    """Print the findings; return 1 if any of them keeps the cluster from being fit."""
    counts = {
        word: sum(one.severity == word for one in findings) for word in ("ok", "warn", "fail", "unknown")
    }
    if output == "json":
        print_json({"fit": not counts["fail"], **counts, "findings": findings})
    else:
        click.echo(", ".join(f"{number} {word}" for word, number in counts.items()))
        for one in _grouped(findings):
            click.echo("\n".join(_lines(one, terminal_columns())))
    return 1 if counts["fail"] else 0


def _grouped(findings: Sequence[Finding]) -> Sequence[Finding]:
    """Return the findings for reading: those that are not judged for one and the same cause are one."""
    import msgspec

    shown: dict[tuple[str, ...], Finding] = {}
    for one in findings:
        is_alike = one.severity == "unknown" and not one.fix
        key = (one.severity, one.seen) if is_alike else (one.id,)
        first = shown.get(key)
        ids = one.id if first is None else f"{first.id}, {one.id}"
        shown[key] = one if first is None else msgspec.structs.replace(first, id=ids, matters="")
    return tuple(shown.values())


def _lines(one: Finding, width: int | None) -> list[str]:
    """Return a finding as a line, or a block if it is not ok: what was found, its fix, and why it matters.

    The fix is there to be copied: it stays on one line, which the terminal may wrap.
    """
    head = _folded(f"{one.severity + ' ':<{INDENT}}{one.id}: {plain(one.seen)}", width)
    if one.severity == "ok":
        return head
    fix = [f"{'  fix':<{INDENT}}{plain(one.fix)}"] if one.fix else []
    why = _folded(f"{'  why':<{INDENT}}{one.matters}", width) if one.matters else []
    return [*head, *fix, *why]


def _folded(line: str, width: int | None) -> list[str]:
    """Return a line folded between words, the rest below its text."""
    if width is None:
        return [line]
    room = max(width, ROOM_MIN)
    return textwrap.wrap(
        line, room, subsequent_indent=" " * INDENT, break_long_words=False, break_on_hyphens=False
    )
