"""``yarnctl snapshot``: the loop, the cluster and its queues, as a running daemon saw them last.

Law: what is shown is what ``GET /v1/snapshot`` answers.
"""

from __future__ import annotations

import click
import msgspec

from yarnctl.cli.asking import ago, ask, plain, showing_options, shown
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "queue",
    "class",
    "guaranteed MiB",
    "maximum MiB",
    "used MiB",
    "used vcores",
    "containers",
    "waits for",
)


class Size(msgspec.Struct):
    """A vector of memory and virtual cores."""

    memory_mib: int
    vcores: int


class Queue(msgspec.Struct, rename={"kind": "class"}):
    """One queue."""

    queue: str
    kind: str
    guaranteed: Size
    maximum: Size
    used: Size
    containers: int
    pending: int


class Loop(msgspec.Struct):
    """How the loop is."""

    mode: str
    state: str
    why: str
    reachable: bool
    ticks: int
    tick_errors: int
    last_error: str


class Cluster(msgspec.Struct):
    """Who answers."""

    epoch: str
    node_count: int


class Snapshot(msgspec.Struct):
    """Everything at a glance."""

    now_ms: int
    loop: Loop
    cluster: Cluster | None
    snapshot_at_ms: int | None
    total: Size | None
    free: Size | None
    queues: list[Queue]
    applications: int
    open_orders: int
    decisions: int


@click.command()
@showing_options
def command(url: str, output: str) -> None:
    """Show how the loop is and what the cluster looks like."""
    answer = ask(url, "v1/snapshot")
    if output == "json":
        print_json(answer)
        return
    seen = shown(Snapshot, answer, url)
    for line in _lines(seen):
        click.echo(plain(line))
    if seen.queues:
        print_table(COLUMNS, [_row(queue) for queue in seen.queues])


def _lines(seen: Snapshot) -> list[str]:
    loop = seen.loop
    why = f": {loop.why}" if loop.why else ""
    lines = [f"loop      {loop.state}{why} ({loop.mode}, {loop.ticks} ticks, {loop.tick_errors} failed)"]
    if loop.last_error:
        lines.append(f"          last error: {loop.last_error}")
    if seen.cluster is not None:
        answers = "" if loop.reachable else ", does not answer"
        lines.append(f"cluster   {seen.cluster.node_count} nodes, epoch {seen.cluster.epoch}{answers}")
    if seen.total is not None and seen.free is not None:
        lines.append(
            f"memory    {seen.total.memory_mib} MiB, {seen.free.memory_mib} MiB free,"
            f" seen {ago(seen.snapshot_at_ms, seen.now_ms)} before the last tick"
        )
    lines.append(
        f"work      {seen.applications} applications, {seen.open_orders} open orders,"
        f" {seen.decisions} decisions so far"
    )
    return lines


def _row(queue: Queue) -> tuple[object, ...]:
    return (
        plain(queue.queue),
        queue.kind,
        queue.guaranteed.memory_mib,
        queue.maximum.memory_mib,
        queue.used.memory_mib,
        queue.used.vcores,
        queue.containers,
        queue.pending,
    )
