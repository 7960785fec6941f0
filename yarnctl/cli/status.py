"""``yarnctl status``: the daemon on one screen, from ``GET /v1/status``."""

from __future__ import annotations

from collections.abc import Iterator

import click

from yarnctl.api.order_answers import BudgetOut
from yarnctl.api.status_answers import StatusOut
from yarnctl.cli.asking import ago, client_at, plain, showing_options
from yarnctl.cli.budgets import owner_of
from yarnctl.command_line import print_json
from yarnctl.journal.rendering import span

ROWS_MAX = 8
"""More lowered settings, or budgets, are counted: the screen stays one."""


@click.command()
@showing_options
def command(url: str, output: str) -> None:
    """Show the daemon on one screen: leader, mode, lowered settings, last error, budgets."""
    status = client_at(url).status()
    if output == "json":
        print_json(status)
        return
    for line in _lines(status):
        click.echo(plain(line))


def _lines(status: StatusOut) -> Iterator[str]:
    loop = status.loop
    yield f"state     {loop.loop_state}{f': {loop.why}' if loop.why else ''}"
    uptime = span(status.now_ms - loop.started_at_ms)
    yield f"mode      {'enforce' if loop.enforce else 'observe'}, yarnctl {status.yarnctl}, up for {uptime}"
    yield f"leader    {_leader(status)}"
    if status.cluster is not None:
        answers = "answers" if loop.reachable else "does not answer"
        yield f"cluster   {status.cluster.node_count} nodes, {answers}"
    yield f"work      {status.pending} containers requested by production, {status.open_orders} open orders"
    if loop.last_error:
        yield f"error     {ago(loop.last_error_at_ms, status.now_ms)} ago: {loop.last_error}"
    else:
        yield "error     none"
    yield from (f"paused    {each.reason.text}" for each in loop.aside)
    yield from _rows("lowered", [each.text for each in status.changes])
    yield from _rows("budget", [_budget(each) for each in status.budgets])


def _leader(status: StatusOut) -> str:
    if status.leads is None:
        return "not needed: this daemon only observes"
    where = {"": "", "hdfs": " in HDFS", "zookeeper": " in ZooKeeper"}[status.lock]
    if status.leads:
        return f"this daemon has the lock{where}"
    return f"{status.leader} has the lock{where}" if status.leader else f"no daemon has the lock{where}"


def _rows(name: str, rows: list[str]) -> Iterator[str]:
    yield from (f"{name:<9} {row}" for row in rows[:ROWS_MAX] or ["none"])
    if len(rows) > ROWS_MAX:
        yield f"{name:<9} and {len(rows) - ROWS_MAX} more: -o json shows all"


def _budget(budget: BudgetOut) -> str:
    lost = f"{span(budget.lost_ms)} lost of at most {budget.may_lose_ratio * 100:g} %"
    return f"{owner_of(budget)}: {lost} in {span(budget.window_ms)}, {span(budget.left_ms)} left"
