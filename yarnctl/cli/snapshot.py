"""``yarnctl snapshot``: show loop, cluster and queues, from ``GET /v1/snapshot`` of a running daemon."""

from __future__ import annotations

import click

from yarnctl.api.cluster_answers import Queue, SnapshotOut
from yarnctl.cli.asking import ago, client_at, plain, short, showing_options
from yarnctl.command_line import print_json, print_table

COLUMNS = (
    "queue",
    "role",
    "guaranteed MiB",
    "maximum MiB",
    "used MiB",
    "used vcores",
    "containers",
    "pending",
)


@click.command()
@showing_options
def command(url: str, output: str) -> None:
    """Show the state of the daemon's loop, the cluster and its queues."""
    seen = client_at(url).snapshot()
    if output == "json":
        print_json(seen)
        return
    for line in _lines(seen):
        click.echo(plain(line))
    if seen.queues:
        print_table(COLUMNS, [_row(queue) for queue in seen.queues])


def _lines(snapshot: SnapshotOut) -> list[str]:
    loop = snapshot.loop
    why = f": {loop.why}" if loop.why else ""
    mode = "enforce" if loop.enforce else "observe"
    lines = [f"loop      {loop.loop_state}{why} ({mode}, {loop.ticks} ticks, {loop.tick_errors} failed)"]
    if loop.last_error:
        when = (
            f" {ago(loop.last_error_at_ms, snapshot.now_ms)} ago" if loop.last_error_at_ms is not None else ""
        )
        lines.append(f"          last error{when}: {loop.last_error}")
    lines += [f"paused    {each.reason.text}" for each in loop.aside]
    if snapshot.cluster is not None:
        answers = "" if loop.reachable else ", does not answer"
        lines.append(
            f"cluster   {snapshot.cluster.node_count} nodes, epoch {snapshot.cluster.epoch}{answers}"
        )
    if snapshot.total is not None and snapshot.free is not None:
        lines.append(
            f"memory    {snapshot.total.memory_mib} MiB, {snapshot.free.memory_mib} MiB free,"
            f" {ago(snapshot.snapshot_at_ms, snapshot.now_ms)} old at the last tick"
        )
    lines.append(
        f"work      {snapshot.applications} applications, {snapshot.open_orders} open orders,"
        f" {snapshot.decisions} decisions so far"
    )
    return lines


def _row(queue: Queue) -> tuple[object, ...]:
    return (
        short(queue.queue),
        queue.role,
        queue.guaranteed.memory_mib,
        queue.maximum.memory_mib,
        queue.used.memory_mib,
        queue.used.vcores,
        queue.containers,
        queue.pending,
    )
